//! A staging by hand: the session under its lock, what it holds so far, and the content that is put into it.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use crate::error::{At, Error, IoError, command};
use crate::fs::{AbsPath, Dir, Fs};
use crate::remedy::Remedy;
use crate::session::change::{Before, Change, Changes, Marks, Sort, object_name};
use crate::session::error::{not_now, not_staged};
use crate::session::header::{Origin, Status};
use crate::session::inherit;
use crate::session::open_session::Locked;
use crate::session::store::Store;
use crate::tree::{Hash, Hasher, Meta, Object, Seen, State, What, observe};

/// A staging by hand: the session under its lock, with what it holds so far. Nothing counts before [`Staging::finish`].
pub struct Staging<'a> {
    pub(super) fs: &'a Fs,
    pub(super) store: &'a Store,
    pub(super) session: &'a mut Locked,
    pub(super) changes: Changes,
    pub(super) next: u32,
    /// The changes that this call stages, by path.
    pub(super) staged: BTreeMap<AbsPath, Change>,
    /// The paths of those that are taken as they are, also where only a time differs.
    pub(super) taken: BTreeSet<AbsPath>,
    /// The numbers under which this call has put content.
    pub(super) made: Vec<u32>,
    /// Their content that is not durable yet.
    pub(super) unsynced: Vec<File>,
    /// The directory of its objects, once one got a further name there.
    pub(super) objects: Option<Dir>,
    pub(super) make_parents: bool,
}

impl<'a> Staging<'a> {
    /// Opens the desk. Only sessions staged by hand, of which nothing was ever committed, can be added to.
    pub fn open(fs: &'a Fs, store: &'a Store, session: &'a mut Locked, make_parents: bool) -> Result<Self, Error> {
        let not_now = |why: &str| not_now(session.id(), why).with_remedy(command("session new") + " begins another");
        if session.header.origin != Origin::Staged {
            return Err(not_now("it came from a run; changes are staged by hand only in sessions that 'session new' began"));
        }
        if session.header.status() != Status::Pending {
            let word = session.header.status().word().replace('_', " ");
            return Err(not_now(&format!("it is {word}; only a pending one can be added to")));
        }
        let changes = session.changes()?;
        let next = changes.list.iter().map(|change| change.n).max().unwrap_or(0) + 1;
        Ok(Self {
            fs,
            store,
            session,
            changes,
            next,
            staged: BTreeMap::new(),
            taken: BTreeSet::new(),
            made: Vec::new(),
            unsynced: Vec::new(),
            objects: None,
            make_parents,
        })
    }

    pub(super) fn number(&mut self) -> u32 {
        self.next += 1;
        self.next - 1
    }

    pub(super) fn is_staged(&self, path: &AbsPath) -> bool {
        self.staged_at(path).is_some()
    }

    /// The change that is staged for a path: at this desk, or before.
    /// The sort of the change that is staged at a path; `None` if the path is back to what it was before.
    pub fn sort_at(&self, path: &AbsPath) -> Option<Sort> {
        self.staged_at(path).filter(|change| change.marks.linked || !change.is_none()).map(Change::sort)
    }

    pub(super) fn staged_at(&self, path: &AbsPath) -> Option<&Change> {
        self.staged.get(path).or_else(|| self.changes.at(path))
    }

    /// The object at `path` with all that is staged so far.
    pub(super) fn current(&self, path: &AbsPath) -> Result<Object, Error> {
        if let Some(change) = self.staged_at(path) {
            return Ok(change.after.clone());
        }
        // Nothing lies below an object that is staged in place of a directory.
        let above = path.ancestors();
        for ancestor in above {
            if let Some(change) = self.staged_at(&ancestor)
                && !(change.before.object.as_ref().is_some_and(State::is_dir) && change.after.as_ref().is_some_and(State::is_dir))
            {
                return Ok(None);
            }
        }
        Ok(self.look(path)?.map(|seen| seen.state))
    }

    /// Looks at `path` on the tree, without reading content.
    pub(super) fn look(&self, path: &AbsPath) -> Result<Option<Seen>, Error> {
        let Some((parent, name)) = path.split() else {
            let root = Dir::open(path.as_path()).and_then(|dir| observe::directory(&dir));
            return Ok(Some(root?));
        };
        let parent = Path::new(std::ffi::OsStr::from_bytes(parent));
        match open_directory(parent) {
            Ok(dir) => Ok(observe::object(dir.at(name))?),
            Err(error) if matches!(error.errno(), Some(libc::ENOENT | libc::ENOTDIR)) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// Looks at `path` on the tree for the `before` of a change: reads a file for its hash.
    pub(super) fn real(&self, path: &AbsPath) -> Result<Before, Error> {
        let Some(mut seen) = self.look(path)? else { return Ok(Before { object: None, print: None }) };
        if matches!(seen.state.what, What::File { .. }) {
            let parent = path.parent().unwrap_or_else(|| path.clone());
            let dir = open_directory(parent.as_path())?;
            let (hash, stat) = observe::hash(dir.at(path.name()))?;
            if observe::identity(&stat) != seen.print.identity || stat.ctime != seen.print.ctime {
                return Err(refuse("stage", path, "it is being changed", Some("try again".into())));
            }
            seen.set_hash(hash);
        }
        Ok(Before { object: Some(seen.state), print: Some(seen.print) })
    }

    /// Notes the change of one path; its `before` is that of the first staging.
    pub(super) fn put(&mut self, n: u32, path: &AbsPath, after: Object) -> Result<(), Error> {
        let before = match self.staged_at(path) {
            Some(change) => change.before.clone(),
            None => self.real(path)?,
        };
        let mut change =
            Change { n, path: path.clone(), before, after, marks: Marks::default(), step: None, from: None, original: None };
        let hash = |object: &Object| object.as_ref().and_then(State::hash);
        change.marks.same_content = hash(&change.before.object).is_some_and(|d| Some(d) == hash(&change.after));
        change.marks.link_broken =
            !change.marks.same_content && hash(&change.after).is_some() && self.look(path)?.is_some_and(|seen| seen.nlink > 1);
        self.staged.insert(path.clone(), change);
        Ok(())
    }

    /// The metadata that a new object at `path` gets from its directory and from this process: `asked` as it is, `usual` less the umask.
    pub(super) fn new_meta(&self, path: &AbsPath, is_dir: bool, asked: Option<u32>, usual: u32) -> Result<Meta, Error> {
        let parent = path.parent().ok_or_else(|| refuse("make", path, "it is the root directory", None))?;
        let directory = match self.current(&parent)? {
            Some(state) if state.is_dir() => state.meta,
            Some(_) => return Err(refuse("make", path, "its parent is not a directory", None)),
            None => return Err(refuse("make", path, "its directory is missing", None)),
        };
        let (uid, gid) = (rustix::process::geteuid().as_raw(), rustix::process::getegid().as_raw());
        let (mode, umask) = match asked {
            Some(mode) => (mode, 0),
            None => (usual, crate::fs::callers()),
        };
        Ok(inherit::new_meta(&directory, is_dir, mode, umask, uid, gid, crate::fs::now()))
    }

    /// Streams content into `held/objects/<n>`.
    pub(super) fn hold(&mut self, n: u32, write: &mut Write<'_>) -> Result<(Hash, u64), Error> {
        let name = object_name(n);
        let (objects, name) = self.session.split(&name)?;
        let at = objects.at(name);
        self.made.push(n);
        // Left by an interrupted staging.
        self.fs.remove_all(at)?;
        let file = self.fs.create(at, 0o600)?;
        let (mut hasher, mut size, mut holed) = (Hasher::default(), 0, false);
        let mut buffer = vec![0; 128 << 10];
        loop {
            let got = match write.content.read(&mut buffer) {
                Ok(0) => break,
                Ok(got) => got,
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => continue,
                Err(error) => return Err(error).at("read", write.source).map_err(Error::from),
            };
            hasher.update(&buffer[..got]);
            size += got as u64;
            // A hole stays one, and zeros become one where they can, as with cp --sparse=always.
            holed = got == buffer.len() && buffer.iter().all(|byte| *byte == 0);
            if holed {
                (&file).seek(SeekFrom::Start(size)).at("write", at)?;
            } else {
                self.fs.write(&file, &buffer[..got], at)?;
            }
        }
        if holed {
            self.fs.set_size(&file, size, at)?;
        }
        self.unsynced.push(file);
        Ok((hasher.finish(), size))
    }

    /// Gives the object of change `old` the number `n`, as a second name: the first goes once the new line counts.
    pub(super) fn adopt(&mut self, old: &[u8], n: u32) -> Result<(), Error> {
        let name = object_name(n);
        let ((objects, old), (_, new)) = (self.session.split(old)?, self.session.split(&name)?);
        let at = objects.at(new);
        self.made.push(n);
        self.fs.remove_all(at)?;
        self.fs.link(objects.at(old), at)?;
        let file = match at.open_file() {
            // Closed to its own user. Its metadata is set next, and Prepare brings what it finds to what is recorded.
            Err(error) if error.kind() == std::io::ErrorKind::PermissionDenied => {
                self.fs.set_mode(at, 0o600)?;
                at.open_file()
            }
            opened => opened,
        };
        self.unsynced.push(file?);
        Ok(())
    }

    /// Sets the metadata of held content. Returns it as it is then: setting a mode changes an ACL.
    pub(super) fn dress(&self, n: u32, path: &AbsPath, meta: Meta) -> Result<Meta, Error> {
        let name = object_name(n);
        let (objects, name) = self.session.split(&name)?;
        let at = objects.at(name);
        let me = rustix::process::geteuid();
        if let Some(stat) = at.stat()?
            && (stat.uid, stat.gid) != (meta.uid, meta.gid)
        {
            self.fs.set_owner(at, meta.uid, meta.gid).map_err(|_| {
                let why =
                    format!("it belongs to user {}, group {}, and user {me} cannot give a new file to them", meta.uid, meta.gid);
                refuse("write", path, &why, Some("run recant as its owner or as root".into()))
            })?;
        }
        for (name, value) in &meta.xattrs {
            self.fs.set_xattr(at, name, value).at("set an extended attribute of", path)?;
        }
        self.fs.set_mode(at, meta.mode)?;
        self.fs.set_mtime(at, meta.mtime)?;
        Ok(observe::object(at)?.map_or(meta, |seen| seen.state.meta))
    }
}

/// True if a staged change has content in `held/objects`: files do, and what has several names; directories and links are made from the
/// record.
pub(super) fn holds_content(change: &Change) -> bool {
    change.marks.linked || change.after.as_ref().is_some_and(State::is_file) && !change.in_place()
}

pub(super) fn refuse(act: &'static str, path: &AbsPath, why: &str, remedy: Option<Remedy>) -> Error {
    not_staged(act, path, why).with_remedy_if(remedy)
}

/// Opens a directory by a path without links. One that is longer than PATH_MAX is opened a piece at a time.
pub(super) fn open_directory(path: &Path) -> Result<Dir, IoError> {
    match Dir::open(path) {
        Err(error) if error.errno() == Some(libc::ENAMETOOLONG) => {
            Dir::open(Path::new("/"))?.open_across(path.as_os_str().as_bytes().strip_prefix(b"/").unwrap_or_default())
        }
        opened => opened,
    }
}

/// The content of a new file, and its form.
pub struct Write<'r> {
    pub content: &'r mut dyn Read,
    /// For messages: a path or "standard input".
    pub source: &'r str,
    /// The permission bits; else those of what is replaced, or 0666 less the umask.
    pub mode: Option<u32>,
    /// True if a directory, with all in it, may be replaced.
    pub over_directory: bool,
}
