//! The watcher that rolls back a commit which nobody confirms: a timer of systemd, a job of at, or a process of recant's own. Any later
//! recant that changes something does it as well.

use std::fmt::Write as _;
use std::io::{Read as _, Write as _};
use std::path::Path;
use std::process::{Command, Stdio};

use crate::fs::path::AbsPath;
use crate::remote::place::PLACE;
use crate::session::id::Id;

/// The kind of watcher.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Watcher {
    /// A transient timer of this name.
    Systemd(String),
    /// A job of atd.
    At,
    /// A process of recant, by its id.
    Process(u32),
    /// Nothing could be started.
    Nobody,
}

impl Watcher {
    /// Names it in a word or two, for JSON.
    pub fn word(&self) -> String {
        match self {
            Watcher::Systemd(unit) => format!("systemd {unit}"),
            Watcher::At => "at".into(),
            Watcher::Process(pid) => format!("process {pid}"),
            Watcher::Nobody => "nobody".into(),
        }
    }

    /// Says, for people, who does it, and who does it after a restart of the machine.
    pub fn told(&self) -> String {
        let later = "after a restart the next recant that changes something";
        match self {
            Watcher::Systemd(unit) => format!("the timer {unit} does it; {later}"),
            Watcher::At => "a job of at's does it, after a restart too".into(),
            Watcher::Process(pid) => format!("process {pid} does it; {later}"),
            Watcher::Nobody => "no watcher could be started: the next recant that changes something does it".into(),
        }
    }
}

/// Starts the first kind that works here.
pub fn start(store: &AbsPath, id: &Id, seconds: i64) -> Watcher {
    let only = only();
    let may = |which: &str| only.as_deref().is_none_or(|only| only == which);
    let systemd = may("systemd").then(|| systemd(store, id, seconds, only.is_some())).flatten();
    let at = || may("at").then(|| at(store, id, seconds, only.is_some())).flatten();
    let process = || may("process").then(|| detach(store, id)).flatten();
    systemd.or_else(at).or_else(process).unwrap_or(Watcher::Nobody)
}

#[cfg(not(feature = "crash-points"))]
fn only() -> Option<String> {
    None
}

/// A test chooses one.
#[cfg(feature = "crash-points")]
fn only() -> Option<String> {
    std::env::var("RECANT_CONFIRM_BY").ok()
}

/// Starts a process of its own, without terminal and parent, on a machine that has nothing else.
fn detach(store: &AbsPath, id: &Id) -> Option<Watcher> {
    let program = std::env::current_exe().ok()?;
    let mut command = Command::new(program);
    command.arg("--store").arg(store.as_path()).args(["confirm", "--watch", id.as_str()]);
    // The test's settings for this process are not for that one.
    command.env_remove("RECANT_STEPS").current_dir("/");
    // It records errors in the store.
    let mut child = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().ok()?;
    let mut first = [0];
    let watches = child.stdout.take()?.read(&mut first).is_ok_and(|got| got == 1);
    watches.then(|| Watcher::Process(child.id()))
}

fn systemd(store: &AbsPath, id: &Id, seconds: i64, asked: bool) -> Option<Watcher> {
    let root = rustix::process::geteuid().is_root();
    // A user's systemd manager ends with his last session, and its timers with it, unless it was told to linger.
    let lingers = || std::env::var_os("USER").is_some_and(|user| Path::new("/var/lib/systemd/linger").join(user).exists());
    if !asked && !(Path::new("/run/systemd/system").is_dir() && (root || lingers())) {
        return None;
    }
    let unit = format!("recant-confirm-{id}");
    let mut command = Command::new("systemd-run");
    if !root {
        command.arg("--user");
    }
    command.args(["--quiet", "--collect", "--timer-property=AccuracySec=1s"]).arg(format!("--unit={unit}"));
    command.arg(format!("--on-active={seconds}s"));
    for name in ["HOME", "XDG_CONFIG_HOME"] {
        if let Some(value) = std::env::var_os(name) {
            let mut set = std::ffi::OsString::from(format!("--setenv={name}="));
            set.push(value);
            command.arg(set);
        }
    }
    use std::os::unix::ffi::OsStrExt;
    command.args(["--", "/bin/sh", "-c"]).arg(std::ffi::OsStr::from_bytes(&job(store, id)?));
    let done = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).status().ok()?;
    done.success().then_some(Watcher::Systemd(unit))
}

/// The watcher's command for sh(1), without a `$`, which systemd would expand. Its standard output, by which [`detach`] knows that it
/// watches, goes to /dev/null: at sends output by mail. If `-H` installed recant on this machine, another version may have
/// replaced this one by then (`remote::install`).
fn job(store: &AbsPath, id: &Id) -> Option<Vec<u8>> {
    let program = std::env::current_exe().ok()?;
    let watch =
        [&b" --store "[..], &quoted(store.as_path()), b" confirm --watch ", id.as_str().as_bytes(), b" > /dev/null\n"].concat();
    let own = quoted(&program);
    let versions = program.ancestors().nth(2).filter(|directory| directory.ends_with(PLACE));
    Some(match versions {
        None => [&b"exec "[..], &own, &watch].concat(),
        Some(directory) => {
            let first = [&b"if [ -x "[..], &own, b" ]; then exec ", &own, &watch, b"fi\n"].concat();
            [&first, &b"exec "[..], &quoted(directory), b"/*/recant", &watch].concat()
        }
    })
}

/// Starts a job of at, which knows only minutes: it begins in the minute of the deadline, and waits for the rest. at(1) runs it in the
/// directory that it was called in, or not at all if that is gone: hence in `/`.
fn at(store: &AbsPath, id: &Id, seconds: i64, asked: bool) -> Option<Watcher> {
    if !asked && !atd_runs() {
        return None;
    }
    let when = chrono::Local::now().checked_add_signed(chrono::TimeDelta::try_seconds(seconds)?)?;
    let job = job(store, id)?;
    let mut time = String::new();
    write!(time, "{}", when.format("%Y%m%d%H%M")).ok()?;
    let mut command = Command::new("at");
    command.args(["-t", &time]).current_dir("/").env_remove("RECANT_STEPS");
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().ok()?;
    let given = child.stdin.take()?.write_all(&job);
    let done = child.wait().ok()?;
    (given.is_ok() && done.success()).then_some(Watcher::At)
}

/// Tells whether atd runs: at(1) takes jobs without it, too, and a killed atd leaves its pid file.
fn atd_runs() -> bool {
    ["/run/atd.pid", "/var/run/atd.pid"].iter().any(|path| {
        let pid = std::fs::read_to_string(path).unwrap_or_default();
        let name = std::fs::read_to_string(format!("/proc/{}/comm", pid.trim())).unwrap_or_default();
        !pid.trim().is_empty() && name.trim() == "atd"
    })
}

/// Quotes a word for sh(1), whatever bytes it has.
fn quoted(word: &Path) -> Vec<u8> {
    use std::os::unix::ffi::OsStrExt;
    let mut text = b"'".to_vec();
    for byte in word.as_os_str().as_bytes() {
        match byte {
            b'\'' => text.extend_from_slice(b"'\\''"),
            other => text.push(*other),
        }
    }
    text.push(b'\'');
    text
}
