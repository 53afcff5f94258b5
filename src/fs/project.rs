//! Project numbers, by which ext4, xfs and f2fs count what a tree takes: ioctl_xfs_fsgetxattr(2). A directory may demand that all that is
//! renamed into it has its number, or else rename(2) fails with EXDEV.
#![allow(unsafe_code, reason = "file_getattr(2) and FS_IOC_FSGETXATTR have no safe wrapper")]

use std::ffi::CString;
use std::io;
use std::os::fd::{AsFd, AsRawFd};

use super::dir::{Entry, Sort};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Project {
    pub number: u32,
    /// True for a directory that gives its number to what is made in it, and lets in nothing of another one.
    pub binds: bool,
}

/// `FS_XFLAG_PROJINHERIT` of linux/fs.h.
const PROJECT_INHERIT: u32 = 0x200;

impl Entry<'_> {
    /// Its project; `None` where its file system has none, or nothing tells. Before Linux 6.17 that is so of links and special files.
    pub fn project(&self) -> Option<Project> {
        self.project_by_name().or_else(|_| self.project_by_descriptor()).ok()
    }

    fn project_by_name(&self) -> io::Result<Project> {
        /// The number of file_getattr(2) on all processors.
        const FILE_GETATTR: libc::c_long = 468;
        /// `struct file_attr` of linux/fs.h.
        #[repr(C)]
        #[derive(Default)]
        struct FileAttr {
            xflags: u64,
            extsize: u32,
            nextents: u32,
            projid: u32,
            cowextsize: u32,
        }
        let (name, mut attributes) = (CString::new(self.name)?, FileAttr::default());
        let directory = self.dir.as_fd().as_raw_fd();
        let size = size_of::<FileAttr>();
        // SAFETY: file_getattr(2) writes `size` bytes at most to `attributes`, which lives on, as the name and the descriptor do.
        let done = unsafe {
            libc::syscall(FILE_GETATTR, directory, name.as_ptr(), &raw mut attributes, size, libc::AT_SYMLINK_NOFOLLOW)
        };
        let binds = attributes.xflags & u64::from(PROJECT_INHERIT) != 0;
        if done == 0 { Ok(Project { number: attributes.projid, binds }) } else { Err(io::Error::last_os_error()) }
    }

    fn project_by_descriptor(&self) -> io::Result<Project> {
        match self.stat().map_err(|error| error.source)?.map(|stat| stat.sort) {
            Some(Sort::File) => by_ioctl(self.open_file().map_err(|error| error.source)?),
            Some(Sort::Directory) => by_ioctl(self.open_dir().map_err(|error| error.source)?),
            _ => Err(io::ErrorKind::Unsupported.into()),
        }
    }
}

fn by_ioctl(fd: impl AsFd) -> io::Result<Project> {
    use rustix::ioctl::{Getter, ioctl, opcode};
    /// `struct fsxattr` of linux/fs.h.
    #[repr(C)]
    struct FsXattr {
        xflags: u32,
        extsize: u32,
        nextents: u32,
        projid: u32,
        cowextsize: u32,
        pad: [u8; 8],
    }
    const GET: rustix::ioctl::Opcode = opcode::read::<FsXattr>(b'X', 31);
    // SAFETY: FS_IOC_FSGETXATTR fills a `struct fsxattr`, whose size is in its number, and changes nothing: ioctl_xfs_fsgetxattr(2).
    let found = unsafe { ioctl(fd, Getter::<GET, FsXattr>::new()) }?;
    Ok(Project { number: found.projid, binds: found.xflags & PROJECT_INHERIT != 0 })
}
