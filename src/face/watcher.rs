//! The watcher of a commit that waits to be confirmed: it rolls that back at the deadline.

use std::io::Read as _;
use std::path::Path;
use std::process::{Command, Stdio};

use crate::fs::program;
use crate::session::{Id, Store};

/// Starts a watcher, and names it; `None` if none can be: a transient timer of systemd where that outlives the caller's own session, else a process.
pub fn start(store: &Store, id: &Id, seconds: i64) -> Option<String> {
    // Tests choose.
    let only = std::env::var("RECANT_CONFIRM_BY").ok().filter(|_| cfg!(feature = "crash-points"));
    if only.as_deref() == Some("nobody") {
        return None;
    }
    let watch = |command: &mut Command| {
        command.arg("--store").arg(store.path.as_path()).args(["confirm", "--watch", id.as_str()]);
        // The test's settings for this process are not for that one.
        command.env_remove("RECANT_STEPS").stdin(Stdio::null()).stderr(Stdio::null()).current_dir("/");
    };
    if only.map_or_else(has_systemd, |only| only == "systemd") {
        let unit = format!("recant-confirm-{id}");
        let mut timer = crate::fs::command("systemd-run");
        timer.args((!rustix::process::geteuid().is_root()).then_some("--user"));
        timer.args(["--quiet", "--collect", "--timer-property=AccuracySec=1s"]);
        timer.args([format!("--unit={unit}"), format!("--on-active={seconds}s"), "--".into()]).arg(program::own_path().ok()?);
        watch(&mut timer);
        if timer.stdout(Stdio::null()).status().is_ok_and(|done| done.success()) {
            return Some(format!("systemd {unit}"));
        }
    }
    let mut process = crate::fs::command(program::own().ok()?);
    watch(&mut process);
    let mut child = process.stdout(Stdio::piped()).spawn().ok()?;
    let got = child.stdout.take()?.read(&mut [0]).ok()?;
    (got == 1).then(|| format!("process {}", child.id()))
}

/// A user's systemd ends with his last session, and its timers with it, unless it was told to linger.
fn has_systemd() -> bool {
    let lingers = || std::env::var_os("USER").is_some_and(|user| Path::new("/var/lib/systemd/linger").join(user).exists());
    Path::new("/run/systemd/system").is_dir() && (rustix::process::geteuid().is_root() || lingers())
}
