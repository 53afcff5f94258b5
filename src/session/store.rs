//! The store: the folder that holds sessions, and what is read and written there as a whole.

use std::time::Duration;

use super::Error;
use super::change::Change;
use super::header::{Header, Origin, Status};
use super::id::{self, Id};
use super::run::{Run, boot_id};
use super::sides::{self, Side};
use crate::error::At;
use crate::fs::Fs;
use crate::fs::dir::{Dir, Entry};
use crate::fs::lock::{Hold, Lock};
use crate::fs::path::AbsPath;
use crate::tree::state::What;

/// An open store.
#[derive(Debug)]
pub struct Store {
    /// Where it is.
    pub path: AbsPath,
    /// Its folder.
    pub dir: Dir,
    sessions: Dir,
    journals: Dir,
}

/// A session that a listing came to but cannot read.
#[derive(Debug, Clone)]
pub struct Broken {
    /// The folder's name in `sessions/`.
    pub name: String,
    /// Why it cannot be read.
    pub why: String,
}

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

const FORMAT: &str = "recant-store 1\n";
const FOLDERS: [&[u8]; 2] = [b"sessions", b"journals"];
/// What a store has before it has its format: it is being made, or that was cut off.
const BEGINNINGS: [&[u8]; 4] = [b"lock", b"sessions", b"journals", b"format.new"];
/// The folders of a session, in the order in which they are made; the first ones are all that a run needs.
const SESSION_FOLDERS: [&[u8]; 8] = [
    b"held",
    b"held/upper",
    b"held/work",
    b"held/objects",
    b"checkpoint",
    b"checkpoint/blobs",
    b"checkpoint/objects",
    b"displaced",
];
const RUN_FOLDERS: usize = 3;
/// From so many sessions on a second thread is sooner done than it is started.
const WORTH_A_THREAD: usize = 100;
/// Bytes that most headers have by far not.
const USUAL_HEADER: usize = 16 << 10;

impl Store {
    /// Opens the store at `path`; `None` where there is none yet. Changes nothing.
    pub fn open(path: &AbsPath) -> Result<Option<Self>, Error> {
        let dir = match Dir::open(path.as_path()) {
            Ok(dir) => dir,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(error).at("open the store", path).map_err(Error::from),
        };
        let format = read_small(dir.at(b"format"), 4096);
        // Before anything is said of who may write to it: another folder's rights are nothing to be mended for recant.
        if matches!(format, Ok(None)) && dir.names().is_ok_and(|names| names.iter().any(|name| !BEGINNINGS.contains(&&**name))) {
            return Err(Error::NoStore { path: path.to_string() });
        }
        check_owner(&dir, path)?;
        match format? {
            None => return Ok(None),
            Some(text) if text == FORMAT.as_bytes() => {}
            Some(text) => {
                let found = String::from_utf8_lossy(&text).lines().next().unwrap_or_default().to_owned();
                return Err(Error::Format { path: path.to_string(), found });
            }
        }
        let sub = |name: &[u8]| -> Result<Dir, Error> {
            let dir = match dir.open_below(name) {
                Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                    return Err(Error::Damaged { path: dir.at(name).to_string(), why: "the folder is missing".into() });
                }
                opened => opened.at("open the store's folder", dir.at(name))?,
            };
            check_owner(&dir, path)?;
            Ok(dir)
        };
        let (sessions, journals) = (sub(FOLDERS[0])?, sub(FOLDERS[1])?);
        Ok(Some(Self { path: path.clone(), dir, sessions, journals }))
    }

    /// Opens the store at `path`, made with its parents where it is missing, all with mode 0700.
    pub fn create(fs: &Fs, path: &AbsPath) -> Result<Self, Error> {
        if let Some(store) = Self::open(path)? {
            return Ok(store);
        }
        let dir = make_folders(fs, path)?;
        check_owner(&dir, path)?;
        let at = dir.at(b"lock");
        let lock = Lock::wait(fs, at, Hold::Exclusive, Duration::from_secs(10), || ()).at("lock", at)?;
        let _lock = lock.ok_or_else(|| Error::Busy { what: format!("the store {path}") })?;
        // Another recant may have made it while this one waited.
        if let Some(store) = Self::open(path)? {
            return Ok(store);
        }
        for name in FOLDERS {
            mkdir_if_missing(fs, dir.at(name))?;
        }
        // `format` comes last: a store that has it is whole.
        fs.replace(dir.at(b"format"), FORMAT.as_bytes()).at("write", dir.at(b"format"))?;
        Self::open(path)?.ok_or_else(|| Error::Damaged { path: path.to_string(), why: "it vanished while it was made".into() })
    }

    /// Whether `path` is the store or lies in it.
    pub fn holds(&self, path: &AbsPath) -> bool {
        path.is_under(&self.path)
    }

    /// The folder of journals.
    pub fn journals(&self) -> &Dir {
        &self.journals
    }

    /// The folder of sessions.
    pub fn sessions(&self) -> &Dir {
        &self.sessions
    }

    /// All headers, the oldest first; what cannot be read comes beside them and hides nothing. Of many sessions a second
    /// thread reads half: nearly all of the time goes into the kernel's opening of files.
    pub fn headers(&self) -> Result<(Vec<Header>, Vec<Broken>), Error> {
        let names = self.sessions.names().at("list the sessions", self.sessions.path().display())?;
        let (first, second) = names.split_at(if names.len() < WORTH_A_THREAD { names.len() } else { names.len() / 2 });
        let (mut headers, mut broken) = std::thread::scope(|scope| {
            let other = (!second.is_empty()).then(|| scope.spawn(|| self.headers_of(second)));
            let (mut headers, mut broken) = self.headers_of(first);
            match other.map(std::thread::ScopedJoinHandle::join) {
                Some(Ok((more_headers, more_broken))) => {
                    headers.extend(more_headers);
                    broken.extend(more_broken);
                }
                Some(Err(panic)) => std::panic::resume_unwind(panic),
                None => {}
            }
            (headers, broken)
        });
        headers.sort_by(|a, b| (a.seq, &a.id).cmp(&(b.seq, &b.id)));
        broken.sort_by(|a, b| a.name.cmp(&b.name));
        Ok((headers, broken))
    }

    fn headers_of(&self, names: &[Vec<u8>]) -> (Vec<Header>, Vec<Broken>) {
        let (mut headers, mut broken) = (Vec::with_capacity(names.len()), Vec::new());
        let mut buffer = vec![0; USUAL_HEADER];
        // What is being made or removed has a name of its own kind: `.new-…`, `.gone-…`.
        for name in names.iter().filter(|name| !name.starts_with(b".")) {
            let header = match std::str::from_utf8(name).ok().and_then(Id::parse) {
                Some(id) => self.header_of(&id, &mut buffer),
                None => Err(Error::Damaged { path: String::new(), why: "its name is no session's id".into() }),
            };
            let why = match header {
                Ok(header) => {
                    headers.push(header);
                    continue;
                }
                // Pruned since the names were read.
                Err(Error::Unknown { .. }) => continue,
                Err(Error::Damaged { why, .. } | Error::Garbled { why, .. }) => why,
                Err(error) => error.to_string(),
            };
            broken.push(Broken { name: String::from_utf8_lossy(name).into_owned(), why });
        }
        (headers, broken)
    }

    /// Of a listing: one open and one read a session, into `buffer`. A header that parses is whole; one that does not, or is
    /// larger, is read like that of any session.
    fn header_of(&self, id: &Id, buffer: &mut [u8]) -> Result<Header, Error> {
        use std::io::Read;
        let path = format!("{id}/session.json");
        if let Ok(mut file) = self.sessions.open_file_below(path.as_bytes())
            && let Ok(size) = file.read(buffer)
            && size < buffer.len()
            && let Ok(header) = parse_header(&buffer[..size], id)
        {
            return Ok(header);
        }
        Ok(self.session(id)?.header)
    }

    pub(super) fn session_dir(&self, id: &Id) -> Result<Dir, Error> {
        let at = self.sessions.at(id.as_str().as_bytes());
        match at.open_dir() {
            Ok(dir) => {
                check_owner(&dir, &self.path)?;
                Ok(dir)
            }
            Err(error) if matches!(error.raw_os_error(), Some(libc::ELOOP | libc::ENOTDIR)) => {
                Err(Error::Damaged { path: at.to_string(), why: "it is not a folder".into() })
            }
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                Err(Error::Unknown { key: id.to_string(), near: Vec::new() })
            }
            Err(error) => Err(error).at("open the session", at).map_err(Error::from),
        }
    }

    /// The session that `key` names: `last`, a whole id, a name, an id's last part, a unique prefix, in this order.
    pub fn find(&self, key: &str) -> Result<Id, Error> {
        if key.is_empty() || key.contains(['/', '\0']) || key.starts_with('.') {
            return Err(Error::BadKey { key: key.into(), why: "it is empty, starts with '.' or holds '/'" });
        }
        if let Some(id) = Id::parse(key)
            && self.sessions.at(key.as_bytes()).stat().at("look at", &self.path)?.is_some()
        {
            return Ok(id);
        }
        let (headers, broken) = self.headers()?;
        if key == "last" {
            let usable = |h: &&Header| h.counts.changes > 0 && !matches!(h.status(), Status::Discarded | Status::Capturing);
            let none = || Error::NotNow {
                id: "last".into(),
                why: "there is no session that has a change".into(),
                remedy: Some("recant list shows all sessions".into()),
            };
            return headers.iter().rev().find(usable).map(|h| h.id.clone()).ok_or_else(none);
        }
        if let Some(header) = headers.iter().find(|h| h.name.as_deref() == Some(key)) {
            return Ok(header.id.clone());
        }
        let ids = || headers.iter().map(|h| h.id.clone()).chain(broken.iter().filter_map(|b| Id::parse(&b.name)));
        for fits in
            [ids().filter(|id| id.tail() == key).collect::<Vec<_>>(), ids().filter(|id| id.as_str().starts_with(key)).collect()]
        {
            match &fits[..] {
                [] => {}
                [id] => return Ok(id.clone()),
                _ => return Err(Error::Ambiguous { key: key.into(), fits: fits.iter().map(ToString::to_string).collect() }),
            }
        }
        Err(Error::Unknown { key: key.into(), near: nearest(key, &headers) })
    }

    /// Opens a session for reading.
    pub fn session(&self, id: &Id) -> Result<Session, Error> {
        let dir = self.session_dir(id)?;
        let header = read_header(&dir, id)?;
        Ok(Session { dir, header })
    }

    /// Puts a header in place of one that cannot be read, durably, as a journal has it. Under the store's lock.
    pub fn put_header(&self, fs: &Fs, header: &Header) -> Result<Session, Error> {
        let dir = self.session_dir(&header.id)?;
        write_header(fs, &dir, header)?;
        Ok(Session { dir, header: header.clone() })
    }

    /// Opens a session and takes its lock; another recant that holds it is an error at once.
    pub fn lock_session(&self, fs: &Fs, id: &Id) -> Result<Locked, Error> {
        let dir = self.session_dir(id)?;
        let lock = Lock::try_take(fs, dir.at(b"lock"), Hold::Exclusive).at("lock", dir.at(b"lock"))?;
        let lock = lock.ok_or_else(|| Error::Busy { what: format!("session {id}") })?;
        // Read under the lock: what was read before it may be old.
        let header = read_header(&dir, id)?;
        Ok(Locked { session: Session { dir, header }, _lock: lock })
    }

    /// Takes the store's lock, waiting for at most 10 s; `slow` is called once, after half a second.
    pub fn lock(&self, fs: &Fs, hold: Hold, slow: impl FnOnce()) -> Result<Lock, Error> {
        let at = self.dir.at(b"lock");
        let lock = Lock::wait(fs, at, hold, Duration::from_secs(10), slow).at("lock", at)?;
        lock.ok_or_else(|| Error::Busy { what: format!("the store {}", self.path) })
    }

    /// Begins a session: its folder is made under another name and appears whole. `command` is the start of that of a run.
    pub fn begin(&self, fs: &Fs, origin: Origin, name: Option<&str>, command: Option<String>) -> Result<Locked, Error> {
        if let Some(name) = name {
            id::check_name(name).map_err(|why| Error::BadKey { key: name.into(), why })?;
        }
        let _numbering = self.numbering(fs)?;
        let (headers, _) = self.headers()?;
        if let Some(name) = name {
            name_is_free(&headers, name)?;
        }
        let seq = headers.iter().map(|h| h.seq).max().unwrap_or(0) + 1;
        loop {
            let id = Id::new_now().at("draw a random number for", "the session's id")?;
            let temp = format!(".new-{id}").into_bytes();
            let temp = self.sessions.at(&temp);
            fs.mkdir(temp, 0o700).at("make the folder", temp)?;
            let dir = temp.open_dir().at("open the folder", temp)?;
            let lock = Lock::try_take(fs, dir.at(b"lock"), Hold::Exclusive).at("lock", dir.at(b"lock"))?;
            let lock = lock.ok_or_else(|| Error::Busy { what: format!("session {id}") })?;
            let durable = origin == Origin::Staged;
            // Most runs that change nothing are over in no time, and their session is gone again.
            let needed = if durable { &SESSION_FOLDERS[..] } else { &SESSION_FOLDERS[..RUN_FOLDERS] };
            for path in needed {
                let (parent, name) = split(&dir, path)?;
                fs.mkdir(parent.at(name), 0o700).at("make the folder", parent.at(name))?;
            }
            let mut header = Header::new(id.clone(), seq, origin, crate::fs::now());
            header.name = name.map(Into::into);
            header.uncollected = !durable;
            header.command = command.clone();
            let at = dir.at(b"session.json");
            let bytes = header_bytes(&header);
            if durable { fs.replace(at, &bytes) } else { fs.replace_later(at, &bytes) }.at("write", at)?;
            match fs.place(temp, self.sessions.at(id.as_str().as_bytes())) {
                Ok(()) => {}
                // Drawn twice in one second.
                Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {
                    fs.remove_all(temp).at("remove", temp)?;
                    continue;
                }
                Err(error) => return Err(error).at("name the session", temp).map_err(Error::from),
            }
            if durable {
                // D2, D3: the session's own name. One of a run is made durable when the run has ended.
                fs.sync_dir(&self.sessions).at("sync", self.sessions.path().display())?;
            }
            let dir = self.session_dir(&id)?;
            return Ok(Locked { session: Session { dir, header }, _lock: lock });
        }
    }

    /// Taken by whoever gives a session its number or a name: two at once would both find it free. Held for some ms.
    fn numbering(&self, fs: &Fs) -> Result<Lock, Error> {
        let at = self.dir.at(b"numbering");
        let lock = Lock::wait(fs, at, Hold::Exclusive, Duration::from_secs(10), || ()).at("lock", at)?;
        lock.ok_or_else(|| Error::Busy { what: format!("the list of sessions of {}", self.path) })
    }

    /// Gives a session another name, or none.
    pub fn rename(&self, fs: &Fs, locked: &mut Locked, name: Option<&str>) -> Result<(), Error> {
        let _numbering;
        if let Some(name) = name {
            id::check_name(name).map_err(|why| Error::BadKey { key: name.into(), why })?;
            _numbering = self.numbering(fs)?;
            let (headers, _) = self.headers()?;
            name_is_free(headers.iter().filter(|h| h.id != locked.header.id), name)?;
        }
        let mut header = locked.header.clone();
        header.name = name.map(Into::into);
        locked.save(fs, header)
    }

    /// Removes a whole session: first its name goes, durably, then its bytes (I12). Of a run that left nothing the name alone
    /// goes: its empty folders are for [`Store::sweep_removed`], when there is time.
    pub fn remove_session(&self, fs: &Fs, locked: Locked) -> Result<(), Error> {
        // One of a run that left nothing was never made durable.
        let durable = locked.header.lines > 0 || !locked.header.uncollected;
        self.remove(fs, locked.id(), durable)
    }

    /// Takes a session's folder away, whatever is in it. The caller holds its lock.
    pub(super) fn remove(&self, fs: &Fs, id: &Id, durable: bool) -> Result<(), Error> {
        let gone = format!(".gone-{id}").into_bytes();
        let (at, gone) = (self.sessions.at(id.as_str().as_bytes()), self.sessions.at(&gone));
        fs.place(at, gone).at("remove the session", at)?;
        if !durable {
            return Ok(());
        }
        fs.sync_dir(&self.sessions).at("sync", self.sessions.path().display())?;
        fs.remove_all(gone).at("remove", gone)?;
        Ok(())
    }

    /// Removes what a crash left half made or half removed in `sessions/`. Under the store's lock.
    pub fn sweep(&self, fs: &Fs) -> Result<(), Error> {
        self.sweep_names(fs, &[b".new-", b".gone-"])
    }

    /// Removes what lost its name before: needs no lock, as nobody looks for it any more.
    pub fn sweep_removed(&self, fs: &Fs) -> Result<(), Error> {
        self.sweep_names(fs, &[b".gone-"])
    }

    fn sweep_names(&self, fs: &Fs, prefixes: &[&[u8]]) -> Result<(), Error> {
        for name in self.sessions.names().at("list", self.sessions.path().display())? {
            let at = self.sessions.at(&name);
            if prefixes.iter().any(|prefix| name.starts_with(prefix)) {
                match sweep_one(fs, at) {
                    // Another recant sweeps, too.
                    Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
                    swept => swept.at("remove", at)?,
                }
            }
        }
        Ok(())
    }

    /// The ids of the sessions that have a journal: an operation of theirs is under way, or was interrupted.
    pub fn journaled(&self) -> Result<Vec<Id>, Error> {
        let names = self.journals.names().at("list the journals", self.journals.path().display())?;
        let mut ids: Vec<Id> = names.iter().filter_map(|name| Id::parse(std::str::from_utf8(name).ok()?)).collect();
        ids.sort();
        Ok(ids)
    }
}

impl Session {
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
    /// Errors: [`Error::Damaged`] where the header tells of another number of changes, or counts them otherwise.
    pub fn sides(&self, count: usize) -> Result<Vec<Side>, Error> {
        let damaged = |why: &str| Error::Damaged { path: self.dir.at(b"session.json").to_string(), why: why.into() };
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
            _ => Err(Error::Damaged {
                path: at.to_string(),
                why: format!("it cannot hold the {count} changes that the session counts"),
            }),
        }
    }

    /// What the run was; `None` for a session staged by hand.
    pub fn run(&self) -> Result<Option<Run>, Error> {
        let at = self.dir.at(b"run.json");
        let Some(bytes) = read_small(at, 16 << 20)? else { return Ok(None) };
        let run = serde_json::from_slice(&bytes);
        run.map(Some).map_err(|error| Error::Damaged { path: at.to_string(), why: error.to_string() })
    }

    /// Whether a run of another boot was never collected: what it wrote may not have reached the disk.
    pub fn of_another_boot(&self) -> Result<bool, Error> {
        Ok(self.run()?.is_some_and(|run| run.boot != boot_id()))
    }

    /// Where the content of a change's `after` lies, below the session's folder: in its upper or among the held objects.
    /// `None` where it is on the tree or lost, or where there is none (a deletion, a staged folder or link). `run` is the
    /// session's own.
    pub fn held_at(change: &Change, side: Side, run: Option<&Run>) -> Option<Vec<u8>> {
        match (side, run) {
            (Side::In | Side::Lost, _) => None,
            _ if change.after.is_none() || change.in_place() => None,
            (Side::Never, Some(run)) => run.place_of(&change.path).map(|(place, below)| {
                let upper = format!("held/upper/{}", place.k).into_bytes();
                if below.is_empty() { upper } else { [&*upper, b"/", below].concat() }
            }),
            (Side::Never, None) if change.after.as_ref().is_some_and(|state| !matches!(state.what, What::File { .. })) => None,
            _ => Some(super::stage::object_name(change.n)),
        }
    }

    /// Opens the folder of a path below the session's folder, and gives the last name.
    pub fn split<'p>(&self, path: &'p [u8]) -> Result<(Dir, &'p [u8]), Error> {
        split(&self.dir, path)
    }
}

impl Locked {
    /// Replaces the header, durably.
    pub fn save(&mut self, fs: &Fs, mut header: Header) -> Result<(), Error> {
        header.changed = crate::fs::now();
        write_header(fs, &self.dir, &header)?;
        self.session.header = header;
        Ok(())
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

    /// Makes the session's folder and its own files durable with their names (D2, D3).
    pub fn make_durable(&self, fs: &Fs) -> Result<(), Error> {
        fs.sync_fs(&self.dir).at("sync the file system of", self.dir.path().display())?;
        Ok(())
    }

    /// Writes `run.json` without waiting for the disk.
    pub fn note_run(&self, fs: &Fs, run: &Run) -> Result<(), Error> {
        let at = self.dir.at(b"run.json");
        fs.replace_later(at, &json(run)).at("write", at)?;
        Ok(())
    }

    /// Writes `run.json`.
    pub fn save_run(&self, fs: &Fs, run: &Run) -> Result<(), Error> {
        let at = self.dir.at(b"run.json");
        fs.replace(at, &json(run)).at("write", at)?;
        Ok(())
    }
}

/// Removes a folder of `sessions/` without a name, but one that is just being made or removed: it is locked.
fn sweep_one(fs: &Fs, at: Entry<'_>) -> std::io::Result<()> {
    if Lock::is_held(at.open_dir()?.at(b"lock"))? { Ok(()) } else { fs.remove_all(at) }
}

/// The bytes of a header's file.
pub fn header_bytes(header: &Header) -> Vec<u8> {
    let mut bytes = json(header);
    bytes.push(b'\n');
    bytes
}

fn write_header(fs: &Fs, dir: &Dir, header: &Header) -> Result<(), Error> {
    let at = dir.at(b"session.json");
    fs.replace(at, &header_bytes(header)).at("write", at)?;
    Ok(())
}

fn json<T: serde::Serialize>(value: &T) -> Vec<u8> {
    serde_json::to_vec(value).expect("recant's own types have string keys and no failing serializer")
}

/// A header has some hundred bytes. More come with sides that alternate (PATHs committed one by one), ten bytes a run of
/// them, and with what a later recant adds.
const HEADER_MAX: u64 = 4 << 20;

/// The header of the session whose folder is `dir`.
///
/// Errors: [`Error::Garbled`] for one that is missing or makes no sense.
pub(super) fn read_header(dir: &Dir, id: &Id) -> Result<Header, Error> {
    let at = dir.at(b"session.json");
    let garbled = |why: String| Error::Garbled { path: at.to_string(), why, id: id.to_string() };
    let bytes = match read_small(at, HEADER_MAX) {
        Ok(bytes) => bytes.ok_or_else(|| garbled("it is missing".into()))?,
        Err(Error::Damaged { why, .. }) => return Err(garbled(why)),
        Err(error) => return Err(error),
    };
    parse_header(&bytes, id).map_err(garbled)
}

fn parse_header(bytes: &[u8], id: &Id) -> Result<Header, String> {
    let header: Header = serde_json::from_slice(bytes).map_err(|error| error.to_string())?;
    if header.id != *id {
        return Err(format!("it is that of session {}", header.id));
    }
    header.check()?;
    Ok(header)
}

/// Reads one of recant's own files whole; `None` where it is missing. What is no file, or larger than `limit` bytes, is damage.
pub fn read_small(at: Entry<'_>, limit: u64) -> Result<Option<Vec<u8>>, Error> {
    // A link is refused by the open, a FIFO does not make it wait.
    match at.open_file() {
        Ok(file) => read_open(&file, &at.to_string(), limit).map(Some),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(error) if matches!(error.raw_os_error(), Some(libc::ELOOP | libc::ENXIO)) => {
            Err(Error::Damaged { path: at.to_string(), why: "it is not a file".into() })
        }
        Err(error) => Err(error).at("open", at).map_err(Error::from),
    }
}

fn read_open(file: &std::fs::File, shown: &str, limit: u64) -> Result<Vec<u8>, Error> {
    use std::io::Read;
    let damaged = |why: &str| Error::Damaged { path: shown.into(), why: why.into() };
    let stat = crate::fs::dir::stat_of(file).at("look at", shown)?;
    if stat.sort != crate::fs::dir::Sort::File {
        return Err(damaged("it is not a file"));
    }
    if stat.size > limit {
        return Err(damaged("it is far too large"));
    }
    let mut bytes = Vec::with_capacity(usize::try_from(stat.size + 1).unwrap_or(0));
    file.take(limit).read_to_end(&mut bytes).at("read", shown)?;
    Ok(bytes)
}

fn split<'p>(dir: &Dir, path: &'p [u8]) -> Result<(Dir, &'p [u8]), Error> {
    let (parent, name) = match path.iter().rposition(|b| *b == b'/') {
        Some(cut) => (&path[..cut], &path[cut + 1..]),
        None => (&b""[..], path),
    };
    let parent =
        dir.open_below(parent).at("open the folder", dir.path().join(String::from_utf8_lossy(parent).as_ref()).display())?;
    Ok((parent, name))
}

/// The store is one user's alone (F25, I26).
fn check_owner(dir: &Dir, store: &AbsPath) -> Result<(), Error> {
    let path = dir.path().display().to_string();
    let stat = dir.stat().at("look at", &path)?;
    let me = rustix::process::geteuid().as_raw();
    if stat.uid != me {
        let why = format!("it belongs to user {}, and you are user {me}", stat.uid);
        let remedy = format!("run recant as that user, or name another store with --store (now {store})");
        return Err(Error::Unsafe { path, why, remedy });
    }
    if stat.mode & 0o022 != 0 {
        let why = format!("others may write to it (mode {:04o})", stat.mode);
        return Err(Error::Unsafe { why, remedy: format!("chmod go-w {path}"), path });
    }
    Ok(())
}

fn mkdir_if_missing(fs: &Fs, at: Entry<'_>) -> Result<(), Error> {
    match fs.mkdir(at, 0o700) {
        Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => Ok(()),
        other => Ok(other.at("make the folder", at)?),
    }
}

fn make_folders(fs: &Fs, path: &AbsPath) -> Result<Dir, Error> {
    match Dir::open(path.as_path()) {
        Ok(dir) => return Ok(dir),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
        Err(error) => return Err(error).at("open the folder", path).map_err(Error::from),
    }
    let Some(parent) = path.parent() else { return Err(Error::Damaged { path: "/".into(), why: "it is missing".into() }) };
    let parent = make_folders(fs, &parent)?;
    let at = parent.at(path.name());
    mkdir_if_missing(fs, at)?;
    // D3: a new folder lasts once its parent is synced.
    fs.sync_dir(&parent).at("sync", parent.path().display())?;
    Ok(Dir::open(path.as_path()).at("open the folder", path)?)
}

fn name_is_free<'h>(headers: impl IntoIterator<Item = &'h Header>, name: &str) -> Result<(), Error> {
    let taken = headers.into_iter().find(|h| h.name.as_deref() == Some(name));
    taken.map_or(Ok(()), |h| Err(Error::NameTaken { name: name.into(), by: h.id.to_string() }))
}

/// The three ids and names that begin most like `key`, or end like it.
fn nearest(key: &str, headers: &[Header]) -> Vec<String> {
    let shared = |a: &str| a.bytes().zip(key.bytes()).take_while(|(a, b)| a == b).count();
    let score = |h: &Header| {
        let name = h.name.as_deref().map_or(0, shared);
        shared(h.id.as_str()).max(shared(h.id.tail()) * 4).max(name * 4)
    };
    let mut near: Vec<&Header> = headers.iter().collect();
    near.sort_by_key(|h| (std::cmp::Reverse(score(h)), std::cmp::Reverse(h.seq)));
    let show = |h: &Header| h.name.as_ref().map_or(h.id.to_string(), |name| format!("{} ({name})", h.id));
    near.into_iter().take(3).map(show).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_session_that_is_pruned_while_all_are_listed_is_no_damage() {
        let folder = tempfile::tempdir().unwrap();
        let path = AbsPath::parse(std::os::unix::ffi::OsStrExt::as_bytes(folder.path().as_os_str())).unwrap();
        let store = Store::create(&Fs::new(), &path.join(b"store").unwrap()).unwrap();
        let (headers, broken) = store.headers_of(&[b"20260301-101500-k3fa".to_vec()]);
        assert!(headers.is_empty() && broken.is_empty(), "{broken:?}");
    }
}
