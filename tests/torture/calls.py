"""Every system call that changes or syncs something fails once, or is the last one: strace -e inject.

For commit, rollback, redo and recover, for each such call of a run: SIGKILL before it, or it fails with ENOSPC, EIO or
EINTR. After a kill the next command recovers by itself; after an error the command has done all, or undone all, or said
that it is stuck (7) for the next one to end. The tree is exactly as before or as after, the session says which of them, nothing is
left beside the user's files; the same command again succeeds, and the way back gives what was there."""

import os
import re
import signal
import subprocess
from collections import Counter

from scene import World, difference

CALLS = ("openat write pwrite64 writev copy_file_range sendfile ioctl ftruncate fallocate rename renameat renameat2 link linkat "
         "symlinkat unlink unlinkat mkdirat mknodat fchmod fchmodat fchmodat2 chmod fchown fchownat utimensat setxattr lsetxattr fsetxattr "
         "removexattr lremovexattr fsync fdatasync syncfs sync_file_range").split()
LINE = re.compile(r"^(\d+) +(\w+)\((.*)$")
# Calls that a signal may end with EINTR.
INTERRUPTED = {"write", "copy_file_range", "fallocate", "openat"}
KINDS = ["KILL", "ENOSPC", "EIO", "EINTR", "other"]
# One after the other, from point to point.
OTHERS = ["EPERM", "EACCES", "EROFS", "EDQUOT", "EMFILE", "ENFILE", "ENOMEM", "EBUSY", "ETXTBSY", "ENOLCK",
          "ENOENT", "ELOOP"]

# No failures, and believed: there is nothing to remove; the times are those of somebody else's directory.
LIES = {("unlinkat", "ENOENT"), ("unlink", "ENOENT"), ("utimensat", "EPERM")}

# verb: status before, status after, and the verb that leads back from there to the status before; none: a world is made anew.
VERBS = {
    "commit": ("pending", "committed", None),
    "rollback": ("committed", "rolled_back", "redo"),
    "redo": ("rolled_back", "committed", "rollback"),
    "recover": ("pending", "committed", None),
}


# The planted bug of the power cuts: every sync says that it was done, and was not.
NO_SYNC = ["strace", "-f", "-qq", "-o", "/dev/null", "-e", "trace=fsync,syncfs,fdatasync", "-e", "inject=fsync,syncfs,fdatasync:retval=0"]


# The planted bug of the calls that fail: the call is not made, and recant goes on as if it had been. Not of calls that give a number.
SWALLOWED = "swallowed"
NUMBERS = {"openat", "write", "writev", "pwrite64", "copy_file_range", "sendfile", "ioctl"}


# With what recant may end where a call failed: done, and each way of having changed nothing (`recant help`). 2 (usage) and 4 (something
# was left out) would be wrong here, as is all that is not recant's: a panic (101), a signal.
DONE, NOTHING, STUCK = 0, (1, 3, 5, 6), 7


# So often a call is looked for that has another number each time.
RETRIES = 8


class Missed(Exception):
    """The run did not come to the call in question, or another one had its number: nothing was tried."""


class Found(Exception):
    """A promise that does not hold: `mixed` states, or something `lost`."""

    def __init__(self, kind, text):
        super().__init__(text)
        self.kind = kind


def changes(call, rest):
    """Whether a traced call changes or syncs something that lasts."""
    if call == "openat":
        return "O_CREAT" in rest
    if call in ("write", "writev", "pwrite64"):
        return not rest.startswith(("1<", "2<", "1,", "2,"))
    if call == "ioctl":
        return "FICLONE" in rest
    # strace shows calls that it does not know by their number, whatever it was told to trace; these read attributes.
    return call in CALLS


def points(world, *words, only=CALLS):
    """All calls of a run that change something: name, and its number among all calls of that name in its thread, which is how strace
    counts. Where two threads have the same, both fail. What a run's command does itself is not recant's. Runs it to its end."""
    log = os.path.join(world.at, "strace.log")
    world.run(*words, prefix=["strace", "-f", "-qq", "-o", log, "-e", "trace=" + ",".join("?" + call for call in only)])
    counts, found, first = Counter(), [], None
    with open(log, errors="backslashreplace") as lines:
        for line in lines:
            match = LINE.match(line)
            if not match:
                continue
            thread, call, rest = match.groups()
            first = first or thread
            counts[thread, call] += 1
            ours = thread == first or words[0] != "run"
            if ours and changes(call, rest):
                found.append((call, counts[thread, call]))
    os.unlink(log)
    return list(dict.fromkeys(found))


def renumbered(world, found, point, *words):
    """The point's number in a run of now: how often files are only opened or listed is not the same each time."""
    rank = [other for other in found if other[0] == point[0]].index(point)
    again = points(world, *words, only=[point[0]])
    return again[rank] if rank < len(again) else point


def inject(world, call, n, kind, *words):
    how = {"KILL": "signal=KILL", SWALLOWED: "retval=0"}.get(kind, f"error={kind}") + f":when={n}"
    log = os.path.join(world.at, "strace.log")
    trace = ["strace", "-f", "-qq", "-o", log, "-e", f"trace={call}", "-e", f"inject={call}:{how}"]
    said = world.run(*words, prefix=trace)
    hit, met, latest = "killed by SIGKILL" if kind == "KILL" else "(INJECTED)", False, {}
    with open(log, errors="backslashreplace") as lines:
        for line in lines:
            thread = line.split(maxsplit=1)[0]
            if match := LINE.match(line):
                latest[thread] = changes(*match.groups()[1:])
            met |= hit in line and latest.get(thread, False)
    os.unlink(log)
    if not met:
        raise Missed(f"exit {said.returncode}: {said.stderr.decode(errors='backslashreplace')}")
    return said


def documented(kind, said, allowed=(DONE, *NOTHING, STUCK)):
    """Whether it ended as it may: by the signal, where that was the fault, else with a status that fits."""
    killed = said.returncode in (137, -signal.SIGKILL)
    if kind == "KILL":
        if not killed:
            raise Found("mixed", f"exit {said.returncode}, and not SIGKILL")
    elif said.returncode not in allowed:
        raise Found("mixed", f"exit {said.returncode} is not a status for this: {said.stderr.decode(errors='backslashreplace')}")


class Sweep:
    """One verb on one world, which goes from point to point and is made anew where it has to be."""

    def __init__(self, world, verb, report):
        self.world, self.verb, self.report = world, verb, report
        self.was, self.becomes, self.back = VERBS[verb]
        self.words = ["recover"] if verb == "recover" else [verb, None]
        self.tried = 0
        self.plant = lambda world: None

    def begin(self):
        """A world in which the verb is to be tried, and both its states."""
        self.world.make()
        self.before = self.world.manifest()
        for step in {"rollback": ["commit"], "redo": ["commit", "rollback"]}.get(self.verb, []):
            self.must(step)
        self.before = self.world.manifest()

    def must(self, verb, prefix=()):
        said = self.world.run(verb, self.world.id, prefix=prefix)
        if said.returncode != 0:
            raise Found("lost", f"{verb}: exit {said.returncode}: {said.stderr.decode()}")

    def argv(self):
        return ["recover"] if self.verb == "recover" else [self.verb, self.world.id]

    def stop(self, at):
        """For recover: a commit that was killed at this call."""
        if self.verb == "recover":
            inject(self.world, *at, "KILL", "commit", self.world.id)

    def all_points(self, at):
        self.begin()
        self.stop(at)
        found = points(self.world, *self.argv())
        if self.verb == "recover":
            if self.world.status() == self.was:
                self.must("commit")
        self.after = self.world.manifest()
        self.return_(self.world.status())
        return found

    def return_(self, status):
        """Back to where the verb can be tried again."""
        if status == self.was:
            return
        if self.back:
            self.must(self.back)
        else:
            self.begin()

    def judge(self, what, said, kind, at):
        world = self.world
        # recover tells its result on standard output, also where that is a failure.
        text = (said.stderr + (said.stdout if self.verb == "recover" else b"")).decode(errors="backslashreplace").strip()
        self.plant(world)
        documented(kind, said)
        if kind == "KILL" or said.returncode == STUCK:
            if kind != "KILL" and not text:
                raise Found("mixed", "exit 7 without a word")
            recovered = world.run("recover")
            if recovered.returncode != 0:
                raise Found("mixed", f"{text}\nrecover: exit {recovered.returncode}: {recovered.stdout.decode()}{recovered.stderr.decode()}")
        elif said.returncode != 0 and not text:
            raise Found("mixed", f"exit {said.returncode} without a word")
        status = world.status()
        if self.verb == "recover" and kind != "KILL" and said.returncode not in (0, 7):
            # The error was met before it began: the next one ends it.
            recovered = world.run("recover")
            status = world.status()
        wanted = {self.was: self.before, self.becomes: self.after}.get(status)
        if wanted is None:
            raise Found("mixed", f"status {status}; {text}")
        differs = difference(wanted, world.manifest())
        if differs:
            raise Found("mixed", f"exit {said.returncode}, status {status}, but\n" + "\n".join(differs) + "\n" + text)
        left = world.leftovers()
        if left:
            raise Found("mixed", f"exit {said.returncode}, left: {left}; {text}")
        if kind != "KILL" and self.verb != "recover":
            if said.returncode == 0 and status == self.was:
                raise Found("mixed", f"exit 0, but status {status}")
            if said.returncode not in (0, 7) and status != self.was:
                raise Found("mixed", f"exit {said.returncode}, but status {status}")
        if kind == "EINTR" and at[0] in ("write", "copy_file_range") and said.returncode != 0:
            raise Found("mixed", f"EINTR is not for the user to see: exit {said.returncode}: {text}")
        return "stuck" if kind != "KILL" and said.returncode == 7 else "before" if status == self.was else "after"

    def go_on(self, status):
        """The same command again, and the way back: no byte of either state is gone."""
        forth = "commit" if self.verb == "recover" else self.verb
        inverse = "redo" if forth == "rollback" else "rollback"
        if status == self.was:
            self.must(forth)
        differs = difference(self.after, self.world.manifest())
        if differs:
            raise Found("lost", f"{forth} again:\n" + "\n".join(differs))
        self.must(inverse)
        differs = difference(self.before if self.verb != "recover" else self.start, self.world.manifest())
        if differs:
            raise Found("lost", f"{inverse}:\n" + "\n".join(differs))
        if self.back:
            if inverse != self.back:
                self.must(self.back)
        else:
            self.begin()

    def inject(self, at, found, point, fault):
        """Lets the call fail, by another number where that is none of them by now."""
        now = point
        for again in range(RETRIES):
            self.stop(at)
            try:
                return inject(self.world, *now, fault, *self.argv())
            except Missed:
                if again == RETRIES - 1:
                    raise
            self.begin()
            self.stop(at)
            now = renumbered(self.world, found, point, *self.argv())
            self.begin()

    def run(self, kinds, every, at=None):
        found = self.all_points(at)
        self.start = self.before
        for kind in kinds:
            for i, point in enumerate(found):
                if (i + len(kind)) % every or kind == "EINTR" and point[0] not in INTERRUPTED:
                    continue
                if kind == SWALLOWED and point[0] in NUMBERS:
                    continue
                fault = OTHERS[i % len(OTHERS)] if kind == "other" else kind
                if (point[0], fault) in LIES:
                    continue
                what = f"{self.verb}: {kind} ({i}) at {point[0]} {point[1]}" + (f" after a commit killed at {at[0]} {at[1]}" if at else "")
                self.tried += 1
                try:
                    said = self.inject(at, found, point, fault)
                    outcome = self.judge(what, said, kind, point)
                    self.go_on(self.world.status())
                    self.report.count(kind, self.verb, outcome)
                except Missed as why:
                    self.report.count(kind, self.verb, "missed")
                    self.report.say(f"missed: {what}: {why}")
                    self.begin()
                except Found as wrong:
                    self.report.count(kind, self.verb, wrong.kind)
                    self.report.say(f"{wrong.kind}: {what}:\n{wrong}")
                    self.begin()


def sweep(recant, directories, report, every=1, verbs=VERBS):
    """`directories`: where the tree lies, and the store where that is somewhere else."""
    for verb in verbs:
        world = World(recant, *directories)
        one = Sweep(world, verb, report)
        if verb != "recover":
            one.run(KINDS, every)
            continue
        # Recovery of a commit that was killed early, in the middle of its steps, and once it was sealed.
        one.begin()
        found = points(world, "commit", world.id)
        renames = [point for point in found if point[0].startswith("rename")]
        for at in [found[len(found) // 4], renames[len(renames) // 3], renames[len(renames) // 2], found[-8]]:
            one.run(KINDS, every * 2 if every > 1 else 1, at)
