//! `git clone` of a directory links the files of the other repository, and gives up if a new name has another inode number than the file
//! had before (builtin/clone.c, "hardlink different from source"). In an overlay it has, wherever link(2) copies the file up and the kernel
//! does not find its origin again: for an ordinary user, in a view, and for a file of several names (fs/overlayfs/inode.c).
//!
//! So git is told what it would hear on two file systems. Then it copies. The link of any other program is made.

use super::call_listener::Answer;

/// The answer to a link(2) of this thread.
pub fn answer(thread: u32) -> Answer {
    if may_copy(thread) { Answer::Fail(libc::EXDEV) } else { Answer::GoOn }
}

/// True for a thread of git that may copy instead: with `--local` it would fail.
fn may_copy(thread: u32) -> bool {
    let of_process = |name: &str| std::fs::read(format!("/proc/{thread}/{name}")).unwrap_or_default();
    let must_link = |word: &[u8]| word == b"--local" || word == b"-l";
    matches!(&*of_process("comm"), b"git\n" | b"git-clone\n") && !of_process("cmdline").split(|b| *b == 0).any(must_link)
}
