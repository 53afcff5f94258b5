"""What others do for the same work, run beside recant: times in rounds in which each has its turn, and faults, which are counted.

Each tool is driven as its own documentation says. oops-sh comes from crates.io, sandlock, stepback and nono's library from PyPI, into
target/rivals; TRY=DIR names a clone of try, whose compiled helpers are used where they are built. What is not to be had is named and
left out. A call has a limit, and all of it takes about ten minutes. Root alone has the row of the full disk, and try below /var/tmp."""

import contextlib
import hashlib
import os
import random
import shutil
import signal
import statistics
import subprocess
import sys
import threading
import time

from measuring import do, say

HERE = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
KIT = f"{HERE}/target/rivals"
PYTHON = f"{KIT}/venv/bin/python"
FILES, KILLED_FILES, KILLS = 1_000, 300, 20
LIMIT, SHORT, WHOLE = 60, 10, 600  # seconds of a call, of one that does next to nothing, and of all
TIMES = ["start", "hold", "list", "commit", "commit and sync -f", "discard", "undo"]

SED = "find d* -type f -print0 | xargs -0 sed -i s/old/new/"
DONE = "an new line\n" * 300  # what it makes of a file
# What an ordinary user does to files, each tried by itself, and the times set afterwards, so that two runs can be compared.
OPERATIONS = """printf new > made
printf more >> appended
sed -i s/old/new/ replaced
chmod 4711 mode
touch -d '2002-02-02 02:02:02.222222222' time
setfattr -n user.two -v 2 attribute
setfattr -x user.one stripped
ln one one.link
printf more >> linked
ln -s made symbolic
ln -sfn appended turned
rm removed
rm -r directory.gone
mv renamed renamed.new
mv directory.old directory.new
mkdir -m 1777 directory.made
mkfifo pipe
truncate -s 1M sparse
cp -a copied copied.too
rm kind; mkdir kind; printf in > kind/f
rm -r directory.kind; printf out > directory.kind
chmod 2750 directory.mode
setfacl -m u:1:r acl
rm -r again; mkdir again; printf new > again/new""".split("\n")
SET_TIMES = """find . -depth -mindepth 1 -newermt 2020-01-01 ! -path './.git*' ! -path './.stepback*' \\
-exec touch -h -d '2003-03-03 03:03:03.333333333' {} +"""
MEANWHILE = """printf command > changed; rm deleted; printf command > created
rm -r directory; mkdir made; printf command > made/f"""

SANDLOCK = """import sys
from sandlock import BranchAction, Sandbox
tree, storage, script = sys.argv[1:]
box = Sandbox(workdir=tree, cwd=tree, fs_readable=["/usr", "/lib", "/lib64", "/bin", "/etc", "/proc", "/dev", tree], fs_writable=[tree],
              fs_storage=storage, on_exit=BranchAction.DEFER, on_error=BranchAction.DEFER)
result = box.run(["sh", "-c", script])
print("held" if box.pending else f"not held: {result.stderr}", flush=True)
for line in sys.stdin:
    getattr(box, line.strip())()
    break
"""
NONO = """import sys
from nono_py import AccessMode, CapabilitySet, SnapshotManager, sandboxed_exec
tree, storage, script = sys.argv[1:]
snapshots = SnapshotManager(session_dir=storage, tracked_paths=[tree])
if script == "restore":
    snapshots.restore_to(snapshot_number=0)
else:
    snapshots.create_baseline()
    may = CapabilitySet()
    may.allow_path(tree, AccessMode.READ_WRITE)
    may.allow_file("/dev/null", AccessMode.READ_WRITE)
    for path in ("/usr", "/bin", "/lib", "/lib64", "/etc", "/proc"):
        may.allow_path(path, AccessMode.READ)
    result = sandboxed_exec(may, ["/bin/sh", "-c", script], cwd=tree, inherit_env=True)
    snapshots.create_incremental()
    sys.exit(result.exit_code)
"""
ARTICLE = {"commit": "a commit", "undo": "an undo"}


class Failed(Exception):
    """A call took too long, or ended with another status than 0."""


def measure(bench):
    """Rows of the table: to each tool its cell."""
    begun = time.monotonic()
    provide()
    tools = [tool for tool in (kind(bench) for kind in KINDS) if tool.is_here()]
    yield "version", {tool.name: tool.version() for tool in tools}
    fault_rows = Faults(bench, tools, begun)
    yield from fault_rows.differences()
    yield from fault_rows.meanwhile()
    yield from fault_rows.full_disk()
    yield from times(bench, tools, begun)
    yield from fault_rows.killed()
    who = "root" if os.geteuid() == 0 else "a user"
    print(f"\nrivals, as {who}: {FILES:,} files of 3.6 KiB, each changed by sed -i; bold: better than recant")


def provide():
    """Installs what registries have and is not there yet. What cannot be had is told by the tool that misses it."""
    os.makedirs(KIT, exist_ok=True)
    if not os.path.exists(f"{KIT}/bin/oops") and shutil.which("cargo"):
        install("cargo", "install", "-q", "--locked", "--root", KIT, "--version", "0.3.0", "oops-sh")
    if not os.path.exists(PYTHON):
        install(sys.executable, "-m", "venv", f"{KIT}/venv")
    for package in ("sandlock==0.9.0", "stepback==0.2.0", "nono-py==0.16.0"):
        if not version_of(package.split("==")[0]):
            install(PYTHON, "-m", "pip", "install", "-q", "--disable-pip-version-check", package)


def install(*command):
    say(f"  rivals: {' '.join(command)}")
    with contextlib.suppress(OSError, subprocess.TimeoutExpired):
        subprocess.run(command, timeout=240, stdout=subprocess.DEVNULL)


def version_of(package):
    code = f"import importlib.metadata as m; print(m.version('{package}'))"
    with contextlib.suppress(OSError):
        return subprocess.run([PYTHON, "-c", code], capture_output=True, text=True).stdout.strip()
    return ""


def first_line(*command):
    with contextlib.suppress(OSError):
        return subprocess.run(command, capture_output=True, text=True).stdout.split("\n")[0]
    return ""


# The tools


class Tool:
    """One way of doing it. A tool lacks the methods of what it has not got."""

    name, own, limit = "?", (), LIMIT
    commit = undo = discard = redo = list = None

    def __init__(self, bench):
        self.bench, self.count = bench, 0
        self.at(f"{bench.top}/rivals/{self.name.replace(' ', '')}")

    def at(self, place):
        self.place = place

    def is_here(self):
        missing = self.missing()
        if missing:
            print(f"\nskipped: {self.name}: {missing}", file=sys.stderr)
        return not missing

    def missing(self):
        return None

    def begin(self, base):
        """A new copy of `base`, and state beside it."""
        self.end()
        self.count, self.limit = self.count + 1, LIMIT
        self.top = f"{self.place}/{self.count}"
        self.tree, self.state = f"{self.top}/tree", f"{self.top}/state"
        os.makedirs(self.state)
        do("cp", "-a", base, self.tree)
        self.env = dict(os.environ, HOME=self.state, XDG_STATE_HOME=self.state, PATH=f"{KIT}/bin:{KIT}/venv/bin:{os.environ['PATH']}")
        self.ready()

    def ready(self):
        pass

    def end(self):
        shutil.rmtree(self.place, ignore_errors=True)

    def call(self, *command, kill_at=None, cwd=None):
        """Seconds of a command with all that it starts. Killed with it once `kill_at` says so, or if it takes too long."""
        begun = time.perf_counter()
        child = subprocess.Popen(
            command, cwd=cwd or self.tree, env=self.env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
            start_new_session=True, errors="replace", text=True,
        )
        self.wait(child, None, kill_at)
        if child.returncode and not kill_at:
            raise Failed(f"{' '.join(command)[:200]}: status {child.returncode}: {self.said.strip()[-200:]}")
        return time.perf_counter() - begun

    def wait(self, child, told, kill_at):
        if kill_at:
            if told:
                child.stdin.write(told)
                child.stdin.flush()
            until = time.monotonic() + self.limit
            while not kill_at() and child.poll() is None and time.monotonic() < until:
                pass
            kill(child)
            told = None
        try:
            self.said, _ = child.communicate(told, timeout=self.limit)
        except subprocess.TimeoutExpired:
            kill(child)
            raise Failed(f"{self.name}: longer than {self.limit} s") from None

    def shell(self, script, **more):
        return self.call("sh", "-c", script, **more)

    def start(self):
        self.hold("true")

    def recover(self, act):
        """What its documentation names after a crash, or else the same command once more."""
        getattr(self, act)()

    def back_out(self, act):
        """The way to the state before, from a commit that was cut off."""
        raise Failed("there is none")


class Recant(Tool):
    name = "recant"

    def version(self):
        return first_line(self.bench.args.recant, "--version").split()[-1]

    def ready(self):
        self.env |= {"RECANT_STORE": f"{self.state}/store", "XDG_CONFIG_HOME": f"{self.state}/config"}

    def recant(self, *words, **more):
        return self.call(self.bench.args.recant, "-y", *words, **more)

    def hold(self, script):
        return self.recant("run", "--", "sh", "-c", script)

    def list(self):
        return self.recant("show", "last")

    def commit(self, **more):
        return self.recant("commit", "last", **more)

    def discard(self):
        return self.recant("discard", "last")

    def undo(self, **more):
        return self.recant("rollback", "last", **more)

    def recover(self, act):
        self.recant("recover")

    def back_out(self, act):
        self.recant("recover")
        with contextlib.suppress(Failed):  # recovery may have undone it
            self.undo()


class Oops(Tool):
    name = "oops"

    def missing(self):
        return None if os.path.exists(f"{KIT}/bin/oops") else "oops-sh could not be installed from crates.io"

    def version(self):
        return first_line(f"{KIT}/bin/oops", "--version").split()[-1]

    def hold(self, script):
        return self.call("oops", "run", script)

    def list(self):
        return self.call("oops", "diff", "--porcelain")

    def commit(self, **more):
        return self.call("oops", "commit", **more)

    def discard(self):
        return self.call("oops", "undo")

    def back_out(self, act):
        self.discard()


class Try(Tool):
    """With its sandbox beside the tree. It lays an overlay over each directory of /, which fails over one with mounts below. So root
    shows it the tree at a directory of / without any."""

    name = "try"
    clone = os.path.abspath(os.environ["TRY"]) if "TRY" in os.environ else None

    def at(self, place):
        super().at(place)
        with open("/proc/self/mountinfo") as lines:
            mounts = [line.split()[4] for line in lines]
        roots = [path for path in ("/media", "/opt", "/srv", "/mnt") if os.path.isdir(path) and not any(m.startswith(path) for m in mounts)]
        self.shown = roots[0] if roots and os.geteuid() == 0 else None
        self.above = f"/{place.split('/')[1]}"
        self.fails = not self.shown and any(m.startswith(f"{self.above}/") for m in mounts)

    def missing(self):
        if self.clone is None or not os.path.exists(f"{self.clone}/try"):
            return "TRY names no clone of it"
        if self.fails:
            return f"there are mounts below {self.above}, over which it lays no overlay"
        return None if shutil.which("getfattr") else "it needs getfattr"

    def version(self):
        helpers = "" if os.path.exists(f"{self.clone}/utils/try-commit") else " without helpers"
        return f"{first_line('git', '-C', self.clone, 'log', '-1', '--format=%h of %cs') or '?'}{helpers}"

    def ready(self):
        os.mkdir(f"{self.state}/sandbox")
        self.env |= {"PATH": f"{self.clone}/utils:{self.env['PATH']}", "TRY_SHELL": "/bin/sh"}

    def run(self, script, *words, **more):
        top = self.shown or self.top
        enter = f'mount --bind "{self.top}" {top} && ' if self.shown else ""
        line = f'{enter}cd {top}/tree && exec "{self.clone}/try" {script}'
        return self.call(*(["unshare", "-m"] if self.shown else []), "sh", "-c", line, "sh", f"{top}/state/sandbox", *words, **more)

    def hold(self, script):
        return self.run('-N "$1" "$2"', script)

    def list(self):
        return self.run('summary "$1"')

    def commit(self, **more):
        return self.run('-y commit "$1"', **more)


class Sandlock(Tool):
    """A library: a process that runs the command, and then commits or aborts."""

    name = "sandlock"
    waiting = None

    def missing(self):
        return None if version_of("sandlock") else "it could not be installed from PyPI"

    def version(self):
        return version_of("sandlock")

    def start(self):
        self.hold("true")
        self.tell("abort")

    def hold(self, script):
        begun = time.perf_counter()
        self.waiting = subprocess.Popen(
            [PYTHON, "-c", SANDLOCK, self.tree, self.state, script], cwd=self.tree, env=self.env, stdin=subprocess.PIPE,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, start_new_session=True, text=True,
        )
        timer = Timer(self.waiting, self.limit)
        line = self.waiting.stdout.readline().strip()  # ends where it is killed
        timer.cancel()
        if line != "held":
            raise Failed(f"sandlock: {line or f'longer than {self.limit} s'}")
        return time.perf_counter() - begun

    def tell(self, word, kill_at=None):
        begun = time.perf_counter()
        self.wait(self.waiting, f"{word}\n", kill_at)
        if self.waiting.returncode and not kill_at:
            raise Failed(f"sandlock: {word}: {self.said.strip()[-200:]}")
        return time.perf_counter() - begun

    def commit(self, **more):
        return self.tell("commit", **more)

    def discard(self):
        return self.tell("abort")

    def recover(self, act):
        raise Failed("it names no way")

    def end(self):
        if self.waiting and self.waiting.poll() is None:
            kill(self.waiting)
        super().end()


class Nono(Tool):
    """Its library for Python: a snapshot before and after, the command in its sandbox, and the way back."""

    name = "nono"

    def missing(self):
        return None if version_of("nono-py") else "nono-py could not be installed from PyPI"

    def version(self):
        return f"nono-py {version_of('nono-py')}"

    def hold(self, script):
        return self.call(PYTHON, "-c", NONO, self.tree, f"{self.state}/session", script)

    def undo(self, **more):
        return self.call(PYTHON, "-c", NONO, self.tree, f"{self.state}/session", "restore", **more)


class Stepback(Tool):
    name, own = "stepback", (".stepback",)

    def missing(self):
        return None if version_of("stepback") else "it could not be installed from PyPI"

    def version(self):
        return version_of("stepback")

    def hold(self, script):
        return self.call("stepback", "run", "--", "sh", "-c", script)

    def list(self):
        return self.call("stepback", "rewind", "1", "--dry-run")

    def undo(self, **more):
        return self.call("stepback", "rewind", "1", "--yes", **more)

    def redo(self):
        self.call("stepback", "redo")

    def recover(self, act):
        self.call("stepback", "recover")


class Git(Tool):
    """A commit before and one after; the way back is a checkout of the first, which minds what is not committed."""

    name, own = "git", (".git",)

    def missing(self):
        return None if shutil.which("git") else "not found"

    def version(self):
        return first_line("git", "--version").split()[-1]

    def ready(self):
        self.env |= {f"GIT_{who}_{what}": "a@example.org" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}
        self.call("git", "init", "-q")

    def hold(self, script):
        return self.shell(f"git add -A && git commit -q --allow-empty -m before && git tag before && {{ {script}\n}}")

    def list(self):
        return self.call("git", "status", "--short")

    def commit(self):
        return self.shell("git add -A && git commit -q --allow-empty -m after")

    def undo(self, **more):
        return self.call("git", "checkout", "-q", "--detach", "before", **more)

    def recover(self, act):
        self.shell("rm -f .git/index.lock; git reset -q --hard before")


class Rsync(Tool):
    name = "rsync"

    def missing(self):
        return None if shutil.which("rsync") else "not found"

    def version(self):
        return first_line("rsync", "--version").split()[2]

    def hold(self, script):
        return self.shell(f"rsync -aHAXS ./ ../kept && {{ {script}\n}}")

    def list(self):
        return self.shell("rsync -aHAXSni --delete ./ ../kept")

    def undo(self, **more):
        return self.shell("rsync -aHAXS --delete ../kept/ ./", **more)


class Cp(Tool):
    """A copy before; the way back is to have the copy take the tree's name."""

    name, reflink = "cp -a", "never"

    def version(self):
        return first_line("cp", "--version").split()[-1]

    def hold(self, script):
        return self.shell(f"cp -a --reflink={self.reflink} ../tree ../kept && {{ {script}\n}}")

    def list(self):
        return self.shell("diff -rq --no-dereference ../kept . || [ $? = 1 ]")

    def undo(self, **more):
        return self.shell("mv tree gone && mv kept tree && rm -rf gone", cwd=self.top, **more)

    def recover(self, act):
        self.shell("[ ! -e gone ] || [ -e tree ] || mv kept tree; rm -rf gone", cwd=self.top)


class CpReflink(Cp):
    name, reflink = "cp --reflink", "always"

    def missing(self):
        put(f"{self.place}/original", "a probe\n" * 1_000)
        probe = subprocess.run(["cp", "--reflink=always", "original", "copy"], cwd=self.place, capture_output=True)
        self.end()
        return "this file system shares no blocks: --fs xfs or btrfs" if probe.returncode else None


KINDS = [Recant, Oops, Try, Sandlock, Nono, Stepback, Git, Rsync, Cp, CpReflink]


class Timer:
    """Kills a process that takes too long to say a line."""

    def __init__(self, child, seconds):
        self.timer = threading.Timer(seconds, kill, [child])
        self.timer.start()

    def cancel(self):
        self.timer.cancel()


def kill(child):
    with contextlib.suppress(ProcessLookupError):
        os.killpg(child.pid, signal.SIGKILL)
    child.wait()


# Times


def times(bench, tools, begun):
    base = f"{bench.top}/rivals-base"
    make_text(base, FILES)
    seconds = {tool: {row: [] for row in TIMES} for tool in tools}
    rounds = max(5, bench.args.rounds)
    for r in range(rounds):
        if time.monotonic() - begun > WHOLE * 0.7:
            print(f"\nrivals: {r} rounds of {rounds}: there was no time for more", file=sys.stderr)
            break
        say(f"  rivals: round {r + 1} of {rounds}")
        for tool in tools[r % len(tools) :] + tools[: r % len(tools)]:
            for row, took in one_round(tool, base):
                seconds[tool][row].append(took)
    for row in TIMES:
        yield marked(f"{row}, ms", {tool.name: median_cell(seconds[tool][row], seconds[tools[0]][row]) for tool in tools})
    shutil.rmtree(base)


def one_round(tool, base):
    try:
        tool.begin(base)
        settle(tool)
        begun = time.perf_counter()
        tool.start()
        yield "start", time.perf_counter() - begun
        tool.begin(base)
        settle(tool)
        yield "hold", tool.hold(SED)
        if tool.list:
            yield "list", tool.list()
        if tool.commit:
            settle(tool)
            took = tool.commit()
            yield "commit", took
            yield "commit and sync -f", took + tool.call("sync", "-f", ".")
        if tool.undo:
            settle(tool)
            yield "undo", tool.undo()
        if tool.discard:
            tool.begin(base)
            tool.hold(SED)
            settle(tool)
            yield "discard", tool.discard()
    except Failed as why:
        note(tool, why)
    tool.end()


def note(tool, text):
    print(f"rivals: {tool.name}: {text}", file=sys.stderr)


def settle(tool):
    """Nothing waits to be written when the clock starts."""
    tool.call("sync", "-f", tool.top)


def median_cell(values, ours):
    """The median; its worth is the ratio to recant's, of medians or in paired rounds, to a tenth."""
    if not values:
        return NONE
    median = statistics.median(values)
    ratios = [median / statistics.median(ours), statistics.median(a / b for a, b in zip(values, ours))] if ours else []
    return f"{median * 1000:.0f}", -round(max(ratios), 1) if ratios else None


NONE = ("–", None)


def marked(row, cells):
    """A row of the table, of cells with their worth (None: not to be compared): bold where it is higher than recant's."""
    ours = cells.get("recant", NONE)[1]
    better = {name for name, (_, worth) in cells.items() if None not in (worth, ours) and worth > ours}
    return row, {name: f"**{text}**" if name in better else text for name, (text, _) in cells.items()}


# Faults


class Faults:
    def __init__(self, bench, tools, begun):
        self.bench, self.tools, self.begun = bench, tools, begun
        self.base = f"{bench.top}/rivals-base"

    def each(self, row, cell, only=lambda tool: True):
        say(f"  rivals: {row}")
        cells = {}
        for tool in self.tools:
            cells[tool.name] = "no time left", None
            if time.monotonic() - self.begun > WHOLE:
                continue
            try:
                cells[tool.name] = cell(tool) if only(tool) else NONE
            except Failed as why:
                note(tool, f"{row}: {why}")
                cells[tool.name] = "failed", None
            tool.end()
        return marked(row, cells)

    # What a commit and an undo leave, beside the bare command

    def differences(self):
        make_kinds(self.base)
        before, bare = manifest(self.base, ()), Tool(self.bench)
        expected = {}
        for line in OPERATIONS:
            bare.begin(self.base)
            bare.shell(f"{line}\n{SET_TIMES}")
            expected[line] = manifest(bare.tree, ())
        bare.end()
        undone = {}

        def count(tool):
            done, back, until = Differences(), Differences(), time.monotonic() + LIMIT
            for line in OPERATIONS:
                if time.monotonic() > until:
                    raise Failed(f"all of them take longer than {LIMIT} s")
                tool.begin(self.base)
                tool.limit = SHORT
                with contextlib.suppress(Failed):
                    tool.hold(f"{line}\n{SET_TIMES}")
                    if tool.commit:
                        tool.commit()
                done.compare(line, expected[line], manifest(tool.tree, tool.own))
                with contextlib.suppress(Failed):
                    if tool.undo:
                        tool.undo()
                back.compare(line, before, manifest(tool.tree, tool.own))
            note(tool, f"otherwise than bare: {done}")
            if tool.undo:
                undone[tool] = back
                note(tool, f"otherwise than before, after an undo: {back}")
            return done.cell()

        yield self.each(f"of {len(OPERATIONS)} commands: another result than bare", count)
        yield marked("… not as before once undone", {tool.name: undone[tool].cell() if tool in undone else NONE for tool in self.tools})
        shutil.rmtree(self.base)

    # What somebody does between the command and the commit, or before the undo

    def meanwhile(self):
        for name in ("changed", "deleted", "directory/f"):
            put(f"{self.base}/{name}", "old")
        yield self.each("edited before a commit, 4 ways: kept", lambda tool: self.kept(tool, "commit", "directory/mine"), is_held)
        yield self.each("edited before an undo, 4 ways: kept", lambda tool: self.kept(tool, "undo", "made/mine"), lambda tool: tool.undo)
        shutil.rmtree(self.base)

    def kept(self, tool, act, beside):
        kept = again = 0
        for name in ("changed", "deleted", "created", beside):
            tool.begin(self.base)
            tool.hold(MEANWHILE)
            if act == "undo" and tool.commit:
                tool.commit()
            mine = f"{tool.tree}/{name}"
            put(mine, "mine")
            with contextlib.suppress(Failed):
                getattr(tool, act)()
            if content(mine) == b"mine":
                kept += 1
            elif tool.redo:
                tool.redo()
                again += content(mine) == b"mine"
        return f"{kept} of 4" + (f", {again} by its redo" if again else ""), kept

    # A disk with 1 MiB left

    def full_disk(self):
        if os.geteuid() != 0 or not shutil.which("mkfs.ext4"):
            print("\nskipped: rivals on a full disk: needs root and mkfs.ext4", file=sys.stderr)
            return
        make_text(self.base, FILES)
        image, disk = f"{self.bench.top}/disk.img", f"{self.bench.top}/disk"
        os.makedirs(disk)
        with open(image, "wb") as out:
            out.truncate(64 << 20)
        do("mkfs.ext4", "-q", "-m", "0", "-N", "20000", image)
        do("mount", "-o", "loop", image, disk)
        try:
            can_undo = lambda tool: tool.undo and not isinstance(tool, CpReflink)  # ext4 shares no blocks
            for act, only in (("commit", is_held), ("undo", can_undo)):
                row = f"1 MiB free on the disk at {ARTICLE[act]}: the tree is"
                yield self.each(row, lambda tool, act=act: self.on_full(tool, act, disk), only)
        finally:
            for tool in self.tools:
                tool.at(f"{self.bench.top}/rivals/{tool.name.replace(' ', '')}")
            do("umount", disk)
            os.unlink(image)
        shutil.rmtree(self.base)

    def on_full(self, tool, act, disk):
        tool.at(f"{disk}/{tool.name.replace(' ', '')}")
        tool.begin(self.base)
        before = contents(tool.tree, tool.own)
        tool.hold(SED)
        if act == "undo" and tool.commit:
            tool.commit()
        after = dict.fromkeys(before, digest(DONE.encode()))
        tool.call("sync", "-f", ".")
        fill(f"{disk}/filler", disk)
        told = ""
        try:
            getattr(tool, act)()
        except Failed:
            told = ", said so"
        found = state(before, after, contents(tool.tree, tool.own))
        tool.end()
        os.unlink(f"{disk}/filler")
        return found + told, {"before": 1, "after": 1}.get(found, 0) + (found == ("after" if act == "commit" else "before"))

    # Killed in the middle: as a file changes that was chosen at random

    def killed(self):
        make_text(self.base, KILLED_FILES)
        kills = self.kills("commit", "recover", is_held, 1 / 3)
        row = "killed in a commit: neither before nor after"
        yield self.row_of(row, kills, lambda kills: (kills.cell(0, ("before", "after"))[0], None))
        yield self.row_of(f"{row}, once recovered", kills, lambda kills: kills.cell(1, ("before", "after")))
        kills = self.kills("commit", "back_out", is_held, 1 / 2)
        yield self.row_of("killed in a commit, then backed out of: not before", kills, lambda kills: kills.cell(1, ("before",)))
        kills = self.kills("undo", "recover", lambda tool: tool.undo, 1)
        row = "killed in an undo: neither before nor after"
        yield self.row_of(row, kills, lambda kills: (kills.cell(0, ("before", "after"))[0], None))
        yield self.row_of(f"{row}, once recovered", kills, lambda kills: kills.cell(1, ("before", "after")))
        shutil.rmtree(self.base)

    def row_of(self, row, kills, cell):
        return marked(row, {tool.name: cell(kills[tool]) if tool in kills else NONE for tool in self.tools})

    def kills(self, act, then, only, part):
        """Kills each tool many times, within a part of the time that is left, of which each has the same share."""
        say(f"  rivals: killed in {act}, then {then}")
        kills = {tool: Kills() for tool in self.tools if only(tool)}
        share = (WHOLE - (time.monotonic() - self.begun)) * part / len(kills)
        for _ in range(KILLS):
            for tool in kills:
                if not kills[tool].enough(share):
                    self.kill_once(tool, act, then, kills[tool])
        return kills

    def kill_once(self, tool, act, then, kills):
        begun = time.monotonic()
        try:
            tool.begin(self.base)
            before = contents(tool.tree, tool.own)
            after = dict.fromkeys(before, digest(DONE.encode()))
            tool.hold(SED)
            if act == "undo" and tool.commit:
                tool.commit()
            getattr(tool, act)(kill_at=changed(f"{tool.tree}/{kills.random.choice(sorted(before))}"))
            first = state(before, after, contents(tool.tree, tool.own))
            with contextlib.suppress(Failed):
                getattr(tool, then)(act)
            kills.done.append((first, state(before, after, contents(tool.tree, tool.own))))
        except Failed as why:
            note(tool, f"killed in {act}: {why}")
        finally:
            tool.end()
            kills.spent += time.monotonic() - begun


class Differences:
    """Commands that left something else than expected, and those of them where more than times differ."""

    def __init__(self):
        self.some, self.more = [], []

    def compare(self, line, expected, found):
        if found != expected:
            self.some.append(line)
            if timeless(found) != timeless(expected):
                self.more.append(line)

    def cell(self):
        return f"{len(self.some)}" + (f" ({len(self.more)} if times do not count)" if self.some else ""), -len(self.some)

    def __str__(self):
        return f"{len(self.some)}; apart from times: {self.more}"


class Kills:
    """What the tree was, at each kill and in the end."""

    def __init__(self):
        self.spent, self.done, self.random = 0, [], random.Random(7)

    def enough(self, share):
        return self.spent > share and len(self.done) >= 5

    def cell(self, when, right):
        """How many were not right, at the kill (0) or in the end (1)."""
        if not self.done:
            return "failed", None
        mixed = [states[when] for states in self.done if states[when] not in right]
        missing = sum("missing" in state for state in mixed)
        return f"{len(mixed)} of {len(self.done)}" + (f", {missing} with files missing" if missing else ""), -len(mixed) / len(self.done)


def is_held(tool):
    return tool.commit and not isinstance(tool, Git)


# Trees and what is in them


def make_text(base, count):
    for i in range(count):
        put(f"{base}/d{i % 50:02}/f{i:04}", "an old line\n" * 300)


def make_kinds(base):
    """What OPERATIONS works on, with old times."""
    for name in ("appended", "replaced", "mode", "time", "attribute", "stripped", "one", "linked", "removed", "renamed", "copied", "kind", "acl",
                 "untouched", "directory.gone/f", "directory.old/f", "directory.kind/f", "directory.mode/f", "again/old", "sub/deep/f"):
        put(f"{base}/{name}", "old\n")
    os.link(f"{base}/linked", f"{base}/linked.too")
    os.symlink("replaced", f"{base}/turned")
    with contextlib.suppress(OSError):
        os.setxattr(f"{base}/stripped", "user.one", b"1")
    for directory, directories, files in os.walk(base, topdown=False):
        for name in files + directories + ["."]:
            os.utime(f"{directory}/{name}", ns=(1_500_000_000_123_456_789,) * 2, follow_symlinks=False)


def put(path, text):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "w") as out:
        out.write(text)


def content(path):
    with contextlib.suppress(OSError), open(path, "rb") as file:
        return file.read()
    return None


def digest(data):
    return hashlib.sha256(data).hexdigest()


def below(tree, own):
    """All paths of a tree but for what a tool keeps in it."""
    for directory, directories, files in os.walk(tree):
        if directory == tree:
            directories[:] = [name for name in directories if name not in own]
        yield from (f"{directory}/{name}" for name in directories + files)


def contents(tree, own):
    return {os.path.relpath(path, tree): digest(content(path) or b"") for path in below(tree, own) if os.path.isfile(path)}


def changed(path):
    """Tells if a file is no longer what it is now."""

    def look():
        with contextlib.suppress(OSError):
            st = os.lstat(path)
            return st.st_ino, st.st_size, st.st_mtime_ns
        return None

    now = look()
    return lambda: look() != now


def state(before, after, found):
    if found in (before, after):
        return "before" if found == before else "after"
    missing = sum(found.get(name) not in (before[name], after[name]) for name in before)
    return f"neither, {missing} files missing" if missing else "neither"


def manifest(tree, own):
    """Of each path all but ctime, atime and inode; hard links by the names that belong together."""
    found, links = {}, {}
    for path in below(tree, own):
        st = os.lstat(path)
        kind = st.st_mode >> 12
        links.setdefault(st.st_ino, []).append(os.path.relpath(path, tree))
        data = digest(content(path)) if kind == 8 else os.readlink(path) if kind == 10 else ""
        extended = tuple((key, os.getxattr(path, key, follow_symlinks=False)) for key in sorted(os.listxattr(path, follow_symlinks=False)))
        found[os.path.relpath(path, tree)] = [oct(st.st_mode), st.st_uid, st.st_gid, st.st_mtime_ns, data, extended, st.st_ino]
    for row in found.values():
        row[-1] = sorted(links[row[-1]])
    return found


def timeless(found):
    return {name: row[:3] + row[4:] for name, row in found.items()}


def fill(path, disk):
    """Leaves 1 MiB of a disk free."""
    st = os.statvfs(disk)
    with open(path, "wb", buffering=0) as out:
        left = st.f_bavail * st.f_frsize - (1 << 20)
        while left > 0:
            left -= out.write(b"x" * min(left, 1 << 20))
        os.fsync(out.fileno())
