//! This side of a connection: the program that is put on other machines, and ssh.

use std::ffi::{OsStr, OsString};
use std::io::Read;

use serde::Serialize;

use super::install::Program;
use super::protocol::PROTOCOL;

/// This recant, and what ssh says of itself.
#[derive(Serialize)]
pub struct NearSide {
    pub version: &'static str,
    protocol: u32,
    pub machine: String,
    /// True if this binary can be put on other machines.
    #[serde(rename = "static")]
    pub is_static: bool,
    /// The version that ssh tells, or why it does not.
    #[serde(serialize_with = "words_of")]
    pub ssh: Result<String, String>,
}

fn words_of<S: serde::Serializer>(ssh: &Result<String, String>, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(ssh.as_ref().unwrap_or_else(|why| why))
}

impl NearSide {
    /// Looks at this binary, and has ssh tell its version.
    pub fn look(ssh: &[OsString]) -> Self {
        let own = Program::of_this_process();
        let (machine, is_static) =
            own.map_or_else(|_| (std::env::consts::ARCH.into(), false), |own| (own.machine, own.is_static));
        Self { version: env!("CARGO_PKG_VERSION"), protocol: PROTOCOL, machine, is_static, ssh: version_of(ssh) }
    }

    /// The version of ssh, or why it tells none.
    pub fn ssh_words(&self) -> &str {
        self.ssh.as_ref().unwrap_or_else(|why| why)
    }
}

/// The version that `ssh -V` prints, on standard error; or why it does not.
fn version_of(words: &[OsString]) -> Result<String, String> {
    let program = words.first().map_or(OsStr::new("ssh"), |word| word);
    let mut command = crate::fs::command(program);
    command.args(words.iter().skip(1)).arg("-V").stdin(std::process::Stdio::null());
    match command.stdout(std::process::Stdio::null()).stderr(std::process::Stdio::piped()).spawn() {
        Err(error) => Err(format!("{} cannot be started: {}", program.display(), crate::error::reason(&error))),
        Ok(mut child) => {
            let mut said = String::new();
            let _none = child.stderr.take().map(|stderr| stderr.take(4096).read_to_string(&mut said));
            let ended_well = child.wait().is_ok_and(|status| status.success());
            let said = said.lines().next().unwrap_or("it does not say its version").to_owned();
            if ended_well { Ok(said) } else { Err(said) }
        }
    }
}
