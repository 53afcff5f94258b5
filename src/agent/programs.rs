//! Programs of agents: where they are, and what they say of themselves. Each call has a limit of time.

use std::io::Read;
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Stdio};
use std::sync::mpsc;
use std::time::{Duration, Instant};

use serde_json::Value;

/// The limit of time for a program that is asked.
pub const LIMIT: Duration = Duration::from_secs(5);

/// The version in the package.json of the package that a program belongs to. Starts nothing: a first start may take long, or unpack much.
pub fn version_of_package(program: &Path) -> Option<String> {
    const LEVELS: usize = 5;
    let real = program.canonicalize().ok()?;
    let packages = real.ancestors().skip(1).take(LEVELS).map(|directory| directory.join("package.json"));
    let package = packages.into_iter().find_map(|path| std::fs::read(path).ok())?;
    let package: Value = serde_json::from_slice(&package).ok()?;
    Some(package["version"].as_str()?.to_owned())
}

/// The version that a program tells: the first word that begins with a digit.
pub fn version(program: &Path) -> Option<String> {
    let mut child = Piped::start(program, "--version")?;
    // One that reads comes to the end at once.
    drop(child.stdin());
    let stdout = child.stdout()?;
    let text = within(LIMIT, move || {
        let mut text = String::new();
        stdout.take(4096).read_to_string(&mut text).ok().map(|_| text)
    })??;
    let word = text.split_whitespace().map(|word| word.trim_start_matches('v').trim_end_matches(['.', ',']));
    word.into_iter().find(|word| word.starts_with(|c: char| c.is_ascii_digit())).map(str::to_owned)
}

/// A process that is ended at the latest when this goes.
pub struct Piped(Child);

impl Piped {
    /// Starts a program with an argument. Its standard error is nobody's.
    pub fn start(program: &Path, argument: &str) -> Option<Self> {
        let mut command = crate::fs::command(program);
        command.arg(argument).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        command.spawn().ok().map(Self)
    }

    pub fn stdin(&mut self) -> Option<ChildStdin> {
        self.0.stdin.take()
    }

    pub fn stdout(&mut self) -> Option<ChildStdout> {
        self.0.stdout.take()
    }
}

impl Drop for Piped {
    fn drop(&mut self) {
        // One that has closed its output ends by itself soon: it may still write what it keeps.
        let start = Instant::now();
        while start.elapsed() < Duration::from_millis(200) {
            if !matches!(self.0.try_wait(), Ok(None)) {
                return;
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        drop(self.0.kill());
        drop(self.0.wait());
    }
}

/// The result of `work`, if it comes in time.
pub fn within<T: Send + 'static>(limit: Duration, work: impl FnOnce() -> T + Send + 'static) -> Option<T> {
    let (send, receive) = mpsc::channel();
    std::thread::spawn(move || drop(send.send(work())));
    receive.recv_timeout(limit).ok()
}
