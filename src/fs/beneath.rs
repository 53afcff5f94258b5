//! Opens below a held directory, and follows no link: openat2(2), or, where that is missing (a kernel before 5.6, a sandbox whose seccomp
//! rules or own kernel lack it), one component after the other.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicBool, Ordering};

use rustix::fs::{CWD, Mode, OFlags, ResolveFlags};
use rustix::io::Errno;

use super::mounts;

/// The rule of a look-up below: no link anywhere on the way, no way out, no other mount. F37, I15.
pub(super) const BENEATH: ResolveFlags = ACROSS.union(ResolveFlags::NO_XDEV);

/// The rule of a look-up that may also cross mounts.
pub(super) const ACROSS: ResolveFlags = ResolveFlags::BENEATH.union(ResolveFlags::NO_SYMLINKS).union(ResolveFlags::NO_MAGICLINKS);

/// True once openat2(2) was found missing. The kernel of a process does not change.
static MISSING: AtomicBool = AtomicBool::new(false);

/// Opens `path` below `from` with `flags`, by [`BENEATH`] or [`ACROSS`]. The last component is no link either, even with O_PATH.
///
/// # Errors
/// ELOOP or ENOTDIR if a component is a link, EXDEV if the path leads out or onto another mount; else as open(2).
pub(super) fn open(from: BorrowedFd<'_>, path: &[u8], flags: OFlags, resolve: ResolveFlags) -> Result<OwnedFd, Errno> {
    if MISSING.load(Ordering::Relaxed) {
        return walk(from, path, flags, resolve);
    }
    match openat2(from, path, flags, resolve) {
        Err(Errno::NOSYS) => {}
        // The error of some sandboxes for every unknown call; but O_NOATIME on somebody else's file fails with it too.
        Err(Errno::PERM) if openat2(CWD, b".", OFlags::PATH, ResolveFlags::BENEATH).err() == Some(Errno::PERM) => {}
        other => return other,
    }
    MISSING.store(true, Ordering::Relaxed);
    walk(from, path, flags, resolve)
}

fn openat2(from: BorrowedFd<'_>, path: &[u8], flags: OFlags, resolve: ResolveFlags) -> Result<OwnedFd, Errno> {
    loop {
        match rustix::fs::openat2(from, path, flags | OFlags::CLOEXEC, Mode::empty(), resolve) {
            // A rename somewhere during a RESOLVE_BENEATH look-up: try again, openat2(2).
            Err(Errno::AGAIN | Errno::INTR) => {}
            other => return other,
        }
    }
}

/// Opens without openat2(2): opens each component from the one before, which is held; none may be a link.
fn walk(from: BorrowedFd<'_>, path: &[u8], flags: OFlags, resolve: ResolveFlags) -> Result<OwnedFd, Errno> {
    if path.first() == Some(&b'/') {
        return Err(Errno::XDEV);
    }
    let mount_of = |fd: BorrowedFd<'_>| mounts::id_of(fd).map_err(|error| Errno::from_io_error(&error).unwrap_or(Errno::IO));
    let mount = if resolve.contains(ResolveFlags::NO_XDEV) { Some(mount_of(from)?) } else { None };
    let mut names = path.split(|byte| *byte == b'/').filter(|name| !name.is_empty() && *name != b".").peekable();
    let mut held: Option<OwnedFd> = None;
    while let Some(name) = names.next() {
        if name == b".." {
            return Err(Errno::XDEV);
        }
        let on_the_way = OFlags::PATH | OFlags::DIRECTORY;
        let flags = if names.peek().is_some() { on_the_way } else { flags } | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let above = held.as_ref().map_or(from, AsFd::as_fd);
        let next = rustix::fs::openat(above, name, flags, Mode::empty())?;
        if mount.is_some_and(|mount| mount_of(next.as_fd()) != Ok(mount)) {
            return Err(Errno::XDEV);
        }
        held = Some(next);
    }
    held.map_or_else(|| rustix::fs::openat(from, ".", flags | OFlags::CLOEXEC, Mode::empty()), Ok)
}

#[cfg(test)]
#[expect(clippy::disallowed_methods, reason = "tests set up real files")]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    /// Both ways, over the same tree, give the same result.
    #[test]
    fn component_by_component_it_ends_as_with_one_call() {
        let directory = tempfile::tempdir().expect("a directory");
        let at = |name: &str| directory.path().join(name);
        std::fs::create_dir_all(at("a/b/c")).expect("directories");
        std::fs::write(at("a/b/file"), "x").expect("a file");
        symlink("b", at("a/link")).expect("a link");
        symlink("file", at("a/b/to-file")).expect("a link");
        symlink("/", at("a/root")).expect("a link");
        let held = std::fs::File::open(directory.path()).expect("the directory");
        let directories = OFlags::DIRECTORY | OFlags::RDONLY;
        let told = |found: Result<OwnedFd, Errno>| found.map(|fd| crate::fs::dir::stat_of(fd).expect("its state").ino);
        let good = ["a", "a/b", "a//b/./c", "./a", "a/b/c/"];
        for path in good {
            let (one, other) = (
                openat2(held.as_fd(), path.as_bytes(), directories, BENEATH),
                walk(held.as_fd(), path.as_bytes(), directories, BENEATH),
            );
            assert!(other.is_ok(), "{path}: {other:?}");
            assert_eq!(told(one), told(other), "{path}");
        }
        for path in
            ["a/link/c", "a/link", "a/root", "a/root/tmp", "a/b/file/x", "a/none", "..", "a/../..", "/", "/tmp", "a/b/file"]
        {
            let (one, other) = (
                openat2(held.as_fd(), path.as_bytes(), directories, BENEATH),
                walk(held.as_fd(), path.as_bytes(), directories, BENEATH),
            );
            let said = |found: &Result<OwnedFd, Errno>| match found {
                Err(Errno::LOOP | Errno::NOTDIR) => "a link or no directory",
                Err(Errno::XDEV) => "outside",
                Err(Errno::NOENT) => "nothing",
                _ => "opened",
            };
            assert_ne!(said(&other), "opened", "{path}");
            assert_eq!(said(&one), said(&other), "{path}: {one:?} {other:?}");
        }
        for path in ["a/b/file", "a/b/to-file"] {
            let (one, other) = (
                openat2(held.as_fd(), path.as_bytes(), OFlags::RDONLY, BENEATH),
                walk(held.as_fd(), path.as_bytes(), OFlags::RDONLY, BENEATH),
            );
            assert_eq!(told(one), told(other), "{path}");
        }
    }

    #[test]
    fn component_by_component_no_mount_is_crossed_unless_it_may_be() {
        let root = std::fs::File::open("/").expect("the root");
        let flags = OFlags::DIRECTORY | OFlags::PATH;
        assert_eq!(walk(root.as_fd(), b"proc/self/fd", flags, ACROSS).err(), Some(Errno::NOTDIR), "self is a link");
        let crossed = walk(root.as_fd(), b"proc/sys", flags, BENEATH).err();
        assert_eq!(crossed, Some(Errno::XDEV));
        assert!(walk(root.as_fd(), b"proc/sys", flags, ACROSS).is_ok());
    }
}
