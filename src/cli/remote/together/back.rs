//! If one machine failed: rolls back what the call did on the others, and removes the sessions that were sent for it alone.

use std::ffi::OsString;
use std::time::{Duration, Instant};

use serde_json::Value;

use super::act::{Act, Machines};
use super::machine::{Fate, Finished, Row, gather};
use crate::engine::job;
use crate::fs::Fs;
use crate::remote::link::{Link, SshSays};
use crate::remote::request::Request;
use crate::session::header::Status;

/// The longest time that a lost machine may take to end what it had begun.
const SETTLING: Duration = Duration::from_secs(15);

impl Machines<'_> {
    /// Sets the fate of each machine. If one failed after all were told to go, rolls back what was done on the others.
    pub fn take_back(&self, rows: &mut [Row]) {
        let failed = rows.iter().any(|row| row.ended.as_ref().is_none_or(|ended| !ended.is_done()));
        for row in rows.iter_mut() {
            row.result = Some(match &row.ended {
                _ if row.passed_over => Fate::PassedOver,
                Some(ended) if ended.is_done() => Fate::Done,
                Some(ended) if row.told_to_go && ended.is_open() => Fate::Unknown(String::new()),
                Some(Finished { status: Err(_), .. }) => Fate::Untouched,
                Some(_) if row.ready && !row.told_to_go => Fate::Stopped,
                _ => Fate::Failed,
            });
        }
        if !failed {
            return;
        }
        // A machine with nothing to do has nothing to roll back.
        let has_done = |row: &Row| row.ready && matches!(row.result, Some(Fate::Done | Fate::Unknown(_)));
        let done = (0..rows.len()).filter(|host| has_done(&rows[*host]));
        let taking: Vec<_> =
            done.map(|host| (host, self.back(host, &rows[host]))).map(|(host, back)| (host, move || back.fate())).collect();
        for (host, fate) in on_each(taking, self.ways.forks) {
            rows[host].result = fate.or(rows[host].result.take());
        }
    }

    fn back(&self, host: usize, row: &Row) -> Undoing<'_> {
        let Act { verb, key, .. } = self.act;
        let (inverse, off): (_, &[_]) = match verb {
            job::Verb::Rollback => (job::Verb::Redo, &[Status::Committed]),
            _ => (job::Verb::Rollback, &[Status::Pending, Status::RolledBack]),
        };
        let words = [inverse.word(), "--json", key, "--"].map(OsString::from);
        Undoing {
            fs: &self.call.fs,
            link: self.ways.link(&self.targets[host], SshSays::Gathered),
            was_lost: matches!(row.result, Some(Fate::Unknown(_))),
            request: row.own_paths().map(|paths| self.request(host, words.into_iter().chain(paths), false)),
            show: self.request(host, ["show", "--json", key].map(OsString::from), false),
            off,
        }
    }

    /// Removes sessions that were sent for this call alone and came to nothing. Warns of each that stays.
    pub fn tidy(&self, rows: &[Row]) {
        let of_no_use = |row: &Row| row.sent && matches!(row.result, Some(Fate::Stopped | Fate::Failed));
        let pruning = (0..rows.len()).filter(|host| of_no_use(&rows[*host])).map(|host| {
            let link = self.ways.link(&self.targets[host], SshSays::Gathered);
            let prune = self.request(host, ["session", "prune", &self.act.key, "--json"].map(OsString::from), false);
            let fs = &self.call.fs;
            (host, move || {
                let ended = settled(fs, &link, &prune);
                // Under another name it may be the machine of another row.
                matches!(ended.status, Ok(0)) || ended.lacks_session()
            })
        });
        for (host, _) in on_each(pruning.collect(), self.ways.forks).into_iter().filter(|(_, gone)| *gone != Some(true)) {
            let (name, key) = (&self.targets[host].name, &self.act.key);
            self.call.out.warn(format_args!(
                "{name}: session {key}, which was sent for this, stays there, pending: recant -H {name} session prune {key}"
            ));
        }
    }
}

/// Runs tasks on machines, `at_once` at a time. The result is `None` if a task panicked.
fn on_each<T: Send>(mut tasks: Vec<(usize, impl FnOnce() -> T + Send)>, at_once: usize) -> Vec<(usize, Option<T>)> {
    let mut results = Vec::with_capacity(tasks.len());
    while !tasks.is_empty() {
        let now = tasks.drain(..at_once.min(tasks.len()));
        results.extend(std::thread::scope(|scope| {
            let threads: Vec<_> = now.map(|(host, task)| (host, scope.spawn(task))).collect();
            threads.into_iter().map(|(host, thread)| (host, thread.join().ok())).collect::<Vec<_>>()
        }));
    }
    results
}

/// The rollback of this call's own work on a machine, and of nothing else in the session.
struct Undoing<'a> {
    fs: &'a Fs,
    link: Link<'a>,
    /// True if it may not be done there at all.
    was_lost: bool,
    /// `None` if this call's work cannot be told from earlier work.
    request: Option<Request>,
    /// Asks for the session's status there.
    show: Request,
    /// The statuses of a session with which nothing was done.
    off: &'static [Status],
}

impl Undoing<'_> {
    fn fate(&self) -> Fate {
        let Some(request) = &self.request else {
            let why = "a part of the session was on its tree before, so it is not rolled back automatically";
            return Fate::Unknown(if self.was_lost { why.into() } else { format!("it is done there, and {why}") });
        };
        let ended = settled(self.fs, &self.link, request);
        let none = |rows: &Value| rows.as_array().is_some_and(Vec::is_empty);
        let nothing = |report: &Value| none(&report["paths"]) && none(&report["skipped"]);
        match &ended.status {
            // It was not done there.
            Ok(0 | 4) if self.was_lost && nothing(ended.json()) => Fate::Failed,
            // Exit status 4: the report names what stays; the rest is off the tree.
            Ok(0 | 4) => Fate::TakenBack(ended.json().clone()),
            Ok(1) if self.was_lost && self.is_off() => Fate::Failed,
            _ => Fate::Unknown(ended.why()),
        }
    }

    /// True if the machine's own report says that nothing was done. A refusal alone may have many reasons.
    fn is_off(&self) -> bool {
        let ended = settled(self.fs, &self.link, &self.show);
        let json = ended.json();
        let status = json["session"]["status"].as_str().filter(|_| ended.is_done());
        status.is_some_and(|status| self.off.iter().any(|off| off.word() == status))
    }
}

/// Carries out a request. Tries again while the machine is busy, up to [`SETTLING`].
fn settled(fs: &Fs, link: &Link<'_>, request: &Request) -> Finished {
    let start = Instant::now();
    loop {
        let ended = gather(fs, link, request, None, &mut |_| ());
        if !matches!(ended.status, Ok(6)) || start.elapsed() > SETTLING {
            return ended;
        }
        std::thread::sleep(Duration::from_millis(200));
    }
}
