//! Originals that are made anew, from elsewhere than the tree: what a commit would have moved here.

use crate::error::{At, IoError};
use crate::fs::Fs;
use crate::fs::device::Dev;
use crate::fs::dir::{Entry, Sort};
use crate::tree::state::{State, What};

/// Gives a blob, or an object with several names, what the original had (docs/store-format.md). An owner that cannot be given now can be given by a rollback of root's.
pub fn dress(fs: &Fs, at: Entry<'_>, original: &State) -> Result<(), IoError> {
    let meta = &original.meta;
    match fs.set_owner(at, meta.uid, meta.gid) {
        Err(error) if error.raw_os_error() == Some(libc::EPERM) => {}
        set => set.at("set the owner of", at)?,
    }
    for (name, value) in &meta.xattrs {
        fs.set_xattr(at, name, value).at("set an extended attribute of", at)?;
    }
    if original.sort() != Sort::Symlink {
        fs.set_mode(at, meta.mode).at("set the mode of", at)?;
    }
    fs.set_mtime(at, meta.mtime).at("set the time of", at)
}

/// Makes the object of an original that has no content. Its metadata is in the manifest's line, and is set when it is given back.
pub fn object(fs: &Fs, at: Entry<'_>, original: &State) -> Result<(), IoError> {
    match &original.what {
        What::Folder | What::File { .. } => fs.mkdir(at, 0o700),
        What::Symlink { target } => fs.symlink(target, at),
        What::Char(dev) | What::Block(dev) => fs.mknod(at, original.sort(), 0o600, *dev),
        What::Fifo | What::Socket => fs.mknod(at, original.sort(), 0o600, Dev(0, 0)),
    }
    .at("make", at)
}
