//! An open session: its folder, its header, and who may change it; and how recant's own small files are read.

use std::fs::File;
use std::path::Path;

use super::change::{Change, object_name};
use super::error::{damaged, garbled, not_lasting, not_now};
use super::header::{Header, KNOWN, Origin};
use super::id::Id;
use super::run::Run;
use super::sides::{self, Side};
use crate::error::{At, Error, IoError, Kind, command, reason};
use crate::fs::Fs;
use crate::fs::dir::{Dir, Entry, leads_nowhere};
use crate::fs::lock::Lock;
use crate::fs::path::Shown;
use crate::tree::json;
use crate::tree::state::State;

/// An open session, as its header was when it was opened.
#[derive(Debug)]
pub struct Session {
    /// Its folder.
    pub dir: Dir,
    /// Its header.
    pub header: Header,
}

/// A session that nobody else can change as long as this is held.
#[derive(Debug)]
pub struct Locked {
    session: Session,
    _lock: Lock,
}

impl std::ops::Deref for Locked {
    type Target = Session;
    fn deref(&self) -> &Session {
        &self.session
    }
}

/// The folders of a session, in the order in which they are made; the first ones are all that a run needs.
pub(super) const SESSION_FOLDERS: [&[u8]; 8] = [
    b"held",
    b"held/upper",
    b"held/work",
    b"held/objects",
    b"checkpoint",
    b"checkpoint/blobs",
    b"checkpoint/objects",
    b"displaced",
];
pub(super) const RUN_FOLDERS: usize = 3;

/// Opens a folder that belongs to every session, below `session`, its own; or one of the store, below that.
///
/// # Errors
/// It is missing, a link or no folder.
pub fn part(session: &Dir, at: &[u8]) -> Result<Dir, Error> {
    session.open_below(at).map_err(|error| {
        let path = format!("{}/{}", session.path().display(), Shown(at));
        match leads_nowhere(&error) {
            true if error.kind() == std::io::ErrorKind::NotFound => {
                let why = format!(
                    "the folder is missing; if a copy of the store left it out because it was empty: mkdir -p -m 700 {path}"
                );
                damaged(path, why)
            }
            true => damaged(path, format!("the folder cannot be opened: {}", reason(&error))),
            false => IoError { path, act: "open the folder", source: error }.into(),
        }
    })
}

impl Session {
    /// That the folders in which an operation keeps and finds objects are there.
    ///
    /// # Errors
    /// One is missing, a link or no folder.
    pub fn check_folders(&self) -> Result<(), Error> {
        SESSION_FOLDERS[RUN_FOLDERS..].iter().try_for_each(|path| part(&self.dir, path).map(drop))
    }

    /// That this recant knows all that has to be heeded in changing it.
    ///
    /// # Errors
    /// A later recant has put something there that this one does not know: it is shown, and not changed.
    pub fn check_known(&self) -> Result<(), Error> {
        let Some(needed) = self.header.reader.filter(|needed| *needed > KNOWN) else { return Ok(()) };
        Err(not_now(self.id(), format!("a newer recant has changed it (it needs format {needed}, this recant knows {KNOWN})"))
            .with_remedy(format!("take that recant; this one shows it: {}", command(format_args!("show {}", self.id())))))
    }

    /// The session's id.
    pub fn id(&self) -> &Id {
        &self.header.id
    }

    /// Whether a run of it is under way: its lock is held. A run of this boot whose lock is free has ended and waits to
    /// be collected.
    pub fn is_held(&self) -> Result<bool, Error> {
        Ok(Lock::is_held(self.dir.at(b"lock")).at("look at", self.dir.at(b"lock"))?)
    }

    /// Where each of the `count` changes is.
    ///
    /// Errors: the header tells of another number of changes, or counts them otherwise.
    pub fn sides(&self, count: usize) -> Result<Vec<Side>, Error> {
        let damaged = |why: &str| damaged(self.dir.at(b"session.json"), why);
        let sides =
            sides::from_text(&self.header.sides, count).ok_or_else(|| damaged("its sides are not those of its changes"))?;
        let number = |which: fn(Side) -> bool| sides.iter().filter(|side| which(**side)).count() as u64;
        if number(Side::is_in) != self.header.counts.inside || number(Side::was_in) != self.header.counts.ever_in {
            return Err(damaged("its counts are not those of its sides"));
        }
        Ok(sides)
    }

    /// Where each change is, by what the header counts: for whoever reads the changes one by one.
    ///
    /// Errors: as [`Session::sides`], and for a count that `changes.jsonl` is too short for.
    pub fn sides_of_all(&self) -> Result<Vec<Side>, Error> {
        let at = self.dir.at(b"changes.jsonl");
        let count = self.header.counts.changes;
        let size = at.stat().at("look at", at)?.map_or(0, |stat| stat.size);
        // No line is as short as a byte: a garbled count takes no more memory than the file has bytes.
        match usize::try_from(count) {
            Ok(number) if count <= size && u32::try_from(count).is_ok() => self.sides(number),
            _ => Err(damaged(at, format!("it cannot hold the {count} changes that the session counts"))),
        }
    }

    /// What the run was; `None` for a session staged by hand.
    pub fn run(&self) -> Result<Option<Run>, Error> {
        let at = self.dir.at(b"run.json");
        let Some(bytes) = read_small(at, 16 << 20)? else { return Ok(None) };
        if !is_json(&bytes) && self.header.uncollected && is_uncollected(&self.dir)? {
            // It went with the power: where the run wrote is not known any more.
            return Ok(None);
        }
        let run = serde_json::from_slice(&bytes);
        run.map(Some).map_err(|error| damaged(at, error))
    }

    /// Whether a run of another boot was never collected: what it wrote may not have reached the disk.
    pub fn of_another_boot(&self) -> Result<bool, Error> {
        Ok(self.run()?.is_some_and(|run| run.may_lack()))
    }

    /// Where the content of a change's `after` lies, below the session's folder: in its upper or among the held objects.
    /// `None` where it is on the tree or lost, or where there is none (a deletion, a staged folder or link). `run` is the
    /// session's own.
    pub fn held_at(change: &Change, side: Side, run: Option<&Run>) -> Option<Vec<u8>> {
        match (side, run) {
            (Side::In | Side::Lost, _) => None,
            _ if change.after.is_none() || change.in_place() => None,
            (Side::Never, Some(run)) if !run.in_memory => run.upper_of(&change.path).map(|upper| [b"held/", &*upper].concat()),
            // What has no content is made from its record, unless its names are to be one object.
            (Side::Never, _) if !change.marks.linked && !change.after.as_ref().is_some_and(State::is_file) => None,
            _ => Some(object_name(change.n)),
        }
    }

    /// Opens the folder of a path below the session's folder, and gives the last name.
    pub fn split<'p>(&self, path: &'p [u8]) -> Result<(Dir, &'p [u8]), Error> {
        split(&self.dir, path)
    }
}

impl Locked {
    /// `lock` is the session's own.
    pub(super) fn new(session: Session, lock: Lock) -> Self {
        Self { session, _lock: lock }
    }

    /// Replaces the header, durably.
    pub fn save(&mut self, fs: &Fs, header: Header) -> Result<(), Error> {
        self.save_after(fs, header, &[], &[])
    }

    /// The same after files that the header speaks of, each with the folder that it lies in, and the folders in which names
    /// are new, are durable.
    pub fn save_after(&mut self, fs: &Fs, mut header: Header, files: &[(&File, &Path)], folders: &[&Dir]) -> Result<(), Error> {
        header.changed = crate::fs::now();
        let at = self.dir.at(b"session.json");
        fs.replace_after(at, &header_bytes(&header), files, folders).at("write", at)?;
        self.session.header = header;
        Ok(())
    }

    /// The same where nothing more is to be done: what fails after the new header has its name is no reason to say that nothing was changed.
    pub fn save_at_last(&mut self, fs: &Fs, header: Header, files: &[(&File, &Path)], folders: &[&Dir]) -> Result<(), Error> {
        let before = read_small(self.dir.at(b"session.json"), HEADER_MAX)?;
        match self.save_after(fs, header, files, folders) {
            // One that cannot be read now may be the new one.
            Err(why)
                if why.io().is_some() && !read_small(self.dir.at(b"session.json"), HEADER_MAX).is_ok_and(|now| now == before) =>
            {
                Err(not_lasting(self.id(), why))
            }
            saved => saved,
        }
    }

    /// Takes over a header that was written already.
    pub fn set_header(&mut self, header: Header) {
        self.session.header = header;
    }

    /// Replaces the header without waiting for the disk: of a run under way, which a power cut loses anyway.
    pub fn save_later(&mut self, fs: &Fs, mut header: Header) -> Result<(), Error> {
        header.changed = crate::fs::now();
        let at = self.dir.at(b"session.json");
        fs.replace_later(at, &header_bytes(&header)).at("write", at)?;
        self.session.header = header;
        Ok(())
    }

    /// Makes the folders that a session lacks which was begun for a run.
    pub fn complete(&self, fs: &Fs) -> Result<(), Error> {
        for path in &SESSION_FOLDERS[RUN_FOLDERS..] {
            let (parent, name) = split(&self.dir, path)?;
            mkdir_if_missing(fs, parent.at(name))?;
        }
        Ok(())
    }

    /// Replaces `run.json` and header of a session that goes on, durably.
    pub fn keep_run(&mut self, fs: &Fs, run: &Run, header: Header) -> Result<(), Error> {
        let at = self.dir.at(b"run.json");
        let beside = self.dir.at(b"run.json.new");
        fs.write_beside(at, &json::text(run)).at("write", at)?;
        // D1: where the session's content lies stands in the one that it replaces.
        fs.sync_at(beside).at("sync", beside)?;
        fs.name_beside(at).at("write", at)?;
        // The name lasts with the header's: until then the command is not there (D2).
        self.save(fs, header)
    }

    /// Writes `run.json` without waiting for the disk.
    pub fn note_run(&self, fs: &Fs, run: &Run) -> Result<(), Error> {
        let at = self.dir.at(b"run.json");
        fs.replace_later(at, &json::text(run)).at("write", at)?;
        Ok(())
    }
}

/// The bytes of a header's file.
pub fn header_bytes(header: &Header) -> Vec<u8> {
    json::line(header)
}

pub(super) fn write_header(fs: &Fs, dir: &Dir, header: &Header) -> Result<(), Error> {
    let at = dir.at(b"session.json");
    fs.replace(at, &header_bytes(header)).at("write", at)?;
    Ok(())
}

/// A header has some hundred bytes. More come with sides that alternate (PATHs committed one by one), ten bytes a run of
/// them, and with what a later recant adds.
const HEADER_MAX: u64 = 4 << 20;

/// The header of the session whose folder is `dir`; `is_journaled` tells whether an operation of it was begun.
///
/// Errors: one that is missing or makes no sense.
pub(super) fn read_header(dir: &Dir, id: &Id, is_journaled: impl FnOnce() -> Result<bool, Error>) -> Result<Header, Error> {
    let at = dir.at(b"session.json");
    let garbled = |why: &str| garbled(at, why, id);
    let bytes = match read_small(at, HEADER_MAX) {
        Ok(bytes) => bytes,
        Err(error) if error.kind() == Kind::Damaged => return Err(garbled(error.why())),
        Err(error) => return Err(error),
    };
    // Of what has a journal all was durable: a header made up here would be of the generation of one that never was sealed.
    if !bytes.as_deref().is_some_and(is_json) && is_uncollected(dir)? && !is_journaled()? {
        return cut_off_header(dir, id);
    }
    parse_header(&bytes.ok_or_else(|| garbled("it is missing"))?, id).map_err(|why| garbled(&why))
}

/// Files of recant's own are written whole, and but for those of a run under way are durable before they get their names.
fn is_json(bytes: &[u8]) -> bool {
    serde_json::from_slice::<serde::de::IgnoredAny>(bytes).is_ok()
}

/// Whether a session is of a run of which nothing was ever collected. One that changes are staged in by hand is durable, with all its
/// folders, before anybody knows of it.
fn is_uncollected(dir: &Dir) -> Result<bool, Error> {
    let there = |path: &[u8]| -> Result<bool, Error> {
        let shown = || format!("{}/{}", dir.path().display(), Shown(path));
        match split(dir, path) {
            Ok((parent, name)) => Ok(parent.at(name).stat().at("look at", shown())?.is_some()),
            Err(_) => Ok(false),
        }
    };
    Ok(!there(b"changes.jsonl")? && (there(b"run.json")? || !there(b"checkpoint")?))
}

/// The header of a run that the machine went down in before anything of it was synced: with the power went what its own one said.
/// It is still to be collected, and whatever is found may not be all of it.
fn cut_off_header(dir: &Dir, id: &Id) -> Result<Header, Error> {
    let changed = dir.stat().at("look at", dir.path().display())?.mtime;
    let header = Header::new(id.clone(), 0, Origin::Captured, changed);
    Ok(Header { uncollected: true, unsynced: true, ..header })
}

pub(super) fn parse_header(bytes: &[u8], id: &Id) -> Result<Header, String> {
    let header: Header = serde_json::from_slice(bytes).map_err(|error| error.to_string())?;
    if header.id != *id {
        return Err(format!("it is that of session {}", header.id));
    }
    header.check()?;
    Ok(header)
}

/// Reads one of recant's own files whole; `None` where it is missing. What is no file, or larger than `limit` bytes, is damage.
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

/// Opens one of recant's own files for reading, and gives its bytes; `None` where it is missing. What is no file is damage.
pub fn open_own(at: Entry<'_>) -> Result<Option<(File, u64)>, Error> {
    let no_file = || damaged(at, "it is not a file");
    // A link is refused by the open, a FIFO does not make it wait.
    let file = match at.open_file() {
        Ok(file) => file,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        Err(error) if matches!(error.raw_os_error(), Some(libc::ELOOP | libc::ENXIO)) => return Err(no_file()),
        Err(error) => return Err(error).at("open", at).map_err(Error::from),
    };
    let stat = crate::fs::dir::stat_of(&file).at("look at", at)?;
    if stat.sort == crate::fs::dir::Sort::File { Ok(Some((file, stat.size))) } else { Err(no_file()) }
}

pub(super) fn split<'p>(dir: &Dir, path: &'p [u8]) -> Result<(Dir, &'p [u8]), Error> {
    let (parent, name) = match path.iter().rposition(|b| *b == b'/') {
        Some(cut) => (&path[..cut], &path[cut + 1..]),
        None => (&b""[..], path),
    };
    Ok((part(dir, parent)?, name))
}

pub(super) fn mkdir_if_missing(fs: &Fs, at: Entry<'_>) -> Result<(), Error> {
    match fs.mkdir(at, 0o700) {
        Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => Ok(()),
        other => Ok(other.at("make the folder", at)?),
    }
}
