//! Stages by hand: write, delete, mkdir, symlink, chmod, and changes of other sessions.

use std::io::Read;
use std::path::Path;
use std::rc::Rc;

use super::staging::{Staging, Write, holds_content, open_directory, refuse};
use crate::error::{At, Error};
use crate::fs::{AbsPath, Entry, interrupt};
use crate::session::change::{Before, Change, Marks, object_name};
use crate::session::inherit;
use crate::session::open_session::{part, split_last};
use crate::tree::{Meta, Object, State, Walk, What};

const NO_SUID: u32 = 0o1777;

impl Staging<'_> {
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
        let at = objects.at(split_last(&name).1);
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
            return Err(refuse("change the mode of", &path, "a symlink has no mode", None));
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
        let change = Change { n, path: path.clone(), before, after, marks, step: None, from: None, original: None };
        self.staged.insert(path.clone(), change);
        Ok(())
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

    pub(super) fn put_directory(&mut self, path: &AbsPath, mode: Option<u32>) -> Result<(), Error> {
        let meta = self.new_meta(path, true, mode, 0o777)?;
        let n = self.number();
        self.put(n, path, Some(State { what: What::Directory, meta }))
    }
}

/// The metadata of a file after somebody else's write to it: setuid, setgid and capabilities go (write(2), capabilities(7)).
fn rewritten(mut meta: Meta) -> Meta {
    meta.mode &= NO_SUID;
    meta.xattrs = meta.xattrs.into_iter().filter(|(name, _)| &**name != b"security.capability").collect();
    meta
}
