//! What a run without PIDs of its own may leave when its init is gone. The init takes in what loses its parent; where the command has killed it
//! (it is a process like any other then, of the same user), recant takes in the rest, and ends it: nothing of a run goes on unseen.

use super::sys::{self, Waited};

/// Until it is dropped, this process takes in what its children's children leave: PR_SET_CHILD_SUBREAPER(2const).
pub(super) struct TakingIn;

impl TakingIn {
    pub fn begin() -> std::io::Result<Self> {
        rustix::process::set_child_subreaper(Some(rustix::process::getpid()))?;
        Ok(Self)
    }
}

impl Drop for TakingIn {
    fn drop(&mut self) {
        // It cannot fail with these arguments, and was done the other way round before.
        let _as_before = rustix::process::set_child_subreaper(None);
    }
}

/// Kills each child of this process, whose own children become its own then, until there are none.
pub(super) fn end_all() {
    let own = std::process::id();
    loop {
        for child in children_of(own) {
            sys::kill(child, libc::SIGKILL);
        }
        if sys::wait_any(true) == Waited::NoChild {
            return;
        }
    }
}

/// The children of a process, from /proc.
pub(super) fn children_of(parent: u32) -> Vec<i32> {
    let Ok(all) = std::fs::read_dir("/proc") else { return Vec::new() };
    let pids = all.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse::<i32>().ok());
    pids.filter(|pid| {
        let Ok(stat) = std::fs::read(format!("/proc/{pid}/stat")) else { return false };
        // "pid (name) state ppid …": the name may hold anything, so from its last bracket on. proc_pid_stat(5)
        let after = stat.iter().rposition(|b| *b == b')').map_or(0, |at| at + 1);
        let text = String::from_utf8_lossy(&stat[after..]).into_owned();
        text.split_whitespace().nth(1).and_then(|word| word.parse().ok()) == Some(parent)
    })
    .collect()
}
