//! `-H HOST doctor`: reports on this side, then on the far one.

use std::ffi::{OsStr, OsString};
use std::io::{Read, Write};
use std::time::Instant;

use serde::Serialize;
use serde_json::Value;

use super::call::Far;
use crate::error::Error;
use crate::face::ended::Ended;
use crate::remote::PROTOCOL;
use crate::remote::install::Program;
use crate::remote::streams::Stream;

impl Far<'_> {
    /// Reports on this side, then prints the far side's report.
    pub fn doctor(&self) -> Result<Ended, Error> {
        let out = &self.call.out;
        let near = NearSide::look(&self.link.ssh.words);
        let mut printed = Vec::new();
        let begun = Instant::now();
        let mut sink = |stream, bytes: &[u8]| match stream {
            Stream::Output => printed.write_all(bytes),
            Stream::Errors => out.pass_message(bytes),
        };
        let ended = self.link.carry_out(&self.request, None, &mut sink);
        let took = begun.elapsed().as_millis();
        if out.is_text() {
            let own = if near.is_static { "static" } else { "not static, so it cannot be put on other machines: make static" };
            out.line(format_args!("here: recant {}, protocol {PROTOCOL}, {}, {own}", near.version, near.machine));
            out.line(format_args!("ssh: {}", near.ssh_words()));
            if ended.is_ok() {
                out.line(format_args!("{}: answered in {took} ms", self.link.target.name));
                out.line("");
            }
            out.bytes(&printed);
        } else if ended.is_ok() {
            let far = serde_json::from_slice(&printed).unwrap_or(Value::Null);
            out.document(&Doctor { host: &self.link.target.name, near, far });
        }
        self.ended(ended)
    }
}

#[derive(Serialize)]
struct Doctor<'a> {
    host: &'a str,
    near: NearSide,
    far: Value,
}

#[derive(Serialize)]
pub struct NearSide {
    version: &'static str,
    protocol: u32,
    machine: String,
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
        let own = Program::own();
        let (machine, is_static) =
            own.map_or_else(|_| (std::env::consts::ARCH.into(), false), |own| (own.machine, own.is_static));
        Self { version: env!("CARGO_PKG_VERSION"), protocol: PROTOCOL, machine, is_static, ssh: version_of(ssh) }
    }

    fn ssh_words(&self) -> &str {
        self.ssh.as_ref().unwrap_or_else(|why| why)
    }
}

/// The version that `ssh -V` prints, on standard error; or why it does not.
fn version_of(words: &[OsString]) -> Result<String, String> {
    let program = words.first().map_or(OsStr::new("ssh"), |word| word);
    let mut command = std::process::Command::new(program);
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
