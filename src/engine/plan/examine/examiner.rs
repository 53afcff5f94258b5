//! Examines one move: what is at its path, and what that means.

use std::rc::Rc;

use crate::engine::error::way_in;
use crate::engine::item::Item;
use crate::engine::job::{Move, OnConflict, Verb};
use crate::engine::plan::conflict::{Conflict, MEANWHILE};
use crate::engine::plan::read_object::{ObjectNow, is_as_wanted};
use crate::engine::reach::Reach;
use crate::error::{At, Error, IoError, recant};
use crate::fs::{AbsPath, Dir, Entry, Mount, Sort, Stat, Writers, writers};
use crate::session::Id;
use crate::tree::{Content, Difference, Likeness, Object, Seen, State, What, observe, sort_word};

/// The outcome of looking at one move.
pub struct ExaminedMove {
    pub item: Item,
    pub verdict: Verdict,
    pub note: Option<String>,
}

pub enum Verdict {
    Go,
    AlreadySo,
    Conflict(Conflict),
    /// `--force`: what was found takes the place of what was expected.
    Keep,
    Refused(String),
    Damaged(String),
}

const MEANWHILE_BY_CLOCK: &str = "changed during or before the run: the clock was set back, or is another machine's";

const UNREADABLE: &str = "you cannot read it, so no checkpoint can keep it";
pub const UNTOLD: &str = "cannot read it to check for changes; run as root, or chmod u+r it and use --force";

/// The directory above a path that is a link now, by which the path may still be reached.
fn link_above(path: &AbsPath) -> Option<AbsPath> {
    let is_link = |above: &AbsPath| above.as_path().symlink_metadata().is_ok_and(|found| found.is_symlink());
    std::iter::successors(path.parent(), AbsPath::parent).find(is_link)
}

/// The conflict of a path whose directory is missing.
fn absent(path: &AbsPath, expected: &Object) -> Conflict {
    match link_above(path) {
        Some(link) => Conflict::because(path, format!("{link} above it is a symlink now, and recant does not follow symlinks")),
        None => Conflict::of(path, expected, &None, Difference::Presence),
    }
}

/// The facts that decide the verdicts.
#[derive(Clone, Copy)]
pub struct Circumstances<'s> {
    pub session: &'s Id,
    pub verb: Verb,
    pub on_conflict: OnConflict,
}

/// An open directory and its stat; `None` where it is missing.
pub type Directory = Option<(Rc<Dir>, Stat)>;

/// Looks at single moves; each thread has its own.
pub struct Examiner<'r> {
    pub reach: &'r mut Reach,
    pub session: &'r Id,
    pub verb: Verb,
    pub on_conflict: OnConflict,
    pub me: u32,
    pub parent: Option<(AbsPath, Directory)>,
}

impl<'r> Examiner<'r> {
    pub fn new(rules: Circumstances<'r>, reach: &'r mut Reach) -> Self {
        let me = rustix::process::geteuid().as_raw();
        Self { reach, session: rules.session, verb: rules.verb, on_conflict: rules.on_conflict, me, parent: None }
    }

    /// Opens a path's directory; `None` where it is missing. Moves come in path order, so it is mostly that of the move before.
    pub fn directory(&mut self, parent: AbsPath) -> Result<Directory, IoError> {
        if let Some((_, known)) = self.parent.as_ref().filter(|(path, _)| *path == parent) {
            return Ok(known.clone());
        }
        // Below a missing directory all are missing: of a deep tree that comes, only the top is looked up.
        if self.parent.as_ref().is_some_and(|(path, known)| known.is_none() && parent.is_under(path)) {
            return Ok(None);
        }
        let opened = self.reach.roots.directory(&parent).and_then(|dir| dir.stat().map(|stat| (dir, stat)));
        let known = match opened {
            Ok(found) => Some(found),
            Err(error) if error.leads_nowhere() => None,
            Err(error) => return Err(error),
        };
        self.parent = Some((parent, known.clone()));
        Ok(known)
    }

    /// Judges a path whose directory is missing: so is the path.
    pub fn judge_absent(&self, mv: &Move) -> Verdict {
        match (&mv.from, &mv.to) {
            (None, _) => Verdict::Go,
            (Some(_), None) if !self.is_commit() => Verdict::AlreadySo,
            (Some(_), None) if link_above(&mv.path).is_none() => Verdict::Keep,
            (from, to) => match self.conflict(absent(&mv.path, from)) {
                // The wanted object has no directory to be in.
                Verdict::Conflict(conflict) => Verdict::Conflict(conflict.forcible(to.is_none())),
                verdict => verdict,
            },
        }
    }

    pub fn is_commit(&self) -> bool {
        self.verb == Verb::Commit
    }

    pub fn conflict(&self, conflict: Conflict) -> Verdict {
        match self.on_conflict {
            OnConflict::Stop => Verdict::Conflict(conflict.forcible(true)),
            OnConflict::Keep => Verdict::Keep,
        }
    }

    pub fn examine_path(&mut self, dir: &Dir, parent: &Stat, mv: &Move, looked: &mut ExaminedMove) -> Result<(), Error> {
        let at = dir.at(mv.path.name());
        let stat = match self.to_be_changed(at, parent, mv)? {
            Ok(stat) => stat,
            Err(why) => {
                looked.verdict = Verdict::Refused(why);
                return Ok(());
            }
        };
        looked.item.planning.mounted = stat.is_some_and(|stat| stat.mount_root);
        looked.item.planning.encrypted = parent.encrypted;
        looked.item.planning.there = stat.map(|stat| stat.inode());
        let found = ObjectNow::open(at, stat, mv)?;
        let mut seen = found.seen(mv, self.on_conflict)?;
        let verdict = self.judge(&found, mv, &mut seen)?;
        looked.verdict = self.within_reach(verdict, mv, seen.as_ref());
        if let (Some(mounted), Verdict::Go | Verdict::Keep) = (stat.filter(|stat| stat.mount_root), &looked.verdict)
            && let Some(why) = self.not_replaced(&mounted, mv)
        {
            looked.verdict = Verdict::Refused(why);
        }
        looked.item.from = seen;
        match looked.verdict {
            Verdict::Keep if mv.in_place => learn_content(&found, looked),
            Verdict::Go | Verdict::Keep => self.examine_leaving(&found, mv, looked),
            _ => Ok(()),
        }
    }

    /// Stats a path. The inner error tells why nothing may be done there, whatever is there.
    fn to_be_changed(&self, at: Entry<'_>, parent: &Stat, mv: &Move) -> Result<Result<Option<Stat>, String>, Error> {
        let stat = match at.stat() {
            Err(error) if error.errno() == Some(libc::EACCES) => return Ok(Err(closed(&mv.path))),
            other => other?,
        };
        let mounted = stat.filter(|stat| stat.mount_root);
        // A mounted file is first compared: a conflict comes before the advice to write it by hand.
        if let Some(why) = mounted.filter(|stat| stat.sort != Sort::File).and_then(|stat| self.not_replaced(&stat, mv)) {
            return Ok(Err(why));
        }
        if stat.is_some_and(|stat| stat.locked) || parent.locked && mounted.is_none() {
            let why = "it or its directory is immutable or append-only (chattr -ia clears that)";
            return Ok(Err(why.into()));
        }
        Ok(Ok(stat))
    }

    /// Compares what was found with what was expected and what is wanted.
    fn judge(&mut self, found: &ObjectNow<'_>, mv: &Move, seen: &mut Option<Seen>) -> Result<Verdict, Error> {
        let likeness = match observe::judge(seen, &mv.from, mv.from_print.as_ref(), |may_mean| {
            found.read(may_mean).map(|(content, _)| content)
        }) {
            Err(error) if error.errno() == Some(libc::EACCES) => {
                return Ok(Verdict::Refused(if self.verb.inward() { UNREADABLE } else { UNTOLD }.into()));
            }
            other => other?,
        };
        let conflict = match likeness {
            Likeness::Same if mv.foreign => Conflict::because(&mv.path, if mv.by_clock { MEANWHILE_BY_CLOCK } else { MEANWHILE }),
            Likeness::Same => return Ok(Verdict::Go),
            // Deleted here, and gone there already: the checkpoint keeps that nothing was there.
            _ if seen.is_none() && mv.to.is_none() && self.is_commit() => return Ok(Verdict::Keep),
            _ if is_as_wanted(found, mv, seen.as_mut())? && !self.is_commit() => match self.change_to_stored(mv)? {
                Some(done) => Conflict::because(&mv.path, self.name_stored(done)),
                None => return Ok(Verdict::AlreadySo),
            },
            Likeness::Differs(difference) => Conflict::of(&mv.path, &mv.from, &state_of(seen.as_ref()), difference),
            Likeness::ReadToTell => Conflict::because(&mv.path, "its content cannot be compared: no hash of it is known"),
        };
        Ok(self.conflict(conflict))
    }

    /// Makes a conflict of what was found where no record can keep it, force or not.
    fn within_reach(&self, verdict: Verdict, mv: &Move, seen: Option<&Seen>) -> Verdict {
        if !self.cannot_keep(mv, seen) {
            return verdict;
        }
        let mut conflict = match verdict {
            Verdict::Keep => Conflict::of(&mv.path, &mv.from, &state_of(seen), Difference::Kind),
            Verdict::Conflict(conflict) => conflict,
            other => return other,
        };
        if !mv.in_place && seen.is_some_and(|seen| seen.state.is_dir()) {
            conflict.advise(" (move it away)");
        }
        conflict.forcible = false;
        conflict.absent = seen.is_none();
        Verdict::Conflict(conflict)
    }

    /// The reason why a mounted object cannot become what is wanted. It cannot be renamed or removed, but its metadata can be set.
    fn not_replaced(&self, stat: &Stat, mv: &Move) -> Option<String> {
        // Something else may have been mounted over the object that the change was made of.
        let is_it = mv.from_print.as_ref().is_none_or(|print| print.identity == observe::identity(stat));
        let sort = sort_word(stat.sort);
        if mv.in_place && is_it && mv.to.as_ref().is_some_and(|to| to.sort() == stat.sort) {
            let mount = self.reach.roots.mounts().iter().rfind(|mount| mount.point == mv.path);
            return mount.is_some_and(Mount::read_only).then(|| format!("the {sort} that is mounted there is mounted read-only"));
        }
        let wanted = match &mv.to {
            None => "removed",
            Some(_) if mv.in_place => "changed",
            Some(_) => "replaced",
        };
        let writes = stat.sort == Sort::File && !mv.in_place && mv.to.as_ref().is_some_and(State::is_file);
        let remedy = if writes { self.by_hand(&mv.path) } else { "umount it, or name the other paths alone".into() };
        Some(format!("a {sort} is mounted there, which cannot be {wanted}; {remedy}"))
    }

    /// The command with which a person writes content into a mounted file.
    fn by_hand(&self, path: &AbsPath) -> String {
        let side = if self.verb.inward() { "" } else { " --before" };
        let (id, recant) = (self.session, recant());
        format!("write it by hand: {recant} cat {id} {path}{side} > {path}; then name the other paths")
    }

    /// True if no record can keep it: metadata of another kind of object, or a directory in place of what was to go.
    fn cannot_keep(&self, mv: &Move, found: Option<&Seen>) -> bool {
        let sort = |object: &Object| object.as_ref().map(State::sort);
        mv.in_place && found.map(|seen| seen.state.sort()) != sort(&mv.from)
            || self.verb.inward() && found.is_some_and(|seen| seen.state.is_dir()) && sort(&mv.from) != Some(Sort::Directory)
            || found.is_none() && sort(&mv.from) == Some(Sort::Directory) && sort(&mv.to) == Some(Sort::Directory)
    }

    /// Makes sure that nobody writes to the object that goes. The blob is named by its hash.
    fn examine_leaving(&mut self, found: &ObjectNow<'_>, mv: &Move, looked: &mut ExaminedMove) -> Result<(), Error> {
        let Some(seen) = &mut looked.item.from else { return Ok(()) };
        if !matches!(seen.state.what, What::File { .. }) {
            return Ok(());
        }
        if mv.in_place {
            // It stays, but a later rollback compares its content.
            if self.verb.inward() && mv.from.as_ref().is_some_and(|from| from.hash().is_none()) {
                seen.set_hash(found.hash()?);
            }
            return Ok(());
        }
        if seen.state.hash().is_none()
            && let (Some(from), Some(print)) = (&mv.from, &mv.from_print)
            && let Some(hash) = from.hash().filter(|_| seen.unchanged_since(from, print))
        {
            seen.set_hash(hash);
        }
        let Some(file) = &found.file else {
            // A rollback only moves it and keeps nothing, so it need not be read.
            if self.verb.inward() {
                looked.verdict = Verdict::Refused(UNREADABLE.into());
            }
            return Ok(());
        };
        let writers = match found.leased {
            Some(writers) => writers,
            None => writers(file).at("ask for a lease on", &mv.path)?,
        };
        if writers == Writers::Some {
            match self.conflict(Conflict::open_for_writing(&mv.path)) {
                Verdict::Keep => looked.note = Some(format!("{}: a process has it open for writing", mv.path)),
                verdict => {
                    looked.verdict = verdict;
                    return Ok(());
                }
            }
        }
        if seen.state.hash().is_none() && mv.uncovered.is_none() {
            let (Content { hash, .. }, stat) = found.read(false)?;
            if observe::identity(&stat) != seen.print.identity || stat.ctime != seen.print.ctime {
                looked.verdict = Verdict::Conflict(Conflict::because(&mv.path, "it is being changed"));
            }
            seen.set_hash(hash);
        }
        Ok(())
    }
}

/// Why nothing may be done at a path that the caller cannot get to.
pub fn closed(path: &AbsPath) -> String {
    let way = way_in(path).map(|chmod| format!(" ({chmod} helps)")).unwrap_or_default();
    format!("you cannot enter the directory that it lies in{way}")
}

fn state_of(seen: Option<&Seen>) -> Object {
    seen.map(|seen| seen.state.clone())
}

/// Hashes unexpected content that stays, by `--force`, under other metadata.
fn learn_content(found: &ObjectNow<'_>, looked: &mut ExaminedMove) -> Result<(), Error> {
    let seen = looked.item.from.as_mut();
    if let Some(seen) = seen.filter(|seen| matches!(seen.state.what, What::File { hash: None, .. })) {
        seen.set_hash(found.hash()?);
    }
    Ok(())
}
