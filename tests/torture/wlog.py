"""The power goes while a disk with a cache works: every block write and every flush of a commit, a rollback and a redo is logged
(blocklog.c, a FUSE file under a loop device), then the disk is rebuilt as it may be at a cut: all writes before the last flush,
and none, all or some of those after it. Each image is mounted and recovered. Another program syncs its own file all the
while. ext4, xfs, btrfs, and store and tree on two of them. And the disk itself fails (DISK): from some write on, all writes and
flushes end with EIO, the file system turns read-only or shuts down, and the disk works again after a remount. Root only; needs
a C compiler and libfuse3."""

import contextlib
import os
import random
import shutil
import struct
import subprocess
import tempfile
import threading
import time

from calls import NO_SYNC, Found, Sweep
from scene import World
from shut import FILE_SYSTEMS, lacking

HEAD = struct.Struct("=BBQQ")
OPTIONS = {"xfs": ["-o", "nouuid"]}


def build(directory):
    """The compiled blocklog; none, with the reason, where it cannot be."""
    here = os.path.join(os.path.dirname(os.path.abspath(__file__)), "blocklog.c")
    program = os.path.join(directory, "blocklog")
    try:
        flags = subprocess.run(["pkg-config", "--cflags", "--libs", "fuse3"], check=True, capture_output=True, text=True).stdout.split()
        subprocess.run(["cc", "-O2", "-Wall", "-o", program, here, *flags], check=True, capture_output=True)
    except (OSError, subprocess.CalledProcessError) as error:
        return None, f"no C compiler with libfuse3: {error}"
    return (program, None) if os.path.exists("/dev/fuse") else (None, "no /dev/fuse")


class Disks:
    """One or two disks whose writes are logged, mounted at fixed places; later their rebuilt images at the same places."""

    def __init__(self, directory, program, kinds):
        self.directory, self.kinds = directory, kinds
        self.names = [chr(ord("a") + i) for i in range(len(kinds))]
        self.images, self.shown, self.log = (os.path.join(directory, name) for name in ["images", "shown", "log"])
        self.points = [os.path.join(directory, f"on-{name}") for name in self.names]
        for made in [self.images, self.shown, *self.points]:
            os.mkdir(made)
        for name, kind in zip(self.names, kinds):
            size, make = FILE_SYSTEMS[kind]
            image = os.path.join(self.images, name)
            with open(image, "wb") as file:
                file.truncate(size << 20)
            subprocess.run([*make, image], check=True, capture_output=True)
        self.fuse = subprocess.Popen([program, self.images, self.log, self.shown])
        while not os.path.ismount(self.shown):
            time.sleep(0.01)
        for name, point, kind in zip(self.names, self.points, kinds):
            mount(os.path.join(self.shown, name), point, kind)

    def kind(self, name):
        return self.kinds[self.names.index(name)]

    def base(self):
        """What is on the disks now is the beginning: all of it flushed."""
        for point in self.points:
            subprocess.run(["sync", "-f", point], check=True)
        for name in self.names:
            sparse_copy(os.path.join(self.images, name), os.path.join(self.directory, f"base-{name}"))
        return os.path.getsize(self.log)

    def records(self, start):
        """The log from there on: kind, disk, offset, bytes, end in the log."""
        found = []
        with open(self.log, "rb") as log:
            log.seek(start)
            while len(head := log.read(HEAD.size)) == HEAD.size:
                kind, name, offset, length = HEAD.unpack(head)
                found.append((kind, chr(name), offset, log.read(length) if kind == 1 else b"", log.tell()))
        return found

    def down(self):
        for point in self.points:
            unmount(point)
        unmount(self.shown)
        self.fuse.wait()

    def fail(self, fails):
        flag = os.path.join(self.directory, "fail")
        if fails:
            open(flag, "w").close()
        elif os.path.exists(flag):
            os.unlink(flag)

    def remount(self):
        """After a failure: what the file systems still had in memory is gone, the disks work again."""
        for point in self.points:
            unmount(point)
        for name in self.names:
            free(os.path.join(self.shown, name))
        self.fail(False)
        for name, point, kind in zip(self.names, self.points, self.kinds):
            mount(os.path.join(self.shown, name), point, kind)

    def gone(self):
        self.fail(False)
        for point in [*self.points, self.shown]:
            subprocess.run(["umount", "-l", point], capture_output=True)
        self.fuse.kill()


def mount(image, point, kind):
    subprocess.run(["mount", "-o", "loop", *OPTIONS.get(kind, []), image, point], check=True, capture_output=True)


def unmount(point):
    for _ in range(1000):
        if subprocess.run(["umount", point], capture_output=True).returncode == 0:
            return
        time.sleep(0.01)
    raise SystemExit(f"{point} cannot be unmounted")


def free(image):
    """Waits until no loop device has an image: a mount namespace made meanwhile may hold one for a while, and a later mount
    would get its old pages."""
    for _ in range(10000):
        if not subprocess.run(["losetup", "-j", image], capture_output=True).stdout:
            return
        time.sleep(0.01)
    raise SystemExit(f"{image} is still in use")


def gone(image):
    if os.path.exists(image):
        free(image)
        os.unlink(image)


def sparse_copy(from_, to):
    subprocess.run(["cp", "--sparse=always", from_, to], check=True)


@contextlib.contextmanager
def foreign_syncs(directory):
    """Another program, which syncs its own file again and again."""
    ended = threading.Event()

    def work():
        with open(os.path.join(directory, "foreign"), "ab") as file:
            while not ended.wait(0.002):
                file.write(b"x" * 100)
                file.flush()
                os.fsync(file.fileno())

    worker = threading.Thread(target=work)
    worker.start()
    try:
        yield
    finally:
        ended.set()
        worker.join()


class Cuts(Sweep):
    """The images of one verb."""

    def prepare(self, disks, planted):
        self.begin()
        self.start = self.before
        start = disks.base()
        with foreign_syncs(disks.points[0]):
            self.must(self.verb, NO_SYNC if planted else ())
            self.said = os.path.getsize(disks.log)
        self.after = self.world.manifest()
        time.sleep(0.05)
        disks.down()
        self.records = disks.records(start)

    def images(self, disks, count, dice):
        """Rebuilds at every flush and at random places between, in order, so that what is durable is applied once."""
        flushes = [i for i, record in enumerate(self.records) if record[0] == 2]
        wanted = sorted(random_cuts(len(self.records), flushes, count, dice))
        durable = {name: 0 for name in disks.names}
        for cut in wanted:
            for name in disks.names:
                last = max((i for i in flushes if i < cut and self.records[i][1] == name), default=-1)
                base = os.path.join(disks.directory, f"base-{name}")
                put(base, [record for record in self.records[durable[name]:last + 1] if record[0] == 1 and record[1] == name])
                durable[name] = max(durable[name], last + 1)
                image = os.path.join(disks.directory, f"cut-{name}")
                gone(image)
                sparse_copy(base, image)
                loose = [record for record in self.records[durable[name]:cut] if record[0] == 1 and record[1] == name]
                # The sector that a disk writes whole or not. xfs takes a block of metadata whose first sector is new for new, btrfs
                # has a superblock of 4,096 bytes: neither can be mounted with half of one.
                put(image, some(loose, dice, 512 if disks.kind(name) == "ext4" else 4096))
            yield cut, cut > 0 and self.records[cut - 1][4] >= self.said

    def try_all(self, disks, count, dice):
        for cut, said in self.images(disks, count, dice):
            what = f"{self.verb} on {' and '.join(disks.kinds)}: cut at write {cut} of {len(self.records)}"
            mounted = []
            try:
                for name, point, kind in zip(disks.names, disks.points, disks.kinds):
                    try:
                        mount(os.path.join(disks.directory, f"cut-{name}"), point, kind)
                    except subprocess.CalledProcessError as error:
                        raise Found("lost", f"{kind} cannot be mounted: {error.stderr.decode()}")
                    mounted.append(point)
                killed = subprocess.CompletedProcess([], 137, b"", b"")
                outcome = self.judge(what, killed, "KILL", None)
                if said and outcome != "after":
                    raise Found("lost", "success was said, and is undone")
                self.back = self.back or "rollback"
                self.go_on(self.world.status())
                self.report.count("WLOG", self.verb, outcome)
            except Found as wrong:
                self.report.count("WLOG", self.verb, wrong.kind)
                self.report.say(f"{wrong.kind}: {what}:\n{wrong}")
            finally:
                for point in mounted:
                    unmount(point)


class Failing(Sweep):
    """A disk that fails from a moment of an operation on."""

    def run_failing(self, disks, count, dice, planted):
        self.begin()
        self.start = self.before
        size = os.path.getsize(disks.log)
        self.must(self.verb)
        os.sync()
        whole = os.path.getsize(disks.log) - size
        self.after = self.world.manifest()
        self.return_(self.becomes)
        for _ in range(count):
            os.sync()
            at = os.path.getsize(disks.log) + dice.randint(0, whole)
            words = [*(NO_SYNC if planted else ()), *self.world.command(*self.argv())]
            victim = subprocess.Popen(words, cwd=self.world.tree, env=self.world.env, stdin=subprocess.DEVNULL,
                                      stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
            while victim.poll() is None and os.path.getsize(disks.log) < at:
                os.sched_yield()
            ended = victim.poll()
            disks.fail(True)
            said = victim.communicate()[1]
            disks.remount()
            self.check(disks, victim.returncode if ended is None else ended, said.decode(errors="backslashreplace"))

    def check(self, disks, status, text):
        what = f"{self.verb} on {' and '.join(disks.kinds)}: the disk fails; exit {status}: {text.strip()}"
        try:
            if status not in (0, 1, 7) or status and not text:
                raise Found("mixed", "exit status, or nothing said")
            outcome = self.judge(what, subprocess.CompletedProcess([], 137, b"", b""), "KILL", None)
            if status == 0 and outcome != "after":
                raise Found("lost", "success was said, and is undone")
            self.go_on(self.world.status())
            self.report.count("DISK", self.verb, outcome)
        except Found as wrong:
            self.report.count("DISK", self.verb, wrong.kind)
            self.report.say(f"{wrong.kind}: {what}:\n{wrong}")
            self.begin()


def random_cuts(records, flushes, count, dice):
    cuts = [*flushes, records]
    return [dice.choice(cuts) if i % 2 else dice.randint(0, records) for i in range(count)]


def some(loose, dice, sector):
    """Of what no flush has ordered: none, all, or some, the last one torn."""
    chance = dice.choice([0, 1, 0.5, 0.1, 0.9])
    kept = [record for record in loose if dice.random() < chance]
    # No file system can be mounted with half of a superblock: ext4's has 1,024 bytes, with a checksum over all of them.
    if kept and 0 < chance < 1 and kept[-1][2] >= 4096:
        kind, name, offset, content, end = kept[-1]
        kept[-1] = (kind, name, offset, content[:sector * dice.randint(0, len(content) // sector)], end)
    return kept


def put(image, records):
    with open(image, "r+b") as file:
        for _, _, offset, content, _ in records:
            file.seek(offset)
            file.write(content)


def sweep(recant, report, count, planted=False, kinds_wanted=(["ext4"], ["xfs"], ["btrfs"], ["ext4", "xfs"], ["btrfs", "ext4"]),
          engines=("WLOG", "DISK")):
    with tempfile.TemporaryDirectory(prefix="recant-torture-") as directory:
        subprocess.run(["mount", "-t", "tmpfs", "-o", "size=2g", "tmpfs", directory], check=False, capture_output=True)
        try:
            program, why = build(directory)
            for kinds in kinds_wanted:
                lacks = why or next((why for kind in kinds for why in [lacking(kind)] if why), None)
                if lacks:
                    print(f"skipped: rebuilt disks of {' and '.join(kinds)}: {lacks}")
                    continue
                for verb in ["commit", "rollback", "redo"]:
                    if "WLOG" in engines:
                        one(recant, report, count, kinds, verb, directory, program, planted)
                    if "DISK" in engines:
                        failing(recant, report, count // 5, kinds, verb, directory, program, planted)
        finally:
            subprocess.run(["umount", "-l", directory], capture_output=True)


@contextlib.contextmanager
def fresh_disks(report, engine, kinds, verb, directory, program):
    """Disks for one run; what it finds wrong is counted and said."""
    inner = os.path.join(directory, "-".join([*kinds, verb, engine]))
    os.mkdir(inner)
    disks = Disks(inner, program, kinds)
    try:
        yield disks
    except Found as wrong:
        report.count(engine, verb, wrong.kind)
        report.say(f"{wrong.kind}: {verb} on {' and '.join(kinds)}: {wrong}")
    finally:
        disks.gone()
        shutil.rmtree(inner, ignore_errors=True)


def one(recant, report, count, kinds, verb, directory, program, planted):
    with fresh_disks(report, "WLOG", kinds, verb, directory, program) as disks:
        cuts = Cuts(World(recant, *disks.points), verb, report)
        cuts.prepare(disks, planted)
        cuts.try_all(disks, count, random.Random(f"{kinds} {verb}"))


def failing(recant, report, count, kinds, verb, directory, program, planted):
    with fresh_disks(report, "DISK", kinds, verb, directory, program) as disks:
        Failing(World(recant, *disks.points), verb, report).run_failing(disks, count, random.Random(f"{kinds} {verb}"), planted)
