#!/usr/bin/env python3
"""Faults on purpose, on the real binary: each system call fails or is the last one (calls; apart, with store
and tree on two file systems; snaps, of snapshots), the power goes (shut, wlog).

    torture.py RECANT [calls] [apart] [snaps] [shut] [wlog] [--every N] [--self-test]

--self-test plants a bug for each engine, which it has to catch.

Prints one table: fault, command, points tried, and how it ended; missed: the run did not come to that call. Exits with 1 if anything was mixed
or lost, or much was missed.
"""

import argparse
import contextlib
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
sys.dont_write_bytecode = True

import calls  # noqa: E402
import shut  # noqa: E402
import snaps  # noqa: E402
import wlog  # noqa: E402
from report import Report  # noqa: E402
from scene import World  # noqa: E402

ENGINES = ["calls", "apart", "snaps", "shut", "wlog"]


def run_calls(recant, report, every):
    if not shutil.which("strace"):
        print("skipped: each system call once: no strace here")
        return
    with fast_directory() as directory:
        calls.sweep(recant, [directory], report, every)


def run_apart(recant, report, every):
    if not shutil.which("strace"):
        print("skipped: each system call between two file systems once: no strace here")
        return
    with fast_directory() as one, tempfile.TemporaryDirectory(prefix="recant-torture-") as two:
        if os.stat(one).st_dev == os.stat(two).st_dev:
            print("skipped: each system call between two file systems once: there is one")
            return
        calls.sweep(recant, [two, one], report, every)


def run_snaps(recant, report, every):
    if not shutil.which("strace"):
        print("skipped: each system call of a snapshot once: no strace here")
        return
    # Not in /tmp, where what `run --in` starts may write: the store lies here.
    with fast_directory("/var/tmp") as directory:
        snaps.sweep(recant, directory, report, every)


def run_shut(recant, report, every):
    shut.sweep(recant, report, every)


def run_wlog(recant, report, every):
    wlog.sweep(recant, report, max(200 // every, 4))


def no_journal(recant, report):
    with fast_directory() as directory:
        sweep = calls.Sweep(World(recant, directory), "commit", report)
        sweep.plant = lambda world: [os.unlink(os.path.join(world.store, "journals", name))
                                     for name in os.listdir(os.path.join(world.store, "journals"))]
        sweep.run(["KILL"], 3)


def swallowed(recant, report):
    with fast_directory() as directory:
        calls.Sweep(World(recant, directory), "commit", report).run([calls.SWALLOWED], 3)


def panics(recant, report):
    with fast_directory() as directory:
        world = World(recant, directory)
        world.around = ["sh", "-c", '"$@"; test $? != 1 || exit 101', "sh"]
        calls.Sweep(world, "commit", report).run(["EIO"], 3)


def wrong_times(recant, report):
    def now(world):
        for top, _, files in os.walk(world.tree):
            for name in files:
                path = os.path.join(top, name)
                if os.lstat(path).st_mtime_ns > 13 * 10**17:
                    os.utime(path, follow_symlinks=False)
    with fast_directory() as directory:
        sweep = calls.Sweep(World(recant, directory), "rollback", report)
        sweep.plant = now
        sweep.run(["EIO"], 3)


def no_way_back(recant, report):
    def lose(world):
        if world.status() != "committed":
            return
        for name in ["objects", "blobs"]:
            directory = os.path.join(world.store, "sessions", world.id, "checkpoint", name)
            for path in [os.path.join(directory, name) for name in os.listdir(directory)]:
                # What has a name in the tree, too, would be seen there.
                if os.path.isfile(path) and not os.path.islink(path) and os.stat(path).st_nlink == 1:
                    os.truncate(path, 0)
    with fast_directory() as directory:
        sweep = calls.Sweep(World(recant, directory), "rollback", report)
        sweep.plant = lose
        sweep.run(["EIO"], 3)


def no_content(recant, report):
    def lose_content(world):
        for top, _, files in os.walk(os.path.join(world.store, "snapshots")):
            for name in files:
                if name.endswith(".pack"):
                    os.truncate(os.path.join(top, name), 0)
    with fast_directory() as directory:
        snaps.sweep(recant, directory, report, 9, ["create"], plant=lose_content)


def no_sync(engine):
    kinds = (["ext4"], ["xfs"], ["btrfs"])
    return lambda recant, report: wlog.sweep(recant, report, 20, planted=True, kinds_wanted=kinds, engines=[engine])


# The engine, what the bug is, and how it is tried.
PLANTED = [
    ("calls", "no journal is there when the next command comes", no_journal),
    ("calls", "the error of a call is swallowed", swallowed),
    ("calls", "recant panics where a call fails", panics),
    ("calls", "a file that the session made has another time", wrong_times),
    ("calls", "what the checkpoint holds is gone, the tree is as it should be", no_way_back),
    ("snaps", "a snapshot's content is gone", no_content),
    ("shut", "no sync reaches the disk", lambda recant, report: shut.sweep(recant, report, 8, planted=True)),
    ("wlog", "no sync reaches the disk", no_sync("WLOG")),
    ("wlog", "no error of a sync is met where the disk fails", no_sync("DISK")),
]


def self_test(recant, engines):
    for engine, bug, run in PLANTED:
        if engine not in engines:
            continue
        report = Report(quiet=True)
        run(recant, report)
        if not report.counts:
            continue
        caught = sum(times for (_, _, outcome), times in report.counts.items() if outcome in ("mixed", "lost"))
        print(f"{engine}: {bug}: caught {caught} times in {sum(report.counts.values())} points", flush=True)
        if not caught:
            sys.exit(f"{engine}: a planted bug was not caught: {bug}")


@contextlib.contextmanager
def fast_directory(within=None):
    """A temporary directory, on a tmpfs of its own where that may be had."""
    with tempfile.TemporaryDirectory(prefix="recant-torture-", dir=within) as directory:
        mounted = subprocess.run(["mount", "-t", "tmpfs", "tmpfs", directory], capture_output=True).returncode == 0
        try:
            yield directory
        finally:
            if mounted:
                subprocess.run(["umount", "-l", directory], check=True)


def among_ourselves():
    """Root works in a mount namespace of its own: what others mount and change meanwhile is no part of a run's session, and what is
    mounted here is held by nobody else."""
    if os.geteuid() == 0 and shutil.which("unshare") and "RECANT_TORTURE" not in os.environ:
        os.environ["RECANT_TORTURE"] = "in a mount namespace of its own"
        os.execvp("unshare", ["unshare", "-m", "--propagation", "private", sys.executable, *sys.argv])


def main():
    among_ourselves()
    parser = argparse.ArgumentParser()
    parser.add_argument("recant")
    parser.add_argument("engines", nargs="*", choices=[*ENGINES, []], metavar="engine", default=[])
    parser.add_argument("--self-test", action="store_true", help="each engine has to catch a planted bug")
    parser.add_argument("--every", type=int, default=1, help="only each N-th point")
    args = parser.parse_args()
    recant = os.path.abspath(args.recant)
    report = Report()
    with tempfile.TemporaryDirectory(prefix="recant-torture-") as directory:
        world = World(recant, directory)
        os.makedirs(world.home)
        os.makedirs(world.tree)
        said = world.run("run", "-q", "--", "true")
        if said.returncode == 125:
            print(f"skipped: faults on purpose: no capture here: {said.stderr.decode().splitlines()[0]}")
            return
    if args.self_test:
        self_test(recant, args.engines or ENGINES)
        return
    # Ended early, it still tells how far it came.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("ended early"))
    try:
        for engine in args.engines or ENGINES:
            begun = time.monotonic()
            globals()[f"run_{engine}"](recant, report, args.every)
            print(f"{engine}: {time.monotonic() - begun:.0f} s", flush=True)
    finally:
        report.table()
    sys.exit(1 if report.failed() else 0)


if __name__ == "__main__":
    main()
