//! Ends what a run without PIDs of its own may leave when its init is gone. The init takes in orphans. If the command kills the init (a
//! process of the same user like any other), recant takes in the rest and ends it: nothing of a run goes on unseen.

use rustix::io::Errno;
use rustix::process::{Pid, Signal, getpid, kill_process, set_child_subreaper};

use super::raw_calls;

/// Makes this process take in its descendants' orphans, until dropped: PR_SET_CHILD_SUBREAPER(2const).
pub struct TakingIn {
    /// Children from before its own exec(2), as the last command of a script has: none of the run.
    others: Vec<i32>,
}

impl TakingIn {
    /// Begins; to be called before the init is forked.
    pub fn begin() -> std::io::Result<Self> {
        let others = children_of(std::process::id());
        set_child_subreaper(Some(getpid()))?;
        Ok(Self { others })
    }

    pub fn end_all(mut self) {
        end_all(std::mem::take(&mut self.others));
    }
}

impl Drop for TakingIn {
    fn drop(&mut self) {
        // It cannot fail with these arguments: setting it succeeded.
        let _as_before = set_child_subreaper(None);
    }
}

/// Kills each child of this process except `others`, until none is left. A killed child's own children become this process's.
pub fn end_all(mut others: Vec<i32>) {
    loop {
        let left: Vec<i32> = children_of(std::process::id()).into_iter().filter(|pid| !others.contains(pid)).collect();
        if left.is_empty() {
            return;
        }
        for child in left {
            match Pid::from_raw(child).map(|pid| kill_process(pid, Signal::KILL)) {
                // A run gains no rights: a process that may not be killed is not the run's.
                Some(Err(Errno::PERM)) => others.push(child),
                // If it is gone, it is no child any more.
                _ => drop(raw_calls::wait_for(child)),
            }
        }
    }
}

/// Asks all descendants of this process to end: SIGTERM, and SIGCONT for those that stand.
pub fn terminate_all() {
    let of = parents();
    let mut found = vec![std::process::id().cast_signed()];
    let mut at = 0;
    while let Some(parent) = found.get(at).copied() {
        found.extend(of.iter().filter(|(_, above)| *above == parent).map(|(pid, _)| *pid));
        at += 1;
    }
    for pid in &found[1..] {
        raw_calls::kill(*pid, libc::SIGTERM);
        raw_calls::kill(*pid, libc::SIGCONT);
    }
}

/// The children of a process, from /proc.
pub fn children_of(parent: u32) -> Vec<i32> {
    parents().into_iter().filter(|(_, above)| *above == parent.cast_signed()).map(|(pid, _)| pid).collect()
}

/// All processes in /proc, each with its parent.
fn parents() -> Vec<(i32, i32)> {
    let Ok(all) = std::fs::read_dir("/proc") else { return Vec::new() };
    let pids = all.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse::<i32>().ok());
    pids.filter_map(|pid| {
        let stat = std::fs::read(format!("/proc/{pid}/stat")).ok()?;
        // "pid (name) state ppid …": the name may hold anything, so read from its last bracket on. proc_pid_stat(5)
        let after = stat.iter().rposition(|b| *b == b')').map_or(0, |at| at + 1);
        let text = String::from_utf8_lossy(&stat[after..]).into_owned();
        Some((pid, text.split_whitespace().nth(1)?.parse().ok()?))
    })
    .collect()
}
