//! Brings in a session from elsewhere: fills its directory under another name, and names it once it is whole and durable.

use super::error::{busy, not_now};
use super::header::Header;
use super::id::Id;
use super::open_session::{Locked, SESSION_DIRECTORIES, Session, header_bytes, split};
use super::store::Store;
use crate::error::{At, Error};
use crate::fs::{Dir, Fs, Lock};

/// The directory of a session that is still to come. Nobody else touches it while its lock is held.
pub struct Arriving {
    /// The directory, with those that a session has in it.
    pub dir: Dir,
    id: Id,
    lock: Lock,
}

impl Arriving {
    pub fn id(&self) -> &Id {
        &self.id
    }

    fn temp(&self) -> Vec<u8> {
        temp(&self.id)
    }
}

fn temp(id: &Id) -> Vec<u8> {
    format!(".new-{id}").into_bytes()
}

impl Store {
    /// True if there is a session of that id, readable or not.
    pub fn has(&self, id: &Id) -> Result<bool, Error> {
        let at = self.sessions().at(id.as_str().as_bytes());
        Ok(at.stat()?.is_some())
    }

    /// Makes the directory of a session that is to come, with an id of its own.
    pub fn expect_new(&self, fs: &Fs) -> Result<Arriving, Error> {
        let (headers, _) = self.every_header()?;
        let id = self.draw_id(&headers, None)?;
        self.expect(fs, &id)
    }

    /// Refuses a name that a session begun here may not get.
    pub fn refuse_taken(&self, name: &str) -> Result<(), Error> {
        let (headers, _) = self.every_header()?;
        self.name_is_free(&headers, name, self.begins_in.as_ref()).map(drop)
    }

    /// Makes the directory of a session that is to come. Removes what an interrupted import of that id left.
    ///
    /// Errors: another recant is bringing it in.
    pub fn expect(&self, fs: &Fs, id: &Id) -> Result<Arriving, Error> {
        let busy = || busy(format!("session {id}, which is being imported,"));
        // Makers and sweepers of such directories hold this lock: an unlocked one would count as nobody's.
        let _numbering = self.numbering(fs)?;
        let name = temp(id);
        let at = self.sessions().at(&name);
        if let Ok(left) = at.open_dir()
            && Lock::is_held(left.at(b"lock"))?
        {
            return Err(busy());
        }
        fs.remove_all(at)?;
        fs.mkdir(at, 0o700)?;
        let dir = at.open_dir()?;
        let lock = Lock::try_take(fs, dir.at(b"lock"))?.ok_or_else(busy)?;
        for path in SESSION_DIRECTORIES {
            let (parent, name) = split(&dir, path)?;
            fs.mkdir(parent.at(name), 0o700)?;
        }
        Ok(Arriving { dir, id: id.clone(), lock })
    }

    /// Gives it its number and its name. What its header refers to is durable. Returns the name that the header asked for, if another
    /// session has it.
    pub fn welcome(&self, fs: &Fs, arriving: Arriving, mut header: Header) -> Result<(Locked, Option<String>), Error> {
        let taken = match self.name(fs, &arriving, &mut header) {
            Ok(taken) => taken,
            Err(error) => {
                // The first error is the one that counts.
                drop(self.turn_away(fs, arriving));
                return Err(error);
            }
        };
        // D2: the session's own name.
        fs.sync_dir(self.sessions())?;
        let dir = self.session_dir(&header.id)?;
        Ok((Locked::new(Session::new(dir, header), arriving.lock, self.acts()), taken))
    }

    fn name(&self, fs: &Fs, arriving: &Arriving, header: &mut Header) -> Result<Option<String>, Error> {
        let numbering = self.numbering(fs)?;
        let headers = self.sweep_begun(fs)?;
        header.seq = headers.iter().map(|h| h.seq).max().unwrap_or(0) + 1;
        header.changed = crate::fs::now();
        header.acted = if header.beside { None } else { Some(self.acts().draw_under(fs, &numbering)?) };
        header.cwd = self.begins_in.clone();
        header.maker = self.by.clone();
        let taken = header.name.take_if(|name| self.name_is_free(&headers, name, self.begins_in.as_ref()).is_err());
        let at = arriving.dir.at(b"session.json");
        // D3: content is, and originals will be, durable in directories of these two, so these names have to be as well.
        let dir = &arriving.dir;
        let [held, checkpoint] = [&b"held"[..], b"checkpoint"].map(|name| dir.open_below(name));
        // D1, D2: all else in its directory is durable with it (directory: not caught here: only names of empty directories go with it, and
        // those are made again).
        fs.replace_after(at, &header_bytes(header), &[], &[&held?, &checkpoint?])?;
        let temp = arriving.temp();
        let temp = self.sessions().at(&temp);
        match fs.place(temp, self.sessions().at(header.id.as_str().as_bytes())) {
            Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {
                let error = not_now(&header.id, "it was imported by another call meanwhile");
                Err(error.with_remedy("try again, which shows whether it is the same"))
            }
            placed => {
                placed.at("name the session", temp)?;
                Ok(taken)
            }
        }
    }

    /// Removes what came of a session that will not be one.
    pub fn turn_away(&self, fs: &Fs, arriving: Arriving) -> Result<(), Error> {
        let temp = arriving.temp();
        let at = self.sessions().at(&temp);
        Ok(fs.remove_all(at)?)
    }
}
