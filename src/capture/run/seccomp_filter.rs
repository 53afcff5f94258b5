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
/// An architecture whose calls this kernel may take, and the numbers of its calls: linux/audit.h, unistd.h.
struct Numbers {
    arch: u32,
    ioctl: u32,
    open_by_handle_at: u32,
    unshare: u32,
    clone: u32,
    /// rename(2), renameat(2) and renameat2(2); in place of one that it lacks, another.
    renames: [u32; 3],
    /// The call that the C library's link(3) makes: link(2), or linkat(2) where there is no other.
    link: u32,
}

/// This program's architecture, and that of 32-bit programs.
#[cfg(target_arch = "x86_64")]
const HERE: [Numbers; 2] = [
    Numbers { arch: 0xc000_003e, ioctl: 16, open_by_handle_at: 304, unshare: 272, clone: 56, renames: [82, 264, 316], link: 86 },
    Numbers { arch: 0x4000_0003, ioctl: 54, open_by_handle_at: 342, unshare: 310, clone: 120, renames: [38, 302, 353], link: 9 },
];
#[cfg(target_arch = "aarch64")]
const HERE: [Numbers; 2] = [
    Numbers { arch: 0xc000_00b7, ioctl: 29, open_by_handle_at: 265, unshare: 97, clone: 220, renames: [276, 38, 276], link: 37 },
    Numbers { arch: 0x4000_0028, ioctl: 54, open_by_handle_at: 371, unshare: 337, clone: 120, renames: [38, 329, 382], link: 9 },
];
#[cfg(target_arch = "riscv64")]
const HERE: [Numbers; 2] = [
    Numbers { arch: 0xc000_00f3, ioctl: 29, open_by_handle_at: 265, unshare: 97, clone: 220, renames: [276, 276, 276], link: 37 },
    Numbers { arch: 0xc000_00f3, ioctl: 29, open_by_handle_at: 265, unshare: 97, clone: 220, renames: [276, 276, 276], link: 37 },
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
}

impl AskedCall {
    /// The call that a program of the architecture `arch` makes by this number.
    pub fn of(arch: u32, number: u32) -> Option<Self> {
        let (numbers, number) = (HERE.iter().find(|numbers| numbers.arch == arch)?, number & !X32);
        if number == numbers.link {
            return Some(Self::Link);
        }
        let at = numbers.renames.iter().rposition(|rename| *rename == number)?;
        Some([Self::Rename, Self::Renameat, Self::Renameat2][at])
    }
}

/// Makes link(2), and renames if they are asked about too, wait here and in all children until they are answered. Rights and errors:
/// [`call_listener::listen`].
pub fn ask_about(renames: bool) -> io::Result<Listener> {
    let [here, other] = HERE.map(|numbers| {
        let renames = if renames { &numbers.renames[..] } else { &[] };
        renames.iter().chain([&numbers.link]).copied().collect::<Vec<_>>()
    });
    let count = u8::try_from(here.len()).map_err(io::Error::other)?;
    // Each leads to the last step; behind the numbers of this architecture are `count` more, two steps before them and one after.
    let numbers = |list: Vec<u32>, to_last: u8| (0..count).rev().zip(list).map(move |(left, n)| when_else(n, to_last + left, 0));
    let mut steps = vec![load(ARCH), unless(HERE[0].arch, count + 3), load(NUMBER)];
    steps.push(step(libc::BPF_ALU | libc::BPF_AND | libc::BPF_K, !X32));
    steps.extend(numbers(here, count + 4));
    steps.extend([ALLOW, unless(HERE[1].arch, count + 1), load(NUMBER)]);
    steps.extend(numbers(other, 1));
    steps.extend([ALLOW, step(libc::BPF_RET | libc::BPF_K, libc::SECCOMP_RET_USER_NOTIF)]);
    call_listener::listen(&mut steps)
}

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
