//! Confines a command on the real tree, where no namespaces can be had: it may write below some directories, and Landlock denies every
//! other write (landlock(7)). Nothing is held here; the caller has to know what was there before.
//!
//! The rules bind all that the command starts, for good. They do not apply to what is open already, so descriptors that lead out are closed
//! as in a capture. A confined process may not mount anything, nor look into processes outside (ptrace).

use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};

use landlock::{
    ABI, AccessFs, AccessNet, BitFlags, CompatLevel, Compatible, PathBeneath, PathFd, Ruleset, RulesetAttr, RulesetCreatedAttr,
    RulesetStatus, Scope,
};

use super::capabilities::drop_lead_out;
use super::command::Network;
use super::ids::Ids;
use super::landlock_scope::SCOPES;
use super::{raw_calls, seccomp_filter};
use crate::capture::error::{not_started, nul, set_up};
use crate::capture::place::layout::Route;
use crate::capture::space::build_mounts::part_shm;
use crate::capture::space::refusals::{Cause, acts};
use crate::error::{At, Error, IoError};
use crate::fs::AbsPath;

/// The nodes of /dev that any program may write to; disks are not among them.
const NODES: &[&str] = &["null", "zero", "full", "random", "urandom", "tty", "ptmx", "pts"];

/// Shared memory: the command gets its own /dev/shm where a namespace can be had, and else may not write there.
const SHM: &str = "/dev/shm";

/// The directory for temporary files.
const TEMPORARY: &str = "/tmp";

/// The rules of the newest kernel that this program knows: an older kernel leaves out those that it lacks.
const KNOWN: ABI = ABI::V5;

/// The places where a command may write.
#[derive(Debug)]
pub struct Confinement {
    asked: Vec<AbsPath>,
    /// All paths that may be written to.
    writable: Vec<AbsPath>,
    /// The paths of /dev/shm that were asked for by name; `None` if all of it was, or there is none.
    shm: Option<Vec<AbsPath>>,
    ids: Ids,
    version: i32,
    network: Reach,
}

/// The part of the network that a confined command can reach.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Reach {
    All,
    /// All but TCP: landlock(7) can deny no more.
    NoTcp,
    Loopback,
}

/// The first version of Landlock that can deny TCP.
const DENIES_TCP: i32 = 4;

impl Confinement {
    /// Allows writes below `asked`, /tmp, the harmless nodes of /dev, and `usual`, which may be gone by then: another recant makes a cache for
    /// its command, and removes it at the end if it is empty. Errors: a path of `asked` is not there; a kernel without Landlock, or with one
    /// that can't deny what is asked for.
    pub fn make(asked: &[PathBuf], usual: &[PathBuf], network: Network) -> Result<Self, Error> {
        let version = raw_calls::landlock_version().map_err(|source| {
            let cause = Cause::of_landlock(source.raw_os_error());
            set_up("Landlock", "ask for its version", source, cause)
        })?;
        let asked = asked.iter().map(|path| real(path)).collect::<Result<Vec<_>, _>>()?;
        let nodes = NODES.iter().map(|name| Path::new("/dev").join(name)).chain([PathBuf::from(TEMPORARY)]);
        // Not every machine has all of them.
        let mut writable: Vec<AbsPath> = nodes.chain(usual.iter().cloned()).filter_map(|path| real(&path).ok()).collect();
        writable.extend(asked.iter().cloned());
        writable.sort();
        writable.dedup();
        let shm = real(Path::new(SHM)).ok().filter(|shm| shm.as_bytes() == SHM.as_bytes());
        let shm = shm.filter(|shm| !writable.iter().any(|path| shm.is_under(path)));
        let shm = shm.map(|shm| writable.iter().filter(|path| path.is_under(&shm)).cloned().collect());
        let network = match network {
            Network::Open => Reach::All,
            _ if Route::here() == Route::Root => Reach::Loopback,
            _ if version >= DENIES_TCP => Reach::NoTcp,
            _ => {
                let source = std::io::Error::from_raw_os_error(libc::ENOSYS);
                let remedy = "it needs Linux 6.7 or newer, or root; or leave out --no-network";
                return Err(set_up("Landlock", "deny the network", source, None).with_remedy(remedy));
            }
        };
        Ok(Self { asked, writable, shm, ids: Ids::own(Route::here()), version, network })
    }

    /// The writable place in which `path`, a real one, lies, or which lies in it.
    pub fn opens(&self, path: &AbsPath) -> Option<&AbsPath> {
        self.writable.iter().find(|place| path.is_under(place) || place.is_under(path))
    }

    /// The paths outside of /dev that may be written to.
    pub fn writable(&self) -> impl Iterator<Item = &AbsPath> {
        self.writable.iter().filter(|path| !path.as_path().starts_with("/dev"))
    }

    /// Describes the closed network for people; `None` if it stays open.
    pub fn network(&self) -> Option<&'static str> {
        match self.network {
            Reach::All => None,
            Reach::NoTcp if self.version >= SCOPES => Some("no TCP; UDP and other protocols stay open to it"),
            Reach::NoTcp => Some("no TCP; UDP, other protocols and abstract sockets stay open to it"),
            Reach::Loopback => Some("no network but a private loopback"),
        }
    }

    /// True if the command has no network that leads out.
    pub fn has_no_network(&self) -> bool {
        self.network == Reach::Loopback
    }

    /// The acts that this kernel can't deny, for people: a part of a sentence each.
    pub fn not_denied(&self) -> Vec<&'static str> {
        let since = [
            (3, "cutting a file off by truncate(2) (Linux 6.2)"),
            (5, "commands to devices by ioctl(2) (Linux 6.10)"),
            (SCOPES, "signals to other programs, and their abstract sockets (Linux 6.12)"),
            (i32::MAX, "mode, owner, times and attributes (chmod, chown, touch, setfattr, chattr)"),
            (i32::MAX, "what other programs do when asked over a socket"),
        ];
        since.into_iter().filter(|(version, _)| self.version < *version).map(|(_, what)| what).collect()
    }

    /// Gives this process a network of its own, if it is to have one.
    pub fn leave_network(&self) -> Result<(), IoError> {
        if self.network != Reach::Loopback {
            return Ok(());
        }
        raw_calls::unshare_network().at(acts::NETWORK_NAMESPACE, "unshare")?;
        raw_calls::loopback_up().at("switch the loopback on", "lo")
    }

    /// The ids to map, if it is to have a /dev/shm of its own.
    pub fn ids(&self) -> Option<&Ids> {
        self.parts_shm().then_some(&self.ids)
    }

    /// True if the command is to have a /dev/shm of its own.
    pub fn parts_shm(&self) -> bool {
        self.shm.is_some()
    }

    /// Gives this process a /dev/shm of its own, if it is to have one.
    pub fn part_shm(&self, recant: &UnixStream) -> Result<(), IoError> {
        self.shm.as_deref().map_or(Ok(()), |kept| part_shm(kept, &self.ids, recant))
    }

    /// Confines this process and all that it will start. `own_shm` is true if [`Self::part_shm`] was done. An ordinary user can gain no
    /// rights any more (sudo); root keeps those that do not lead out.
    pub fn enforce(&self, own_shm: bool) -> Result<(), IoError> {
        let root = Route::here() == Route::Root;
        // With CAP_SYS_ADMIN no promise to gain no rights is needed; it is dropped with the others right after.
        let denied = |error: &dyn std::error::Error| std::io::Error::other(error.to_string());
        let rules = Ruleset::default()
            .set_compatibility(CompatLevel::BestEffort)
            .handle_access(AccessFs::from_write(KNOWN))
            .and_then(|rules| match self.network {
                Reach::NoTcp => rules.handle_access(AccessNet::BindTcp | AccessNet::ConnectTcp),
                Reach::All | Reach::Loopback => Ok(rules),
            })
            .and_then(|rules| rules.scope(Scope::AbstractUnixSocket | Scope::Signal))
            .and_then(Ruleset::create)
            .map_err(|error| denied(&error))
            .at("make the rules", "Landlock")?;
        let mut rules = rules.no_new_privs(!root);
        let own = AbsPath::parse(SHM).ok().filter(|_| own_shm && self.parts_shm());
        for path in self.writable.iter().chain(&own) {
            let fd = match PathFd::new(path.as_path()) {
                Err(_) if !self.asked.contains(path) && !path.as_path().exists() => continue,
                fd => fd.map_err(|error| denied(&error)).at("open what may be written to", path)?,
            };
            let is_dir = path.as_path().is_dir();
            let rule = PathBeneath::new(fd, rights(is_dir));
            rules = rules.add_rule(rule).map_err(|error| denied(&error)).at("allow writing to", path)?;
        }
        let status = rules.restrict_self().map_err(|error| denied(&error)).at("confine", "the command")?;
        if status.ruleset == RulesetStatus::NotEnforced {
            return Err(std::io::Error::from_raw_os_error(libc::ENOSYS)).at("confine", "the command");
        }
        seccomp_filter::deny_ioctls(&[&seccomp_filter::TYPING[..], &seccomp_filter::SUBVOLUMES].concat())
            .at("deny ioctls", "seccomp")?;
        if root { drop_lead_out().at("drop the capabilities", "capset") } else { Ok(()) }
    }
}

/// The rights to write below a directory, except to make devices: through a disk's node all of the disk could be written.
fn rights(is_dir: bool) -> BitFlags<AccessFs> {
    let all = AccessFs::from_write(KNOWN) & !(AccessFs::MakeBlock | AccessFs::MakeChar);
    if is_dir { all } else { all & AccessFs::from_file(KNOWN) }
}

fn real(path: &Path) -> Result<AbsPath, Error> {
    let real = std::fs::canonicalize(path)
        .at("find what may be written to", path.display())
        .map_err(|error| not_started(error.into()))?;
    AbsPath::parse(real.as_os_str().as_encoded_bytes()).map_err(|_| nul())
}
