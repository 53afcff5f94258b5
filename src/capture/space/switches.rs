//! The switches and surroundings of this process that decide what it may set up: read, never tried.

use std::os::unix::fs::MetadataExt;

use serde::Serialize;

pub fn number(path: &str) -> Option<i64> {
    std::fs::read_to_string(format!("/proc/sys/{path}")).ok()?.trim().parse().ok()
}

/// The oldest kernel on which a run works.
pub const OLDEST: (u32, u32) = (5, 15);

/// The kernel's release, as uname(2) has it, and the two numbers that it begins with.
pub fn kernel() -> (String, (u32, u32)) {
    let release = rustix::system::uname().release().to_string_lossy().into_owned();
    let mut numbers = release.split(['.', '-']).map_while(|part| part.parse::<u32>().ok());
    let version = (numbers.next().unwrap_or(0), numbers.next().unwrap_or(0));
    (release, version)
}

/// A kind of namespace with the inode number that the machine's own one has (the kernel's include/linux/proc_ns.h).
#[derive(Debug, Clone, Copy)]
pub enum Namespace {
    User,
    Pid,
}

impl Namespace {
    /// True if this process is in the machine's own one. False without /proc, where it is unknown; no run can be set up then.
    pub fn is_first(self) -> bool {
        let (name, first) = match self {
            Self::User => ("user", 0xEFFF_FFFD),
            Self::Pid => ("pid", 0xEFFF_FFFC),
        };
        std::fs::metadata(format!("/proc/self/ns/{name}")).is_ok_and(|namespace| namespace.ino() == first)
    }
}

/// True if a seccomp filter is on for this process: proc_pid_status(5).
pub fn is_filtered() -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    status.lines().any(|line| line.strip_prefix("Seccomp:").is_some_and(|mode| mode.trim() == "2"))
}

/// The AppArmor profile that confines this process, if there is one.
pub fn apparmor() -> Option<String> {
    let label = std::fs::read_to_string("/proc/self/attr/apparmor/current").ok()?;
    let name = label.trim_matches(['\0', '\n']).split(" (").next()?.to_owned();
    (name != "unconfined" && !name.is_empty()).then_some(name)
}

/// A program that started the container which this process is in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Engine {
    /// Docker, or what leaves its mark.
    Docker,
    Podman,
    Other,
}

impl Engine {
    /// The engine, if this process is in a container, which has process ids of its own. A mark alone is none: an image that became a machine
    /// keeps it.
    pub fn here() -> Option<Self> {
        let marked = |path: &str| std::path::Path::new(path).exists();
        match () {
            () if Namespace::Pid.is_first() => None,
            () if marked("/run/.containerenv") => Some(Self::Podman),
            () if marked("/.dockerenv") => Some(Self::Docker),
            () => Some(Self::Other),
        }
    }

    /// The words that an option for a new container follows.
    pub fn start(self) -> &'static str {
        match self {
            Self::Docker => "docker run",
            Self::Podman => "podman run",
            Self::Other => "start the container with",
        }
    }
}

/// The id outside of the user that this process runs as, if its user namespace maps it; of the machine's own namespace the same id.
pub fn outside(uid: u32) -> Option<u32> {
    let map = std::fs::read_to_string("/proc/self/uid_map").ok()?;
    map.lines().find_map(|line| {
        let mut numbers = line.split_whitespace().filter_map(|number| number.parse::<u32>().ok());
        let (inside, outside, count) = (numbers.next()?, numbers.next()?, numbers.next()?);
        uid.checked_sub(inside).filter(|n| *n < count).map(|n| outside + n)
    })
}
