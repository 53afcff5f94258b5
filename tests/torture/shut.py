"""The power goes, for real: a loop-mounted ext4 or xfs is shut down (`xfs_io -x -c shutdown`: nothing that was not synced
reaches the disk) before each syncing call and each rename of a commit, a rollback and a redo, then unmounted, mounted again and
recovered. Root only."""

import contextlib
import os
import shutil
import subprocess
import tempfile
import time

from calls import NO_SYNC, VERBS, Found, Sweep, points
from scene import World

FILE_SYSTEMS = {"ext4": (64, ["mkfs.ext4", "-q", "-F", "-m", "0"]), "xfs": (320, ["mkfs.xfs", "-q", "-f"]),
                "btrfs": (320, ["mkfs.btrfs", "-q", "-f"])}
BOUNDARIES = {"fsync", "fdatasync", "syncfs", "renameat2", "renameat", "rename"}


def lacking(kind, *programs):
    """Why it cannot be done here; none where it can."""
    if os.geteuid() != 0:
        return "only root can mount"
    missing = [program for program in [FILE_SYSTEMS[kind][1][0], "losetup", *programs] if not shutil.which(program)]
    return f"no {missing[0]} here" if missing else None


class Disk:
    """An image with a file system, mounted over a loop device."""

    def __init__(self, directory, kind):
        self.kind, self.point = kind, os.path.join(directory, kind)
        self.image = self.point + ".image"
        size, make = FILE_SYSTEMS[kind]
        with open(self.image, "wb") as file:
            file.truncate(size << 20)
        subprocess.run([*make, self.image], check=True, capture_output=True)
        os.mkdir(self.point)
        self.mount()

    def mount(self):
        subprocess.run(["mount", "-o", "loop", self.image, self.point], check=True)

    def unmount(self):
        subprocess.run(["umount", self.point], check=True)

    def cut(self):
        subprocess.run(["xfs_io", "-x", "-c", "shutdown", self.point], check=True, capture_output=True)

    def gone(self):
        subprocess.run(["umount", "-l", self.point], capture_output=True)


@contextlib.contextmanager
def disks(*kinds):
    with tempfile.TemporaryDirectory(prefix="recant-torture-") as directory:
        made = []
        try:
            for i, kind in enumerate(kinds):
                inner = os.path.join(directory, str(i))
                os.mkdir(inner)
                made.append(Disk(inner, kind))
            yield made
        finally:
            for disk in made:
                disk.gone()


class Shut(Sweep):
    """A sweep whose fault is a power cut: the program is stopped at the call, the disk shut down, then it is killed."""

    def __init__(self, world, verb, report, cut, planted):
        super().__init__(world, verb, report)
        self.cut, self.planted = cut, planted

    def run_shut(self, every):
        if self.planted:
            self.all_points(None)
            self.at_exit()
            return
        found = [point for point in self.all_points(None) if point[0] in BOUNDARIES]
        for i, point in enumerate(found):
            if i % every:
                continue
            what = f"{self.verb}: power cut at {point[0]} {point[1]}"
            # What the user had not synced is nobody's to keep: the REPLAY engine has that case.
            os.sync()
            stop(self.world, point, self.argv(), self.cut)
            self.tried += 1
            self.check(what)
        self.at_exit()

    def check(self, what, must_be=None):
        try:
            said = subprocess.CompletedProcess([], 137, b"", b"")
            outcome = self.judge(what, said, "KILL", None)
            if must_be and outcome != must_be:
                raise Found("lost", f"success was said, and is undone: {outcome}")
            self.go_on(self.world.status())
            self.report.count("SHUT", self.verb, outcome)
        except Found as wrong:
            self.report.count("SHUT", self.verb, wrong.kind)
            self.report.say(f"{wrong.kind}: {what}:\n{wrong}")
            self.begin()

    def at_exit(self):
        """Success that was said lasts."""
        os.sync()
        self.must(self.verb, NO_SYNC if self.planted else ())
        self.cut()
        self.tried += 1
        self.check(f"{self.verb}: power cut right after its end", must_be="after")


def stop(world, point, argv, cut):
    """Runs the command up to the call, which is still made, cuts, and ends it."""
    call, n = point
    trace = ["strace", "-f", "-qq", "-e", f"trace={call}", "-e", f"inject={call}:signal=STOP:when={n}"]
    victim = subprocess.Popen([*trace, *world.command(*argv)], cwd=world.tree, env=world.env, stdin=subprocess.DEVNULL,
                              stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    for line in victim.stderr:
        if b"--- stopped by SIGSTOP" in line:
            cut(kill=children(victim.pid))
            break
    victim.stderr.close()
    victim.wait()


def children(pid):
    with contextlib.suppress(OSError), open(f"/proc/{pid}/task/{pid}/children") as names:
        return [int(name) for name in names.read().split()]
    return []


def sweep(recant, report, every=1, planted=False):
    for kinds in [["ext4"], ["xfs"], ["ext4", "xfs"], ["xfs", "ext4"]]:
        why = next((why for kind in kinds for why in [lacking(kind, "xfs_io", "strace")] if why), None)
        if why:
            print(f"skipped: power cuts on {' and '.join(kinds)}: {why}")
            continue
        with disks(*kinds) as made:
            for verb in [verb for verb in VERBS if verb != "recover"]:
                world = World(recant, *[disk.point for disk in made])

                def cut(kill=()):
                    for disk in made:
                        disk.cut()
                    for pid in kill:
                        with contextlib.suppress(ProcessLookupError):
                            os.kill(pid, 9)
                    for disk in made:
                        wait_and_remount(disk)

                Shut(world, verb, report, cut, planted).run_shut(every)


def wait_and_remount(disk):
    # The killed program lets go of its descriptors when it is gone for good, and a mount namespace that somebody made meanwhile
    # of its copy of the mount: only then the file system is really down.
    steps = [lambda: subprocess.run(["umount", disk.point], capture_output=True).returncode == 0,
             lambda: not subprocess.run(["losetup", "-j", disk.image], capture_output=True).stdout]
    for step in steps:
        for _ in range(3000):
            if step():
                break
            time.sleep(0.01)
        else:
            raise SystemExit(f"{disk.point} cannot be unmounted")
    disk.mount()
