//! Filters of system calls that a command is started with: seccomp(2). Each is small and knows one thing; all that it starts has them, too.

use std::io;

use super::sys::set_filter;

/// The bit that calls of x32 have in their number.
const X32: u32 = 0x4000_0000;
const NUMBER: u32 = 0;
const ARCH: u32 = 4;
/// The lower half of the second argument.
const SECOND: u32 = if cfg!(target_endian = "big") { 28 } else { 24 };
/// The architectures whose calls this kernel may take, with the number of ioctl(2) there: linux/audit.h, unistd.h.
#[cfg(target_arch = "x86_64")]
const IOCTL: [(u32, u32); 2] = [(0xc000_003e, 16), (0x4000_0003, 54)];
#[cfg(target_arch = "aarch64")]
const IOCTL: [(u32, u32); 2] = [(0xc000_00b7, 29), (0x4000_0028, 54)];
#[cfg(target_arch = "riscv64")]
const IOCTL: [(u32, u32); 2] = [(0xc000_00f3, 29), (0xc000_00f3, 29)];

/// pidfd_getfd(2) answers EPERM from now on, here and in all children. It would fetch a writable descriptor out of a process
/// outside. Its number is the same on every architecture that the kernel takes calls of (438; x32 adds a bit), so the
/// rule masks that bit and needs no look at the architecture: a call of a 32-bit program is caught as well.
/// Needs CAP_SYS_ADMIN, and no `no_new_privs`, which would break sudo.
pub(super) fn deny_pidfd_getfd() -> io::Result<()> {
    const PIDFD_GETFD: u32 = 438;
    set_filter(&mut [load(NUMBER), step(libc::BPF_ALU | libc::BPF_AND | libc::BPF_K, !X32), unless(PIDFD_GETFD, 1), DENY, ALLOW])
}

/// ioctl(2) with TIOCSTI or TIOCLINUX answers EPERM from now on, here and in all children: what is put back into a terminal, or pasted
/// on a console, would be typed to the shell once the run is over (ioctl_tty(2), ioctl_console(2)). Rights as above.
pub(super) fn deny_typing() -> io::Result<()> {
    const TIOCSTI: u32 = 0x5412;
    const TIOCLINUX: u32 = 0x541c;
    let [(arch, ioctl), (arch32, ioctl32)] = IOCTL;
    set_filter(&mut [
        load(ARCH),
        unless(arch, 3),
        load(NUMBER),
        step(libc::BPF_ALU | libc::BPF_AND | libc::BPF_K, !X32),
        when_else(ioctl, 3, 7),
        when_else(arch32, 0, 6),
        load(NUMBER),
        unless(ioctl32, 4),
        load(SECOND),
        when_else(TIOCSTI, 1, 0),
        unless(TIOCLINUX, 1),
        DENY,
        ALLOW,
    ])
}

const DENY: libc::sock_filter = step(libc::BPF_RET | libc::BPF_K, libc::SECCOMP_RET_ERRNO | libc::EPERM.cast_unsigned());
const ALLOW: libc::sock_filter = step(libc::BPF_RET | libc::BPF_K, libc::SECCOMP_RET_ALLOW);

/// Takes the 32 bits at `offset` of the call's data.
const fn load(offset: u32) -> libc::sock_filter {
    step(libc::BPF_LD | libc::BPF_W | libc::BPF_ABS, offset)
}

/// Leaves out so many steps unless what was taken is `k`.
const fn unless(k: u32, skipped: u8) -> libc::sock_filter {
    when_else(k, 0, skipped)
}

/// Leaves out so many steps where what was taken is `k`, and so many where it is not.
const fn when_else(k: u32, jt: u8, jf: u8) -> libc::sock_filter {
    libc::sock_filter { jt, jf, ..step(libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K, k) }
}

#[expect(clippy::cast_possible_truncation, reason = "the codes of BPF have 16 bits")]
const fn step(code: u32, k: u32) -> libc::sock_filter {
    libc::sock_filter { code: code as u16, jt: 0, jf: 0, k }
}
