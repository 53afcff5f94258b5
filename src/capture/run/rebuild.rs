//! Makes a directory that an overlay shows from below one of its upper alone, in place: an ordinary user's overlay renames no others (EXDEV;
//! "redirect_dir" in overlayfs.rst). Its directories come first, innermost first. Each gets a new directory beside it, which takes in all that
//! it holds and its metadata, and is renamed over it: overlayfs lets a directory take the place of an empty one.
//!
//! At each moment all is there: in the directory or, while names move, in the one beside it. A call that would make a name there meanwhile
//! waits. Whatever fails is undone, and the directory is as it was. What a kill leaves is put back when the run is collected ([`put_back`]).

use std::sync::{PoisonError, RwLock};
use std::time::Duration;

use rustix::io::Errno;

use crate::capture::collect::cut_off_rename::{PROBE, Rebuilt, move_over, put_back};
use crate::error::{At, IoError};
use crate::fs::{Dir, Entry, Fs, Sort, Stat, Time};

/// The times that a directory is looked through for what came in meanwhile.
const ROUNDS: usize = 4;

/// The time in which the kernel carries out a call that was answered right before names move. Where it takes longer, a name that the call
/// makes is met as one that is there already.
const SETTLING: Duration = Duration::from_millis(2);

/// The terms of a rebuilding.
pub struct Rebuild<'a> {
    pub fs: &'a Fs,
    /// The run's start: what was born later is in the upper.
    pub since: Time,
    /// Asked before each step: once it is false, all is undone.
    pub goes_on: &'a dyn Fn() -> bool,
    /// Locked while names move. Whoever answers calls that make names has it read-locked.
    pub names: &'a RwLock<()>,
}

impl Rebuild<'_> {
    /// True if a directory certainly lies in the upper alone. One that is merged shows one link, where the file system counts links.
    pub fn is_of_upper(&self, stat: &Stat) -> bool {
        stat.btime.is_some_and(|born| born > self.since) && stat.nlink != 1
    }

    /// Rebuilds the directory at `at`, with all directories in it.
    ///
    /// # Errors
    /// Something in it cannot be changed by this user, is a mount, or changes meanwhile. Nothing is changed then, but that some files, and
    /// directories in it, lie in the upper now.
    pub fn directory(&self, at: Entry<'_>) -> Result<(), IoError> {
        let directories = self.directories(at)?;
        for path in &directories {
            self.copy_up(&at.dir.open_below(path)?)?;
        }
        // open(2) with O_CREAT would make a second file under the name of one that lies beside, and what is written be parted.
        let _still = self.names.write().unwrap_or_else(PoisonError::into_inner);
        std::thread::sleep(SETTLING);
        for path in directories.iter().rev() {
            let cut = path.iter().rposition(|byte| *byte == b'/');
            let (above, name) = cut.map_or((&b""[..], &path[..]), |cut| (&path[..cut], &path[cut + 1..]));
            let above = at.dir.open_below(above)?;
            // The one that holds all of them is the caller's to open.
            self.one(above.at(name), path != at.name)?;
        }
        Ok(())
    }

    /// True if the kernel refuses to rename a directory. Tried without effect: a directory that is not empty cannot be replaced.
    pub fn is_refused(&self, at: Entry<'_>) -> Result<bool, IoError> {
        let probe = at.dir.at(PROBE);
        self.fs.mkdir(probe, 0o700)?;
        let tried = self.fs.mkdir(probe.open_dir()?.at(PROBE), 0o700).and_then(|()| self.fs.rename_over(at, probe));
        self.fs.remove_all(probe)?;
        match tried {
            Err(error) if error.errno() == Some(libc::EXDEV) => Ok(true),
            Err(error) if matches!(error.errno(), Some(libc::ENOTEMPTY | libc::EEXIST)) => Ok(false),
            other => other.map(|()| false),
        }
    }

    /// The directories to rebuild, below `at.dir`, each before those in it.
    fn directories(&self, at: Entry<'_>) -> Result<Vec<Vec<u8>>, IoError> {
        let (mut todo, mut found) = (vec![at.name.to_vec()], Vec::new());
        while let Some(path) = todo.pop() {
            self.check(at)?;
            let dir = at.dir.open_below(&path)?;
            for (name, sort) in dir.names_and_sorts()? {
                if sort.is_some_and(|sort| sort != Sort::Directory) {
                    continue;
                }
                if dir.at(&name).stat()?.is_some_and(|stat| stat.sort == Sort::Directory && !self.is_of_upper(&stat)) {
                    todo.push([&*path, b"/", &name].concat());
                }
            }
            found.push(path);
        }
        Ok(found)
    }

    /// Rebuilds one directory, in which there are files, and directories of the upper alone. The one above it is opened for that if it
    /// `may_open`, and closed again.
    fn one(&self, at: Entry<'_>, may_open: bool) -> Result<(), IoError> {
        let (before, above) = (stat_of(at)?, at.dir.stat()?);
        let rebuilt = Rebuilt::of(at.name, &before, &above);
        let opened = match may_open && above.mode & 0o700 != 0o700 {
            true => self.fs.set_mode(at.dir.at(b"."), above.mode | 0o700),
            false => Ok(()),
        };
        let done = opened.and_then(|()| self.take_place(at, &rebuilt, &before));
        let left = rebuilt.leave(self.fs, at.dir);
        done.and(left)
    }

    fn take_place(&self, at: Entry<'_>, rebuilt: &Rebuilt, before: &Stat) -> Result<(), IoError> {
        let beside = rebuilt.beside().ok_or(Errno::NAMETOOLONG).at("name a directory beside", at)?;
        let beside = at.dir.at(&beside);
        self.fs.mkdir(beside, 0o700)?;
        let moved = self.move_all(at, beside, before);
        if moved.is_err() && !put_back(self.fs, beside, rebuilt)? {
            return Err(Errno::EXIST).at("put back what it held", at);
        }
        moved
    }

    fn move_all(&self, at: Entry<'_>, beside: Entry<'_>, before: &Stat) -> Result<(), IoError> {
        // First, while nothing has moved: not all of it may be this user's to set.
        self.dress(at, beside, before)?;
        if before.mode & 0o700 != 0o700 {
            self.fs.set_mode(at, before.mode | 0o700)?;
        }
        let (from, to) = (at.open_dir()?, beside.open_dir()?);
        for _ in 0..ROUNDS {
            for name in from.names()? {
                self.check(at)?;
                move_over(self.fs, from.at(&name), to.at(&name))?;
            }
            self.fs.set_mode(beside, before.mode)?;
            self.fs.set_mtime(beside, before.mtime)?;
            match self.fs.rename_over(beside, at) {
                // Somebody made something in it meanwhile.
                Err(error) if matches!(error.errno(), Some(libc::ENOTEMPTY | libc::EEXIST)) => {
                    self.fs.set_mode(beside, before.mode | 0o700)?;
                }
                done => return done,
            }
        }
        Err(Errno::BUSY).at("empty", at)
    }

    /// Has files copied into the upper while all of them are in their places: moving takes a fraction of the time then.
    fn copy_up(&self, dir: &Dir) -> Result<(), IoError> {
        for name in dir.names()? {
            let at = dir.at(&name);
            self.check(at)?;
            let Some(stat) = at.stat()? else { continue };
            if stat.mount_root {
                return Err(Errno::BUSY).at("move", at);
            }
            if stat.sort == Sort::File && stat.btime.is_none_or(|born| born <= self.since) {
                self.fs.set_mode(at, stat.mode)?;
            }
        }
        Ok(())
    }

    /// Gives the new directory owner and xattrs of the old one; mode and time come last, when it is full.
    fn dress(&self, from: Entry<'_>, to: Entry<'_>, before: &Stat) -> Result<(), IoError> {
        let new = stat_of(to)?;
        if (new.uid, new.gid) != (before.uid, before.gid) {
            self.fs.set_owner(to, before.uid, before.gid)?;
        }
        let (wanted, has) = (from.xattrs()?, to.xattrs()?);
        for (name, _) in has.iter().filter(|(name, _)| wanted.iter().all(|(other, _)| other != name)) {
            self.fs.remove_xattr(to, name)?;
        }
        for (name, value) in wanted.iter().filter(|wanted| !has.contains(wanted)) {
            self.fs.set_xattr(to, name, value)?;
        }
        Ok(())
    }

    fn check(&self, at: Entry<'_>) -> Result<(), IoError> {
        if (self.goes_on)() { Ok(()) } else { Err(Errno::CANCELED).at("move", at) }
    }
}

fn stat_of(at: Entry<'_>) -> Result<Stat, IoError> {
    at.stat()?.ok_or(Errno::NOENT).at("look at", at)
}

#[cfg(all(test, feature = "crash-points"))]
#[expect(clippy::unwrap_used, reason = "tests set up real files")]
mod tests {
    use std::os::unix::fs::MetadataExt;
    use std::path::Path;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;
    use crate::capture::collect::cut_off_rename::put_all_back;
    use crate::fs::watch::{Step, Watch};

    /// Lets one step fail, or this one and all after it.
    struct Fails {
        from: usize,
        to: usize,
        count: Arc<AtomicUsize>,
    }

    impl Watch for Fails {
        fn before(&self, _: &Step<'_>) -> std::io::Result<()> {
            let n = self.count.fetch_add(1, Ordering::SeqCst);
            if (self.from..self.to).contains(&n) { Err(std::io::Error::other("stopped")) } else { Ok(()) }
        }
    }

    fn make(top: &Path) {
        let (fs, top) = (Fs::default(), Dir::open(top).unwrap());
        for path in ["d", "d/empty", "d/sub", "d/sub/closed", "d/sub/closed/in"] {
            let (above, name) = path.rsplit_once('/').unwrap_or(("", path));
            fs.mkdir(top.open_below(above.as_bytes()).unwrap().at(name.as_bytes()), 0o755).unwrap();
        }
        for above in ["d", "d/sub", "d/sub/closed"] {
            let dir = top.open_below(above.as_bytes()).unwrap();
            let file = fs.create(dir.at(b"f"), 0o640).unwrap();
            fs.write(&file, above.as_bytes(), dir.at(b"f")).unwrap();
            fs.symlink(b"f", dir.at(b"link")).unwrap();
        }
        fs.set_mode(top.open_below(b"d/sub").unwrap().at(b"closed"), 0o555).unwrap();
    }

    /// Each object, with what it holds; of directories the sort alone.
    fn listed(top: &Path) -> Vec<String> {
        let each = walkdir::WalkDir::new(top).sort_by_file_name().into_iter().map(|entry| {
            let (entry, path) = (entry.as_ref().unwrap(), entry.as_ref().unwrap().path().strip_prefix(top).unwrap());
            let what = match entry.file_type() {
                sort if sort.is_dir() => "a directory".to_owned(),
                sort if sort.is_symlink() => format!("{:?}", entry.path().read_link().unwrap()),
                _ => format!("{:o} {}", entry.metadata().unwrap().mode(), std::fs::read_to_string(entry.path()).unwrap()),
            };
            format!("{}: {what}", path.display())
        });
        each.collect()
    }

    /// The modes and times of the directories.
    fn directories(top: &Path) -> Vec<(std::path::PathBuf, u32, (i64, i64))> {
        let found = walkdir::WalkDir::new(top).min_depth(1).sort_by_file_name().into_iter().map(Result::unwrap);
        let found = found.filter(|entry| entry.file_type().is_dir()).map(|entry| {
            let facts = entry.metadata().unwrap();
            (entry.path().strip_prefix(top).unwrap().to_owned(), facts.mode(), (facts.mtime(), facts.mtime_nsec()))
        });
        found.collect()
    }

    fn rebuilds(top: &Path, (from, to): (usize, usize)) -> (Result<(), IoError>, usize) {
        let count = Arc::new(AtomicUsize::new(0));
        let fs = Fs::watched(Box::new(Fails { from, to, count: count.clone() }));
        let since = Time { s: i64::MAX, ns: 0 };
        let done =
            Rebuild { fs: &fs, since, goes_on: &|| true, names: &RwLock::default() }.directory(Dir::open(top).unwrap().at(b"d"));
        (done, count.load(Ordering::SeqCst))
    }

    #[test]
    fn a_step_that_fails_or_is_the_last_one_loses_nothing() {
        let mut n = 0;
        loop {
            let directory = tempfile::tempdir().unwrap();
            make(directory.path());
            let (before, looks) = (listed(directory.path()), directories(directory.path()));
            let (failed, steps) = rebuilds(directory.path(), (n, n + 1));
            assert_eq!(listed(directory.path()), before, "step {n} failed: {failed:?}");
            if failed.is_ok() {
                assert_eq!(directories(directory.path()), looks, "step {n} failed, which nobody was told");
            }

            let directory = tempfile::tempdir().unwrap();
            make(directory.path());
            let (ended, _) = rebuilds(directory.path(), (n, usize::MAX));
            let left = put_all_back(&Fs::default(), &Dir::open(directory.path()).unwrap()).unwrap();
            assert_eq!(left, Vec::<Vec<u8>>::new());
            assert_eq!(listed(directory.path()), before, "step {n} was the last one: {ended:?}");
            if steps <= n {
                failed.unwrap();
                return;
            }
            n += 1;
        }
    }
}
