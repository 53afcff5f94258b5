"""Tries to change the real tree from inside a run. Each attempt prints a line: its name, and what came of it.

Takes the path of a directory on the real tree, which the run captures, the path of a directory below it that is hidden, and the
pids of processes outside. Whatever gets through leaves a file or directory named `escaped`, or changes `real`; the test looks.
"""
import ctypes, errno, os, socket, struct, sys

tree, store, socket_path, *pids = sys.argv[1:]
libc = ctypes.CDLL(None, use_errno=True)
CLONE_NEWUSER, CLONE_NEWNS, CLONE_NEWCGROUP, CLONE3 = 0x10000000, 0x00020000, 0x02000000, 435
MS_REMOUNT, MS_BIND, MS_MOVE, MNT_DETACH, AT_FDCWD = 32, 4096, 8192, 2, -100
SYS = {"x86_64": dict(pidfd_open=434, pidfd_getfd=438, open_tree=428, move_mount=429, mount_setattr=442, pivot_root=155, name_to_handle_at=303,
                      open_by_handle_at=304, process_vm_writev=311, bpf=321, kexec_load=246, init_module=175),
       "aarch64": dict(pidfd_open=434, pidfd_getfd=438, open_tree=428, move_mount=429, mount_setattr=442, pivot_root=41, name_to_handle_at=264,
                       open_by_handle_at=265, process_vm_writev=271, bpf=280, kexec_load=104, init_module=105)}[os.uname().machine]


def call(number, *args):
    result = libc.syscall(SYS[number], *args)
    if result < 0:
        raise OSError(ctypes.get_errno(), number)
    return result


def checked(result, what):
    if result != 0:
        raise OSError(ctypes.get_errno(), what)


def mount(source, target, kind, flags, data=None):
    checked(libc.mount(source, target, kind, flags, data), "mount")


def write(path):
    with open(path, "w") as file:
        file.write("escaped")


def attempt(name, what):
    # In a process of its own: some change what the next one would stand on.
    pid = os.fork()
    if pid:
        os.waitpid(pid, 0)
        return
    try:
        what()
        print(name, "done", flush=True)
    except OSError as error:
        print(name, errno.errorcode.get(error.errno, error.errno), flush=True)
    except Exception as error:
        print(name, "not tried:", error, flush=True)
    os._exit(0)


def in_namespace(what, more=0):
    def inside():
        uid, gid = os.getuid(), os.getgid()
        checked(libc.unshare(CLONE_NEWUSER | CLONE_NEWNS | more), "unshare")
        for path, text in (("setgroups", "deny"), ("uid_map", f"0 {uid} 1"), ("gid_map", f"0 {gid} 1")):
            with open(f"/proc/self/{path}", "w") as file:
                file.write(text)
        what()
    return inside


def reveal():
    """Takes away what hides the store, and writes into it."""
    errors = []
    for way in (lambda: checked(libc.umount2(store.encode(), 0), "umount"),
                lambda: checked(libc.umount2(store.encode(), MNT_DETACH), "umount"),
                lambda: mount(store.encode(), b"/mnt", None, MS_MOVE),
                lambda: mount(None, store.encode(), None, MS_REMOUNT | MS_BIND),
                lambda: mount(tree.encode(), b"/mnt", None, MS_BIND)):
        try:
            way()
            write(store + "/sessions/escaped")
        except OSError as error:
            errors.append(error)
    raise errors[0]


def uncover():
    for path in (b"/proc", b"/dev/shm", b"/tmp", tree.encode(), b"/"):
        try:
            checked(libc.umount2(path, MNT_DETACH), "umount")
        except OSError:
            continue
        if path != b"/proc" and path != b"/dev/shm":
            write(tree + "/escaped")
    raise OSError(errno.EPERM, "umount")


def writable_again():
    errors = []
    for path in ("/sys", "/proc/sys", "/usr", "/"):
        try:
            mount(None, path.encode(), None, MS_REMOUNT | MS_BIND)
        except OSError as error:
            errors.append(error)
            continue
        if path in ("/sys", "/proc/sys"):
            print("ESCAPED remount of", path, flush=True)
    attributes = struct.pack("QQQQ", 0, 1, 0, 0)
    call("mount_setattr", AT_FDCWD, b"/sys", 0, attributes, len(attributes))
    print("ESCAPED mount_setattr", flush=True)


def clone_mount():
    fd = call("open_tree", AT_FDCWD, tree.encode(), 1)
    os.fchdir(fd)
    write("escaped")
    call("move_mount", fd, b"", AT_FDCWD, b"/mnt", 4)


def pivot():
    os.chdir("/")
    call("pivot_root", b".", b".")
    checked(libc.umount2(b".", MNT_DETACH), "umount")
    write(tree + "/escaped")


def break_out():
    """The classic way out of a chroot; ends in the run's own root at most."""
    fd = os.open("/", os.O_RDONLY)
    os.chroot("/tmp")
    os.fchdir(fd)
    for _ in range(64):
        os.chdir("..")
    os.chroot(".")
    write(tree + "/escaped")
    # What was written is held, like everything else; whether it is real the test sees.


def handle():
    class Handle(ctypes.Structure):
        _fields_ = [("bytes", ctypes.c_uint), ("type", ctypes.c_int), ("data", ctypes.c_ubyte * 128)]
    found, mount_id = Handle(bytes=128), ctypes.c_int()
    call("name_to_handle_at", AT_FDCWD, tree.encode(), ctypes.byref(found), ctypes.byref(mount_id), 0)
    at = os.open("/", os.O_RDONLY)
    fd = call("open_by_handle_at", at, ctypes.byref(found), os.O_RDONLY)
    write(f"/proc/self/fd/{fd}/escaped")


def guessed_handle():
    # ext4's handle of an inode: 32 bits of inode and 32 of generation. The root directory is 2, generation 0.
    handle = struct.pack("iiII", 8, 1, 2, 0)
    at = os.open("/proc/self/cwd", os.O_RDONLY)
    fd = call("open_by_handle_at", at, handle, os.O_RDONLY)
    write(f"/proc/self/fd/{fd}{tree}/escaped")


def device():
    number = os.stat(tree).st_dev
    for candidate in (number, os.makedev(254, 0), os.makedev(8, 0), os.makedev(8, 1), os.makedev(7, 0), os.makedev(259, 0), os.makedev(1, 1)):
        name = tree + f"/device-{candidate}"
        os.mknod(name, 0o060600, candidate)
        os.close(os.open(name, os.O_RDWR))
        print("ESCAPED by a block device", flush=True)


def devices_there():
    for name in ("mem", "kmem", "port", "kmsg", "vda", "sda", "loop0", "loop-control", "fuse", "kvm", "nvme0n1", "mapper/control"):
        try:
            fd = os.open("/dev/" + name, os.O_RDWR)
        except OSError:
            continue
        if os.getuid() == 0:
            print("ESCAPED /dev/" + name, flush=True)
        os.close(fd)
    raise OSError(errno.ENOENT, "devices")


def trace(pid):
    checked(min(0, libc.ptrace(16, int(pid), None, None)), "ptrace")
    print("ESCAPED ptrace", flush=True)


def write_memory(pid):
    vector = struct.pack("QQ", 0, 0)
    call("process_vm_writev", int(pid), vector, 1, vector, 1, 0)


def open_of(pid):
    fd = call("pidfd_open", int(pid), 0)
    for number in range(64):
        try:
            taken = call("pidfd_getfd", fd, number, 0)
        except OSError as error:
            last = error
            continue
        print("ESCAPED pidfd_getfd", flush=True)
        os.write(taken, b"escaped")
    raise last


def peer():
    """A pidfd of whoever listens at a socket, without knowing its pid: SO_PEERPIDFD."""
    client = socket.socket(socket.AF_UNIX)
    client.connect(socket_path)
    pidfd = client.getsockopt(socket.SOL_SOCKET, 77)
    for number in range(64):
        try:
            call("pidfd_getfd", pidfd, number, 0)
        except OSError as error:
            last = error
            continue
        print("ESCAPED SO_PEERPIDFD", flush=True)
    raise last


def cgroup():
    """The whole hierarchy, writable: cgroup.kill ends whatever runs in one."""
    os.makedirs("/tmp/cgroup", exist_ok=True)
    mount(b"none", b"/tmp/cgroup", b"cgroup2", 0)
    print("ESCAPED by cgroup2", flush=True)


def clone3():
    if libc.syscall(CLONE3, None, 0) < 0:
        raise OSError(ctypes.get_errno(), "clone3")


def join(pid):
    errors = []
    for kind in ("mnt", "user", "pid", "net", "ipc"):
        try:
            fd = os.open(f"/proc/{pid}/ns/{kind}", os.O_RDONLY)
            checked(libc.setns(fd, 0), "setns")
            if kind == "mnt":
                write(tree + "/escaped")
        except OSError as error:
            errors.append(error)
    raise errors[0]


attempt("umount", uncover)
attempt("reveal the store", reveal)
attempt("remount", writable_again)
attempt("move", lambda: mount(b"/usr", b"/mnt", None, MS_MOVE))
attempt("open_tree", clone_mount)
attempt("pivot_root", pivot)
attempt("chroot", break_out)
attempt("handle", handle)
attempt("guessed handle", guessed_handle)
attempt("mknod", device)
attempt("devices", devices_there)
attempt("bpf", lambda: call("bpf", 0, struct.pack("IIIII", 2, 4, 4, 1, 0) + bytes(100), 120))
attempt("init_module", lambda: call("init_module", b"", 0, b""))
attempt("sysctl", lambda: open("/proc/sys/kernel/core_pattern", "w").write("|/escaped"))
attempt("sysrq", lambda: open("/proc/sysrq-trigger", "w").write("h"))
attempt("peer", peer)
attempt("abstract", lambda: socket.socket(socket.AF_UNIX).connect("\0" + socket_path))
attempt("clone3", clone3)
attempt("cgroup namespace", in_namespace(cgroup, CLONE_NEWCGROUP))
for way in (uncover, reveal, writable_again, clone_mount, pivot, handle, device, cgroup):
    attempt("in a namespace: " + way.__name__, in_namespace(way))
attempt("in a namespace: overlay", in_namespace(
    lambda: mount(b"o", tree.encode(), b"overlay", 0, f"lowerdir=/usr,upperdir={tree},workdir={tree}".encode())))
for pid in pids:
    attempt("root of a process", lambda: write(f"/proc/{pid}/root{tree}/escaped"))
    attempt("directory of a process", lambda: write(f"/proc/{pid}/cwd/escaped"))
    attempt("descriptor of a process", lambda: [write(f"/proc/{pid}/fd/{n}/escaped") for n in range(3, 9)])
    attempt("memory of a process", lambda: open(f"/proc/{pid}/mem", "r+b"))
    attempt("ptrace", lambda: trace(pid))
    attempt("process_vm_writev", lambda: write_memory(pid))
    attempt("pidfd_getfd", lambda: open_of(pid))
    attempt("setns", lambda: join(pid))
for n in list(range(3, 12)):
    attempt(f"inherited {n}", lambda: write(f"/proc/self/fd/{n}/escaped"))
    attempt(f"inherited file {n}", lambda: os.write(n, b"escaped") if os.readlink(f"/proc/self/fd/{n}").startswith("/") else None)
print("tried all", flush=True)
