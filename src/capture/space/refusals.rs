//! The causes that keep a run from being set up: told from the call that failed and the switches of this machine, each with one remedy.

use super::switches::{Engine, OLDEST, apparmor, is_filtered, kernel, number, outside};
use crate::error::{command, recant};
use crate::remedy::{Command, Remedy, shell, words};

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Cause {
    /// A limit of namespaces is 0: the sysctl's name.
    NoneAllowed(&'static str),
    /// A limit of namespaces is reached, perhaps that of a namespace outside of this one.
    LimitReached,
    /// kernel.unprivileged_userns_clone is 0 (Debian's kernels).
    NotForUsers,
    /// AppArmor restricts the user namespaces of programs that no profile names (Ubuntu 23.10 and later).
    Restricted,
    /// An AppArmor profile confines this process.
    Confined(String),
    /// A seccomp filter refuses the call.
    Filtered(Call),
    Guarded,
    /// The user has no id in its user namespace.
    Unmapped,
    /// Refused to a process in a chroot.
    Chroot,
    NoAdmin,
    /// The kernel was built without user namespaces.
    NoUserNamespaces,
    /// The kernel has no overlayfs.
    NoOverlays,
    /// The kernel is older than a run needs.
    OldKernel,
    /// The store's file system can hold no upper.
    NoUpper,
    /// A directory can be no lower.
    NoLower,
    /// The kernel has no Landlock.
    NoLandlock,
    /// Landlock was not started with the kernel.
    LandlockOff,
}

/// The call that a filter refuses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Call {
    Namespaces,
    /// One that mounts, or sets up what a run needs besides.
    Mounts,
    Landlock,
}

/// The calls of a set-up whose errors have causes that are known, as infinitives.
pub mod acts {
    pub const USER_NAMESPACE: &str = "make a user namespace";
    pub const INNER_NAMESPACE: &str = "make the inner user namespace";
    pub const MOUNT_NAMESPACE: &str = "make a mount namespace";
    pub const NETWORK_NAMESPACE: &str = "make a network namespace";
    pub const NAMESPACES: [&str; 4] = [USER_NAMESPACE, INNER_NAMESPACE, MOUNT_NAMESPACE, NETWORK_NAMESPACE];

    /// The first calls that need a right in the new namespace.
    pub const DENY_SETGROUPS: &str = "deny setgroups for the map";
    pub const MAP_USER: &str = "map the user";
    pub const MAP_GROUP: &str = "map the group";
    pub const PRIVATE: &str = "make the mounts private";
    pub const RIGHTS: [&str; 4] = [DENY_SETGROUPS, MAP_USER, MAP_GROUP, PRIVATE];

    pub const OVERLAY: &str = "open an overlay";
    pub const LOWER: &str = "take the directory as lower of an overlay";
    pub const UPPER: &str = "take the directory as upper of an overlay of";
    pub const MAKE: &str = "make the overlay: lower, upper";
}

impl Cause {
    /// The cause for an error number of a set-up call, where it is known. `act` is the infinitive in the error: one of [`acts`], or
    /// another.
    pub fn of(act: &str, errno: Option<i32>, user: bool) -> Option<Self> {
        let namespaces = acts::NAMESPACES.contains(&act);
        match errno? {
            libc::EPERM | libc::EACCES if namespaces => Some(Self::of_refused_namespaces(user)),
            libc::EPERM | libc::EACCES if user && acts::RIGHTS.contains(&act) => Some(Self::of_refused_rights()),
            libc::ENOSPC if namespaces => Some(none_allowed().map_or(Self::LimitReached, Self::NoneAllowed)),
            libc::EINVAL if namespaces => Some(Self::NoUserNamespaces),
            libc::ENODEV if act == acts::OVERLAY => Some(Self::NoOverlays),
            libc::ENOSYS if kernel().1 < OLDEST => Some(Self::OldKernel),
            libc::ENOSYS => Some(Self::Filtered(if namespaces { Call::Namespaces } else { Call::Mounts })),
            libc::EINVAL if [acts::UPPER, acts::MAKE].contains(&act) => Some(Self::NoUpper),
            libc::EINVAL if act == acts::LOWER && user => Some(Self::NoLower),
            _ => None,
        }
    }

    /// The cause for an error number of Landlock's first call: landlock_create_ruleset(2).
    pub fn of_landlock(errno: Option<i32>) -> Option<Self> {
        match errno? {
            libc::EOPNOTSUPP => Some(Self::LandlockOff),
            libc::ENOSYS if kernel().1 < LANDLOCK => Some(Self::NoLandlock),
            libc::EPERM | libc::EACCES => Some(Self::Filtered(Call::Landlock)),
            // A filter of a container of before Landlock says the same as a kernel without it.
            libc::ENOSYS if is_filtered() && Engine::here().is_some() => Some(Self::Filtered(Call::Landlock)),
            libc::ENOSYS => Some(Self::NoLandlock),
            _ => None,
        }
    }

    /// The cause where no namespace is made. AppArmor's restriction says EACCES here, and only to a program that another profile confines.
    fn of_refused_namespaces(user: bool) -> Self {
        match () {
            () if number("kernel/unprivileged_userns_clone") == Some(0) => Self::NotForUsers,
            () if is_filtered() => Self::Filtered(Call::Namespaces),
            () if is_restricted() => Self::Restricted,
            () if user && outside(rustix::process::geteuid().as_raw()).is_none() => Self::Unmapped,
            () if user => Self::Chroot,
            () => Self::NoAdmin,
        }
    }

    /// The cause where a user namespace is made, and gives no right to mount. AppArmor's restriction is for programs without a profile.
    fn of_refused_rights() -> Self {
        match apparmor() {
            Some(profile) => Self::Confined(profile),
            None if is_restricted() => Self::Restricted,
            None if is_filtered() => Self::Filtered(Call::Mounts),
            None => Self::Guarded,
        }
    }

    /// True if the line that says where recant runs tells of it, or a run works in spite of it.
    pub fn is_told_first(&self) -> bool {
        matches!(self, Self::OldKernel | Self::Restricted)
    }

    pub fn why(&self) -> String {
        match self {
            Self::NoneAllowed(limit) => format!("{limit} is 0"),
            Self::LimitReached => "a limit of namespaces is reached".into(),
            Self::NotForUsers => "kernel.unprivileged_userns_clone is 0".into(),
            Self::Restricted => "AppArmor restricts user namespaces to programs with a profile".into(),
            Self::Confined(profile) => format!("AppArmor's profile {profile} refuses mounts"),
            Self::Filtered(Call::Namespaces) => "a seccomp filter refuses user namespaces".into(),
            Self::Filtered(Call::Mounts) => "a seccomp filter refuses mounts".into(),
            Self::Filtered(Call::Landlock) => "a seccomp filter refuses Landlock".into(),
            Self::Guarded => "a rule of this kernel refuses mounts in user namespaces".into(),
            Self::Unmapped => "this user has no id in its user namespace".into(),
            Self::Chroot => "user namespaces are refused here, as in a chroot".into(),
            Self::NoAdmin => "root has no CAP_SYS_ADMIN here".into(),
            Self::NoUserNamespaces => "this kernel was built without user namespaces".into(),
            Self::NoOverlays => "this kernel has no overlayfs".into(),
            Self::OldKernel => {
                let (release, (major, minor)) = (kernel().0, OLDEST);
                format!("Linux {release} is older than {major}.{minor}")
            }
            Self::NoUpper => "the store's file system can't hold an overlay's upper".into(),
            Self::NoLower => "a mount lies below the directory, or its file system can't be held".into(),
            Self::NoLandlock => "this kernel has no Landlock".into(),
            Self::LandlockOff => "Landlock is not among the security modules that this kernel started".into(),
        }
    }

    /// The one switch to set, as a command where there is one.
    pub fn remedy(&self) -> Remedy {
        match self {
            Self::NoneAllowed(limit) => as_root(&format!("sysctl {limit}=10000")).into(),
            Self::LimitReached => {
                "raise user.max_user_namespaces, or that of mnt, pid, ipc or net, also outside of a container".into()
            }
            Self::NotForUsers => as_root("sysctl kernel.unprivileged_userns_clone=1").into(),
            Self::Restricted => {
                // A shell goes on after `&&`, in the next line too.
                command(format_args!("doctor --apparmor | sudo tee {PROFILE} &&"))
                    + " "
                    + shell(format_args!("sudo apparmor_parser -r {PROFILE}"))
            }
            Self::Confined(_) => without("apparmor=unconfined"),
            Self::Filtered(_) => without("seccomp=unconfined"),
            Self::Guarded => as_root("dmesg | tail") + " names the rule",
            Self::Unmapped => "enter the namespace with an id: " + shell("unshare --map-current-user"),
            Self::Chroot => "start recant outside of the chroot".into(),
            Self::NoAdmin => "give it CAP_SYS_ADMIN, or start it as another user".into(),
            Self::NoUserNamespaces => shell(format_args!("sudo {} run -- COMMAND", recant())).into(),
            Self::NoOverlays => as_root("modprobe overlay").into(),
            Self::OldKernel => words(format_args!("boot Linux {}.{} or newer", OLDEST.0, OLDEST.1)),
            Self::NoUpper => shell("export RECANT_STORE=DIR") + ", on a disk or a tmpfs; " + command("doctor") + " finds one",
            Self::NoLower => "start it from another directory".into(),
            Self::NoLandlock if kernel().1 < LANDLOCK => words(format_args!("boot Linux {}.{} or newer", LANDLOCK.0, LANDLOCK.1)),
            Self::NoLandlock => "boot a kernel built with CONFIG_SECURITY_LANDLOCK, with lsm=landlock,…".into(),
            Self::LandlockOff => words(format_args!("boot the kernel with lsm={}", modules())),
        }
    }

    pub fn advice(&self) -> Remedy {
        words(self.why()) + ": " + self.remedy()
    }
}

/// The first kernel with Landlock.
const LANDLOCK: (u32, u32) = (5, 13);

/// The place of recant's AppArmor profile.
const PROFILE: &str = "/etc/apparmor.d/recant";

/// The first limit that is 0.
fn none_allowed() -> Option<&'static str> {
    let limits = [
        ("user.max_user_namespaces", "user/max_user_namespaces"),
        ("user.max_mnt_namespaces", "user/max_mnt_namespaces"),
        ("user.max_pid_namespaces", "user/max_pid_namespaces"),
        ("user.max_ipc_namespaces", "user/max_ipc_namespaces"),
        ("user.max_net_namespaces", "user/max_net_namespaces"),
    ];
    limits.into_iter().find(|(_, path)| number(path) == Some(0)).map(|(name, _)| name)
}

fn is_restricted() -> bool {
    number("kernel/apparmor_restrict_unprivileged_userns").is_some_and(|value| value != 0)
}

/// A command that only root may give.
fn as_root(command: &str) -> Command {
    if rustix::process::geteuid().is_root() { shell(command) } else { shell(format_args!("sudo {command}")) }
}

/// The way out of a rule: the engine's option, or of a service its setting. AppArmor's profile of a container refuses what seccomp's lets
/// pass, so both go where both are there.
fn without(option: &str) -> Remedy {
    let Some(engine) = Engine::here() else {
        return "start recant outside of what confines it; a systemd service: RestrictNamespaces=no".into();
    };
    let too = if option.starts_with("seccomp") && apparmor().is_some() { " --security-opt apparmor=unconfined" } else { "" };
    shell(format_args!("{} --security-opt {option}{too} …", engine.start())).into()
}

/// The security modules to start the kernel with: those of now, and Landlock before them.
fn modules() -> String {
    let now = std::fs::read_to_string("/sys/kernel/security/lsm").ok();
    let now = now.map(|list| list.trim().to_owned()).filter(|list| !list.is_empty());
    now.map_or("landlock,…".into(), |list| format!("landlock,{list}"))
}
