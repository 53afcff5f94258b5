//! Reads extended attributes: by listxattrat(2) and getxattrat(2) where the kernel has them.
#![allow(unsafe_code, reason = "listxattrat(2) and getxattrat(2) have no safe wrapper")]

use std::ffi::{CStr, CString};
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};
use std::sync::atomic::{AtomicBool, Ordering};

use rustix::io::Errno;

/// Name and value of each attribute, sorted.
pub type Xattrs = Vec<(Vec<u8>, Vec<u8>)>;

/// The largest list and value of xattrs on Linux: XATTR_LIST_MAX, XATTR_SIZE_MAX.
const XATTR_MAX: usize = 64 << 10;

/// An attribute that the file system cannot keep, however much space is free.
#[derive(Debug)]
pub struct TooLarge {
    name: String,
    size: usize,
}

impl std::fmt::Display for TooLarge {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "this file system cannot store an extended attribute of {} bytes beside the others: {}", self.size, self.name)
    }
}

impl std::error::Error for TooLarge {}

/// Makes the error of a failed setxattr(2). File systems report "no space left" both for an attribute that is too large for them and for a
/// full disk, which has no room for any.
pub(super) fn too_large(error: Errno, name: &[u8], value: &[u8], within: BorrowedFd<'_>) -> io::Error {
    let has_room = || rustix::fs::fstatvfs(within).is_ok_and(|found| found.f_bavail * found.f_frsize > 1 << 20);
    match error {
        Errno::TOOBIG | Errno::RANGE => {}
        Errno::NOSPC if has_room() => {}
        _ => return error.into(),
    }
    io::Error::other(TooLarge { name: name.escape_ascii().to_string(), size: value.len() })
}

/// The xattrs of an open file; the value of one that is `unread` counts as empty.
pub(super) fn of_open(fd: BorrowedFd<'_>, unread: impl Fn(&[u8]) -> bool) -> io::Result<Xattrs> {
    let get = |name: &[u8], buffer: &mut [u8]| if unread(name) { Ok(0) } else { rustix::fs::fgetxattr(fd, name, buffer) };
    collect(|buffer| rustix::fs::flistxattr(fd, buffer), get)
}

/// True if an object has an xattr of this name and value, which is not empty.
pub(super) fn is_of_open(fd: BorrowedFd<'_>, name: &str, value: &[u8]) -> io::Result<bool> {
    let mut found = vec![0; value.len()];
    match rustix::fs::fgetxattr(fd, name, &mut found[..]) {
        Ok(length) => Ok(found[..length] == *value),
        // A longer one is another one.
        Err(Errno::NODATA | Errno::NOTSUP | Errno::RANGE) => Ok(false),
        Err(error) => Err(error.into()),
    }
}

/// The xattrs of a name in `dir`, for any kind of object; does not follow links. `through_proc` is its path through /proc, used by the
/// older calls only, if the kernel lacks the newer ones.
pub(super) fn of_name(dir: BorrowedFd<'_>, name: &[u8], through_proc: impl FnOnce() -> Vec<u8>) -> io::Result<Xattrs> {
    if !REFUSED.load(Ordering::Relaxed) {
        let name = CString::new(name)?;
        let found = collect(|buffer| list_at(dir, &name, buffer), |xattr, buffer| get_at(dir, &name, xattr, buffer));
        match found.as_ref().map_err(io::Error::raw_os_error) {
            Err(Some(libc::ENOSYS | libc::EPERM)) => REFUSED.store(true, Ordering::Relaxed),
            _ => return found,
        }
    }
    let path = through_proc();
    collect(|buffer| rustix::fs::llistxattr(&*path, buffer), |name, buffer| rustix::fs::lgetxattr(&*path, name, buffer))
}

/// True once the kernel has refused the newer calls: they are of Linux 6.13, and a container's rules may not know them.
static REFUSED: AtomicBool = AtomicBool::new(false);

/// The numbers of these calls, equal on every architecture: the kernel's scripts/syscall.tbl.
const GETXATTRAT: libc::c_long = 464;
const LISTXATTRAT: libc::c_long = 465;

/// `struct xattr_args` of include/uapi/linux/xattr.h.
#[repr(C, align(8))]
struct XattrArgs {
    value: u64,
    size: u32,
    flags: u32,
}

fn list_at(dir: BorrowedFd<'_>, name: &CStr, buffer: &mut [u8]) -> Result<usize, Errno> {
    let (dir, flags) = (dir.as_raw_fd(), libc::AT_SYMLINK_NOFOLLOW);
    // SAFETY: listxattrat(2) reads a C string and writes at most the buffer's length into it; both live through the call.
    length(unsafe { libc::syscall(LISTXATTRAT, dir, name.as_ptr(), flags, buffer.as_mut_ptr(), buffer.len()) })
}

fn get_at(dir: BorrowedFd<'_>, name: &CStr, xattr: &[u8], buffer: &mut [u8]) -> Result<usize, Errno> {
    let xattr = CString::new(xattr).map_err(|_| Errno::INVAL)?;
    let (dir, flags) = (dir.as_raw_fd(), libc::AT_SYMLINK_NOFOLLOW);
    let size = u32::try_from(buffer.len()).map_err(|_| Errno::INVAL)?;
    let args = XattrArgs { value: buffer.as_mut_ptr().expose_provenance() as u64, size, flags: 0 };
    let of = size_of::<XattrArgs>();
    // SAFETY: getxattrat(2) reads two C strings and `of` bytes at `args`, and writes at most `size` bytes at `value`, the buffer's length;
    // all of them live through the call.
    length(unsafe { libc::syscall(GETXATTRAT, dir, name.as_ptr(), flags, xattr.as_ptr(), &raw const args, of) })
}

fn length(result: libc::c_long) -> Result<usize, Errno> {
    usize::try_from(result).map_err(|_| Errno::from_io_error(&io::Error::last_os_error()).unwrap_or(Errno::IO))
}

fn collect(
    list: impl Fn(&mut [u8]) -> Result<usize, Errno>,
    get: impl Fn(&[u8], &mut [u8]) -> Result<usize, Errno>,
) -> io::Result<Xattrs> {
    let mut small = [0; 512];
    let names = match list(&mut small) {
        Ok(0) | Err(Errno::NOTSUP) => return Ok(Vec::new()),
        Ok(length) => small[..length].to_vec(),
        Err(Errno::RANGE) => {
            let mut large = vec![0; XATTR_MAX];
            let length = list(&mut large)?;
            large.truncate(length);
            large
        }
        Err(error) => return Err(error.into()),
    };
    let mut found = Vec::new();
    for name in names.split(|b| *b == 0).filter(|name| !name.is_empty()) {
        let value = match get(name, &mut small) {
            Ok(length) => small[..length].to_vec(),
            Err(Errno::RANGE) => {
                let mut large = vec![0; XATTR_MAX];
                match get(name, &mut large) {
                    Ok(length) => large[..length].to_vec(),
                    Err(Errno::NODATA) => continue,
                    Err(error) => return Err(error.into()),
                }
            }
            // It was removed between the two calls.
            Err(Errno::NODATA) => continue,
            Err(error) => return Err(error.into()),
        };
        found.push((name.to_vec(), value));
    }
    found.sort();
    Ok(found)
}

#[cfg(test)]
mod tests {
    use std::os::fd::AsFd;

    use super::*;
    use crate::fs::dir::Dir;
    use crate::fs::door::Fs;

    #[test]
    fn both_kinds_of_calls_tell_the_same() {
        let top = tempfile::tempdir().expect("a directory");
        let (fs, dir) = (Fs::new(), Dir::open(top.path()).expect("the directory"));
        for (name, size) in [("none", None), ("small", Some(3)), ("large", Some(2_000))] {
            let at = dir.at(name.as_bytes());
            fs.create(at, 0o600).expect("a file");
            if let Some(size) = size
                && let Err(error) = fs.set_xattr(at, b"user.a", &vec![7; size])
            {
                println!("skipped: {at}: no extended attributes: {error}");
                return;
            }
        }
        for name in ["none", "small", "large"] {
            REFUSED.store(false, Ordering::Relaxed);
            let new = dir.at(name.as_bytes()).xattrs().expect("the newer calls, or the older");
            REFUSED.store(true, Ordering::Relaxed);
            let old = dir.at(name.as_bytes()).xattrs().expect("the older calls");
            assert_eq!(new, old, "{name}");
            let open = dir.at(name.as_bytes()).open_file().expect("the file");
            assert_eq!(new, of_open(open.as_fd(), |_| false).expect("of the open file"), "{name}");
            REFUSED.store(false, Ordering::Relaxed);
        }
        let missing = dir.at(b"missing").xattrs().expect_err("nothing is there");
        assert_eq!(missing.kind(), io::ErrorKind::NotFound);
    }
}
