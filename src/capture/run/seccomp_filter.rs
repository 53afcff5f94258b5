//! Filters of a command's system calls: seccomp(2). Each does one small thing; all that the command starts inherits them.

use std::io;

use super::call_listener;
use super::call_listener::Listener;
use super::raw_calls::set_filter;

/// The bit that x32 calls have in their number.
const X32: u32 = 0x4000_0000;
const NUMBER: u32 = 0;
const ARCH: u32 = 4;
/// The lower half of the first argument.
const FIRST: u32 = if cfg!(target_endian = "big") { 20 } else { 16 };
/// The lower half of the second argument.
const SECOND: u32 = if cfg!(target_endian = "big") { 28 } else { 24 };
/// The lower half of the third argument.
const THIRD: u32 = if cfg!(target_endian = "big") { 36 } else { 32 };
/// An architecture whose calls this kernel may take, and the numbers of its calls: linux/audit.h, unistd.h.
struct Numbers {
    arch: u32,
    ioctl: u32,
    open_by_handle_at: u32,
    unshare: u32,
    clone: u32,
    /// The calls that may be asked about.
    asked: &'static [(u32, AskedCall)],
}

/// This program's architecture, and that of 32-bit programs.
#[cfg(target_arch = "x86_64")]
const HERE: [Numbers; 2] = [
    Numbers { arch: 0xc000_003e, ioctl: 16, open_by_handle_at: 304, unshare: 272, clone: 56, asked: X86_64 },
    Numbers { arch: 0x4000_0003, ioctl: 54, open_by_handle_at: 342, unshare: 310, clone: 120, asked: I386 },
];
#[cfg(target_arch = "aarch64")]
const HERE: [Numbers; 2] = [
    Numbers { arch: 0xc000_00b7, ioctl: 29, open_by_handle_at: 265, unshare: 97, clone: 220, asked: AARCH64 },
    Numbers { arch: 0x4000_0028, ioctl: 54, open_by_handle_at: 371, unshare: 337, clone: 120, asked: ARM },
];
#[cfg(target_arch = "riscv64")]
const HERE: [Numbers; 2] = [
    Numbers { arch: 0xc000_00f3, ioctl: 29, open_by_handle_at: 265, unshare: 97, clone: 220, asked: RISCV64 },
    Numbers { arch: 0xc000_00f3, ioctl: 29, open_by_handle_at: 265, unshare: 97, clone: 220, asked: RISCV64 },
];

/// Makes pidfd_getfd(2) fail with EPERM, here and in all children: it would fetch a writable descriptor out of a process outside. Its
/// number is 438 on every architecture that the kernel takes calls of; x32 adds a bit, which is masked. So the calls of 32-bit programs are
/// caught without a look at the architecture. Needs CAP_SYS_ADMIN, and no `no_new_privs`, which would break sudo.
pub fn deny_pidfd_getfd() -> io::Result<()> {
    const PIDFD_GETFD: u32 = 438;
    set_filter(&mut [load(NUMBER), step(libc::BPF_ALU | libc::BPF_AND | libc::BPF_K, !X32), unless(PIDFD_GETFD, 1), DENY, ALLOW])
}

/// Makes open_by_handle_at(2) fail with EPERM, here and in all children. With CAP_DAC_READ_SEARCH it opens every file of a file system by
/// any descriptor on it, and the caller's redirected output is one of the real mount. Rights as above.
pub fn deny_open_by_handle() -> io::Result<()> {
    let [here, other] = HERE;
    set_filter(&mut [
        load(ARCH),
        unless(here.arch, 3),
        load(NUMBER),
        step(libc::BPF_ALU | libc::BPF_AND | libc::BPF_K, !X32),
        when_else(here.open_by_handle_at, 4, 3),
        unless(other.arch, 2),
        load(NUMBER),
        when_else(other.open_by_handle_at, 1, 0),
        ALLOW,
        DENY,
    ])
}

/// Keeps the command, and all that it starts, in this cgroup namespace: in one of its own, made in a user namespace of its own, it could mount
/// the whole hierarchy writable, and kill or freeze what runs outside. unshare(2) and clone(2) with CLONE_NEWCGROUP fail with EPERM. clone3(2)
/// is ENOSYS, as its flags lie in memory that no filter can read; callers then use clone(2), as they do in containers. Rights as above.
pub fn deny_cgroup_namespaces() -> io::Result<()> {
    /// On every architecture, as the calls since Linux 5.1 are.
    const CLONE3: u32 = 435;
    let [here, other] = HERE;
    set_filter(&mut [
        load(NUMBER),
        step(libc::BPF_ALU | libc::BPF_AND | libc::BPF_K, !X32),
        when_else(CLONE3, 11, 0),
        load(ARCH),
        unless(here.arch, 4),
        load(NUMBER),
        step(libc::BPF_ALU | libc::BPF_AND | libc::BPF_K, !X32),
        when_else(here.unshare, 7, 0),
        when_else(here.clone, 6, 4),
        unless(other.arch, 3),
        load(NUMBER),
        when_else(other.unshare, 3, 0),
        when_else(other.clone, 2, 0),
        ALLOW,
        step(libc::BPF_RET | libc::BPF_K, libc::SECCOMP_RET_ERRNO | libc::ENOSYS.cast_unsigned()),
        load(FIRST),
        libc::sock_filter { jf: 1, ..step(libc::BPF_JMP | libc::BPF_JSET | libc::BPF_K, libc::CLONE_NEWCGROUP.cast_unsigned()) },
        DENY,
        ALLOW,
    ])
}

/// The ioctls that put input into a terminal or paste on a console: the shell would read it as typed once the run is over. TIOCSTI of
/// ioctl_tty(2), TIOCLINUX of ioctl_console(2).
pub const TYPING: [u32; 2] = [0x5412, 0x541c];

/// The ioctls that make, remove and change subvolumes, which Landlock does not cover. linux/btrfs.h: SUBVOL_CREATE, SNAP_DESTROY,
/// SNAP_CREATE, each with its second version, and SUBVOL_SETFLAGS.
pub const SUBVOLUMES: [u32; 7] = [0x5000_940e, 0x5000_9418, 0x5000_940f, 0x5000_943f, 0x5000_9401, 0x5000_9417, 0x4008_941a];

/// Makes ioctl(2) with one of these commands fail with EPERM, here and in all children. Rights as above. At most 200 commands.
pub fn deny_ioctls(commands: &[u32]) -> io::Result<()> {
    let [here, other] = HERE;
    let count = u8::try_from(commands.len()).map_err(io::Error::other)?;
    let mut steps = vec![
        load(ARCH),
        unless(here.arch, 3),
        load(NUMBER),
        step(libc::BPF_ALU | libc::BPF_AND | libc::BPF_K, !X32),
        when_else(here.ioctl, 3, count + 4),
        when_else(other.arch, 0, count + 3),
        load(NUMBER),
        unless(other.ioctl, count + 1),
        load(SECOND),
    ];
    steps.extend((1..=count).rev().zip(commands).map(|(to_deny, command)| when_else(*command, to_deny, 0)));
    steps.extend([ALLOW, DENY]);
    set_filter(&mut steps)
}

/// A call that [`ask_about`] asks about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AskedCall {
    Rename,
    Renameat,
    Renameat2,
    Link,
    Linkat,
    Connect,
    Creat,
    /// open(2) and openat(2) are asked about only where they may write or create.
    Open,
    Openat,
    /// Its flags lie in memory.
    Openat2,
    Mkdir,
    Mkdirat,
    Symlink,
    Symlinkat,
}

#[cfg(target_arch = "x86_64")]
#[rustfmt::skip]
const X86_64: &[(u32, AskedCall)] = &[
    (82, AskedCall::Rename), (264, AskedCall::Renameat), (316, AskedCall::Renameat2), (86, AskedCall::Link), (265, AskedCall::Linkat),
    (42, AskedCall::Connect), (85, AskedCall::Creat), (2, AskedCall::Open), (257, AskedCall::Openat), (437, AskedCall::Openat2),
    (83, AskedCall::Mkdir), (258, AskedCall::Mkdirat), (88, AskedCall::Symlink), (266, AskedCall::Symlinkat),
];
#[cfg(target_arch = "x86_64")]
#[rustfmt::skip]
const I386: &[(u32, AskedCall)] = &[
    (38, AskedCall::Rename), (302, AskedCall::Renameat), (353, AskedCall::Renameat2), (9, AskedCall::Link), (303, AskedCall::Linkat),
    (362, AskedCall::Connect), (8, AskedCall::Creat), (5, AskedCall::Open), (295, AskedCall::Openat), (437, AskedCall::Openat2),
    (39, AskedCall::Mkdir), (296, AskedCall::Mkdirat), (83, AskedCall::Symlink), (304, AskedCall::Symlinkat),
];
#[cfg(target_arch = "aarch64")]
#[rustfmt::skip]
const AARCH64: &[(u32, AskedCall)] = &[
    (38, AskedCall::Renameat), (276, AskedCall::Renameat2), (37, AskedCall::Linkat), (203, AskedCall::Connect), (56, AskedCall::Openat),
    (437, AskedCall::Openat2), (34, AskedCall::Mkdirat), (36, AskedCall::Symlinkat),
];
#[cfg(target_arch = "aarch64")]
#[rustfmt::skip]
const ARM: &[(u32, AskedCall)] = &[
    (38, AskedCall::Rename), (329, AskedCall::Renameat), (382, AskedCall::Renameat2), (9, AskedCall::Link), (330, AskedCall::Linkat),
    (283, AskedCall::Connect), (8, AskedCall::Creat), (5, AskedCall::Open), (322, AskedCall::Openat), (437, AskedCall::Openat2),
    (39, AskedCall::Mkdir), (323, AskedCall::Mkdirat), (83, AskedCall::Symlink), (331, AskedCall::Symlinkat),
];
#[cfg(target_arch = "riscv64")]
#[rustfmt::skip]
const RISCV64: &[(u32, AskedCall)] = &[
    (276, AskedCall::Renameat2), (37, AskedCall::Linkat), (203, AskedCall::Connect), (56, AskedCall::Openat), (437, AskedCall::Openat2),
    (34, AskedCall::Mkdirat), (36, AskedCall::Symlinkat),
];

impl AskedCall {
    /// The call that a program of the architecture `arch` makes by this number.
    pub fn of(arch: u32, number: u32) -> Option<Self> {
        let number = number & !X32;
        let asked = HERE.iter().find(|numbers| numbers.arch == arch)?.asked;
        asked.iter().find(|(asked, _)| *asked == number).map(|(_, call)| *call)
    }

    /// True for a call that root's command is asked about: a connect, and the one that the C library's link(3) makes, which is linkat(2) where
    /// there is no other.
    fn is_asked_of_root(self, others: &[(u32, Self)]) -> bool {
        let has_link = || others.iter().any(|(_, other)| *other == Self::Link);
        matches!(self, Self::Connect | Self::Link) || self == Self::Linkat && !has_link()
    }

    /// The place of the flags of a call that is asked about for some of them alone.
    fn flags(self) -> Option<u32> {
        match self {
            Self::Open => Some(SECOND),
            Self::Openat => Some(THIRD),
            _ => None,
        }
    }
}

/// Makes calls wait here and in all children until they are answered: those that [`AskedCall`] names, or for root's command few of them. Rights
/// and errors: [`call_listener::listen`].
pub fn ask_about(is_user_s: bool) -> io::Result<Listener> {
    let [here, other] = HERE.map(|numbers| (numbers.arch, asked(numbers.asked, is_user_s)));
    let mut steps = vec![load(ARCH)];
    for (arch, asked) in [here, other] {
        let len = u8::try_from(asked.len()).map_err(io::Error::other)?;
        steps.push(unless(arch, len));
        steps.extend(asked);
    }
    steps.push(ALLOW);
    call_listener::listen(&mut steps)
}

/// The steps for the calls of one architecture. They end with an answer.
fn asked(calls: &[(u32, AskedCall)], is_user_s: bool) -> Vec<libc::sock_filter> {
    let writes = libc::sock_filter {
        jf: 1,
        ..step(libc::BPF_JMP | libc::BPF_JSET | libc::BPF_K, (libc::O_ACCMODE | libc::O_CREAT | libc::O_TRUNC).cast_unsigned())
    };
    let mut steps = vec![load(NUMBER), step(libc::BPF_ALU | libc::BPF_AND | libc::BPF_K, !X32)];
    for (number, call) in calls.iter().filter(|(_, call)| is_user_s || call.is_asked_of_root(calls)) {
        match call.flags() {
            None => steps.extend([unless(*number, 1), ASK]),
            Some(flags) => steps.extend([unless(*number, 4), load(flags), writes, ASK, ALLOW]),
        }
    }
    steps.push(ALLOW);
    steps
}

const ASK: libc::sock_filter = step(libc::BPF_RET | libc::BPF_K, libc::SECCOMP_RET_USER_NOTIF);
const DENY: libc::sock_filter = step(libc::BPF_RET | libc::BPF_K, libc::SECCOMP_RET_ERRNO | libc::EPERM.cast_unsigned());
const ALLOW: libc::sock_filter = step(libc::BPF_RET | libc::BPF_K, libc::SECCOMP_RET_ALLOW);

/// Loads the 32 bits at `offset` of the call's data.
const fn load(offset: u32) -> libc::sock_filter {
    step(libc::BPF_LD | libc::BPF_W | libc::BPF_ABS, offset)
}

/// Skips so many steps unless the loaded value is `k`.
const fn unless(k: u32, skipped: u8) -> libc::sock_filter {
    when_else(k, 0, skipped)
}

/// Skips `jt` steps if the loaded value is `k`, else `jf`.
const fn when_else(k: u32, jt: u8, jf: u8) -> libc::sock_filter {
    libc::sock_filter { jt, jf, ..step(libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K, k) }
}

#[expect(clippy::cast_possible_truncation, reason = "the codes of BPF have 16 bits")]
const fn step(code: u32, k: u32) -> libc::sock_filter {
    libc::sock_filter { code: code as u16, jt: 0, jf: 0, k }
}
