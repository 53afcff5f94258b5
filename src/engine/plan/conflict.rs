//! Conflicts: an object is expected at a path, and something else is there.

use std::collections::BTreeSet;

use crate::checkpoint::Manifest;
use crate::engine::job::Verb;
use crate::error::{Against, Error, Kind, Reason, command};
use crate::fs::{AbsPath, Shown, Time, leads_nowhere};
use crate::remedy::{Remedy, words};
use crate::session::{Header, Id, Origin, Status, Store};
use crate::tree::{Difference, Object, State, What, sort_word, time};

/// One path that does not hold what is expected.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Conflict {
    pub path: AbsPath,
    /// The session that put it there, if one did: it has to be rolled back first.
    pub by: Option<String>,
    /// All later sessions that changed it, with their times: where one put it there, they have to be rolled back first.
    pub later: Vec<(Time, String)>,
    /// True if `--force` goes on over it, and keeps what it finds.
    pub forcible: bool,
    /// True if it is what is expected, but a process has it open for writing: no other session is the cause.
    pub open: bool,
    /// True if nothing is there whose metadata could be changed.
    pub absent: bool,
    matter: Matter,
    /// The act since which it is so, if one left it as it is expected.
    since: Option<SinceAct>,
    /// More words for a person.
    advice: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Matter {
    /// Another object is expected than the one that is there.
    Differs(Box<(Object, Object)>, Difference),
    /// In words.
    Said(String),
}

/// The act that left a path as it is expected, in words.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SinceAct {
    act: &'static str,
    /// The time before which no change since can lie; `None` where no time is to be told.
    from: Option<Time>,
}

impl SinceAct {
    /// The act before the one that `verb` wants; `None` for a session of another machine.
    pub fn of(header: &Header, verb: Verb) -> Option<Self> {
        let act = match verb {
            Verb::Rollback => "the commit",
            Verb::Redo => "the rollback",
            Verb::Commit if header.status() == Status::RolledBack => "the rollback",
            Verb::Commit if header.origin == Origin::Staged => "it was staged",
            Verb::Commit => "the run",
        };
        header.imported.is_none().then_some(Self { act, from: Some(header.created) })
    }

    /// The act, for a text that is stored: without a time of day.
    pub fn without_time(self) -> Self {
        Self { from: None, ..self }
    }

    /// Tells what became of an object: `changed since the run, at 19:50`.
    fn changed(self, expected: Option<&State>, found: Option<&State>, difference: Difference) -> String {
        let when = format!("since {}", self.act);
        let Some(found) = found else { return format!("deleted {when}") };
        let Some(expected) = expected else {
            let what = if found.is_file() { String::new() } else { format!(": a {}", sort_word(found.sort())) };
            return format!("created {when}{}{what}", self.at(found));
        };
        let (old, new) = (&expected.meta, &found.meta);
        match difference {
            Difference::Presence | Difference::Kind => {
                format!("replaced {when} by a {}{}", sort_word(found.sort()), self.at(found))
            }
            Difference::Content => format!("changed {when}{}{}", self.at(found), content(expected, found)),
            Difference::Mode => format!("its mode was changed {when}: {:04o}, was {:04o}", new.mode, old.mode),
            Difference::Owner => {
                format!("its owner was changed {when}: {}:{}, was {}:{}", new.uid, new.gid, old.uid, old.gid)
            }
            Difference::Xattrs => format!("its extended attributes were changed {when}"),
            Difference::Touched => format!("written to or touched {when}{}", self.at(found)),
        }
    }

    /// The time of the change, where the object tells one that can be it.
    fn at(self, found: &State) -> String {
        let changed = found.meta.mtime;
        let is_told = self.from.is_some_and(|from| from.s <= changed.s && changed.s <= crate::fs::now().s);
        if is_told { format!(", {}", time::clock(changed)) } else { String::new() }
    }
}

/// A path that somebody else changed while the session's command ran.
pub const MEANWHILE: &str = "changed by another process while the command ran";

/// All that stands against a job, but for damage.
pub struct Hindrances {
    /// In path order, each path once.
    pub conflicts: Vec<Conflict>,
    /// All that cannot be done, and why: mostly paths and missing rights.
    pub refused: Vec<Against>,
}

impl Conflict {
    /// Makes a conflict from two states and their difference.
    pub fn of(path: &AbsPath, expected: &Object, found: &Object, difference: Difference) -> Self {
        Self::new(path, Matter::Differs(Box::new((expected.clone(), found.clone())), difference))
    }

    /// Makes a conflict with words of its own.
    pub fn because(path: &AbsPath, why: impl Into<String>) -> Self {
        Self::new(path, Matter::Said(why.into()))
    }

    fn new(path: &AbsPath, matter: Matter) -> Self {
        Self {
            path: path.clone(),
            by: None,
            later: Vec::new(),
            forcible: false,
            open: false,
            absent: false,
            matter,
            since: None,
            advice: "",
        }
    }

    /// Adds the act since which the path is not as expected.
    pub fn note_since(&mut self, since: Option<SinceAct>) {
        self.since = since;
    }

    /// Adds words for a person.
    pub fn advise(&mut self, advice: &'static str) {
        self.advice = advice;
    }

    /// Makes the conflict of a file that a process is about to write to.
    pub fn open_for_writing(path: &AbsPath) -> Self {
        Self { open: true, ..Self::because(path, "a process has it open for writing") }
    }

    /// Sets whether `--force` goes on over the conflict.
    pub fn forcible(self, forcible: bool) -> Self {
        Self { forcible, ..self }
    }
}

/// Tells how an object differs from the expected one.
fn describe_difference(expected: Option<&State>, found: Option<&State>, difference: Difference) -> String {
    let [expected, found] = [expected, found].map(|object| describe(object, difference));
    if expected == found {
        return format!("expected {expected} as it was, found another {difference}");
    }
    format!("expected {expected}, found {found}")
}

fn describe(object: Option<&State>, difference: Difference) -> String {
    let Some(state) = object else { return "nothing".into() };
    let word = sort_word(state.sort());
    match difference {
        Difference::Mode => format!("a {word} with mode {:04o}", state.meta.mode),
        Difference::Owner => format!("a {word} of {}:{}", state.meta.uid, state.meta.gid),
        Difference::Content => match &state.what {
            crate::tree::What::File { size, .. } => format!("a {word} of {}", exact(*size)),
            crate::tree::What::Symlink { target } => format!("a symlink to {}", crate::fs::Shown(target)),
            _ => format!("a {word}"),
        },
        _ => format!("a {word}"),
    }
}

/// Shows a size to the byte, to compare with another one.
fn exact(size: u64) -> String {
    if size < 1024 { format!("{size} bytes") } else { format!("{} ({size} bytes)", crate::settings::bytes(size)) }
}

impl Conflict {
    pub fn why(&self) -> String {
        let by = self.by.as_ref().map_or(String::new(), |id| format!(" (put there by session {id})"));
        let what = match (&self.matter, self.since) {
            (Matter::Said(why), _) => why.clone(),
            (Matter::Differs(of, difference), Some(since)) => since.changed(of.0.as_ref(), of.1.as_ref(), *difference),
            (Matter::Differs(of, difference), None) => describe_difference(of.0.as_ref(), of.1.as_ref(), *difference),
        };
        format!("{what}{}{by}", self.advice)
    }
}

/// The difference in content that its size does not tell, and a symlink's new target.
fn content(expected: &State, found: &State) -> String {
    match (&expected.what, &found.what) {
        (What::File { size: old, .. }, What::File { size: new, .. }) if old == new => " (same size, other content)".into(),
        (_, What::Symlink { target }) => format!(": it leads to {}", Shown(target)),
        _ => String::new(),
    }
}

/// The error for conflicts; nothing is done.
pub fn refused(conflicts: Vec<Conflict>) -> Error {
    let rows = conflicts.iter().map(|conflict| Against::new(&conflict.path, conflict.why())).collect();
    Error::of_rows(Kind::Conflict, "conflicts", rows).with_remedy_if(remedy(&conflicts)).with_detail(conflicts)
}

pub fn of(error: &Error) -> Option<&[Conflict]> {
    error.detail::<Vec<Conflict>>().map(Vec::as_slice)
}

/// The conflicts in an error, if they were seen before anything was done; else the error.
pub fn as_conflicts(error: Error) -> Result<Vec<Conflict>, Error> {
    if error.reason() == Some(&Reason::Undone) { Err(error) } else { error.into_detail() }
}

/// Names the later session that put what is there, and has to go first: its manifest has the object, or the deletion, which only a later
/// session can have made. An unreadable session names nobody.
pub fn attribute(store: &Store, own: &Id, conflicts: &mut [Conflict]) {
    use std::os::unix::fs::MetadataExt;
    let Ok((headers, _)) = store.headers() else { return };
    let since = headers.iter().find(|header| header.id == *own).map(|header| header.changed);
    let others = headers.iter().rev().filter(|header| header.id != *own && header.counts.inside > 0);
    for other in others {
        let Ok(manifest) = store.session(&other.id).map_err(drop).and_then(|s| Manifest::of(&s).map_err(drop)) else {
            continue;
        };
        for conflict in conflicts.iter_mut().filter(|conflict| !conflict.open) {
            let Some(original) = manifest.originals.get(&conflict.path) else { continue };
            let is_later = Some(other.changed) > since;
            if is_later {
                conflict.later.push((other.changed, other.id.to_string()));
            }
            if conflict.by.is_some() {
                continue;
            }
            let now = match conflict.path.as_path().symlink_metadata() {
                Ok(meta) => Some(meta),
                Err(error) if leads_nowhere(&error) => None,
                // What cannot be seen points to nobody.
                Err(_) => continue,
            };
            let put_it = match (original.put, now) {
                // What somebody has edited since names no session: that one could not be rolled back either.
                (Some(put), Some(now)) => {
                    (put.identity.ino, put.ctime.s, i64::from(put.ctime.ns)) == (now.ino(), now.ctime(), now.ctime_nsec())
                }
                (None, None) => is_later,
                _ => false,
            };
            if put_it {
                conflict.by = Some(other.id.to_string());
            }
        }
    }
}

/// The most sessions that are named.
const NAMED: usize = 5;

/// The commands to run first, if other sessions have put what conflicts.
pub fn remedy(conflicts: &[Conflict]) -> Option<Remedy> {
    let rollback = |id: &String| command(format_args!("rollback {id}"));
    let id = conflicts.iter().find_map(|c| c.by.as_ref())?;
    let later: BTreeSet<&(Time, String)> = conflicts.iter().filter(|c| c.by.is_some()).flat_map(|c| &c.later).collect();
    if later.len() < 2 {
        return Some(words(format_args!("session {id} has to be rolled back first: ")) + rollback(id));
    }
    let calls =
        later.iter().rev().take(NAMED).map(|(_, id)| Remedy::from(rollback(id))).reduce(|calls, call| calls + "; " + call)?;
    let more = if later.len() > NAMED { format!("; and {} more", later.len() - NAMED) } else { String::new() };
    Some("later sessions have to be rolled back first, the last first: " + calls + more)
}
