//! The store: the directory that holds sessions, and what is read and written there as a whole.

use std::sync::Arc;
use std::time::Duration;

use super::act::{Acts, numbering};
use super::by::By;
use super::error::{
    ambiguous, bad_key, busy, damaged, name_is_id, name_taken, no_store, not_emptied, not_safe, other_format, running, unknown,
};
use super::header::{Header, Origin, Status};
use super::id::{self, Id};
use super::opened::{Locked, Session, header_bytes, part, read_small};
use super::opened::{
    RUN_DIRECTORIES, SESSION_DIRECTORIES, is_going_on, mkdir_if_missing, parse_header, read_header, split, write_header,
};
use serde::Serialize;

use crate::error::{At, Error, IoError, Kind, command, shell_word};
use crate::fs::Fs;
use crate::fs::dir::{Dir, Entry};
use crate::fs::halves::both;
use crate::fs::lock::Lock;
use crate::fs::path::AbsPath;
use crate::remedy::{Remedy, shell, words};
use crate::settings::edits;
use crate::tree::project::project_of;

/// An open store.
#[derive(Debug)]
pub struct Store {
    /// Its path.
    pub path: AbsPath,
    /// Its directory.
    pub dir: Arc<Dir>,
    /// The directory in which its user begins sessions, which record it.
    pub begins_in: Option<AbsPath>,
    /// The agent that uses it, which the sessions that it begins record; `None` for a person.
    pub by: Option<By>,
    sessions: Dir,
    journals: Dir,
}

/// A session that a listing came to but cannot read.
#[derive(Debug, Clone, Serialize)]
pub struct Broken {
    /// The directory's name in `sessions/`.
    #[serde(rename = "id")]
    pub name: String,
    /// The reason why it cannot be read.
    pub why: String,
}

/// The sessions that a word names.
pub enum Named {
    /// A session, by its id or a part of it.
    Id(Id),
    /// All that have it as their name, at least one, the newest first.
    Name(Vec<Header>),
}

/// The start of a session's directory's name while it is made, and once it is removed: before its id.
pub(super) const HALF_MADE: &[u8] = b".new-";
const REMOVED: &[u8] = b".gone-";
/// The directory with the records of runs on the real tree.
pub(super) const RUNNING: &[u8] = b"running";
const FORMAT: &str = "recant-store 1\n";
const DIRECTORIES: [&[u8]; 2] = [b"sessions", b"journals"];
/// The longest wait for a lock.
const PATIENCE: Duration = Duration::from_secs(10);
/// Names in a store that has no format yet: it is being made, or that was interrupted.
const BEGINNINGS: [&[u8]; 4] = [b"lock", b"sessions", b"journals", b"format.new"];
/// The number of sessions from which a second thread pays.
const WORTH_A_THREAD: usize = 100;
/// Bytes that few headers exceed.
const USUAL_HEADER: usize = 16 << 10;

/// A session to be begun.
struct Wanted<'n> {
    origin: Origin,
    /// Its id; one is drawn if `None`.
    id: Option<&'n Id>,
    begun: bool,
    beside: bool,
    name: Option<&'n str>,
    command: Option<String>,
    /// The session that it is to be a part of.
    of: Option<&'n Header>,
}

impl Wanted<'_> {
    /// One that a verb makes for itself.
    fn own(command: String) -> Self {
        let origin = Origin::Staged;
        Self { origin, id: None, begun: true, beside: false, name: None, command: Some(command), of: None }
    }
}

impl Store {
    /// Opens the store at `path`; `None` if there is none yet. Changes nothing.
    pub fn open(path: &AbsPath) -> Result<Option<Self>, Error> {
        let dir = match Dir::open(path.as_path()) {
            Ok(dir) => dir,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(error).at("open the store", path).map_err(Error::from),
        };
        let mut format = read_small(dir.at(b"format"), 4096);
        // A directory that cannot be listed is no store either, but may not be somebody else's: its error comes below. This check comes
        // before that of who may write to it: recant does not advise on the rights of another directory.
        if matches!(format, Ok(None)) && dir.names().is_ok_and(|names| names.iter().any(|name| !BEGINNINGS.contains(&&**name))) {
            // What was missing before `format` may have come with it, from a recant that made the store just now.
            format = read_small(dir.at(b"format"), 4096);
            if matches!(format, Ok(None)) {
                return Err(no_store(path));
            }
        }
        check_owner(&dir, path)?;
        match format? {
            None => return Ok(None),
            Some(text) if text == FORMAT.as_bytes() => {}
            Some(text) => {
                let found = String::from_utf8_lossy(&text).lines().next().unwrap_or_default().to_owned();
                return Err(other_format(path, &found));
            }
        }
        let sub = |name: &[u8]| -> Result<Dir, Error> {
            let dir = part(&dir, name)?;
            check_owner(&dir, path)?;
            Ok(dir)
        };
        let (sessions, journals) = (sub(DIRECTORIES[0])?, sub(DIRECTORIES[1])?);
        Ok(Some(Self { path: path.clone(), dir: Arc::new(dir), begins_in: None, by: None, sessions, journals }))
    }

    /// Opens the store at `path`; makes it and its parents if missing, all with mode 0700.
    pub fn create(fs: &Fs, path: &AbsPath) -> Result<Self, Error> {
        if let Some(store) = Self::open(path)? {
            return Ok(store);
        }
        let dir = make_directories(fs, path)?;
        check_owner(&dir, path)?;
        let at = dir.at(b"lock");
        let lock = Lock::wait(at, PATIENCE, || (), |at| Lock::try_take(fs, at))?;
        let _lock = lock.ok_or_else(|| busy(format!("the store {path}")))?;
        // Another recant may have made it while this one waited.
        if let Some(store) = Self::open(path)? {
            return Ok(store);
        }
        for name in DIRECTORIES {
            mkdir_if_missing(fs, dir.at(name))?;
        }
        // `format` comes last: a store that has it is whole.
        fs.replace(dir.at(b"format"), FORMAT.as_bytes())?;
        Self::open(path)?.ok_or_else(|| damaged(path, "it vanished while it was made"))
    }

    /// True if `path` is the store or lies in it.
    pub fn holds(&self, path: &AbsPath) -> bool {
        path.is_under(&self.path)
    }

    /// Restores this user's rights to the store, if a program that it ran has removed them; not to the content of its directories. True
    /// if any were missing.
    pub fn regain(&self, fs: &Fs) -> Result<bool, Error> {
        Ok(fs.regain(&self.dir, 1)?)
    }

    /// The directory of journals.
    pub fn journals(&self) -> &Dir {
        &self.journals
    }

    /// The directory of sessions.
    pub fn sessions(&self) -> &Dir {
        &self.sessions
    }

    /// Reads all headers, the oldest first, except those of sessions that a verb is making for itself. What cannot be read comes beside
    /// them and hides nothing.
    pub fn headers(&self) -> Result<(Vec<Header>, Vec<Broken>), Error> {
        let (mut headers, broken) = self.every_header()?;
        self.hide_begun(&mut headers)?;
        Ok((headers, broken))
    }

    /// Reads those too. A second thread reads half of many sessions: nearly all of the time is the kernel opening files.
    pub(super) fn every_header(&self) -> Result<(Vec<Header>, Vec<Broken>), Error> {
        let names = self.sessions.names()?;
        let (first, second) = names.split_at(if names.len() < WORTH_A_THREAD { names.len() } else { names.len() / 2 });
        let ((mut headers, mut broken), more) = both(!second.is_empty(), || self.headers_of(first), || self.headers_of(second));
        headers.extend(more.0);
        broken.extend(more.1);
        headers.sort_by(|a, b| (a.seq, &a.id).cmp(&(b.seq, &b.id)));
        broken.sort_by(|a, b| a.name.cmp(&b.name));
        Ok((headers, broken))
    }

    fn headers_of(&self, names: &[Vec<u8>]) -> (Vec<Header>, Vec<Broken>) {
        let (mut headers, mut broken) = (Vec::with_capacity(names.len()), Vec::new());
        let mut buffer = vec![0; USUAL_HEADER];
        // Sessions being made or removed have other names: `.new-…`, `.gone-…`.
        for name in names.iter().filter(|name| !name.starts_with(b".")) {
            let header = match std::str::from_utf8(name).ok().and_then(Id::parse) {
                Some(id) => self.header_of(&id, &mut buffer),
                None => Err(damaged("", "its name is no session's id")),
            };
            let why = match header {
                Ok(header) => {
                    headers.push(header);
                    continue;
                }
                // Pruned since the names were read.
                Err(error) if error.is_unknown() => continue,
                Err(error) if error.kind() == Kind::Damaged => error.why().to_owned(),
                Err(error) => error.to_string(),
            };
            broken.push(Broken { name: String::from_utf8_lossy(name).into_owned(), why });
        }
        (headers, broken)
    }

    /// Reads a header for a listing, with one open and one read, into `buffer`. A header that parses is whole. One that does not, or is
    /// larger, is read like that of any session.
    fn header_of(&self, id: &Id, buffer: &mut [u8]) -> Result<Header, Error> {
        use std::io::Read;
        let path = format!("{id}/session.json");
        if let Ok(mut file) = self.sessions.open_file_below(path.as_bytes())
            && let Ok(size) = file.read(buffer)
            && size < buffer.len()
            && let Ok(mut header) = parse_header(&buffer[..size], id)
        {
            let is_there = |name: &[u8]| {
                let dir = self.sessions.open_below(id.as_str().as_bytes())?;
                Ok(dir.at(name).stat()?.is_some())
            };
            header.uncollected |= is_going_on(&header, is_there)?;
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
            Err(error) if matches!(error.errno(), Some(libc::ELOOP | libc::ENOTDIR)) => Err(damaged(at, "it is not a directory")),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Err(unknown(id, &[])),
            Err(error) => Err(error.into()),
        }
    }

    /// Finds the session that `key` names. Several may have a name: it means the newest that `fits`, else the newest that is not
    /// discarded, else the newest.
    ///
    /// Errors: those of [`Store::look_up`].
    pub fn find(&self, key: &str, fits: impl Fn(&Header) -> bool) -> Result<Id, Error> {
        Ok(match self.look_up(key)? {
            Named::Id(id) => id,
            Named::Name(mut called) => {
                let fit = called
                    .iter()
                    .position(fits)
                    .or_else(|| called.iter().position(|header| header.discarded.is_none() && header.of.is_none()));
                called.swap_remove(fit.unwrap_or(0)).id
            }
        })
    }

    /// Looks up `key`: a whole id, an id's last part, a name, a unique prefix of an id, in this order.
    ///
    /// Errors: it names nothing, or is the start of several ids; sessions cannot be listed.
    pub fn look_up(&self, key: &str) -> Result<Named, Error> {
        if key.is_empty() || key.contains(['/', '\0']) || key.starts_with('.') {
            return Err(bad_key(key, "it is empty, starts with '.' or holds '/'"));
        }
        if let Some(id) = Id::parse(key)
            && self.sessions.at(key.as_bytes()).stat()?.is_some()
        {
            return Ok(Named::Id(id));
        }
        let (headers, broken) = self.headers()?;
        let ids = || headers.iter().map(|h| h.id.clone()).chain(broken.iter().filter_map(|b| Id::parse(&b.name)));
        let only = |ids: Vec<Id>| match &ids[..] {
            [] => Ok(None),
            [id] => Ok(Some(id.clone())),
            _ => Err(ambiguous(key, &ids.iter().map(ToString::to_string).collect::<Vec<_>>())),
        };
        if let Some(id) = only(ids().filter(|id| id.tail() == key).collect())? {
            return Ok(Named::Id(id));
        }
        let called: Vec<Header> = headers.iter().rev().filter(|h| h.name.as_deref() == Some(key)).cloned().collect();
        if !called.is_empty() {
            return Ok(Named::Name(called));
        }
        only(ids().filter(|id| id.as_str().starts_with(key)).collect())?
            .map(Named::Id)
            .ok_or_else(|| unknown(key, &nearest(key, &headers)))
    }

    /// Opens a session for reading.
    pub fn session(&self, id: &Id) -> Result<Session, Error> {
        let dir = self.session_dir(id)?;
        let header = self.header_in(&dir, id)?;
        Ok(Session::new(dir, header))
    }

    /// True if another recant works in a session, or has since it was opened: what was read of it meanwhile may be half old, half new. An
    /// error tells of nobody.
    pub fn is_at_work(&self, session: &Session) -> bool {
        let same = |now: Session| now.header.generation == session.header.generation;
        // One that was removed meanwhile has changed, too.
        session.is_held().is_ok_and(|held| held) || !self.session(session.id()).is_ok_and(same)
    }

    /// Reads the header of a session's directory.
    pub(super) fn header_in(&self, dir: &Dir, id: &Id) -> Result<Header, Error> {
        let journal = self.journals.at(id.as_str().as_bytes());
        read_header(dir, id, || Ok(journal.stat()?.is_some()))
    }

    /// Replaces a header that cannot be read, durably, by the journal's. Under the store's lock.
    pub fn put_header(&self, fs: &Fs, header: &Header) -> Result<Session, Error> {
        let dir = self.session_dir(&header.id)?;
        write_header(fs, &dir, header)?;
        Ok(Session::new(dir, header.clone()))
    }

    /// Opens a session and takes its lock; fails at once if another recant holds it.
    pub fn lock_session(&self, fs: &Fs, id: &Id) -> Result<Locked, Error> {
        let dir = self.session_dir(id)?;
        let lock = Lock::take_unless_held(fs, dir.at(b"lock"))?;
        // A header that cannot be read tells of no command.
        let runs = || self.header_in(&dir, id).is_ok_and(|header| header.uncollected);
        let lock = lock.ok_or_else(|| if runs() { running(id) } else { busy(format!("session {id}")) })?;
        // Read under the lock: a header read earlier may be old.
        let header = self.header_in(&dir, id)?;
        let session = Session::new(dir, header);
        let mut locked = Locked::new(session, lock, self.acts());
        locked.end_reopening(fs)?;
        Ok(locked)
    }

    /// Takes the store's lock, waiting for at most 10 s; `slow` is called once, after half a second.
    pub fn lock(&self, fs: &Fs, slow: impl FnOnce()) -> Result<Lock, Error> {
        let at = self.dir.at(b"lock");
        let lock = Lock::wait(at, PATIENCE, slow, |at| Lock::try_take(fs, at))?;
        lock.ok_or_else(|| busy(format!("the store {}", self.path)))
    }

    /// Begins a session: makes its directory under another name, so that it appears whole. `command` is the start of a run's.
    pub fn begin(&self, fs: &Fs, origin: Origin, name: Option<&str>, command: Option<String>) -> Result<Locked, Error> {
        self.begin_as(fs, Wanted { origin, id: None, begun: false, beside: false, name, command, of: None })
    }

    /// Begins a session that a verb makes for itself: nobody sees it before something of it is sealed, and if nothing is, what is left of
    /// it goes ([`Store::sweep_begun`]). A listing shows `command` for it.
    pub fn begin_own(&self, fs: &Fs, command: String) -> Result<Locked, Error> {
        self.begin_as(fs, Wanted::own(command))
    }

    /// Begins such a session for a part of another one, with whose name it goes.
    pub fn begin_part(&self, fs: &Fs, of: &Header, command: String) -> Result<Locked, Error> {
        self.begin_as(fs, Wanted { of: Some(of), ..Wanted::own(command) })
    }

    /// Begins such a session beside what somebody asked for: 'last' will not mean it.
    pub fn begin_beside(&self, fs: &Fs, command: String) -> Result<Locked, Error> {
        self.begin_as(fs, Wanted { beside: true, ..Wanted::own(command) })
    }

    /// Begins a session with the id of a run on the real tree, of which nothing was sealed yet.
    pub fn begin_of_run(&self, fs: &Fs, id: &Id, name: Option<&str>, command: String) -> Result<Locked, Error> {
        self.begin_as(fs, Wanted { id: Some(id), name, ..Wanted::own(command) })
    }

    fn begin_as(&self, fs: &Fs, wanted: Wanted<'_>) -> Result<Locked, Error> {
        let Wanted { origin, id: given, begun, beside, name, command, of } = wanted;
        if let Some(name) = name {
            id::check_name(name).map_err(|why| bad_key(name, why))?;
        }
        let numbering = self.numbering(fs)?;
        let headers = self.sweep_begun(fs)?;
        if let Some(name) = name {
            self.name_is_free(&headers, name, self.begins_in.as_ref())?;
        }
        let seq = headers.iter().map(|h| h.seq).max().unwrap_or(0) + 1;
        // What a verb fills, or a run, acts when that is sealed.
        let acted = if begun || origin == Origin::Captured { None } else { Some(self.acts().draw_under(fs, &numbering)?) };
        loop {
            let id = match given {
                Some(id) => id.clone(),
                None => self.draw_id(&headers, name)?,
            };
            let temp = format!(".new-{id}").into_bytes();
            let temp = self.sessions.at(&temp);
            if given.is_some() {
                // A killed recovery may have left it: the next one makes the same session.
                fs.remove_all(temp)?;
            }
            fs.mkdir(temp, 0o700)?;
            let dir = temp.open_dir()?;
            let lock = Lock::try_take(fs, dir.at(b"lock"))?;
            let lock = lock.ok_or_else(|| busy(format!("session {id}")))?;
            let durable = origin == Origin::Staged;
            // Most runs that change nothing end soon, and their session is gone again.
            let needed = if durable { &SESSION_DIRECTORIES[..] } else { &SESSION_DIRECTORIES[..RUN_DIRECTORIES] };
            for path in needed {
                let (parent, name) = split(&dir, path)?;
                fs.mkdir(parent.at(name), 0o700)?;
            }
            let mut header = Header::new(id.clone(), seq, origin, crate::fs::now());
            header.name = name.map(Into::into);
            header.uncollected = !durable;
            (header.begun, header.beside) = (begun, beside);
            header.command = command.clone();
            header.cwd = self.begins_in.clone();
            (header.by, header.maker) = (self.by.clone(), self.by.clone());
            if let Some(of) = of {
                (header.of, header.name) = (Some(of.root().clone()), of.name.clone());
                (header.by, header.maker) = (of.by.clone(), of.maker.clone());
                (header.unsynced, header.imported, header.mounts) = (of.unsynced, of.imported, of.mounts.clone());
            }
            header.acted = acted.clone();
            let at = dir.at(b"session.json");
            let bytes = header_bytes(&header);
            if durable {
                // D3: content and originals will be durable in directories of these two, so these names have to be as well.
                let [held, checkpoint] = [&b"held"[..], b"checkpoint"].map(|name| dir.open_below(name));
                fs.replace_after(at, &bytes, &[], &[&held?, &checkpoint?])?;
            } else {
                fs.replace_later(at, &bytes)?;
            }
            match fs.place(temp, self.sessions.at(id.as_str().as_bytes())) {
                Ok(()) => {}
                // Drawn twice in one second; or a killed recovery began it with this id, and another recant holds it now.
                Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {
                    fs.remove_all(temp)?;
                    match given {
                        Some(id) => return Err(busy(format!("session {id}"))),
                        None => continue,
                    }
                }
                Err(error) => return Err(error).at("name the session", temp).map_err(Error::from),
            }
            if durable {
                // D2, D3: the session's own name. One of a run is made durable when the run has ended.
                fs.sync_dir(&self.sessions)?;
            }
            let dir = self.session_dir(&id)?;
            return Ok(Locked::new(Session::new(dir, header), lock, self.acts()));
        }
    }

    /// Draws an id that no session has, these included, and no run on the real tree: its last part has to be unique.
    pub(super) fn draw_id(&self, headers: &[Header], name: Option<&str>) -> Result<Id, Error> {
        let running = self.running()?;
        loop {
            let id = Id::new_now().at("draw a random number for", "the session's id")?;
            let means_more = |h: &Header| h.id.tail() == id.tail() || h.name.as_deref() == Some(id.tail());
            if name != Some(id.tail()) && !headers.iter().any(means_more) && !running.iter().any(|of| of.tail() == id.tail()) {
                return Ok(id);
            }
        }
    }

    /// Lists the ids of runs on the real tree, under way or interrupted, which are those of their sessions to be. The oldest first.
    pub fn running(&self) -> Result<Vec<Id>, Error> {
        let names = match self.dir.open_below(RUNNING) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
            dir => dir.and_then(|dir| dir.names())?,
        };
        let mut ids: Vec<Id> = names.iter().filter_map(|name| Id::parse(std::str::from_utf8(name).ok()?)).collect();
        ids.sort();
        Ok(ids)
    }

    /// Takes the lock for giving a session its number or name: two at once would both find it free.
    pub(super) fn numbering(&self, fs: &Fs) -> Result<Lock, Error> {
        numbering(fs, &self.dir)
    }

    /// The counter of its acts.
    pub(super) fn acts(&self) -> Acts {
        Acts::of(self.dir.clone(), self.by.clone())
    }

    /// Checks that a session begun in `dir` may get `name`, among the others, whose `headers` these are. Committed, rolled back and
    /// discarded sessions give up their names to a new one, and each project has names of its own; the last part of an id means only that
    /// session.
    pub fn name_is_free<'h>(
        &self,
        headers: impl IntoIterator<Item = &'h Header>,
        name: &str,
        dir: Option<&AbsPath>,
    ) -> Result<(), Error> {
        let project = |dir: &AbsPath| project_of(dir, dirs::home_dir().as_deref());
        let here = dir.map(project);
        // A session whose directory is not recorded may be of this project.
        let is_here = |h: &Header| here.as_ref().zip(h.cwd.as_ref()).is_none_or(|(here, dir)| project(dir) == *here);
        let is_open = |h: &Header| matches!(h.status(), Status::Pending | Status::Running);
        // A part has the name of the session that it left.
        let holds = |h: &&Header| h.of.is_none() && is_open(h) && is_here(h);
        if let Some(h) = headers.into_iter().find(|h| h.name.as_deref() == Some(name) && holds(h)) {
            return Err(name_taken(name, &h.id));
        }
        let ids = self.sessions.names()?;
        let mut ids = ids.iter().filter_map(|id| Id::parse(std::str::from_utf8(id).ok()?));
        let of = ids.find(|id| id.tail() == name);
        of.map_or(Ok(()), |id| Err(name_is_id(name, id)))
    }

    /// Gives a session another name, or none.
    pub fn rename(&self, fs: &Fs, locked: &mut Locked, name: Option<&str>) -> Result<(), Error> {
        let _numbering;
        if let Some(name) = name {
            id::check_name(name).map_err(|why| bad_key(name, why))?;
            _numbering = self.numbering(fs)?;
            let headers = self.sweep_begun(fs)?;
            self.name_is_free(headers.iter().filter(|h| h.id != locked.header.id), name, locked.header.cwd.as_ref())?;
        }
        let mut header = locked.header.clone();
        header.name = name.map(Into::into);
        locked.save_at_last(fs, header, &[], &[])
    }

    /// Makes sure that removed journals stay away, also after a power cut. Called before what they name goes.
    pub fn journals_last(&self, fs: &Fs) -> Result<(), Error> {
        // D2 (directory: not caught here, as the model removes no session; one that is gone has nothing to recover then).
        Ok(fs.sync_dir(&self.journals)?)
    }

    /// Removes a whole session: first its name, durably, then its bytes (I12). Of a run that left nothing only the name goes:
    /// [`Store::sweep_removed`] removes its empty directories when there is time.
    pub fn remove_session(&self, fs: &Fs, locked: Locked) -> Result<(), Error> {
        // One of a run that left nothing was never made durable.
        let durable = locked.header.lines > 0 || !locked.header.uncollected;
        self.remove(fs, locked.id(), durable)
    }

    /// Removes a session's directory, whatever is in it. The caller holds its lock.
    pub(super) fn remove(&self, fs: &Fs, id: &Id, durable: bool) -> Result<(), Error> {
        let gone = self.take_name(fs, id)?;
        if !durable {
            return Ok(());
        }
        let gone = self.sessions.at(&gone);
        let not_all =
            |why| not_emptied(format!("session {id} is removed"), why, command("prune --sessions") + " clears the rest away");
        // D2, I12 (directory: not caught here, as above): a session whose name came back would be half there.
        fs.sync_dir(&self.sessions).map_err(not_all)?;
        match fs.remove_all(gone) {
            // Another recant sweeps, too.
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(()),
            removed => removed.map_err(not_all),
        }
    }

    /// Removes only its name, durably (I12); [`Store::sweep_removed`] removes the bytes.
    pub(super) fn remove_name(&self, fs: &Fs, id: &Id) -> Result<(), Error> {
        self.take_name(fs, id)?;
        // D2 (directory: not caught here, as above).
        Ok(fs.sync_dir(&self.sessions)?)
    }

    /// Removes the name of another directory of the store, whatever is in it, durably (I12). The caller holds its lock;
    /// [`Store::sweep_removed`] removes the bytes, once that is released.
    pub fn remove_directory(&self, fs: &Fs, at: Entry<'_>) -> Result<(), Error> {
        let id = Id::new_now().at("draw a random number for", "the name of what goes")?;
        let gone = [REMOVED, id.as_str().as_bytes()].concat();
        fs.place(at, self.sessions.at(&gone)).at("remove", at)?;
        // D2 (directory: not caught here, as above): content that goes is that of nothing that could come back.
        Ok(fs.sync_dir(at.dir)?)
    }

    fn take_name(&self, fs: &Fs, id: &Id) -> Result<Vec<u8>, Error> {
        let gone = [REMOVED, id.as_str().as_bytes()].concat();
        let at = self.sessions.at(id.as_str().as_bytes());
        fs.place(at, self.sessions.at(&gone)).at("remove the session", at)?;
        Ok(gone)
    }

    /// Removes the names of what a crash left half made in `sessions/`, and of what killed verbs began for themselves. Under the store's
    /// lock; [`Store::sweep_removed`] removes the bytes.
    pub fn sweep(&self, fs: &Fs) -> Result<(), Error> {
        self.sweep_begun(fs)?;
        if self.names_with(HALF_MADE)?.is_empty() {
            return Ok(());
        }
        let at = self.dir.at(b"numbering");
        // Makers of sessions hold it: only while nobody does is something half made nobody's, and it may have been finished since.
        let Some(_numbering) = Lock::try_take_file(fs, at)? else { return Ok(()) };
        for name in self.names_with(HALF_MADE)? {
            let (at, gone) = (self.sessions.at(&name), [REMOVED, &name[1..]].concat());
            if !is_locked(at)? {
                fs.place(at, self.sessions.at(&gone)).at("remove", at)?;
            }
        }
        Ok(())
    }

    /// Removes what has lost its name before. Needs no lock, as nobody looks for it any more. Returns the errors, with paths: what they
    /// are about stays until the next time.
    pub fn sweep_removed(&self, fs: &Fs) -> Vec<Error> {
        let names = match self.names_with(REMOVED) {
            Ok(names) => names,
            Err(error) => return vec![error],
        };
        let swept = names.iter().map(|name| self.sweep_one_removed(fs, self.sessions.at(name)));
        swept.filter_map(Result::err).collect()
    }

    fn sweep_one_removed(&self, fs: &Fs, at: Entry<'_>) -> Result<(), Error> {
        let removed = is_locked(at).and_then(|locked| if locked { Ok(()) } else { fs.remove_all(at) });
        match removed {
            // Another recant sweeps, too.
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(()),
            removed => Ok(removed?),
        }
    }

    fn names_with(&self, prefix: &[u8]) -> Result<Vec<Vec<u8>>, Error> {
        let names = self.sessions.names()?;
        Ok(names.into_iter().filter(|name| name.starts_with(prefix)).collect())
    }

    /// Lists the ids of sessions with a journal: an operation is under way, or was interrupted.
    pub fn journaled(&self) -> Result<Vec<Id>, Error> {
        let names = self.journals.names()?;
        let mut ids: Vec<Id> = names.iter().filter_map(|name| Id::parse(std::str::from_utf8(name).ok()?)).collect();
        ids.sort();
        Ok(ids)
    }
}

/// True if a directory of `sessions/` without a name is just being made or removed.
fn is_locked(at: Entry<'_>) -> Result<bool, IoError> {
    let lock = at.open_dir()?;
    Lock::is_held(lock.at(b"lock"))
}

/// Checks that the store is only this user's (F25, I26).
fn check_owner(dir: &Dir, store: &AbsPath) -> Result<(), Error> {
    let path = dir.path().display().to_string();
    let stat = dir.stat()?;
    let me = rustix::process::geteuid().as_raw();
    if stat.uid != me {
        let why = format!("it belongs to user {}, and you are user {me}", stat.uid);
        return Err(not_safe(path, why, way_to(store, stat.uid, me)));
    }
    if stat.mode & 0o022 != 0 {
        let why = format!("others may write to it (mode {:04o})", stat.mode);
        return Err(not_safe(
            &path,
            why,
            shell(format_args!("chmod go-w {}", shell_word(dir.path().as_os_str().as_encoded_bytes()))),
        ));
    }
    Ok(())
}

/// The remedy for those who may not use the store of user `owner`.
fn way_to(store: &AbsPath, owner: u32, me: u32) -> Remedy {
    let word = shell_word(store.as_bytes());
    if me == 0 {
        let [take, give] = [0, owner].map(|user| shell(format_args!("chown -R {user} {word}")));
        return words(format_args!("run recant as user {owner}; or take the store over, "))
            + take
            + ", and give it back afterwards, "
            + give;
    }
    "run recant as that user, or use another store, --store DIR; if it is yours (your user ID changed): "
        + shell(format_args!("sudo chown -R {me} {word}"))
}

fn make_directories(fs: &Fs, path: &AbsPath) -> Result<Dir, Error> {
    match Dir::open(path.as_path()) {
        Ok(dir) => return Ok(dir),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
        Err(error) => return Err(error.into()),
    }
    let Some(parent) = path.parent() else { return Err(damaged("/", "it is missing")) };
    let parent = make_directories(fs, &parent)?;
    let at = parent.at(path.name());
    mkdir_if_missing(fs, at)?;
    // D3 (directory: not caught here: the model begins with a store that is there): a new directory lasts once its parent is synced.
    fs.sync_dir(&parent)?;
    Ok(Dir::open(path.as_path())?)
}

/// The three ids and names closest to `key`, which differ in a third of its letters at most; the closest first.
fn nearest(key: &str, headers: &[Header]) -> Vec<String> {
    let most = key.chars().count() / 3;
    let unlikeness = |h: &Header| {
        let names = [Some(h.id.as_str()), Some(h.id.tail()), h.name.as_deref()];
        names.into_iter().flatten().map(|name| edits(name, key)).min().unwrap_or(usize::MAX)
    };
    let mut near: Vec<(usize, &Header)> = headers.iter().rev().map(|h| (unlikeness(h), h)).filter(|(n, _)| *n <= most).collect();
    near.sort_by_key(|(n, _)| *n);
    let show = |h: &Header| h.name.as_ref().map_or(h.id.to_string(), |name| format!("{} ({name})", h.id));
    near.into_iter().take(3).map(|(_, h)| show(h)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_session_that_is_pruned_while_all_are_listed_is_no_damage() {
        let directory = tempfile::tempdir().unwrap();
        let path = AbsPath::parse(std::os::unix::ffi::OsStrExt::as_bytes(directory.path().as_os_str())).unwrap();
        let store = Store::create(&Fs::new(), &path.join(b"store").unwrap()).unwrap();
        let (headers, broken) = store.headers_of(&[b"20260301-101500-k3fa".to_vec()]);
        assert!(headers.is_empty() && broken.is_empty(), "{broken:?}");
    }
}
