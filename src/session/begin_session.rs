//! Begins sessions: an id, a number, a name, and a directory that appears whole.

use super::act::LastAct;
use super::error::{bad_key, busy, name_is_id, name_taken};
use super::header::{Header, Origin, Status};
use super::id::{self, Id};
use super::open_session::{Locked, RUN_DIRECTORIES, SESSION_DIRECTORIES, Session, header_bytes, split};

use super::store::Store;
use crate::error::{At, Error};
use crate::fs::{AbsPath, Fs, Lock};
use crate::tree::project_of;

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
        if let Some(name) = wanted.name {
            id::check_name(name).map_err(|why| bad_key(name, why))?;
        }
        let numbering = self.numbering(fs)?;
        let headers = self.sweep_begun(fs)?;
        if let Some(name) = wanted.name {
            self.name_is_free(&headers, name, self.begins_in.as_ref())?;
        }
        let seq = headers.iter().map(|h| h.seq).max().unwrap_or(0) + 1;
        // What a verb fills, or a run, acts when that is sealed.
        let acted =
            if wanted.begun || wanted.origin == Origin::Captured { None } else { Some(self.acts().draw_under(fs, &numbering)?) };
        loop {
            let id = match wanted.id {
                Some(id) => id.clone(),
                None => self.draw_id(&headers, wanted.name)?,
            };
            let header = self.first_header(id, seq, &wanted, acted.clone());
            if let Some(begun) = self.place(fs, header, wanted.id.is_some())? {
                return Ok(begun);
            }
        }
    }

    fn first_header(&self, id: Id, seq: u64, wanted: &Wanted<'_>, acted: Option<LastAct>) -> Header {
        let mut header = Header::new(id, seq, wanted.origin, crate::fs::now());
        header.name = wanted.name.map(Into::into);
        header.uncollected = wanted.origin != Origin::Staged;
        (header.begun, header.beside) = (wanted.begun, wanted.beside);
        header.command = wanted.command.clone();
        header.cwd = self.begins_in.clone();
        (header.by, header.maker) = (self.by.clone(), self.by.clone());
        if let Some(of) = wanted.of {
            (header.of, header.name) = (Some(of.root().clone()), of.name.clone());
            (header.by, header.maker) = (of.by.clone(), of.maker.clone());
            (header.unsynced, header.imported, header.mounts) = (of.unsynced, of.imported, of.mounts.clone());
        }
        header.acted = acted;
        header
    }

    /// Makes the directory of a session and gives it its name. `None` if another one has the id: it was drawn twice in one second.
    fn place(&self, fs: &Fs, header: Header, is_given: bool) -> Result<Option<Locked>, Error> {
        let id = header.id.clone();
        let temp = format!(".new-{id}").into_bytes();
        let temp = self.sessions.at(&temp);
        if is_given {
            // A killed recovery may have left it: the next one makes the same session.
            fs.remove_all(temp)?;
        }
        fs.mkdir(temp, 0o700)?;
        let dir = temp.open_dir()?;
        let lock = Lock::try_take(fs, dir.at(b"lock"))?;
        let lock = lock.ok_or_else(|| busy(format!("session {id}")))?;
        let durable = header.origin == Origin::Staged;
        // Most runs that change nothing end soon, and their session is gone again.
        let needed = if durable { &SESSION_DIRECTORIES[..] } else { &SESSION_DIRECTORIES[..RUN_DIRECTORIES] };
        for path in needed {
            let (parent, name) = split(&dir, path)?;
            fs.mkdir(parent.at(name), 0o700)?;
        }
        let (at, bytes) = (dir.at(b"session.json"), header_bytes(&header));
        if durable {
            // D3: content and originals will be durable in directories of these two, so these names have to be as well.
            let [held, checkpoint] = [&b"held"[..], b"checkpoint"].map(|name| dir.open_below(name));
            fs.replace_after(at, &bytes, &[], &[&held?, &checkpoint?])?;
        } else {
            fs.replace_later(at, &bytes)?;
        }
        match fs.place(temp, self.sessions.at(id.as_str().as_bytes())) {
            Ok(()) => {}
            // A killed recovery began it with this id, and another recant holds it now.
            Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {
                fs.remove_all(temp)?;
                return if is_given { Err(busy(format!("session {id}"))) } else { Ok(None) };
            }
            Err(error) => return Err(error).at("name the session", temp).map_err(Error::from),
        }
        if durable {
            // D2, D3: the session's own name. One of a run is made durable when the run has ended.
            fs.sync_dir(&self.sessions)?;
        }
        let dir = self.session_dir(&id)?;
        Ok(Some(Locked::new(Session::new(dir, header), lock, self.acts())))
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
}
