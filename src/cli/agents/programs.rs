//! Programs of agents: where they are, and what they say of themselves. Each call has a limit of time.

use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

/// The first program of this name in PATH.
pub fn find(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path).map(|directory| directory.join(name)).find(|path| is_program(path))
}

/// True if it can be started, as far as its mode tells.
pub fn is_program(path: &Path) -> bool {
    path.metadata().is_ok_and(|found| found.is_file() && found.permissions().mode() & 0o111 != 0)
}

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
pub fn version(program: &Path, limit: Duration) -> Option<String> {
    let mut command = Command::new(program);
    command.arg("--version").stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut child = Ended::of(command.spawn().ok()?);
    let stdout = child.0.stdout.take()?;
    let text = within(limit, move || {
        let mut text = String::new();
        stdout.take(4096).read_to_string(&mut text).ok().map(|_| text)
    })??;
    let word = text.split_whitespace().map(|word| word.trim_start_matches('v').trim_end_matches(['.', ',']));
    word.into_iter().find(|word| word.starts_with(|c: char| c.is_ascii_digit())).map(str::to_owned)
}

/// The hooks that Codex CLI has for a directory, as it lists them; `None` if it does not tell.
pub fn hooks_of_codex(program: &Path, directory: &Path, limit: Duration) -> Option<Vec<Value>> {
    let mut command = Command::new(program);
    command.arg("app-server").stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut child = Ended::of(command.spawn().ok()?);
    let (mut stdin, stdout) = (child.0.stdin.take()?, child.0.stdout.take()?);
    let client = json!({"name": "recant", "version": env!("CARGO_PKG_VERSION")});
    let directory = directory.to_str()?.to_owned();
    let listed = within(limit, move || {
        let mut lines = BufReader::new(stdout).lines();
        let mut answer = |id: u64| {
            let answers = lines.by_ref().map_while(Result::ok).filter_map(|line| serde_json::from_str::<Value>(&line).ok());
            answers.into_iter().find(|answer| answer["id"] == id)
        };
        let mut ask = |question: Value| writeln!(stdin, "{question}").and_then(|()| stdin.flush()).ok();
        ask(json!({"id": 1, "method": "initialize", "params": {"clientInfo": client}}))?;
        answer(1)?;
        ask(json!({"method": "initialized"}))?;
        ask(json!({"id": 2, "method": "hooks/list", "params": {"cwds": [directory]}}))?;
        answer(2)
    })??;
    listed["result"]["data"][0]["hooks"].as_array().cloned()
}

/// A process that is ended at the latest when this goes.
struct Ended(Child);

impl Ended {
    fn of(child: Child) -> Self {
        Self(child)
    }
}

impl Drop for Ended {
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
fn within<T: Send + 'static>(limit: Duration, work: impl FnOnce() -> T + Send + 'static) -> Option<T> {
    let (send, receive) = mpsc::channel();
    std::thread::spawn(move || drop(send.send(work())));
    receive.recv_timeout(limit).ok()
}
