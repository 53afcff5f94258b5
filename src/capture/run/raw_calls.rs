//! The calls that have no safe wrapper: clone(2), mount_setattr(2), unshare(2), the seccomp rule, signals, execvpe(3).
//!
//! recant forks while it is single-threaded (`run` checks it), so a child may allocate and take locks: nobody else can hold one. Nothing
//! here decides anything.
#![allow(unsafe_code, reason = "these system calls have no safe wrapper")]

use std::ffi::{CStr, CString};
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};

use rustix::process::Pid;

use crate::session::Ending;

/// The namespaces that clone(2) makes besides mount and IPC (ipc_namespaces(7): SysV memory, semaphores and queues, POSIX queues).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct New {
    pub user: bool,
    /// A PID namespace, for the children to come.
    pub pid: bool,
    /// A network namespace: no network but a loopback, and no abstract sockets of others.
    pub network: bool,
}

impl New {
    fn flags(self) -> libc::c_int {
        let one = |is_new: bool, flag| if is_new { flag } else { 0 };
        libc::CLONE_NEWNS
            | libc::CLONE_NEWIPC
            | one(self.user, libc::CLONE_NEWUSER)
            | one(self.pid, libc::CLONE_NEWPID)
            | one(self.network, libc::CLONE_NEWNET)
    }
}

pub(super) fn check(result: libc::c_long) -> io::Result<libc::c_long> {
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(result) }
}

/// Forks into a new mount and IPC namespace, and those of `new`: clone(2). Returns `None` in the child, its pid in the parent. The caller
/// has one thread.
pub fn fork_into(new: New) -> io::Result<Option<i32>> {
    let flags = libc::c_long::from(new.flags() | libc::SIGCHLD);
    // SAFETY: clone(2) without CLONE_VM and with a null stack is fork(2) with namespaces: the child has a copy of all
    // memory. With one thread no lock can be left locked in the copy. The last arguments are unused without their flags;
    // on every architecture they are null here, so their differing order does not matter.
    let pid = check(unsafe { libc::syscall(libc::SYS_clone, flags, 0, 0, 0, 0) })?;
    Ok(i32::try_from(pid).ok().filter(|pid| *pid != 0))
}

/// fork(2), from a process with one thread.
pub fn fork() -> io::Result<Option<i32>> {
    // SAFETY: fork(2) gives the child a copy of all memory; with one thread no lock can be left locked in it.
    let pid = check(unsafe { libc::fork() }.into())?;
    Ok(i32::try_from(pid).ok().filter(|pid| *pid != 0))
}

/// Forks a child of this process's parent, into the namespaces that this one's children get: clone(2), CLONE_PARENT. Returns `None` in the
/// child, its pid in this process. The caller has one thread, and is not the init of a PID namespace.
pub fn fork_beside() -> io::Result<Option<i32>> {
    let flags = libc::c_long::from(libc::CLONE_PARENT | libc::SIGCHLD);
    // SAFETY: as of `fork_into`.
    let pid = check(unsafe { libc::syscall(libc::SYS_clone, flags, 0, 0, 0, 0) })?;
    Ok(i32::try_from(pid).ok().filter(|pid| *pid != 0))
}

/// The user namespace in which a user namespace was made: ioctl_nsfs(2), NS_GET_PARENT.
pub fn user_namespace_above(namespace: BorrowedFd<'_>) -> io::Result<OwnedFd> {
    const NS_GET_PARENT: u32 = 0xb702;
    // SAFETY: this ioctl takes nothing.
    let fd = check(unsafe { libc::ioctl(namespace.as_raw_fd(), NS_GET_PARENT as _) }.into())?;
    // SAFETY: a descriptor that was just made, close-on-exec, and that nobody else has.
    Ok(unsafe { OwnedFd::from_raw_fd(RawFd::try_from(fd).map_err(io::Error::other)?) })
}

/// Ends the process at once and runs no destructor: for a forked copy that can't go on.
pub fn exit_now(code: i32) -> ! {
    // SAFETY: _exit(2) ends the process and touches nothing.
    unsafe { libc::_exit(code) }
}

/// The caller's process group, if its PID namespace has a number for it: getpgrp(2) returns 0 for one outside, which rustix's `Pid` cannot
/// hold.
pub fn own_group() -> Option<Pid> {
    // SAFETY: getpgrp(2) takes nothing and cannot fail.
    Pid::from_raw(unsafe { libc::getpgrp() })
}

/// True if the caller leads its session: getsid(2), which also returns 0 for a leader outside the PID namespace.
pub fn leads_its_session() -> bool {
    // SAFETY: getsid(2) and getpid(2) take no pointer; of the caller itself both always have an answer.
    unsafe { libc::getsid(0) == libc::getpid() }
}

/// Switches the loopback on, as it is in every other network namespace: netdevice(7), SIOCSIFFLAGS.
pub fn loopback_up() -> io::Result<()> {
    let socket = rustix::net::socket(rustix::net::AddressFamily::INET, rustix::net::SocketType::DGRAM, None)?;
    // SAFETY: an ifreq holds bytes and numbers alone; all zero is a valid value.
    let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
    for (to, from) in request.ifr_name.iter_mut().zip(b"lo") {
        *to = libc::c_char::from_ne_bytes([*from]);
    }
    request.ifr_ifru.ifru_flags = i16::try_from(libc::IFF_UP | libc::IFF_RUNNING).unwrap_or(0);
    // SAFETY: ioctl(2) SIOCSIFFLAGS reads one ifreq, which lives through the call.
    check(unsafe { libc::ioctl(socket.as_raw_fd(), libc::SIOCSIFFLAGS, &raw const request) }.into()).map(drop)
}

/// Gives this process a network namespace of its own: unshare(2). Needs CAP_SYS_ADMIN.
pub fn unshare_network() -> io::Result<()> {
    // SAFETY: unshare(2) with CLONE_NEWNET touches no memory of ours; no descriptor table is unshared.
    check(unsafe { libc::unshare(libc::CLONE_NEWNET) }.into()).map(drop)
}

/// Gives this process a mount and IPC namespace of its own, in a new user namespace if asked for: unshare(2). Without that it needs
/// CAP_SYS_ADMIN. The caller has one thread.
pub fn unshare_mounts_and_ipc(in_user_namespace: bool) -> io::Result<()> {
    let user = if in_user_namespace { libc::CLONE_NEWUSER } else { 0 };
    // SAFETY: unshare(2) with namespace flags touches no memory of ours; no descriptor table is unshared.
    check(unsafe { libc::unshare(libc::CLONE_NEWNS | libc::CLONE_NEWIPC | user) }.into()).map(drop)
}

/// Gives this process and all that it starts a new, empty session keyring: keyctl(2), `KEYCTL_JOIN_SESSION_KEYRING`. Success too if the
/// kernel has no keys (ENOSYS) or a filter of the caller's denies the call: the command has none either then.
pub fn new_session_keyring() -> io::Result<()> {
    // SAFETY: keyctl(2) with this operation takes a name, or null for a keyring without one.
    let joined = unsafe { libc::syscall(libc::SYS_keyctl, libc::KEYCTL_JOIN_SESSION_KEYRING, std::ptr::null::<libc::c_char>()) };
    match check(joined) {
        Err(error) if matches!(error.raw_os_error(), Some(libc::ENOSYS | libc::EPERM)) => Ok(()),
        joined => joined.map(drop),
    }
}

/// Enters a new user namespace with a copy of the mounts: unshare(2). The caller has one thread.
pub fn unshare_user_and_mounts() -> io::Result<()> {
    // SAFETY: unshare(2) with namespace flags touches no memory of ours; no descriptor table is unshared.
    check(unsafe { libc::unshare(libc::CLONE_NEWUSER | libc::CLONE_NEWNS) }.into()).map(drop)
}

/// Makes all mounts from `/` on read-only and without devices: mount_setattr(2), Linux 5.12.
pub fn close_all_mounts() -> io::Result<()> {
    set_attributes(None, c"/", (libc::MOUNT_ATTR_RDONLY | libc::MOUNT_ATTR_NODEV, 0), true)
}

/// Makes the one mount at `path` read-only, or writable.
pub fn set_read_only(path: &CStr, read_only: bool) -> io::Result<()> {
    set_attributes(None, path, if read_only { (libc::MOUNT_ATTR_RDONLY, 0) } else { (0, libc::MOUNT_ATTR_RDONLY) }, false)
}

/// Makes a mount that is held by a descriptor read-only, with all mounts under it.
pub fn set_read_only_held(mount: BorrowedFd<'_>) -> io::Result<()> {
    set_attributes(Some(mount), c"", (libc::MOUNT_ATTR_RDONLY, 0), true)
}

/// Makes a held mount, with all under it, read-only and its device nodes unusable.
pub fn set_read_only_without_devices(mount: BorrowedFd<'_>) -> io::Result<()> {
    set_attributes(Some(mount), c"", (libc::MOUNT_ATTR_RDONLY | libc::MOUNT_ATTR_NODEV, 0), true)
}

/// Makes a held mount, with all under it, one on which device nodes cannot be used, and whose programs give no other rights.
pub fn set_without_rights(mount: BorrowedFd<'_>) -> io::Result<()> {
    set_attributes(Some(mount), c"", (libc::MOUNT_ATTR_NODEV | libc::MOUNT_ATTR_NOSUID, 0), true)
}

fn set_attributes(mount: Option<BorrowedFd<'_>>, path: &CStr, (set, clear): (u64, u64), recursive: bool) -> io::Result<()> {
    let attr = libc::mount_attr { attr_set: set, attr_clr: clear, propagation: 0, userns_fd: 0 };
    let dir = mount.map_or(libc::AT_FDCWD, |fd| fd.as_raw_fd());
    let flags = if recursive { libc::AT_RECURSIVE } else { 0 } | if mount.is_some() { libc::AT_EMPTY_PATH } else { 0 };
    let size = size_of::<libc::mount_attr>();
    // SAFETY: mount_setattr(2) reads a C string and `size` bytes at `attr`, which live through the call.
    check(unsafe { libc::syscall(libc::SYS_mount_setattr, dir, path.as_ptr(), flags, &raw const attr, size) }).map(drop)
}

/// Adds a filter of calls for this process and all that it starts: seccomp(2). Needs CAP_SYS_ADMIN, or `no_new_privs`.
pub fn set_filter(steps: &mut [libc::sock_filter]) -> io::Result<()> {
    let len = u16::try_from(steps.len()).map_err(|_| io::Error::from_raw_os_error(libc::E2BIG))?;
    let program = libc::sock_fprog { len, filter: steps.as_mut_ptr() };
    // SAFETY: seccomp(2) reads the program, whose length is that of `steps`; both live through the call.
    let done = unsafe { libc::syscall(libc::SYS_seccomp, libc::SECCOMP_SET_MODE_FILTER, 0, &raw const program) };
    check(done).map(drop)
}

/// The version of Landlock in this kernel: landlock_create_ruleset(2), `LANDLOCK_CREATE_RULESET_VERSION`.
pub fn landlock_version() -> io::Result<i32> {
    const VERSION: u32 = 1;
    // SAFETY: landlock_create_ruleset(2) with this flag takes a null attribute of size 0, and makes nothing.
    let version = check(unsafe { libc::syscall(libc::SYS_landlock_create_ruleset, std::ptr::null::<u8>(), 0_usize, VERSION) })?;
    Ok(i32::try_from(version).unwrap_or(i32::MAX))
}

pub struct Signals(libc::sigset_t);

impl Signals {
    pub fn of(signals: &[i32]) -> Self {
        // SAFETY: a zeroed sigset_t is a valid place for sigemptyset(3) to fill in; sigaddset(3) takes any number.
        unsafe {
            let mut set = std::mem::zeroed();
            libc::sigemptyset(&raw mut set);
            for signal in signals {
                libc::sigaddset(&raw mut set, *signal);
            }
            Self(set)
        }
    }

    pub fn all() -> Self {
        // SAFETY: as above, sigfillset(3).
        unsafe {
            let mut set = std::mem::zeroed();
            libc::sigfillset(&raw mut set);
            Self(set)
        }
    }

    /// Adds these to the signals that this thread blocks, and returns those blocked before: sigprocmask(2).
    pub fn block(&self) -> Self {
        self.mask(libc::SIG_BLOCK)
    }

    /// Blocks exactly these.
    pub fn set(&self) {
        self.mask(libc::SIG_SETMASK);
    }

    fn mask(&self, how: libc::c_int) -> Self {
        let mut before = Self::of(&[]);
        // SAFETY: pthread_sigmask(3) reads one set and writes the other; it fails only for a wrong `how`.
        unsafe { libc::pthread_sigmask(how, &raw const self.0, &raw mut before.0) };
        before
    }

    /// Opens a descriptor to read these from, while they are blocked: signalfd(2).
    pub fn descriptor(&self) -> io::Result<OwnedFd> {
        // SAFETY: signalfd(2) reads the set; -1 asks for a new descriptor, which is ours alone.
        let fd = unsafe { libc::signalfd(-1, &raw const self.0, libc::SFD_CLOEXEC | libc::SFD_NONBLOCK) };
        check(fd.into())?;
        // SAFETY: a descriptor that was just made and that nobody else has.
        Ok(unsafe { OwnedFd::from_raw_fd(fd) })
    }
}

#[derive(Debug, Clone, Copy)]
pub struct Signal {
    pub number: i32,
    /// True if a process sent it by kill(2): not the terminal, not the kernel.
    pub by_process: bool,
    /// The number that recant attached, if recant passed it on.
    pub forwarded: Option<u16>,
}

/// The upper half of the value of a signal that recant passes to its init: "rc" in ASCII. The lower half is the number.
const FORWARD: u16 = 0x7263;

/// The next signal from a [`Signals::descriptor`]; `None` if there is none now.
pub fn next_signal(from: BorrowedFd<'_>) -> Option<Signal> {
    // SAFETY: signalfd_siginfo holds numbers alone; all zero is a valid value.
    let mut came: libc::signalfd_siginfo = unsafe { std::mem::zeroed() };
    let size = size_of::<libc::signalfd_siginfo>();
    // SAFETY: read(2) writes at most `size` bytes into `came`, which has that size.
    let got = unsafe { libc::read(from.as_raw_fd(), (&raw mut came).cast(), size) };
    if usize::try_from(got) != Ok(size) {
        return None;
    }
    let number = came.ssi_signo.cast_signed();
    let by_process = matches!(came.ssi_code, libc::SI_USER | libc::SI_QUEUE | libc::SI_TKILL);
    let value = came.ssi_int.cast_unsigned().to_be_bytes();
    let is_ours = came.ssi_code == libc::SI_QUEUE && value[..2] == FORWARD.to_be_bytes();
    let forwarded = is_ours.then_some(u16::from_be_bytes([value[2], value[3]]));
    Some(Signal { number, by_process, forwarded })
}

/// Passes a signal on to recant's init, with a number that has a meaning for SIGCONT.
pub fn forward(pid: i32, signal: i32, number: u16) {
    let value = u32::from(FORWARD) << 16 | u32::from(number);
    let value = libc::sigval { sival_ptr: std::ptr::without_provenance_mut(value as usize) };
    // SAFETY: sigqueue(3) takes numbers; the error for a pid that is gone is ignored.
    unsafe { libc::sigqueue(pid, signal, value) };
}

/// Sends a signal to one process; one that is gone is fine.
pub fn kill(pid: i32, signal: i32) {
    // SAFETY: kill(2) takes numbers.
    unsafe { libc::kill(pid, signal) };
}

/// Sends a signal to this thread: raise(3).
pub fn raise(signal: i32) {
    // SAFETY: raise(3) takes a number; no action of these signals is a handler of ours.
    unsafe { libc::raise(signal) };
}

/// Gives a signal its default action; true if it was ignored before: signal(2).
pub fn default_action(signal: i32) -> bool {
    // SAFETY: SIG_DFL installs no handler of ours.
    unsafe { libc::signal(signal, libc::SIG_DFL) == libc::SIG_IGN }
}

/// The signals that this process ignores by itself: SIGPIPE, which Rust's runtime ignores before `main`, and SIGXFSZ, which recant ignores.
/// Each with whether it was ignored when the process began, which was noted then.
pub fn ignored_by_us() -> [(i32, bool); 2] {
    OURS.map(|(signal, was)| (signal, was.load(std::sync::atomic::Ordering::Relaxed)))
}

static PIPE_IGNORED: std::sync::atomic::AtomicBool = std::sync::atomic::AtomicBool::new(false);
static SIZE_IGNORED: std::sync::atomic::AtomicBool = std::sync::atomic::AtomicBool::new(false);
static OURS: [(i32, &std::sync::atomic::AtomicBool); 2] = [(libc::SIGPIPE, &PIPE_IGNORED), (libc::SIGXFSZ, &SIZE_IGNORED)];

// SAFETY: the loader calls what stands in .init_array once, before `main`, with one thread (ELF gABI, "Initialization and Termination
// Functions"); `note_ignored` has the type that it expects there, without the arguments that it may pass.
#[used]
#[unsafe(link_section = ".init_array")]
static NOTE_IGNORED: extern "C" fn() = note_ignored;

extern "C" fn note_ignored() {
    // SAFETY: sigaction(2) with a null new action only writes the present one into `now`; all zero is a valid value of it. Rust's
    // runtime is not there yet and is not used: an atomic store needs none.
    unsafe {
        let mut now: libc::sigaction = std::mem::zeroed();
        for (signal, ignored) in &OURS {
            if libc::sigaction(*signal, std::ptr::null(), &raw mut now) == 0 && now.sa_sigaction == libc::SIG_IGN {
                ignored.store(true, std::sync::atomic::Ordering::Relaxed);
            }
        }
    }
}

pub fn ignore(signal: i32) {
    // SAFETY: SIG_IGN installs no handler of ours.
    unsafe { libc::signal(signal, libc::SIG_IGN) };
}

/// A report of waitpid(2) about a child.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Waited {
    Exited(i32, i32),
    /// It was ended by this signal.
    Killed(i32, i32),
    /// It was stopped by this signal.
    Stopped(i32, i32),
    /// It was continued after that.
    Continued(i32),
    Nothing,
    NoChild,
}

/// Asks for any child's change, including stops and continuations; does not wait.
pub fn wait_any() -> Waited {
    let flags = libc::WUNTRACED | libc::WCONTINUED | libc::WNOHANG;
    let mut status = 0;
    loop {
        // SAFETY: waitpid(2) writes one int.
        let pid = unsafe { libc::waitpid(-1, &raw mut status, flags) };
        return match pid {
            0 => Waited::Nothing,
            -1 if io::Error::last_os_error().raw_os_error() == Some(libc::EINTR) => continue,
            -1 => Waited::NoChild,
            pid if libc::WIFEXITED(status) => Waited::Exited(pid, libc::WEXITSTATUS(status)),
            pid if libc::WIFSIGNALED(status) => Waited::Killed(pid, libc::WTERMSIG(status)),
            pid if libc::WIFCONTINUED(status) => Waited::Continued(pid),
            pid => Waited::Stopped(pid, libc::WSTOPSIG(status)),
        };
    }
}

/// Waits until the child `pid` is gone; a child that the kernel did not keep, as SIGCHLD is ignored, counts as gone.
pub fn wait_for(pid: i32) -> io::Result<()> {
    let mut status = 0;
    loop {
        // SAFETY: waitpid(2) writes one int.
        if unsafe { libc::waitpid(pid, &raw mut status, 0) } == pid {
            return Ok(());
        }
        let error = io::Error::last_os_error();
        match error.raw_os_error() {
            Some(libc::EINTR) => {}
            Some(libc::ECHILD) => return Ok(()),
            _ => return Err(error),
        }
    }
}

/// Waits for the end of the child `pid`; `None` if nothing tells of it.
pub fn wait_for_end(pid: i32) -> io::Result<Option<Ending>> {
    let mut status = 0;
    loop {
        // SAFETY: waitpid(2) writes one int.
        if unsafe { libc::waitpid(pid, &raw mut status, 0) } == pid {
            return Ok(match status {
                status if libc::WIFEXITED(status) => Some(Ending::Exited(libc::WEXITSTATUS(status))),
                status if libc::WIFSIGNALED(status) => Some(Ending::Signaled(libc::WTERMSIG(status))),
                _ => None,
            });
        }
        let error = io::Error::last_os_error();
        match error.raw_os_error() {
            Some(libc::EINTR) => {}
            Some(libc::ECHILD) => return Ok(None),
            _ => return Err(error),
        }
    }
}

/// Becomes the program `argv[0]`, looked up in PATH as execvp(3) does. Returns only on an error.
pub fn exec(argv: &[CString], env: &[CString]) -> io::Error {
    let list =
        |of: &[CString]| -> Vec<*const libc::c_char> { of.iter().map(|word| word.as_ptr()).chain([std::ptr::null()]).collect() };
    let (arguments, environment) = (list(argv), list(env));
    // SAFETY: both lists end in null and point to C strings that live in `argv` and `env`; `argv` is not empty (the caller's
    // type), so its first pointer is a string.
    unsafe { libc::execvpe(arguments[0], arguments.as_ptr(), environment.as_ptr()) };
    io::Error::last_os_error()
}

/// Closes a descriptor that no value of this process will use or close any more.
pub fn close(fd: RawFd) {
    // SAFETY: close(2) of a number that `descriptors` found. In the command's process these are inherited ones, which no value of
    // this process owns; in the init they are recant's directories, whose values are never used or dropped again: it ends by _exit(2)
    unsafe { libc::close(fd) };
}

/// The stat of an inherited descriptor; `None` if it is not open.
pub fn inherited(fd: RawFd) -> Option<io::Result<crate::fs::Stat>> {
    is_close_on_exec(fd)?;
    // SAFETY: the descriptor is open (just asked, one thread) and stays so while it is borrowed.
    let held = unsafe { BorrowedFd::borrow_raw(fd) };
    Some(crate::fs::stat_of(held))
}

/// True if a descriptor is close-on-exec: fcntl(2) F_GETFD. `None` if it is not open.
pub fn is_close_on_exec(fd: RawFd) -> Option<bool> {
    // SAFETY: fcntl(2) with F_GETFD takes a number.
    let flags = unsafe { libc::fcntl(fd, libc::F_GETFD) };
    (flags >= 0).then_some(flags & libc::FD_CLOEXEC != 0)
}

/// The flags that a descriptor was opened with: fcntl(2) F_GETFL. `None` if it is not open.
pub fn status_flags(fd: RawFd) -> Option<i32> {
    // SAFETY: fcntl(2) with F_GETFL takes a number.
    let flags = unsafe { libc::fcntl(fd, libc::F_GETFL) };
    (flags >= 0).then_some(flags)
}

/// The offset of an inherited file: lseek(2). 0 if unknown.
pub fn offset(fd: RawFd) -> u64 {
    // SAFETY: lseek(2) takes numbers.
    u64::try_from(unsafe { libc::lseek(fd, 0, libc::SEEK_CUR) }).unwrap_or(0)
}

/// Sets the offset of an inherited file: lseek(2). A file takes any offset from 0 on; other objects keep theirs.
pub fn set_offset(fd: RawFd, offset: u64) {
    if let Ok(offset) = libc::off_t::try_from(offset) {
        // SAFETY: lseek(2) takes numbers.
        unsafe { libc::lseek(fd, offset, libc::SEEK_SET) };
    }
}

/// Duplicates an inherited descriptor; the offset is shared: fcntl(2) F_DUPFD_CLOEXEC.
pub fn duplicate(fd: RawFd) -> io::Result<OwnedFd> {
    // SAFETY: fcntl(2) with F_DUPFD_CLOEXEC takes numbers.
    let new = unsafe { libc::fcntl(fd, libc::F_DUPFD_CLOEXEC, 3) };
    check(new.into())?;
    // SAFETY: a descriptor that was just made and that nobody else has.
    Ok(unsafe { OwnedFd::from_raw_fd(new) })
}

/// Puts a held descriptor in the place of a standard stream: dup2(2). Only a signal could make it fail, and all are blocked.
pub fn put_in_place(held: BorrowedFd<'_>, fd: RawFd) {
    // SAFETY: dup2(2) takes numbers; `fd` is 0, 1 or 2 and belongs to no value of this process.
    if unsafe { libc::dup2(held.as_raw_fd(), fd) } < 0 {
        close(fd);
    }
}

/// Puts `file` in the place of the inherited descriptor `fd`, to be read on from `offset`: dup2(2). Closes `fd` on failure.
pub fn replace(file: BorrowedFd<'_>, fd: RawFd, offset: u64) {
    let Ok(offset) = libc::off_t::try_from(offset) else { return close(fd) };
    // SAFETY: dup2(2), lseek(2) and fcntl(2) take numbers; `fd` belongs to no value of this process (see `close`). The file was
    // opened with O_NONBLOCK, which means nothing for a regular file.
    let replaced = unsafe { libc::dup2(file.as_raw_fd(), fd) == fd && libc::lseek(fd, offset, libc::SEEK_SET) == offset };
    if !replaced {
        close(fd);
    }
}

/// A path to a held descriptor, for calls that take only a path.
pub fn held_path(fd: impl AsFd) -> String {
    format!("/proc/self/fd/{}", fd.as_fd().as_raw_fd())
}
