//! Open sessions: directory, header and lock; and the reading of recant's own small files.

use std::fs::File;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use super::act::{Acts, LastAct, TakesBack};
use super::acting_agent::ActingAgent;
use super::change::{Change, Changes, object_name};
use super::error::{damaged, garbled, not_lasting};
use super::header::{Counts, Header, Origin};
use super::id::Id;
use super::run_record::Run;
use super::sides;
use super::sides::Side;
use crate::error::{At, Error, Kind, shell_word};
use crate::fs::{Dir, Entry, Fs, Lock, Shown};
use crate::tree::{State, json};

/// An open session, with its header as it was when opened.
#[derive(Debug)]
pub struct Session {
    /// Its directory.
    pub dir: Dir,
    /// Its header.
    pub header: Header,
    /// Its record and changes as a command that runs in it has them so far, where they were looked at.
    so_far: Option<Box<(Run, Changes)>>,
}

/// A session that nobody else can change while this is held.
#[derive(Debug)]
pub struct Locked {
    session: Session,
    _lock: Lock,
    acts: Acts,
}

impl std::ops::Deref for Locked {
    type Target = Session;
    fn deref(&self) -> &Session {
        &self.session
    }
}

/// The directories of a session, in the order in which they are made; a run needs only the first ones.
pub(super) const SESSION_DIRECTORIES: [&[u8]; 8] = [
    b"held",
    b"held/upper",
    b"held/work",
    b"held/objects",
    b"checkpoint",
    b"checkpoint/blobs",
    b"checkpoint/objects",
    b"displaced",
];
pub(super) const RUN_DIRECTORIES: usize = 3;

/// Opens a directory that belongs to every session, below `session`, its own; or one of the store, below that.
///
/// # Errors
/// It is missing, a link or no directory.
pub fn part(session: &Dir, at: &[u8]) -> Result<Dir, Error> {
    session.open_below(at).map_err(|error| {
        let path = format!("{}/{}", session.path().display(), Shown(at));
        match error.leads_nowhere() {
            true if error.kind() == std::io::ErrorKind::NotFound => {
                let directory = session.path().join(std::ffi::OsStr::from_bytes(at));
                let why = format!(
                    "the directory is missing; if a copy of the store left it out because it was empty: mkdir -p -m 700 {}",
                    shell_word(directory.as_os_str().as_bytes())
                );
                damaged(path, why)
            }
            true => damaged(path, format!("the directory cannot be opened: {}", error.why())),
            false => error.into(),
        }
    })
}

impl Session {
    /// A session as its directory and header tell it.
    pub fn new(dir: Dir, header: Header) -> Self {
        Self { dir, header, so_far: None }
    }

    /// The session as a command that runs in it has it so far: to be looked at, not to be changed. It counts as changed at the command's
    /// start.
    pub fn running(self, run: Run, changes: Changes) -> Self {
        let count = changes.list.len() as u64;
        let header = Header {
            lines: count.max(1),
            counts: Counts { changes: count, ..self.header.counts },
            command: Some(run.command.called()),
            by: run.command.by.clone(),
            changed: run.command.started.max(self.header.changed),
            ..self.header
        };
        Self { dir: self.dir, header, so_far: Some(Box::new((run, changes))) }
    }

    /// True if it is one that [`Session::running`] made.
    pub fn is_so_far(&self) -> bool {
        self.so_far.is_some()
    }

    /// Its changes so far, of a session that [`Session::running`] made.
    pub(super) fn changes_so_far(&self) -> Option<&Changes> {
        self.so_far.as_ref().map(|so_far| &so_far.1)
    }

    /// Checks that the directories in which an operation keeps and finds objects exist.
    ///
    /// # Errors
    /// One is missing, a link or no directory.
    pub fn check_directories(&self) -> Result<(), Error> {
        SESSION_DIRECTORIES[RUN_DIRECTORIES..].iter().try_for_each(|path| part(&self.dir, path).map(drop))
    }

    /// The session's id.
    pub fn id(&self) -> &Id {
        &self.header.id
    }

    /// True if a run of it is under way: its lock is held. A run of this boot whose lock is free has ended and waits to be collected.
    pub fn is_held(&self) -> Result<bool, Error> {
        Ok(Lock::is_held(self.dir.at(b"lock"))?)
    }

    /// The side of each of the `count` changes.
    ///
    /// Errors: the header has another number of changes, or counts them otherwise.
    pub fn sides(&self, count: usize) -> Result<Vec<Side>, Error> {
        let damaged = |why: &str| damaged(self.dir.at(b"session.json"), why);
        let sides = sides::from_text(&self.header.sides, count).ok_or_else(|| damaged("its sides do not match its changes"))?;
        let number = |which: fn(Side) -> bool| sides.iter().filter(|side| which(**side)).count() as u64;
        if number(Side::is_in) != self.header.counts.inside || number(Side::was_in) != self.header.counts.ever_in {
            return Err(damaged("its counts do not match its sides"));
        }
        Ok(sides)
    }

    /// The side of each change the header counts, for those who read the changes one by one.
    ///
    /// Errors: those of [`Session::sides`]; a count that `changes.jsonl` is too short for.
    pub fn sides_of_all(&self) -> Result<Vec<Side>, Error> {
        let at = self.dir.at(b"changes.jsonl");
        let count = self.header.counts.changes;
        let size = at.stat()?.map_or(0, |stat| stat.size);
        // Every line has at least a byte: a garbled count takes no more memory than the file has bytes.
        match usize::try_from(count) {
            Ok(number) if count <= size && u32::try_from(count).is_ok() => self.sides(number),
            _ => Err(damaged(at, format!("it cannot hold the {count} changes that the session counts"))),
        }
    }

    /// Reads the facts about the run; `None` for a session staged by hand.
    pub fn run(&self) -> Result<Option<Run>, Error> {
        if let Some(so_far) = &self.so_far {
            return Ok(Some(so_far.0.clone()));
        }
        let at = self.dir.at(b"run.json");
        let Some(bytes) = read_small(at, 16 << 20)? else { return Ok(None) };
        if !is_json(&bytes) && self.header.uncollected && is_uncollected(&self.dir)? {
            // A power cut took it: nothing tells any more where the run wrote.
            return Ok(None);
        }
        let run = serde_json::from_slice(&bytes);
        run.map(Some).map_err(|error| damaged(at, error))
    }

    /// Reads the record of a command that goes on in the session and is not collected. `None` if there is none, or a power cut garbled it.
    pub fn going_on(&self) -> Result<Option<Run>, Error> {
        let bytes = read_small(self.dir.at(&self.header.going_on()), 16 << 20)?;
        Ok(bytes.and_then(|bytes| serde_json::from_slice(&bytes).ok()))
    }

    /// True if the record of such a command is there, readable or not.
    pub fn is_going_on(&self) -> Result<bool, Error> {
        Ok(self.dir.at(&self.header.going_on()).stat()?.is_some())
    }

    /// True if a run of another boot was never collected: what it wrote may not have reached the disk.
    pub fn of_another_boot(&self) -> Result<bool, Error> {
        let run = match self.going_on()? {
            Some(run) => Some(run),
            None => self.run()?,
        };
        Ok(run.is_some_and(|run| run.may_lack()))
    }

    /// The place of the content of a change's `after`, below the session's directory: in its upper or among the held objects. `None` if
    /// it is on the tree or lost, or there is none (a deletion, a staged directory or link). `run` is the session's own.
    pub fn held_at(change: &Change, side: Side, run: Option<&Run>) -> Option<Vec<u8>> {
        match (side, run) {
            (Side::In | Side::Lost, _) => None,
            _ if change.after.is_none() || change.in_place() => None,
            (Side::Never, Some(run)) if !run.in_memory => {
                run.upper_of(change.step, &change.path).map(|upper| [b"held/", &*upper].concat())
            }
            // An object without content is made from its record, unless its names are to be one object.
            (Side::Never, _) if !change.marks.linked && !change.after.as_ref().is_some_and(State::is_file) => None,
            _ => Some(object_name(change.n)),
        }
    }

    /// Opens the directory of a path below the session's directory; also returns the last name.
    pub fn split<'p>(&self, path: &'p [u8]) -> Result<(Dir, &'p [u8]), Error> {
        split(&self.dir, path)
    }
}

/// Works in a directory of the store; one of the caller's own that is closed to him is opened for it, and closed again.
///
/// # Errors
/// Those of `act`; a mode cannot be set.
pub fn with_own_rights<T>(fs: &Fs, dir: &Dir, act: impl Fn() -> Result<T, Error>) -> Result<T, Error> {
    let refused = |error: &Error| error.io().and_then(std::io::Error::raw_os_error) == Some(libc::EACCES);
    match act() {
        Err(error) if refused(&error) => {
            let mode = dir.stat()?.mode;
            fs.set_mode(dir.at(b"."), mode | 0o700)?;
            let done = act();
            let closed = fs.set_mode(dir.at(b"."), mode);
            let done = done?;
            Ok(closed.map(|()| done)?)
        }
        done => done,
    }
}

/// Opens the directories of places below a session's directory, one at a time: of places in their order that is mostly the one before.
pub struct Opener<'s> {
    session: &'s Session,
    last: Option<(Vec<u8>, Dir)>,
}

impl<'s> Opener<'s> {
    pub fn new(session: &'s Session) -> Self {
        Self { session, last: None }
    }

    /// The entry of a place.
    ///
    /// # Errors
    /// Its directory cannot be opened.
    pub fn at<'p>(&'p mut self, place: &'p [u8]) -> Result<Entry<'p>, Error> {
        let (parent, name) = split_last(place);
        let (_, dir) = match self.last.take().filter(|(known, _)| known == parent) {
            Some(known) => self.last.insert(known),
            None => self.last.insert((parent.to_vec(), part(&self.session.dir, parent)?)),
        };
        Ok(dir.at(name))
    }
}

impl Locked {
    /// Joins a session and its lock.
    pub(super) fn new(session: Session, lock: Lock, acts: Acts) -> Self {
        Self { session, _lock: lock, acts }
    }

    /// Notes that what is done next takes back another act.
    pub fn takes_back(&mut self, act: TakesBack) {
        self.acts.purpose.takes_back = Some(act);
    }

    /// Notes that what is done next is nobody's act who works here.
    pub fn acts_by(&mut self, by: ActingAgent) {
        self.acts.by = Some(by);
    }

    /// Gives what is done next a reason.
    pub fn for_reason(&mut self, reason: Option<&str>) {
        self.acts.purpose.reason = reason.map(str::to_owned);
    }

    /// Notes the globs of a person's policy that allow what is done next.
    pub fn by_policy(&mut self, globs: &[String]) {
        self.acts.purpose.policy = globs.to_vec();
    }

    /// Draws the number of an act on this session that begins now: the header that seals it has to have it (I20).
    ///
    /// # Errors
    /// The counter's lock cannot be had, or the headers cannot be read.
    pub fn act(&self, fs: &Fs) -> Result<LastAct, Error> {
        self.acts.draw(fs)
    }

    /// Notes that what is done next belongs to an act on another session: of a part that left this one.
    pub fn belongs_to_another_act(&mut self) {
        self.acts.belongs = true;
    }

    /// The newest act on this session once what begins now is done.
    pub(super) fn act_of_save(&self, fs: &Fs) -> Result<Option<LastAct>, Error> {
        if self.acts.belongs { Ok(self.header.acted.clone()) } else { self.act(fs).map(Some) }
    }

    pub fn save(&mut self, fs: &Fs, header: Header) -> Result<(), Error> {
        self.save_after(fs, header, &[], &[])
    }

    /// Replaces the header, durably, after files that it refers to, each with its directory, and directories with new names are durable.
    pub fn save_after(
        &mut self,
        fs: &Fs,
        mut header: Header,
        files: &[(&File, &Path)],
        directories: &[&Dir],
    ) -> Result<(), Error> {
        header.changed = crate::fs::now();
        let at = self.dir.at(b"session.json");
        fs.replace_after(at, &header_bytes(&header), files, directories)?;
        self.session.header = header;
        Ok(())
    }

    /// Replaces the header as the last act: an error after the new header has its name does not mean that nothing was changed.
    pub fn save_at_last(&mut self, fs: &Fs, header: Header, files: &[(&File, &Path)], directories: &[&Dir]) -> Result<(), Error> {
        let before = read_small(self.dir.at(b"session.json"), HEADER_MAX)?;
        match self.save_after(fs, header, files, directories) {
            // If it cannot be read now, it may be the new one.
            Err(why)
                if why.io().is_some() && !read_small(self.dir.at(b"session.json"), HEADER_MAX).is_ok_and(|now| now == before) =>
            {
                Err(not_lasting(self.id(), why))
            }
            saved => saved,
        }
    }

    /// Takes over a header that was already written.
    pub fn set_header(&mut self, header: Header) {
        self.session.header = header;
    }

    /// Replaces the header of a run under way without waiting for the disk: a power cut loses the run anyway.
    pub fn save_later(&mut self, fs: &Fs, mut header: Header) -> Result<(), Error> {
        header.changed = crate::fs::now();
        let at = self.dir.at(b"session.json");
        fs.replace_later(at, &header_bytes(&header))?;
        self.session.header = header;
        Ok(())
    }

    /// Makes the directories that a session begun for a run lacks.
    pub fn complete(&self, fs: &Fs) -> Result<(), Error> {
        for path in &SESSION_DIRECTORIES[RUN_DIRECTORIES..] {
            let (parent, name) = split(&self.dir, path)?;
            mkdir_if_missing(fs, parent.at(name))?;
        }
        Ok(())
    }

    /// Notes that a command goes on in the session, without waiting for the disk: after a power cut the session stands at its last step.
    pub fn note_going_on(&mut self, fs: &Fs, run: &Run) -> Result<(), Error> {
        let name = self.header.going_on();
        fs.replace_later(self.dir.at(&name), &json::text(run))?;
        // Left if recant was killed right after the last one was added: it counts no more.
        let last = self.header.went_on();
        fs.unlink_if_there(self.dir.at(&last))?;
        self.session.header.uncollected = true;
        Ok(())
    }

    /// Ends that: the session is as it was before the command.
    pub fn end_going_on(&mut self, fs: &Fs) -> Result<(), Error> {
        let name = self.header.going_on();
        fs.unlink_if_there(self.dir.at(&name))?;
        self.session.header.uncollected = false;
        Ok(())
    }

    /// Replaces the header by one in which `run.json`, and the lines that were appended to `files`, count: durably, with all else that was
    /// written on the store's file system since the session was opened (D1, D2, D7). After a power cut the session is as it was before, or
    /// as it is now.
    pub(super) fn save_step(&mut self, fs: &Fs, run: &Run, mut header: Header) -> Result<(), Error> {
        header.changed = crate::fs::now();
        let (run_at, at) = (self.dir.at(b"run.json"), self.dir.at(b"session.json"));
        fs.write_beside(run_at, &json::text(run))?;
        fs.write_beside(at, &header_bytes(&header))?;
        fs.sync_fs(&self.dir)?; // D1, D2, D7
        fs.name_beside(run_at)?;
        fs.name_beside(at)?;
        fs.sync_dir(&self.dir)?; // D2: the step was said to be held
        let name = self.header.going_on();
        self.session.header = header;
        // It counts no more: its step is not the next one.
        Ok(fs.unlink_if_there(self.dir.at(&name))?)
    }

    /// Writes `run.json` without waiting for the disk.
    pub fn note_run(&self, fs: &Fs, run: &Run) -> Result<(), Error> {
        let at = self.dir.at(b"run.json");
        fs.replace_later(at, &json::text(run))?;
        Ok(())
    }
}

/// The bytes of a header's file.
pub fn header_bytes(header: &Header) -> Vec<u8> {
    json::line(header)
}

pub(super) fn write_header(fs: &Fs, dir: &Dir, header: &Header) -> Result<(), Error> {
    let at = dir.at(b"session.json");
    fs.replace(at, &header_bytes(header))?;
    Ok(())
}

/// Bytes that a header may have. It has some hundred; more come with sides that alternate (PATHs committed one by one), ten bytes for
/// each run of them.
const HEADER_MAX: u64 = 4 << 20;

/// Reads the header of the session whose directory is `dir`; `is_journaled` tells whether an operation of it was begun.
///
/// Errors: it is missing or makes no sense.
pub(super) fn read_header(dir: &Dir, id: &Id, is_journaled: impl FnOnce() -> Result<bool, Error>) -> Result<Header, Error> {
    let at = dir.at(b"session.json");
    let garbled = |why: &str| garbled(at, why, id);
    let bytes = match read_small(at, HEADER_MAX) {
        Ok(bytes) => bytes,
        Err(error) if error.kind() == Kind::Damaged => return Err(garbled(error.why())),
        Err(error) => return Err(error),
    };
    // Behind a journal all was durable: a header made up here would have the generation of one that was never sealed.
    if !bytes.as_deref().is_some_and(is_json) && is_uncollected(dir)? && !is_journaled()? {
        return cut_off_header(dir, id);
    }
    let mut header = parse_header(&bytes.ok_or_else(|| garbled("it is missing"))?, id).map_err(|why| garbled(&why))?;
    header.uncollected |= is_going_on(&header, |name| Ok(dir.at(name).stat()?.is_some()))?;
    Ok(header)
}

/// True if a command goes on in a session, or has, and is not collected: `is_there` tells whether a name is in the session's directory.
pub(super) fn is_going_on(header: &Header, is_there: impl FnOnce(&[u8]) -> Result<bool, Error>) -> Result<bool, Error> {
    let could = header.origin == Origin::Captured && header.lines > 0 && header.counts.ever_in == 0 && header.discarded.is_none();
    Ok(could && is_there(&header.going_on())?)
}

/// True if it is whole JSON. Files of recant's own are written whole and, except in a run under way, durable before they get their names.
fn is_json(bytes: &[u8]) -> bool {
    serde_json::from_slice::<serde::de::IgnoredAny>(bytes).is_ok()
}

/// True for a session of a run of which nothing was ever collected. One that is staged by hand is durable, with all its directories,
/// before anybody knows it.
fn is_uncollected(dir: &Dir) -> Result<bool, Error> {
    let there = |path: &[u8]| -> Result<bool, Error> {
        match split(dir, path) {
            Ok((parent, name)) => Ok(parent.at(name).stat()?.is_some()),
            Err(_) => Ok(false),
        }
    };
    Ok(!there(b"changes.jsonl")? && (there(b"run.json")? || !there(b"checkpoint")?))
}

/// Makes a header for a run that was under way when the machine went down, before anything was synced: its own is lost. The run is still
/// to be collected, and what is found may not be all.
fn cut_off_header(dir: &Dir, id: &Id) -> Result<Header, Error> {
    let changed = dir.stat()?.mtime;
    let header = Header::new(id.clone(), 0, Origin::Captured, changed);
    Ok(Header { uncollected: true, unsynced: true, ..header })
}

pub(super) fn parse_header(bytes: &[u8], id: &Id) -> Result<Header, String> {
    let header: Header = serde_json::from_slice(bytes).map_err(|error| error.to_string())?;
    if header.id != *id {
        return Err(format!("it belongs to session {}", header.id));
    }
    header.check()?;
    Ok(header)
}

/// Reads one of recant's own files whole; `None` if it is missing. It is damage if it is no file, or larger than `limit` bytes.
pub fn read_small(at: Entry<'_>, limit: u64) -> Result<Option<Vec<u8>>, Error> {
    use std::io::Read;
    let Some((file, size)) = open_own(at)? else { return Ok(None) };
    if size > limit {
        return Err(damaged(at, "it is far too large"));
    }
    let mut bytes = Vec::with_capacity(usize::try_from(size + 1).unwrap_or(0));
    file.take(limit).read_to_end(&mut bytes).at("read", at)?;
    Ok(Some(bytes))
}

/// Opens one of recant's own files for reading, with its size in bytes; `None` if it is missing. It is damage if it is no file.
pub fn open_own(at: Entry<'_>) -> Result<Option<(File, u64)>, Error> {
    let no_file = || damaged(at, "it is not a file");
    // The open refuses a link and does not wait for a FIFO.
    let file = match at.open_file() {
        Ok(file) => file,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        Err(error) if matches!(error.errno(), Some(libc::ELOOP | libc::ENXIO)) => return Err(no_file()),
        Err(error) => return Err(error.into()),
    };
    let stat = crate::fs::stat_of(&file).at("look at", at)?;
    if stat.sort == crate::fs::Sort::File { Ok(Some((file, stat.size))) } else { Err(no_file()) }
}

pub(super) fn split<'p>(dir: &Dir, path: &'p [u8]) -> Result<(Dir, &'p [u8]), Error> {
    let (parent, name) = split_last(path);
    Ok((part(dir, parent)?, name))
}

/// The directory of a path, and the last name.
pub(super) fn split_last(path: &[u8]) -> (&[u8], &[u8]) {
    match path.iter().rposition(|b| *b == b'/') {
        Some(cut) => (&path[..cut], &path[cut + 1..]),
        None => (b"", path),
    }
}

pub fn mkdir_if_missing(fs: &Fs, at: Entry<'_>) -> Result<(), Error> {
    match fs.mkdir(at, 0o700) {
        Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => Ok(()),
        other => Ok(other?),
    }
}
