//! Staging by hand: write, delete, mkdir, symlink, chmod. Each takes the next number. Content and its line are durable before the header
//! that counts the line; the object that was replaced goes last (I10).

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::rc::Rc;

use super::change::{Before, Change, Changes, Line, Marks, Sort, object_name};
use super::error::{not_now, not_staged};
use super::header::{Origin, Status};
use super::inherit;
use super::opened::{Locked, part, parted};
use super::store::Store;
use crate::error::{At, Error, IoError, Kind, command};
use crate::fs::Fs;
use crate::fs::dir::{Dir, Entry};
use crate::fs::interrupt;
use crate::fs::mounts;
use crate::fs::path::{AbsPath, Shown};
use crate::remedy::Remedy;
use crate::tree::hash::{Hash, Hasher};
use crate::tree::observe;
use crate::tree::observe::Seen;
use crate::tree::state::{Meta, Object, State, What};
use crate::tree::walk::Walk;

/// The desk for staging: the session under its lock, with what it holds so far. Nothing counts before [`Desk::finish`].
pub struct Desk<'a> {
    fs: &'a Fs,
    store: &'a Store,
    session: &'a mut Locked,
    changes: Changes,
    next: u32,
    /// The changes that this call stages, by path.
    staged: BTreeMap<AbsPath, Change>,
    /// The paths of those that are taken as they are, also where only a time differs.
    taken: BTreeSet<AbsPath>,
    /// The numbers under which this call has put content.
    made: Vec<u32>,
    /// Their content that is not durable yet.
    unsynced: Vec<File>,
    /// The directory of its objects, once one got a further name there.
    objects: Option<Dir>,
    make_parents: bool,
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

const NO_SUID: u32 = 0o1777;

impl<'a> Desk<'a> {
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

    pub fn write(&mut self, path: &Path, cwd: &Path, mut write: Write<'_>) -> Result<AbsPath, Error> {
        let path = self.resolve("write", path, cwd)?;
        let current = self.current(&path)?;
        if current.as_ref().is_some_and(State::is_dir) {
            self.clear_directory("write", &path, write.over_directory)?;
        }
        let n = self.number();
        let (hash, size) = self.hold(n, &mut write)?;
        let replaced = current.filter(|state| matches!(state.what, What::File { .. })).map(|state| state.meta);
        let mut meta = match replaced {
            Some(meta) => rewritten(meta),
            None => self.new_meta(&path, false, write.mode, 0o666)?,
        };
        meta.mode = write.mode.unwrap_or(meta.mode);
        meta.mtime = crate::fs::now();
        let meta = self.dress(n, &path, meta)?;
        self.put(n, &path, Some(State { what: What::File { size, hash: Some(hash), index: None }, meta }))?;
        Ok(path)
    }

    /// Stages a change of another session, or a part of one, which leads to `after`. What it is made of stays what that session found.
    /// `content` is that of a file. Returns the object as it is held then.
    pub fn take(&mut self, change: &Change, after: Object, content: Option<&mut dyn Read>) -> Result<Object, Error> {
        let (n, path) = (self.number(), &change.path);
        let mut marks = Marks { linked: false, ..change.marks };
        let after = match (after, content) {
            (Some(state), Some(content)) => {
                let source = path.to_string();
                let mut write = Write { content, source: &source, mode: None, over_directory: false };
                let (hash, size) = self.hold(n, &mut write)?;
                let meta = self.dress(n, path, state.meta)?;
                marks.same_content = false;
                Some(State { what: What::File { size, hash: Some(hash), index: None }, meta })
            }
            (after, None) => {
                let is_file = |object: &Object| object.as_ref().is_some_and(State::is_file);
                // Its content stays.
                marks.same_content |= is_file(&change.before.object) && is_file(&after);
                after
            }
            (None, Some(_)) => None,
        };
        let before = change.before.clone();
        let taken = Change { n, before, after: after.clone(), marks, step: None, from: None, ..change.clone() };
        self.taken.insert(path.clone());
        self.staged.insert(path.clone(), taken);
        Ok(after)
    }

    /// Stages a whole change of another session, with a further name of the content that this one holds at `from`.
    pub fn take_held(&mut self, change: &Change, from: Entry<'_>) -> Result<(), Error> {
        let n = self.number();
        let objects = match self.objects.take() {
            Some(objects) => objects,
            None => part(&self.session.dir, b"held/objects")?,
        };
        let objects = self.objects.insert(objects);
        let name = object_name(n);
        let at = objects.at(parted(&name).1);
        self.made.push(n);
        match self.fs.link(from, at) {
            // Left by a staging that was cut off.
            Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {
                self.fs.remove_all(at)?;
                self.fs.link(from, at)?;
            }
            linked => linked?,
        }
        self.taken.insert(change.path.clone());
        self.staged.insert(change.path.clone(), Change { n, step: None, from: None, ..change.clone() });
        Ok(())
    }

    /// Stages the deletion of what is at `path`; of a directory that is not empty only with `recursive`.
    pub fn delete(&mut self, path: &Path, cwd: &Path, recursive: bool) -> Result<AbsPath, Error> {
        let path = self.resolve("delete", path, cwd)?;
        match self.current(&path)? {
            None => return Err(refuse("delete", &path, "there is nothing", None)),
            // What was a directory may be another object by now, with changes staged below it.
            Some(_) => self.clear_directory("delete", &path, recursive)?,
        }
        let n = self.number();
        self.put(n, &path, None)?;
        Ok(path)
    }

    pub fn mkdir(&mut self, path: &Path, cwd: &Path, mode: Option<u32>) -> Result<AbsPath, Error> {
        let path = self.resolve("make", path, cwd)?;
        if self.current(&path)?.is_some() {
            return Err(refuse("make", &path, "something is there already", None));
        }
        self.put_directory(&path, mode)?;
        Ok(path)
    }

    pub fn symlink(&mut self, target: &[u8], path: &Path, cwd: &Path, over_directory: bool) -> Result<AbsPath, Error> {
        let path = self.resolve("link", path, cwd)?;
        if target.is_empty() || target.len() > 4095 {
            return Err(refuse("link", &path, "a target has 1 to 4095 bytes", None));
        }
        if self.current(&path)?.as_ref().is_some_and(State::is_dir) {
            self.clear_directory("link", &path, over_directory)?;
        }
        let mut meta = self.new_meta(&path, false, None, 0o777)?;
        (meta.mode, meta.xattrs) = (0o777, Box::default());
        let n = self.number();
        self.put(n, &path, Some(State { what: What::Symlink { target: target.into() }, meta }))?;
        Ok(path)
    }

    /// Stages other permission bits for what is at `path`.
    pub fn chmod(&mut self, mode: u32, path: &Path, cwd: &Path) -> Result<AbsPath, Error> {
        let path = self.resolve("change the mode of", path, cwd)?;
        // Its hash also tells that the content stays the same.
        let current = if self.is_staged(&path) { self.current(&path)? } else { self.real(&path)?.object };
        let Some(mut state) = current else {
            return Err(refuse("change the mode of", &path, "there is nothing", None));
        };
        if matches!(state.what, What::Symlink { .. }) {
            return Err(refuse("change the mode of", &path, "a symlink has none of its own", None));
        }
        inherit::set_mode(&mut state.meta, mode);
        let n = self.number();
        if let Some(change) = self.staged_at(&path).filter(|change| holds_content(change)) {
            let old = object_name(change.n);
            self.adopt(&old, n)?;
            state.meta = self.dress(n, &path, state.meta)?;
        }
        self.put(n, &path, Some(state))?;
        Ok(path)
    }

    /// Stages what was chosen for a path: from one object to another. A file that is put keeps its content if none is given.
    pub fn choose(
        &mut self,
        path: &AbsPath,
        (before, mut after): (Before, Object),
        content: Option<&mut dyn Read>,
    ) -> Result<(), Error> {
        let known = self.staged_at(path).cloned();
        let n = match (&known, &content) {
            (Some(known), None) if after.as_ref().is_some_and(State::is_file) => known.n,
            _ => self.number(),
        };
        if let (Some(content), Some(State { what: What::File { size, hash, .. }, meta })) = (content, &mut after) {
            let source = &path.to_string();
            let (found, bytes) = self.hold(n, &mut Write { content, source, mode: None, over_directory: false })?;
            (*size, *hash) = (bytes, Some(found));
            *meta = self.dress(n, path, meta.clone())?;
        }
        let hash = |object: &Object| object.as_ref().and_then(State::hash);
        let same_content = hash(&before.object).is_some_and(|before| hash(&after) == Some(before));
        let marks = known.map(|known| known.marks).unwrap_or_default();
        let marks = Marks { same_content, link_broken: marks.link_broken && !same_content, ..Marks::default() };
        let change = Change { n, path: path.clone(), before, after, marks, step: None, from: None };
        self.staged.insert(path.clone(), change);
        Ok(())
    }

    fn number(&mut self) -> u32 {
        self.next += 1;
        self.next - 1
    }

    /// Makes the path absolute against `cwd`, its parent resolved as realpath does, the last component not. Follows what is staged: a
    /// staged directory counts as there, a staged link as a parent is refused. With `-p` stages missing directories now.
    fn resolve(&mut self, act: &'static str, path: &Path, cwd: &Path) -> Result<AbsPath, Error> {
        let shown = Shown(path.as_os_str().as_bytes()).to_string();
        let bad = |why: &str| not_staged(act, &shown, why);
        if path.as_os_str().is_empty() {
            return Err(bad("the path is empty"));
        }
        let whole = cwd.join(path);
        let (Some(name), Some(parent)) = (whole.file_name(), whole.parent()) else {
            return Err(bad("the path ends in '/' or '..' alone"));
        };
        let mut directory = AbsPath::parse("/").map_err(|error| bad(&error.to_string()))?;
        let mut todo: Vec<Vec<u8>> = parts(parent);
        let mut links = 0;
        while let Some(part) = todo.pop() {
            if part == b".." {
                directory = directory.parent().unwrap_or(directory);
                continue;
            }
            let next = directory.join(&part).map_err(|error| bad(&error.to_string()))?;
            match self.current(&next)? {
                Some(State { what: What::Directory, .. }) => directory = next,
                Some(State { what: What::Symlink { target }, .. }) if !self.is_staged(&next) => {
                    links += 1;
                    if links > MAX_LINKS {
                        return Err(bad("there are more than 40 links on the way, or they lead in a circle"));
                    }
                    if target.first() == Some(&b'/') {
                        directory = AbsPath::parse("/").map_err(|error| bad(&error.to_string()))?;
                    }
                    todo.extend(parts(Path::new(std::ffi::OsStr::from_bytes(&target))));
                }
                Some(_) if self.is_staged(&next) => {
                    return Err(refuse(act, &next, "it is staged as something that is no directory", None));
                }
                Some(_) => return Err(refuse(act, &next, "it is not a directory", None)),
                None if self.make_parents => {
                    self.put_directory(&next, None)?;
                    directory = next;
                }
                None => {
                    let deleted = self.is_staged(&next);
                    let why = if deleted { "it is staged to be deleted" } else { "the directory is missing" };
                    let remedy = match act {
                        // Below a missing directory nothing can be deleted or get a mode.
                        "delete" | "change the mode of" => None,
                        _ => Some("-p stages the missing directories too".into()),
                    };
                    return Err(refuse(act, &next, why, remedy));
                }
            }
        }
        let path = directory.join(name.as_bytes()).map_err(|error| bad(&error.to_string()))?;
        if self.store.holds(&path) || self.store.path.is_under(&path) {
            return Err(refuse(act, &path, "it holds recant's own store, or lies in it", None));
        }
        let mounts = mounts::read().at("read", "/proc/self/mountinfo")?;
        if let Some(mount) = mounts::containing(&mounts, &path).filter(|mount| mount.is_kernels()) {
            let why = format!("it lies in {}, mounted at {}: the files there are the kernel's", mount.fs_type, mount.point);
            return Err(refuse(act, &path, &why, None));
        }
        Ok(path)
    }

    fn is_staged(&self, path: &AbsPath) -> bool {
        self.staged_at(path).is_some()
    }

    /// The change that is staged for a path: at this desk, or before.
    fn staged_at(&self, path: &AbsPath) -> Option<&Change> {
        self.staged.get(path).or_else(|| self.changes.at(path))
    }

    /// The object at `path` with all that is staged so far.
    fn current(&self, path: &AbsPath) -> Result<Object, Error> {
        if let Some(change) = self.staged_at(path) {
            return Ok(change.after.clone());
        }
        // Nothing lies below an object that is staged in place of a directory.
        let above = std::iter::successors(path.parent(), AbsPath::parent);
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
    fn look(&self, path: &AbsPath) -> Result<Option<Seen>, Error> {
        let Some((parent, name)) = path.split() else {
            let root = Dir::open(path.as_path()).and_then(|dir| observe::directory(&dir));
            return Ok(Some(root?));
        };
        let parent = Path::new(std::ffi::OsStr::from_bytes(parent));
        match open_directory(parent) {
            Ok(dir) => Ok(observe::look(dir.at(name))?),
            Err(error) if matches!(error.errno(), Some(libc::ENOENT | libc::ENOTDIR)) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// Looks at `path` on the tree for the `before` of a change: reads a file for its hash.
    fn real(&self, path: &AbsPath) -> Result<Before, Error> {
        let Some(mut seen) = self.look(path)? else { return Ok(Before { object: None, print: None }) };
        if matches!(seen.state.what, What::File { .. }) {
            let parent = path.parent().unwrap_or_else(|| path.clone());
            let dir = open_directory(parent.as_path())?;
            let (hash, stat) = observe::hash(dir.at(path.name()))?;
            if observe::identity(&stat) != seen.print.identity || stat.ctime != seen.print.ctime {
                return Err(refuse("stage", path, "it changes while it is looked at", Some("try again".into())));
            }
            seen.set_hash(hash);
        }
        Ok(Before { object: Some(seen.state), print: Some(seen.print) })
    }

    /// Stages the deletion of all that is under a directory.
    fn clear_directory(&mut self, act: &'static str, path: &AbsPath, allowed: bool) -> Result<(), Error> {
        let mut under: Vec<AbsPath> = Vec::new();
        if self.look(path)?.is_some_and(|seen| seen.state.is_dir()) {
            let dir = Rc::new(open_directory(path.as_path())?);
            let walk = Walk::under(dir)?;
            let mount = walk.mount();
            for found in walk {
                let found = found?;
                let bytes = [path.as_bytes(), b"/", &found.below].concat();
                let full = AbsPath::parse(&bytes).map_err(|error| refuse(act, path, &error.to_string(), None))?;
                if found.stat.mount != mount || found.stat.mount_root {
                    return Err(refuse(act, &full, "something is mounted there", None));
                }
                under.push(full);
            }
        }
        under.extend(self.changes.list[self.changes.under(path)].iter().map(|change| change.path.clone()).filter(|p| p != path));
        under.sort();
        under.dedup();
        // Deepest first: nothing is below a directory that is deleted.
        for full in under.into_iter().rev() {
            if self.current(&full)?.is_none() {
                continue;
            }
            if !allowed {
                return Err(refuse(act, path, "the directory is not empty", Some("-r includes all that is in it".into())));
            }
            interrupt::check().at("stage the deletion of", &full)?;
            let n = self.number();
            self.put(n, &full, None)?;
        }
        Ok(())
    }

    fn put_directory(&mut self, path: &AbsPath, mode: Option<u32>) -> Result<(), Error> {
        let meta = self.new_meta(path, true, mode, 0o777)?;
        let n = self.number();
        self.put(n, path, Some(State { what: What::Directory, meta }))
    }

    /// Notes the change of one path; its `before` is that of the first staging.
    fn put(&mut self, n: u32, path: &AbsPath, after: Object) -> Result<(), Error> {
        let before = match self.staged_at(path) {
            Some(change) => change.before.clone(),
            None => self.real(path)?,
        };
        let mut change = Change { n, path: path.clone(), before, after, marks: Marks::default(), step: None, from: None };
        let hash = |object: &Object| object.as_ref().and_then(State::hash);
        change.marks.same_content = hash(&change.before.object).is_some_and(|d| Some(d) == hash(&change.after));
        change.marks.link_broken =
            !change.marks.same_content && hash(&change.after).is_some() && self.look(path)?.is_some_and(|seen| seen.nlink > 1);
        self.staged.insert(path.clone(), change);
        Ok(())
    }

    /// The metadata that a new object at `path` gets from its directory and from this process: `asked` as it is, `usual` less the umask.
    fn new_meta(&self, path: &AbsPath, is_dir: bool, asked: Option<u32>, usual: u32) -> Result<Meta, Error> {
        let parent = path.parent().ok_or_else(|| refuse("make", path, "it is the root directory", None))?;
        let directory = match self.current(&parent)? {
            Some(state) if state.is_dir() => state.meta,
            Some(_) => return Err(refuse("make", path, "what it would lie in is no directory", None)),
            None => return Err(refuse("make", path, "its directory is missing", None)),
        };
        let (uid, gid) = (rustix::process::geteuid().as_raw(), rustix::process::getegid().as_raw());
        let (mode, umask) = match asked {
            Some(mode) => (mode, 0),
            None => (usual, crate::fs::umask::callers()),
        };
        Ok(inherit::new_meta(&directory, is_dir, mode, umask, uid, gid, crate::fs::now()))
    }

    /// Streams content into `held/objects/<n>`.
    fn hold(&mut self, n: u32, write: &mut Write<'_>) -> Result<(Hash, u64), Error> {
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
    fn adopt(&mut self, old: &[u8], n: u32) -> Result<(), Error> {
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
    fn dress(&self, n: u32, path: &AbsPath, meta: Meta) -> Result<Meta, Error> {
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
        Ok(observe::look(at)?.map_or(meta, |seen| seen.state.meta))
    }

    /// Checks that all `before`s fit each other. Each is of the moment of its first staging; if somebody else has been at work in
    /// between, no tree may match them all.
    fn check_together(&self) -> Result<(), Error> {
        let mut all: BTreeMap<&AbsPath, &Change> = self.changes.list.iter().map(|change| (&change.path, change)).collect();
        all.extend(self.staged.iter());
        let list = all.into_values().filter(|change| !change.is_none()).cloned().collect();
        let together = Changes { list, directory_times: Vec::new() };
        together.contradiction().map_or(Ok(()), |(path, _)| {
            let why = "what is on the tree has changed since other changes of this session were staged, and does not fit them";
            Err(refuse("stage", path, why, Some("begin another session with " + command("session new"))))
        })
    }

    /// The sort of the change that is staged at a path; `None` if the path is back to what it was before.
    pub fn sort_at(&self, path: &AbsPath) -> Option<Sort> {
        self.staged_at(path).filter(|change| change.marks.linked || !change.is_none()).map(Change::sort)
    }

    /// Stages nothing and removes content that was put. The next staging removes what cannot be removed now.
    pub fn give_up(self) {
        self.remove_made();
    }

    fn remove_made(&self) {
        for n in &self.made {
            let n = *n;
            drop(self.session.split(&object_name(n)).map(|(objects, name)| self.fs.unlink_if_there(objects.at(name))));
        }
    }

    /// Writes the lines of all that was staged, counts them, and removes objects that no change needs: what was replaced, and what an
    /// interrupted staging left. Returns the errors of that: those objects stay until the next staging.
    ///
    /// # Errors
    /// With `Kind::LeftOut` it is staged, with others nothing is.
    pub fn finish(mut self) -> Result<Vec<Error>, Error> {
        let staged = self.write_lines();
        if staged.as_ref().is_err_and(|error| error.kind() != Kind::LeftOut) {
            self.remove_made();
        }
        let gone = staged?;
        let objects = part(&self.session.dir, b"held/objects")?;
        let removed = gone.iter().map(|name| self.fs.unlink_if_there(objects.at(name)));
        Ok(removed.filter_map(Result::err).map(Error::from).collect())
    }

    /// Writes the lines. Returns the names of objects that no change needs then.
    fn write_lines(&mut self) -> Result<Vec<Vec<u8>>, Error> {
        self.check_together()?;
        let size = |change: &Change| change.after.as_ref().map_or(0, State::size);
        let mut needed: BTreeMap<u32, u64> =
            self.changes.list.iter().filter(|change| holds_content(change)).map(|change| (change.n, size(change))).collect();
        let staged = std::mem::take(&mut self.staged);
        let mut lines = Vec::with_capacity(staged.len());
        let mut count = self.changes.list.len() as u64;
        for (path, change) in staged {
            let old = self.changes.at(&path);
            if let Some(old) = old {
                needed.remove(&old.n);
            }
            // A link of a run's own puts its object even where the same one is there.
            let same = if self.taken.contains(&path) { change.before.object == change.after } else { change.is_none() };
            let none = same && !change.marks.linked;
            match (old.is_some(), none) {
                (true, true) => count -= 1,
                (false, false) => count += 1,
                (false, true) => continue,
                (true, false) => {}
            }
            lines.push(if none {
                Line::None { n: change.n, path }
            } else {
                if holds_content(&change) {
                    needed.insert(change.n, size(&change));
                }
                Line::Change(Box::new(change))
            });
        }
        let objects = part(&self.session.dir, b"held/objects")?;
        let kept = needed.values().sum();
        let gone = not_needed(&objects, &needed)?;
        if !lines.is_empty() {
            self.session.append(self.fs, &lines, (count, kept), &self.unsynced, &objects)?;
        }
        Ok(gone)
    }
}

/// True if a staged change has content in `held/objects`: files do, and what has several names; directories and links are made from the
/// record.
fn holds_content(change: &Change) -> bool {
    change.marks.linked || change.after.as_ref().is_some_and(State::is_file) && !change.in_place()
}

/// The names of objects that no change needs.
fn not_needed(objects: &Dir, needed: &BTreeMap<u32, u64>) -> Result<Vec<Vec<u8>>, Error> {
    let mut names = objects.names()?;
    let number = |name: &[u8]| std::str::from_utf8(name).ok()?.parse().ok();
    names.retain(|name| !number(name).is_some_and(|n| needed.contains_key(&n)));
    Ok(names)
}

/// The metadata of a file after somebody else's write to it: setuid, setgid and capabilities go (write(2), capabilities(7)).
fn rewritten(mut meta: Meta) -> Meta {
    meta.mode &= NO_SUID;
    meta.xattrs = meta.xattrs.into_iter().filter(|(name, _)| &**name != b"security.capability").collect();
    meta
}

fn refuse(act: &'static str, path: &AbsPath, why: &str, remedy: Option<Remedy>) -> Error {
    not_staged(act, path, why).with_remedy_if(remedy)
}

/// Opens a directory by a path without links. One that is longer than PATH_MAX is opened a piece at a time.
fn open_directory(path: &Path) -> Result<Dir, IoError> {
    match Dir::open(path) {
        Err(error) if error.errno() == Some(libc::ENAMETOOLONG) => {
            Dir::open(Path::new("/"))?.open_across(path.as_os_str().as_bytes().strip_prefix(b"/").unwrap_or_default())
        }
        opened => opened,
    }
}

/// The most links that the kernel follows in one path: path_resolution(7).
const MAX_LINKS: u32 = 40;

/// The names of a path, the last first, without empty ones and `.`.
fn parts(path: &Path) -> Vec<Vec<u8>> {
    let parts = path.as_os_str().as_bytes().split(|b| *b == b'/').rev();
    parts.filter(|part| !part.is_empty() && *part != b".").map(<[u8]>::to_vec).collect()
}
