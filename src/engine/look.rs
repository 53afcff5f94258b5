//! Looking at the moves of a job: what is at each path, what is wanted there, and what that means. Reads only.

use std::rc::Rc;

use super::conflict::Conflict;
use super::job::{Job, Move, OnConflict, Verb};
use super::{Error, Progress};
use crate::error::{At, IoError};
use crate::fs::dir::{Dir, Entry, Sort, Stat, leads_nowhere};
use crate::fs::lease::{Writers, writers};
use crate::fs::path::AbsPath;
use crate::fs::roots::Roots;
use crate::session::store::Session;
use crate::tree::look::{self, Seen};
use crate::tree::state::{Difference, Likeness, Object, State, What, sort_word};

/// What looking at one move told.
pub(super) struct Looked {
    pub found: Option<Seen>,
    pub to: Option<Seen>,
    pub parent_mount: Option<u64>,
    pub verdict: Verdict,
    pub note: Option<String>,
}

pub(super) enum Verdict {
    Go,
    AlreadySo,
    Conflict(Conflict),
    /// `--force`: what was found takes the place of what was expected.
    Keep,
    Refused(String),
    Damaged(String),
}

/// So many moves are worth a second thread.
const WORTH_A_THREAD: usize = 64;

pub(super) fn look_at_all(session: &Session, job: &Job, progress: &dyn Progress) -> Result<Vec<Looked>, Error> {
    let look_part = |moves: &[Move], told: bool| -> Result<Vec<Looked>, Error> {
        let mut eye = Eye::new(session, job)?;
        let mut looked = Vec::with_capacity(moves.len());
        for (done, mv) in moves.iter().enumerate() {
            if told {
                progress.at("looking", done * (job.moves.len() / moves.len().max(1)), job.moves.len());
            }
            looked.push(eye.look(mv)?);
        }
        Ok(looked)
    };
    if job.moves.len() < WORTH_A_THREAD {
        return look_part(&job.moves, true);
    }
    let (first, second) = job.moves.split_at(job.moves.len() / 2);
    std::thread::scope(|scope| {
        let other = scope.spawn(|| look_part(second, false));
        let mut looked = look_part(first, true)?;
        match other.join() {
            Ok(more) => looked.extend(more?),
            Err(panic) => std::panic::resume_unwind(panic),
        }
        Ok(looked)
    })
}

/// Looks at single moves; each thread has its own.
struct Eye<'s> {
    roots: Roots,
    session: &'s Session,
    verb: Verb,
    on_conflict: OnConflict,
    me: u32,
    held: Option<(Vec<u8>, Rc<Dir>)>,
    parent: Option<(AbsPath, Stat)>,
}

impl<'s> Eye<'s> {
    fn new(session: &'s Session, job: &Job) -> Result<Self, IoError> {
        let roots = Roots::read().at("read the mounts from", "/proc/self/mountinfo")?;
        let me = rustix::process::geteuid().as_raw();
        Ok(Self { roots, session, verb: job.verb, on_conflict: job.on_conflict, me, held: None, parent: None })
    }

    fn look(&mut self, mv: &Move) -> Result<Looked, Error> {
        let mut looked = Looked { found: None, to: None, parent_mount: None, verdict: Verdict::Go, note: None };
        let Some(parent) = mv.path.parent() else {
            looked.verdict = Verdict::Refused("it is the root folder".into());
            return Ok(looked);
        };
        match self.roots.folder(&parent) {
            Ok(dir) => {
                let stat = self.parent_stat(&parent, &dir)?;
                looked.parent_mount = Some(stat.mount);
                self.look_in(&dir, &stat, mv, &mut looked)?;
            }
            Err(error) => match error.raw_os_error() {
                _ if leads_nowhere(&error) => looked.verdict = self.judge_absent(mv),
                Some(libc::EXDEV) => {
                    looked.verdict = Verdict::Refused("a file system was mounted on the way to it meanwhile".into());
                }
                Some(libc::EACCES) => looked.verdict = Verdict::Refused("you may not search the folder that it lies in".into()),
                _ => return Err(error).at("open the folder", &parent).map_err(Error::from),
            },
        }
        if matches!(looked.verdict, Verdict::Go | Verdict::Keep) {
            self.look_at_wanted(mv, &mut looked)?;
        }
        Ok(looked)
    }

    /// Changes come sorted: the folder is that of the change before, most times.
    fn parent_stat(&mut self, parent: &AbsPath, dir: &Dir) -> Result<Stat, Error> {
        if let Some((_, stat)) = self.parent.as_ref().filter(|(path, _)| path == parent) {
            return Ok(*stat);
        }
        let stat = dir.stat().at("look at", parent)?;
        self.parent = Some((parent.clone(), stat));
        Ok(stat)
    }

    /// The folder itself is missing: so is what is in it.
    fn judge_absent(&self, mv: &Move) -> Verdict {
        match (&mv.from, &mv.to) {
            (None, _) => Verdict::Go,
            (Some(_), None) if !self.is_commit() => Verdict::AlreadySo,
            (from, _) => self.conflict(Conflict::of(&mv.path, from, &None, Difference::Presence)),
        }
    }

    fn is_commit(&self) -> bool {
        self.verb == Verb::Commit
    }

    fn conflict(&self, conflict: Conflict) -> Verdict {
        match self.on_conflict {
            OnConflict::Stop => Verdict::Conflict(conflict),
            OnConflict::Keep => Verdict::Keep,
        }
    }

    fn look_in(&mut self, dir: &Dir, parent: &Stat, mv: &Move, looked: &mut Looked) -> Result<(), Error> {
        let at = dir.at(mv.path.name());
        let stat = at.stat().at("look at", &mv.path)?;
        if stat.is_some_and(|stat| stat.mount_root) {
            looked.verdict = Verdict::Refused("something is mounted there".into());
            return Ok(());
        }
        if stat.is_some_and(|stat| stat.locked) || parent.locked {
            let why = "it, or the folder that it lies in, is immutable or append-only (chattr -ia takes that off)";
            looked.verdict = Verdict::Refused(why.into());
            return Ok(());
        }
        let (found, likeness) = match look::compare_stat(at, stat.as_ref(), &mv.from, mv.from_print.as_ref()) {
            Ok(compared) => compared,
            Err(error) if error.raw_os_error() == Some(libc::EACCES) => {
                looked.verdict = Verdict::Refused("you may not read it, so that no checkpoint can be made of it".into());
                return Ok(());
            }
            Err(error) => return Err(error).at("read", &mv.path).map_err(Error::from),
        };
        looked.found = found;
        looked.verdict = match likeness {
            Likeness::Same if mv.foreign => {
                self.conflict(Conflict::said(&mv.path, "nobody else at work while the command ran", "a change made meanwhile"))
            }
            Likeness::Same => Verdict::Go,
            _ if self.is_as_wanted(at, mv, looked.found.as_mut())? && !self.is_commit() => Verdict::AlreadySo,
            Likeness::Differs(difference) => {
                let found = looked.found.as_ref().map(|seen| seen.state.clone());
                self.conflict(Conflict::of(&mv.path, &mv.from, &found, difference))
            }
            Likeness::ReadToTell => {
                self.conflict(Conflict::said(&mv.path, "content that is known", "content that cannot be told"))
            }
        };
        if matches!(looked.verdict, Verdict::Keep) && self.cannot_keep(mv, looked.found.as_ref()) {
            let found = looked.found.as_ref().map(|seen| seen.state.clone());
            looked.verdict = Verdict::Conflict(Conflict::of(&mv.path, &mv.from, &found, Difference::Kind));
        }
        match looked.verdict {
            Verdict::Keep if mv.in_place => learn_content(at, mv, looked),
            Verdict::Go | Verdict::Keep => self.look_at_leaving(at, mv, looked),
            _ => Ok(()),
        }
    }

    /// Whether the tree holds `to` already.
    fn is_as_wanted(&self, at: Entry<'_>, mv: &Move, found: Option<&mut Seen>) -> Result<bool, Error> {
        Ok(match (&mv.to, found) {
            (None, None) => true,
            (Some(to), Some(found)) => match to.likeness(&found.state) {
                Likeness::Same => true,
                Likeness::ReadToTell if to.digest().is_some() => {
                    let (digest, _) = look::digest(at).at("read", &mv.path)?;
                    found.set_digest(digest);
                    to.likeness(&found.state) == Likeness::Same
                }
                _ => false,
            },
            _ => false,
        })
    }

    /// Metadata can be set on what is there only if it is of the same kind; a folder that is to go has to be one that is emptied.
    fn cannot_keep(&self, mv: &Move, found: Option<&Seen>) -> bool {
        let sort = |object: &Object| object.as_ref().map(State::sort);
        mv.in_place && found.map(|seen| seen.state.sort()) != sort(&mv.from)
            || self.is_commit() && found.is_some_and(|seen| seen.state.is_folder()) && sort(&mv.from) != Some(Sort::Folder)
            || found.is_none() && sort(&mv.from) == Some(Sort::Folder) && sort(&mv.to) == Some(Sort::Folder)
    }

    /// What is on the tree and goes: nobody writes to it, and its digest names the blob.
    fn look_at_leaving(&mut self, at: Entry<'_>, mv: &Move, looked: &mut Looked) -> Result<(), Error> {
        let Some(found) = &mut looked.found else { return Ok(()) };
        if !matches!(found.state.what, What::File { .. }) {
            return Ok(());
        }
        if mv.in_place {
            // It stays, but a later rollback has to tell whether it is still the same content.
            if self.verb.inward() && mv.from.as_ref().is_some_and(|from| from.digest().is_none()) {
                let (digest, _) = look::digest(at).at("read", &mv.path)?;
                found.set_digest(digest);
            }
            return Ok(());
        }
        if found.state.digest().is_none()
            && let (Some(from), Some(print)) = (&mv.from, &mv.from_print)
            && let Some(digest) = from.digest().filter(|_| found.unchanged_since(from, print))
        {
            found.set_digest(digest);
        }
        let file = match at.open_file() {
            Ok(file) => file,
            // It is only moved, not kept, and needs no reading then.
            Err(error) if error.raw_os_error() == Some(libc::EACCES) && !self.verb.inward() => return Ok(()),
            Err(error) if error.raw_os_error() == Some(libc::EACCES) => {
                looked.verdict = Verdict::Refused("you may not read it, so that no checkpoint can be made of it".into());
                return Ok(());
            }
            Err(error) => return Err(error).at("open", &mv.path).map_err(Error::from),
        };
        if writers(&file).at("ask for a lease on", &mv.path)? == Writers::Some {
            let conflict = Conflict::said(&mv.path, "a file that nobody writes to", "one that a process has open for writing");
            match self.conflict(conflict) {
                Verdict::Keep => looked.note = Some(format!("{}: a process has it open for writing", mv.path)),
                verdict => {
                    looked.verdict = verdict;
                    return Ok(());
                }
            }
        }
        if found.state.digest().is_none() && mv.uncovered.is_none() {
            let (digest, stat) = look::digest_of(&file).at("read", &mv.path)?;
            if look::identity(&stat) != found.print.identity || stat.ctime != found.print.ctime {
                looked.verdict = Verdict::Conflict(Conflict::said(&mv.path, "a file that stands still", "one that changes"));
            }
            found.set_digest(digest);
        }
        Ok(())
    }

    /// What is wanted: whether it is there in the store, and is what was put there (C1, I11).
    fn look_at_wanted(&mut self, mv: &Move, looked: &mut Looked) -> Result<(), Error> {
        let (Some(place), Some(to)) = (&mv.to_at, &mv.to) else { return Ok(()) };
        let (parent, name) =
            place.iter().rposition(|b| *b == b'/').map_or((&b""[..], &place[..]), |cut| (&place[..cut], &place[cut + 1..]));
        if self.held.as_ref().is_none_or(|(held, _)| held != parent) {
            let dir = match self.session.dir.open_below(parent) {
                Ok(dir) => Rc::new(dir),
                Err(error) => {
                    looked.verdict =
                        Verdict::Damaged(format!("its content cannot be reached in the store: {}", crate::error::reason(&error)));
                    return Ok(());
                }
            };
            self.held = Some((parent.to_vec(), dir));
        }
        let Some((_, dir)) = &self.held else { return Ok(()) };
        let at = dir.at(name);
        let kept = if self.verb.inward() { "the held content" } else { "the kept original" };
        let Some(mut seen) = look::look(at).at("look at", at)? else {
            if !matches!(to.what, What::File { .. }) {
                // Made from the record.
                return Ok(());
            }
            looked.verdict = Verdict::Damaged(format!("{kept} is missing from the store"));
            return Ok(());
        };
        if seen.state.sort() != to.sort() {
            looked.verdict = Verdict::Damaged(format!("{kept} is a {} in the store", sort_word(seen.state.sort())));
            return Ok(());
        }
        if let What::File { .. } = to.what {
            match look::digest(at) {
                Ok((digest, _)) => seen.set_digest(digest),
                Err(error) if error.raw_os_error() == Some(libc::EACCES) => {
                    let why = format!("user {} may not read {kept} in the store; recant as root can", self.me);
                    looked.verdict = Verdict::Refused(why);
                    return Ok(());
                }
                Err(error) => return Err(error).at("read", at).map_err(Error::from),
            }
        }
        match to.content_likeness(&seen.state) {
            Likeness::Same => {}
            Likeness::ReadToTell if to.digest().is_none() => {}
            _ if seen.state.meta.mtime != to.meta.mtime && !self.verb.inward() => {
                let conflict = Conflict::said(
                    &mv.path,
                    "the kept original as it was",
                    "it was written to since by a process that had it open",
                );
                match self.conflict(conflict) {
                    Verdict::Keep => {
                        looked.note = Some(format!("{}: given back as a process has written it since it was kept", mv.path))
                    }
                    verdict => {
                        looked.verdict = verdict;
                        return Ok(());
                    }
                }
            }
            _ => {
                looked.verdict = Verdict::Damaged(format!("{kept} is damaged (SHA-256 differs)"));
                return Ok(());
            }
        }
        looked.to = Some(seen);
        Ok(())
    }
}

/// Another content than was expected stays, by `--force`, under other metadata: what it is has to be known.
fn learn_content(at: Entry<'_>, mv: &Move, looked: &mut Looked) -> Result<(), Error> {
    let Some(found) = looked.found.as_mut().filter(|found| matches!(found.state.what, What::File { digest: None, .. })) else {
        return Ok(());
    };
    let (digest, _) = look::digest(at).at("read", &mv.path)?;
    found.set_digest(digest);
    Ok(())
}
