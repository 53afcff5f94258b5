//! The store: the directory that holds sessions, and what is read and written there as a whole.

use std::sync::Arc;
use std::time::Duration;

use super::act::{Acts, numbering};
use super::acting_agent::ActingAgent;
use super::error::{ambiguous, bad_key, busy, damaged, no_store, not_safe, other_format, running, unknown};
use super::header::Header;
use super::id::Id;
use super::open_session::{
    Locked, Session, is_going_on, mkdir_if_missing, parse_header, part, read_header, read_small, write_header,
};
use serde::Serialize;

use crate::error::{At, Error, Kind, shell_word};
use crate::fs::{AbsPath, Dir, Fs, Lock, both};
use crate::remedy::{Remedy, shell, words};
use crate::settings::edits;

/// An open store.
#[derive(Debug, Clone)]
pub struct Store {
    /// Its path.
    pub path: AbsPath,
    /// Its directory.
    pub dir: Arc<Dir>,
    /// The directory in which its user begins sessions, which record it.
    pub begins_in: Option<AbsPath>,
    /// The agent that uses it, which the sessions that it begins record; `None` for a person.
    pub by: Option<ActingAgent>,
    /// The session that is seen, with its parts, as if there were no other; `None`: all.
    pub only: Option<Id>,
    pub(super) sessions: Arc<Dir>,
    journals: Arc<Dir>,
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
        let sub = |name: &[u8]| -> Result<Arc<Dir>, Error> {
            let dir = part(&dir, name)?;
            check_owner(&dir, path)?;
            Ok(Arc::new(dir))
        };
        let (sessions, journals) = (sub(DIRECTORIES[0])?, sub(DIRECTORIES[1])?);
        Ok(Some(Self { path: path.clone(), dir: Arc::new(dir), begins_in: None, by: None, only: None, sessions, journals }))
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
        if let Some(only) = &self.only {
            headers.retain(|header| header.root() == only);
            return Ok((headers, Vec::new()));
        }
        Ok((headers, broken))
    }

    /// Reads those too. A second thread reads half of many sessions: nearly all of the time is the kernel opening files.
    pub(super) fn every_header(&self) -> Result<(Vec<Header>, Vec<Broken>), Error> {
        let names = self.sessions.names()?;
        let (first, second) = names.split_at(if names.len() < WORTH_A_THREAD { names.len() } else { names.len() / 2 });
        let ((mut headers, mut broken), more) = both(!second.is_empty(), || self.headers_of(first), || self.headers_of(second));
        headers.extend(more.0);
        broken.extend(more.1);
        // In place: headers are large, and no two are equal.
        headers.sort_unstable_by(|a, b| (a.seq, &a.id).cmp(&(b.seq, &b.id)));
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
                None => Err(damaged("", "its name is not a session's id")),
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
        if self.only.as_ref().is_some_and(|only| header.root() != only) {
            return Err(unknown(id, &[]));
        }
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
        let lock = lock.ok_or_else(|| self.why_held(&dir, id))?;
        // Read under the lock: a header read earlier may be old.
        let header = self.header_in(&dir, id)?;
        let session = Session::new(dir, header);
        let mut locked = Locked::new(session, lock, self.acts());
        locked.end_reopening(fs)?;
        Ok(locked)
    }

    /// Why a session's lock cannot be had.
    fn why_held(&self, dir: &Dir, id: &Id) -> Error {
        match self.header_in(dir, id) {
            // What cannot be read tells of no command.
            Ok(header) if header.uncollected => {
                let session = dir.open_below(b"").map(|dir| Session::new(dir, header));
                running(id, &session.ok().and_then(|session| session.under_way().ok()).unwrap_or_default())
            }
            _ => busy(format!("session {id}")),
        }
    }

    /// Takes the store's lock, waiting for at most 10 s; `slow` is called once, after half a second.
    pub fn lock(&self, fs: &Fs, slow: impl FnOnce()) -> Result<Lock, Error> {
        let at = self.dir.at(b"lock");
        let lock = Lock::wait(at, PATIENCE, slow, |at| Lock::try_take(fs, at))?;
        lock.ok_or_else(|| busy(format!("the store {}", self.path)))
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

    /// Makes sure that removed journals stay away, also after a power cut. Called before what they name goes.
    pub fn journals_last(&self, fs: &Fs) -> Result<(), Error> {
        // D2 (directory: not caught here, as the model removes no session; one that is gone has nothing to recover then).
        Ok(fs.sync_dir(&self.journals)?)
    }

    /// Lists the ids of sessions with a journal: an operation is under way, or was interrupted.
    pub fn journaled(&self) -> Result<Vec<Id>, Error> {
        let names = self.journals.names()?;
        let mut ids: Vec<Id> = names.iter().filter_map(|name| Id::parse(std::str::from_utf8(name).ok()?)).collect();
        ids.sort();
        Ok(ids)
    }
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
