//! Why a command was not run, or what it left can't be read.

use std::io;

use super::command::Exit;
use crate::error::{Failure, IoError, Kind, reason, recant};
use crate::fs::path::AbsPath;

/// What can go wrong in this room.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A call to set up the namespace failed; the command was not started.
    #[error("cannot set up the capture: {path}: cannot {act}: {}", reason(source))]
    SetUp {
        /// What it was done to.
        path: String,
        /// What was to be done, an infinitive.
        act: String,
        /// What the kernel said.
        source: io::Error,
        /// What to do about it.
        remedy: Option<String>,
    },
    /// What the kernel mounted is not what was planned.
    #[error("cannot set up the capture: {path}: {what}")]
    NotAsPlanned {
        /// Where.
        path: String,
        /// What is off.
        what: String,
    },
    /// The working folder has no path any more, or it is not to be reached in the run.
    #[error("cannot run here: {path}: {what}")]
    WorkingFolder {
        /// The working folder.
        path: String,
        /// What is wrong with it.
        what: &'static str,
    },
    /// The store lies where the run has a folder of its own.
    #[error("cannot run with the store {path}: {place} is private in a run, and its files go when the machine stops")]
    StoreInPrivate {
        /// The store.
        path: AbsPath,
        /// What is private.
        place: &'static str,
    },
    /// What is mounted there has no name any more, so that the mount can't be moved into an overlay.
    #[error("cannot capture what lies around the mount {path}: what is mounted there was deleted")]
    DeletedMount {
        /// The mount point.
        path: AbsPath,
        /// A deleted folder is empty; a file's content goes with the mount.
        is_folder: bool,
    },
    /// The session holds a change that the command could not see.
    #[error("cannot go on in the session: {path}: it holds a change there that the command could not see: {why}")]
    NotShown {
        /// Of what.
        path: AbsPath,
        /// What stands against it.
        why: String,
        /// What is mounted over it since then.
        over: Option<AbsPath>,
    },
    /// The working folder has an owner or group that a user namespace can't map.
    #[error("cannot capture {path}: it belongs to {belongs}, whose files an ordinary user's capture cannot change")]
    Unmapped {
        /// The working folder.
        path: AbsPath,
        /// "user 12" or "group 34".
        belongs: String,
        /// What to do about it.
        remedy: String,
    },
    /// sudo, su or doas, run by an ordinary user: they gain nothing inside.
    #[error("cannot run {program} in a capture of an ordinary user: it can gain no rights there")]
    GainsRights {
        /// The program's name.
        program: String,
    },
    /// One of the descriptors 0 to 2 is a folder: a way around the capture.
    #[error("descriptor {fd} is a folder: the command could write through it, past the capture")]
    FolderAsDescriptor {
        /// 0, 1 or 2.
        fd: i32,
    },
    /// fork(2) needs one thread.
    #[error("cannot set up the capture: recant has more than one thread")]
    Threads,
    /// There is no such program.
    #[error("{program}: command not found")]
    NotFound {
        /// As it was given.
        program: String,
    },
    /// The program is there and can't be executed.
    #[error("{program}: cannot be executed: {}", reason(source))]
    NotExecutable {
        /// As it was given.
        program: String,
        /// Why.
        source: io::Error,
    },
    /// An argument or variable holds a NUL byte.
    #[error("an argument holds a NUL byte")]
    Nul,
    /// The session cannot be read or written.
    #[error(transparent)]
    Session(#[from] crate::error::Error),
    /// The command ran; what it changed lies in the session and could not be read into changes.
    #[error("the run of session {id} cannot be collected: {why}")]
    Uncollected {
        /// The session.
        id: String,
        /// How the command ended, where that is known.
        exit: Option<Exit>,
        /// What it changed lay in memory.
        lost: bool,
        /// What stood against it.
        #[source]
        why: Box<Error>,
    },
    /// Anything else, with its path.
    #[error(transparent)]
    Io(#[from] IoError),
}

impl Failure for Error {
    fn kind(&self) -> Kind {
        match self {
            Error::SetUp { .. }
            | Error::NotAsPlanned { .. }
            | Error::WorkingFolder { .. }
            | Error::StoreInPrivate { .. }
            | Error::DeletedMount { .. }
            | Error::NotShown { .. }
            | Error::Unmapped { .. }
            | Error::GainsRights { .. }
            | Error::FolderAsDescriptor { .. }
            | Error::Threads
            | Error::Io(_) => Kind::NoCapture,
            Error::NotFound { .. } => Kind::NotFound,
            Error::NotExecutable { .. } | Error::Nul => Kind::NotExecutable,
            Error::Session(error) => error.kind(),
            // Which is not the command's: a session that can't be read is damaged, say.
            Error::Uncollected { why, .. } => match why.kind() {
                Kind::NoCapture => Kind::Refused,
                kind => kind,
            },
        }
    }

    fn state(&self) -> Option<String> {
        match self {
            Error::Session(error) => Failure::state(error),
            Error::Uncollected { lost: true, .. } => {
                Some("what the command changed lay in memory and is lost; the tree is as it was".into())
            }
            Error::Uncollected { exit: Some(Exit::Code(code)), .. } => {
                Some(format!("the command exited with {code}; what it changed is kept in the session, the tree is as it was"))
            }
            Error::Uncollected { .. } => Some("what the command changed is kept in the session, the tree is as it was".into()),
            _ => Some("the command was not started; nothing was changed".into()),
        }
    }

    fn remedy(&self) -> Option<String> {
        match self {
            Error::SetUp { remedy, .. } => remedy.clone(),
            Error::WorkingFolder { .. } => Some("change to another directory first".into()),
            Error::StoreInPrivate { .. } => Some("use another store: --store DIR, RECANT_STORE".into()),
            Error::DeletedMount { path, is_folder: true } => {
                Some(format!("take the mount away, nothing can be in it: umount {path}"))
            }
            Error::DeletedMount { path, is_folder: false } => {
                Some(format!("copy {path} elsewhere first, its content goes with the mount; then umount {path}"))
            }
            Error::NotShown { over: Some(point), .. } => Some(format!("umount {point}, or commit the session first")),
            Error::NotShown { over: None, .. } => Some("take the cause away, or commit the session first".into()),
            Error::Unmapped { remedy, .. } => Some(remedy.clone()),
            Error::GainsRights { .. } => Some("put it the other way round: sudo recant run -- …".into()),
            Error::Uncollected { lost: true, .. } => Some("put the store on another file system: --store DIR".into()),
            Error::Uncollected { id, .. } => {
                Some(format!("{recant} diff {id} tries again, once the cause is gone", recant = recant()))
            }
            Error::FolderAsDescriptor { fd } => Some(format!("redirect descriptor {fd} to a file, a pipe or a terminal")),
            _ => None,
        }
    }

    fn path(&self) -> Option<String> {
        match self {
            Error::SetUp { path, .. } | Error::NotAsPlanned { path, .. } | Error::WorkingFolder { path, .. } => {
                Some(path.clone())
            }
            Error::Unmapped { path, .. }
            | Error::NotShown { path, .. }
            | Error::DeletedMount { path, .. }
            | Error::StoreInPrivate { path, .. } => Some(path.to_string()),
            Error::Uncollected { why, .. } => why.path(),
            Error::Io(error) => Some(error.path.clone()),
            _ => None,
        }
    }
}

/// What to do about an error number of a set-up call: the causes that are known.
pub(super) fn remedy(act: &str, errno: Option<i32>, user: bool) -> Option<String> {
    let errno = errno?;
    let namespaces = act.contains("namespace");
    let mapping = act.contains("map") || act.contains("private");
    let text = match errno {
        libc::EPERM if namespaces && user => {
            "user namespaces are refused here (a container's seccomp rule, a chroot, or kernel.unprivileged_userns_clone = 0): \
             allow them, or stage changes by hand with recant session"
        }
        libc::EPERM if namespaces => {
            "CAP_SYS_ADMIN is missing here (a container?): give it that, or stage changes by hand with recant session"
        }
        libc::ENOSPC if namespaces => {
            "a limit is reached, user.max_user_namespaces or that of mnt, pid, ipc or net: raise it with sysctl"
        }
        libc::EINVAL if namespaces => {
            "this kernel has no user namespaces: run recant as root, or stage changes by hand with recant session"
        }
        libc::EPERM | libc::EACCES if mapping && user => {
            "AppArmor restricts user namespaces (kernel.apparmor_restrict_unprivileged_userns = 1): a profile for recant with 'userns,', or that sysctl set to 0, allows them"
        }
        libc::ENODEV if act.contains("overlay") => "the kernel has no overlayfs: modprobe overlay",
        libc::ENOSYS => "Linux 5.15 or newer is needed, and a seccomp rule must not forbid this call",
        libc::EINVAL if act.contains("upper") => {
            "the store's file system can't hold an upper (overlayfs and NFS can't): put it on another one with --store DIR"
        }
        libc::EINVAL if act.contains("lower") && user => {
            "a mount lies below it, or its file system can't be a lower: run from another folder"
        }
        _ => return None,
    };
    Some(text.into())
}
