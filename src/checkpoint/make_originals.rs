//! Makes originals that a commit would have moved here, from elsewhere than the tree.

use crate::error::IoError;
use crate::fs::{Dev, Entry, Fs, Sort};
use crate::tree::{State, What};

/// Sets an original's metadata on a blob, or an object of several names (docs/store-format.md). A rollback by root may yet set the owner.
pub fn dress(fs: &Fs, at: Entry<'_>, original: &State) -> Result<(), IoError> {
    let meta = &original.meta;
    match fs.set_owner(at, meta.uid, meta.gid) {
        Err(error) if error.errno() == Some(libc::EPERM) => {}
        set => set?,
    }
    for (name, value) in &meta.xattrs {
        fs.set_xattr(at, name, value)?;
    }
    if original.sort() != Sort::Symlink {
        fs.set_mode(at, meta.mode)?;
    }
    fs.set_mtime(at, meta.mtime)
}

/// Makes the object of an original without content. The manifest's line has its metadata, which a rollback sets.
pub fn object(fs: &Fs, at: Entry<'_>, original: &State) -> Result<(), IoError> {
    match &original.what {
        What::Directory | What::File { .. } => fs.mkdir(at, 0o700),
        What::Symlink { target } => fs.symlink(target, at),
        What::Char(dev) | What::Block(dev) => fs.mknod(at, original.sort(), 0o600, *dev),
        What::Fifo | What::Socket => fs.mknod(at, original.sort(), 0o600, Dev(0, 0)),
    }
}
