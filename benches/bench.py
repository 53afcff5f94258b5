#!/usr/bin/env python3
"""Times recant against cp, git and rsync, in rounds in which each has its turn, and prints ratios made round by round
(medians, with the lowest and the highest). Needs Python 3.9 and nothing else from there; root, for the file systems in
loop devices. What cannot be measured without root, a mkfs, or a program beside which recant is measured, is named, and the
rest goes on; so does a part that fails, and the exit status is 1 then.

    make bench                       everything: ext4 with a journal, xfs, btrfs, and the file system of this directory
    make bench BENCH=--quick         ext4 with a journal alone, without git on the large tree
    make bench BENCH='--fs xfs --parts main --trees small --rounds 9'
"""
import argparse
import json
import os
import random
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

import agents
import programs
import remote
import review
import rivals
import steps
from measuring import clock, commits, do, has, median_ms, say, spread

KIB, MIB, GIB = 1 << 10, 1 << 20, 1 << 30
# files, bytes of each, directories; one in how many is changed, deleted, created
TREES = {
    "small": (20_000, 4 * KIB, 1_000, (10, 50, 20)),
    "large": (200, 5 * MIB, 10, (10, 50, 20)),
    "many": (100_000, 64, 2_000, (2, 4, 4)),
    # For a test of this script.
    "tiny": (50, KIB, 5, (10, 50, 20)),
    # For snapshots, and asked for by name: half an hour a round, and 40 GiB at most.
    "million": (1_000_000, 64, 20_000, (10, 50, 20)),
}
# The programs without which a part has nothing to do.
NEEDS = {"agents": ["git"], "programs": ["git"], "steps": ["git"]}
PARTS = ["main", "snap", "one", "list", "memory", "run", "steps", "agents", "review", "programs", "remote", "rivals"]


def main():
    args = arguments()
    if args.change:
        return Work(*args.change).carry_out()
    os.environ.update(LC_ALL="C", GIT_CONFIG_NOSYSTEM="1", GIT_CONFIG_GLOBAL="/dev/null")
    print(f"{machine()}\nrounds: {args.rounds}; ratios are medians of the rounds [lowest to highest]; below 1 recant is faster")
    results, failed = {}, []
    try:
        measure(args, results, failed)
    finally:  # what was measured before it was stopped is not lost
        report(results)
        print(f"\nload at the end: {os.getloadavg()[0]:.1f}")
    if args.json:
        with open(args.json, "w") as out:
            about = {"machine": machine(), "date": time.strftime("%Y-%m-%d"), "recant": do(args.recant, "--version").split()[-1], "rounds": args.rounds}
            json.dump({**about, "results": {" ".join(k): v for k, v in results.items()}}, out, indent=1)
    sys.exit("".join(f"failed: {part}\n" for part in failed) if failed else 0)


def measure(args, results, failed):
    for name in args.fs:
        with Place(name, args.dir, "million" in args.trees) as place:
            if place.why_not:
                print(f"\nskipped: {name}: {place.why_not}")
                continue
            say(f"{place.title}: {place.path}")
            bench = Bench(args, place)
            for part in args.parts:
                if name != args.fs[0] and part not in ("main", "snap"):
                    continue  # one file system is enough for what hardly depends on it
                if not all(has(program, f"part {part}") for program in NEEDS.get(part, [])):
                    continue
                try:
                    for key, value in getattr(bench, part)():
                        results.setdefault(key, {}).update(value if isinstance(value, dict) else {place.title: value})
                except (SystemExit, OSError) as error:
                    say(f"  failed: {part}: {error}")
                    failed.append(f"{part}, on {place.title}: {error}")
                    bench.clear()
            bench.clear()


def arguments():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--recant", default="target/release/recant", help="the program to be measured")
    p.add_argument("--quick", action="store_true", help="one file system, without git on the large tree")
    p.add_argument("--rounds", type=int, default=5)
    p.add_argument("--fs", type=lambda s: s.split(","), help="of ext4, xfs, btrfs, here")
    p.add_argument("--trees", type=lambda s: s.split(","), default=["small", "large"])
    p.add_argument("--real", help="a directory with real sources, which the snapshots are measured on too")
    p.add_argument("--parts", type=lambda s: s.split(","), default=PARTS, help="of " + ", ".join(PARTS))
    p.add_argument("--dir", default="/var/tmp", help="where images and trees are made for a while (about 12 GB)")
    p.add_argument("--json", help="write all figures there too")
    p.add_argument("--stage", help="a program that makes the session instead of recant run: STORE TREE NEW DELETED")
    p.add_argument("--change", nargs=2, help=argparse.SUPPRESS)
    args = p.parse_args()
    args.fs = args.fs or (["ext4"] if args.quick else ["ext4", "here", "xfs", "btrfs"])
    args.recant = os.path.abspath(args.recant)
    args.git_on = ["small"] if args.quick else ["small", "large"]
    return args


# The machine


def machine():
    def first(path, word):
        with open(path) as lines:
            return next((line.split(":", 1)[1].strip() for line in lines if line.startswith(word)), "?")

    def version(*command):
        try:
            return subprocess.run(command, capture_output=True, text=True).stdout.split("\n")[0]
        except OSError:
            return f"no {command[0]}"

    memory = int(first("/proc/meminfo", "MemTotal").split()[0]) // 1024 // 1024
    return (
        f"{first('/proc/cpuinfo', 'model name')}, {os.cpu_count()} cores, {memory} GiB, Linux {os.uname().release}, "
        f"load {os.getloadavg()[0]:.1f}, {time.strftime('%Y-%m-%d')}, commit {commit()}; {version('git', '--version')}, "
        f"{version('rsync', '--version').split('  protocol')[0]}, {version('cp', '--version')}"
    )


def commit():
    """The commit that this file is of, and whether something was changed since."""
    where = ["git", "-C", os.path.dirname(os.path.abspath(__file__))]
    try:
        told = subprocess.run([*where, "describe", "--always", "--dirty"], capture_output=True, text=True)
    except OSError:
        return "?"
    return told.stdout.strip() or "?"


class Place:
    """A directory on a file system of the wanted kind; gone at the end."""

    def __init__(self, kind, below, large):
        self.kind, self.large, self.why_not, self.title, self.mounted = kind, large, None, kind, False
        self.path = tempfile.mkdtemp(prefix=f"recant-bench-{kind}-", dir=below if kind != "here" else ".")
        self.image = self.path + ".img"

    def __enter__(self):
        if self.kind == "here":
            self.path = os.path.realpath(self.path)
            fs, device = mount_of(self.path)
            journal = os.path.exists(f"/proc/fs/jbd2/{os.path.basename(device)}-8")
            self.title = f"here ({fs}{'' if fs != 'ext4' or journal else ', no journal'})"
            return self
        mkfs = {"ext4": ["mkfs.ext4", "-q", "-F"] + (["-i", "8192"] if self.large else []), "xfs": ["mkfs.xfs", "-q"], "btrfs": ["mkfs.btrfs", "-q"]}[self.kind]
        try:
            if os.geteuid() != 0:
                raise OSError("only root can mount")
            with open(self.image, "wb") as image:
                image.truncate((40 if self.large else 16) * GIB)
            for command in [mkfs + [self.image], ["mount", "-o", "loop", self.image, self.path]]:
                done = subprocess.run(command, capture_output=True, text=True)
                if done.returncode:
                    raise OSError(done.stderr.strip().split("\n")[-1])
            self.mounted = True
            if self.kind == "ext4":
                device = os.path.basename(mount_of(self.path)[1])
                journal = os.path.exists(f"/proc/fs/jbd2/{device}-8")
                self.title = "ext4 with a journal" if journal else "ext4 without a journal"
        except OSError as error:
            self.why_not = str(error)
        return self

    def __exit__(self, *_):
        if self.mounted:
            subprocess.run(["umount", "-R", self.path], check=True)
        shutil.rmtree(self.path, ignore_errors=True)
        if os.path.exists(self.image):
            os.unlink(self.image)


def mount_of(path):
    device = os.stat(path).st_dev
    want = f"{os.major(device)}:{os.minor(device)}"
    with open("/proc/self/mountinfo") as lines:
        for line in lines:
            left, right = line.split(" - ")
            source = right.split()[1]
            at = left.split()[4]
            if left.split()[2] == want or (os.path.ismount(path) and at == path):
                return right.split()[0], source
    return "?", "?"


# Trees and their changes


def tree_file(i, directories):
    return f"d{i % directories:04}/f{i:05}"


def make_tree(path, count, size, directories):
    noise = random.Random(1)
    for i in range(directories):
        os.makedirs(f"{path}/d{i:04}")
    for i in range(count):
        put(f"{path}/{tree_file(i, directories)}", noise.randbytes(size))
    old = 1_600_000_000_123_456_789
    for directory, _, files in os.walk(path, topdown=False):
        for name in files + ["."]:
            os.utime(f"{directory}/{name}", ns=(old, old))


def put(path, content):
    with open(path, "wb", buffering=0) as out:
        out.write(content)


class Work:
    """What the session does to a tree: files get other content (half of them in place, half by a new file that takes the
    name), some go, some come, half of those in new directories."""

    def __init__(self, name, tree):
        self.tree, (count, self.size, self.directories, (change, delete, create)) = tree, TREES[name]
        self.changed = [tree_file(i, self.directories) for i in range(0, count, change)]
        self.deleted = [tree_file(i, self.directories) for i in range(change // 2, count, delete)]
        come = count // create
        self.new_directories = [f"n{i:03}" for i in range((come // 2 + 9) // 10)]
        self.created = [f"d{i % self.directories:04}/new{i:05}" for i in range(come - come // 2)]
        self.created += [f"{self.new_directories[i // 10]}/new{i:05}" for i in range(come // 2)]
        self.touched = self.changed + self.deleted

    def carry_out(self):
        noise = random.Random(2)
        for i, name in enumerate(self.changed):
            path = f"{self.tree}/{name}"
            put(path if i % 2 else path + ".tmp", noise.randbytes(self.size))
            if i % 2 == 0:
                os.rename(path + ".tmp", path)
        for name in self.deleted:
            os.unlink(f"{self.tree}/{name}")
        self.create(self.tree, self.created, noise)

    def create(self, top, names, noise):
        for directory in self.new_directories:
            os.makedirs(f"{top}/{directory}", exist_ok=True)
        for name in names:
            os.makedirs(os.path.dirname(f"{top}/{name}"), exist_ok=True)
            put(f"{top}/{name}", noise.randbytes(self.size))

    def take_back(self):
        """For a peer that leaves what came."""
        for name in self.created:
            if os.path.exists(f"{self.tree}/{name}"):
                os.unlink(f"{self.tree}/{name}")
        for directory in self.new_directories:
            if os.path.isdir(f"{self.tree}/{directory}"):
                os.rmdir(f"{self.tree}/{directory}")


def exact_state(tree):
    """All that rollback has to give back and that costs no reading: the tests and the demo compare content too."""
    rows = hashlib_of()
    for directory, directories, files in os.walk(tree):
        directories.sort()
        for name in sorted(files) + ["."]:
            st = os.lstat(f"{directory}/{name}")
            size = st.st_size if name != "." else 0
            rows.update(repr((directory, name, st.st_mode, st.st_uid, st.st_gid, size, st.st_mtime_ns)).encode())
    return rows.hexdigest()


def hashlib_of():
    import hashlib

    return hashlib.sha256()


def write_list(path, names):
    with open(path, "w") as out:
        out.write("".join(name + "\0" for name in names))


class Bench:
    def __init__(self, args, place):
        self.args, self.place, self.top = args, place, place.path
        self.store = f"{self.top}/store"
        self.can_run = subprocess.run([args.recant, "run", "--help"], capture_output=True).returncode == 0
        os.makedirs(f"{self.top}/config/recant")
        self.env = dict(os.environ, RECANT_STORE=self.store, XDG_CONFIG_HOME=f"{self.top}/config")

    def clear(self):
        for name in os.listdir(self.top):
            path = f"{self.top}/{name}"
            if os.path.isfile(path):
                os.unlink(path)
            elif name not in ("lost+found", "config"):
                shutil.rmtree(path)

    def recant(self, *words):
        return clock(self.args.recant, *words, env=self.env)

    def hold(self, work, name, tree):
        """A session with the changes of `work`, made by running it; gives its id."""
        if self.args.stage:
            new, gone = f"{self.top}/stage-new", f"{self.top}/stage-gone"
            work.create(new, work.changed + work.created, random.Random(2))
            with open(gone, "w") as out:
                out.write("".join(name + "\n" for name in work.deleted))
            session = do(self.args.stage, self.store, tree, new, gone)
            shutil.rmtree(new)
            return session
        if not self.can_run:
            sys.exit("this recant has no run: --stage names a program that makes the session")
        script = os.path.abspath(__file__)
        do(self.args.recant, "run", "--", sys.executable, script, "--change", name, tree, cwd=tree, env=self.env)
        # The newest comes first.
        return json.loads(do(self.args.recant, "list", "--json", cwd=tree, env=self.env))["sessions"][0]["id"]

    def peak(self, *words):
        """Seconds, and the peak of resident memory in MiB. By GNU time, as what wait4 tells begins with this script's own."""
        if not shutil.which("time"):
            return self.recant(*words), "? (GNU time is not here)"
        told = f"{self.top}/peak"
        seconds = clock("time", "-f", "%M", "-o", told, self.args.recant, *words, env=self.env)
        with open(told) as lines:
            return seconds, f"{int(lines.read()) / 1024:.0f}"

    def prune(self, session):
        do(self.args.recant, "prune", "--sessions", "-y", session, env=self.env)

    # commit and rollback against the peers

    def main(self):
        for name in self.args.trees:
            yield from self.main_on(name)

    def main_on(self, name):
        peers = [Recant(self, name), Cp(self, name, "never")]
        if has("rsync"):
            peers.append(Rsync(self, name))
        if self.place.kind in ("xfs", "btrfs"):
            peers.append(Cp(self, name, "always"))
        if name in self.args.git_on and has("git"):
            peers.append(Git(self, name))
        base = f"{self.top}/base"
        say(f"  {name}: making the trees")
        make_tree(base, *TREES[name][:3])
        for peer in peers:
            os.makedirs(peer.top)
            do("cp", "-a", "--reflink=never", base, peer.tree)
            peer.ready()
        times = {}
        for r in range(self.args.rounds):
            say(f"  {name}: round {r + 1} of {self.args.rounds}")
            for peer in peers[r % len(peers) :] + peers[: r % len(peers)]:
                for key, seconds in peer.round().items():
                    times.setdefault(key, []).append(seconds)
        first = peers[0]
        for key in times:
            yield (name, "ms", key), median_ms(times[key])
        for key, recant, peer, aim in RATIOS:
            if all(part in times for part in recant + peer):
                ratios = [sum(times[p][r] for p in recant) / sum(times[p][r] for p in peer) for r in range(self.args.rounds)]
                yield (name, "ratio", key), spread(ratios, aim.get(name))
        yield (name, "other", "peak memory of recant commit, MiB"), first.peak
        yield (name, "other", "blocks that commit and rollback took, KiB (content that moved: KiB)"), first.blocks
        for peer in peers:
            shutil.rmtree(peer.top)
        shutil.rmtree(base)
        shutil.rmtree(self.store)

    # snapshots against copies, git and a bare walk

    def snap(self):
        for name in self.args.trees + (["real"] if self.args.real else []):
            yield from self.snap_on(name)
        yield from self.snap_space()

    def snap_on(self, name):
        base, key = f"{self.top}/base", f"snap {name}"
        say(f"  snapshots, {name}: making the trees")
        if name == "real":
            do("cp", "-a", self.args.real, base)
        else:
            make_tree(base, *TREES[name][:3])
        times, self.peers = {}, []
        for r in range(self.args.rounds):
            say(f"  snapshots, {name}: round {r + 1} of {self.args.rounds}")
            for turn in self.snap_turns(name, base, r):
                for what, seconds in turn.items():
                    times.setdefault(what, []).append(seconds)
        for what, values in times.items():
            yield (key, "ms", what), median_ms(values)
        for what, recant, peer, aim in SNAP_RATIOS:
            if peer in times:
                ratios = [a / b for a, b in zip(times[recant], times[peer])]
                yield (key, "ratio", what), spread(ratios, aim if name != "large" or "git" not in what else None)
        entries = sum(len(directories) + len(files) for _, directories, files in os.walk(base)) + 1
        yield (key, "other", f"peak memory of a first snapshot of {entries:,} entries, MiB (aim 1 KiB an entry)"), self.peak_of_first
        for peer in self.peers:
            shutil.rmtree(peer.top)
        shutil.rmtree(base)

    def snap_turns(self, name, base, r):
        """What each peer took for each step of a round. Of a million files there is room for one peer's trees at a time."""
        kinds = [SnapRecant, SnapCp] + [kind for kind in (SnapRsync, SnapGit) if has(kind.title)]
        steps = ("first", "nothing", "next", "back")
        if name == "million":
            for kind in kinds:
                peer = kind(self, base)
                for step in steps:
                    say(f"    {peer.title}: {step}")
                    yield getattr(peer, step)()
                shutil.rmtree(peer.top)
                shutil.rmtree(self.store, ignore_errors=True)
            return
        self.peers = self.peers or [kind(self, base) for kind in kinds]
        for step in steps:
            for peer in self.peers[r % len(kinds) :] + self.peers[: r % len(kinds)]:
                yield getattr(peer, step)()

    def snap_space(self):
        say("  snapshots: ten, with 1 % changed between them")
        tree = f"{self.top}/ten"
        make_tree(tree, *TREES["small"][:3])
        sizes = []
        for r in range(10):
            if r:
                for i in range(r, TREES["small"][0], 100):
                    put(f"{tree}/{tree_file(i, TREES['small'][2])}", random.Random(r * 1000003 + i).randbytes(4 * KIB))
            do(self.args.recant, "snapshot", "create", "--all", tree, env=self.env)
            sizes.append(int(do("du", "-s", "-B1", f"{self.store}/snapshots").split()[0]))
        yield ("snap small", "other", "space of ten snapshots with 1 % changed between them / of one (aim 1.15)"), f"{sizes[-1] / sizes[0]:.3f}"
        shutil.rmtree(tree)
        shutil.rmtree(self.store)

    # one file among 35,000

    def one(self):
        tree, copy = f"{self.top}/one", f"{self.top}/copy"
        say("  one file among 35,000")
        make_tree(tree, 35_000, 4 * KIB, 8_000)
        file, content = f"{tree}/{tree_file(17, 8_000)}", f"{self.top}/content"
        put(content, random.Random(3).randbytes(4 * KIB))
        times = {key: [] for key in ("copy", "stage", "commit", "rollback", "empty")}
        for _ in range(max(15, self.args.rounds)):
            session = do(self.args.recant, "session", "new", env=self.env)
            times["empty"].append(clock("true"))
            times["copy"].append(clock("dd", f"if={file}", f"of={copy}", "bs=1M", "conv=fsync", "status=none"))
            os.unlink(copy)
            times["stage"].append(self.recant("session", "write", session, file, "--from", content))
            times["commit"].append(self.recant("commit", session))
            times["rollback"].append(self.recant("rollback", session))
            self.prune(session)
        yield ("one", "ms", "an empty program"), median_ms(times["empty"])
        yield ("one", "ms", "copy and fsync by dd"), median_ms(times["copy"])
        for key in ("stage", "commit", "rollback"):
            yield ("one", "ms", key), median_ms(times[key])
            ratios = [a / b for a, b in zip(times[key], times["copy"])]
            yield ("one", "ratio", f"{key} / durable copy"), spread(ratios, 2.0)
        shutil.rmtree(tree)
        shutil.rmtree(self.store)

    # 1,000 sessions

    def list(self):
        say("  1,000 sessions")
        repo, file = f"{self.top}/repo", f"{self.top}/file"
        if has("git"):
            commits(repo)
        put(file, b"1")
        for i in range(1000):
            session = do(self.args.recant, "session", "new", env=self.env)
            subprocess.run([self.args.recant, "session", "write", session, file], input=str(i).encode(), env=self.env, check=True)
        times = {"git log": [], "status": [], "checkpoint list": [], "list": []}
        for _ in range(max(15, self.args.rounds)):
            if has("git"):
                times["git log"].append(clock("git", "log", "m", cwd=repo))
            for key in ("status", "checkpoint list", "list"):
                times[key].append(self.recant(*key.split()))
        for key, values in times.items():
            if values:
                yield ("list", "ms", key), median_ms(values)
            if key != "git log" and has("git"):
                ratios = [a / b for a, b in zip(values, times["git log"])]
                yield ("list", "ratio", f"{key} / git log"), spread(ratios, 1.3)
        shutil.rmtree(repo, ignore_errors=True)
        shutil.rmtree(self.store)

    # 100,000 changes

    def memory(self):
        say("  100,000 changes")
        tree = f"{self.top}/many"
        make_tree(tree, *TREES["many"][:3])
        work = Work("many", tree)
        session = self.hold(work, "many", tree)
        count = len(work.touched) + len(work.created) + len(work.new_directories)
        for verb in ("commit", "rollback", "redo"):
            seconds, peak = self.peak(verb, session)
            yield ("memory", "other", f"peak memory of {verb} of {count:,} changes, MiB (aim 64)"), peak
            yield ("memory", "ms", f"{verb} of {count:,} changes"), f"{seconds * 1000:.0f}"
        for verb in ("status", "diff --stat", "show"):
            yield ("memory", "other", f"peak memory of {verb}, MiB"), self.peak(*verb.split())[1]
        self.prune(session)
        shutil.rmtree(tree)
        shutil.rmtree(self.store)

    # commands that do something

    def programs(self):
        if not self.can_run:
            print("\nskipped: programs in a run: this recant has no run")
            return
        yield from programs.measure(self, self.args.rounds if self.args.quick else max(7, self.args.rounds))

    # sessions that grow

    def steps(self):
        if not self.can_run:
            print("\nskipped: steps of a session: this recant has no run")
            return
        yield from steps.measure(self, 10 if self.args.quick else max(50, self.args.rounds))

    # review

    def review(self):
        yield from review.measure(self, 3 if self.args.quick else max(5, self.args.rounds))

    # agents

    def agents(self):
        yield from agents.measure(self, 3 if self.args.quick else max(5, self.args.rounds))

    # another machine

    def remote(self):
        yield from remote.measure(self.args.recant, self.top, self.args.rounds)

    # what others do

    def rivals(self):
        for row, cells in rivals.measure(self):
            yield ("rivals", "other", row), cells

    # a command that does nothing

    def run(self):
        if not self.can_run:
            print("\nskipped: recant run -- true: this recant has no run")
            return
        times = {"true": [], "run": []}
        for _ in range(max(31, self.args.rounds)):
            times["true"].append(clock("true"))
            times["run"].append(clock(self.args.recant, "run", "--", "true", cwd=self.top, env=self.env))
        more = [(a - b) * 1000 for a, b in zip(times["run"], times["true"])]
        yield ("run", "ms", "true"), median_ms(times["true"])
        yield ("run", "ms", "recant run -- true"), median_ms(times["run"])
        yield ("run", "other", "ms that run adds (aim 4)"), f"{statistics.median(more):.1f} [{min(more):.1f} to {max(more):.1f}]"




# key, the parts that recant needs, the parts that the other needs, the aim on each tree
RATIOS = [
    ("commit / copy of the originals (one leg)", ["commit"], ["cp: originals"], {"small": 1.4}),
    ("commit / originals and new files copied (both)", ["commit"], ["cp: originals", "cp: new"], {"small": 0.55, "large": 0.8}),
    ("commit / the same by reflink", ["commit"], ["cp --reflink: originals", "cp --reflink: new"], {}),
    ("commit / git add and commit, first", ["commit"], ["git: first"], {"small": 0.1}),
    ("commit / git add and commit, next", ["commit"], ["git: next"], {"small": 0.25}),
    ("commit / rsync to a copy", ["commit"], ["rsync: there"], {}),
    ("rollback / cp back", ["rollback"], ["cp: back"], {"small": 1.0, "large": 1.0}),
    ("rollback / the same by reflink", ["rollback"], ["cp --reflink: back"], {}),
    ("rollback / git checkout", ["rollback"], ["git: back"], {"small": 1.0}),
    ("rollback / rsync back", ["rollback"], ["rsync: back"], {"small": 0.4, "large": 0.5}),
]


class Peer:
    def __init__(self, bench, name, title):
        self.bench, self.name, self.title = bench, name, title
        self.top = f"{bench.top}/{title.replace(' ', '')}"
        self.tree = f"{self.top}/tree"
        self.work = Work(name, self.tree)

    def ready(self):
        pass

    def shell(self, script):
        return clock("sh", "-ec", script, cwd=self.top)


class Recant(Peer):
    """Sessions made by a run; commit and rollback as a user calls them."""

    def __init__(self, bench, name):
        super().__init__(bench, name, "recant")
        self.peak, self.blocks = None, "?"

    def ready(self):
        self.before = exact_state(self.tree)

    def round(self):
        session = self.bench.hold(self.work, self.name, self.tree)
        free = self.free()
        commit = self.bench.recant("commit", session)
        after_commit = self.free()
        rollback = self.bench.recant("rollback", session)
        took = [(free - after_commit) // KIB, (after_commit - self.free()) // KIB]
        content = len(self.work.touched + self.work.created) * self.work.size // KIB
        self.blocks = f"{took[0]}, {took[1]} ({content})"
        if exact_state(self.tree) != self.before:
            sys.exit("the rollback did not give back the exact state")
        self.bench.prune(session)
        if self.peak is None:
            session = self.bench.hold(self.work, self.name, self.tree)
            _, self.peak = self.bench.peak("commit", session)
            self.bench.recant("rollback", session)
            self.bench.prune(session)
        return {"commit": commit, "rollback": rollback}

    def free(self):
        os.sync()
        st = os.statvfs(self.tree)
        return st.f_bfree * st.f_frsize


class Cp(Peer):
    """cp -a of the touched files alone, and a syncfs of each leg."""

    def __init__(self, bench, name, reflink):
        super().__init__(bench, name, "cp" if reflink == "never" else "cp --reflink")
        self.cp = f"cp -a --reflink={reflink}"

    def ready(self):
        self.work.create(f"{self.top}/new", self.work.changed + self.work.created, random.Random(2))
        for name, names in (("touched", self.work.touched), ("deleted", self.work.deleted), ("created", self.work.created)):
            write_list(f"{self.top}/{name}", names)
        write_list(f"{self.top}/directories", self.work.new_directories)

    def round(self):
        os.mkdir(f"{self.top}/kept")
        out = {
            f"{self.title}: originals": self.shell(
                f"cd tree; xargs -0 {self.cp} --parents -t ../kept < ../touched; sync -f ../kept"
            ),
            f"{self.title}: new": self.shell(
                f"{self.cp} new/. tree/; cd tree; xargs -0 rm -f -- < ../deleted; sync -f ."
            ),
            f"{self.title}: back": self.shell(
                f"{self.cp} kept/. tree/; cd tree; xargs -0 rm -f -- < ../created; xargs -0 rmdir -- < ../directories; sync -f ."
            ),
        }
        shutil.rmtree(f"{self.top}/kept")
        return out


class Git(Peer):
    """A repository beside the tree, as undo tools keep one: all is added and committed before and after."""

    def __init__(self, bench, name):
        super().__init__(bench, name, "git")
        self.git = "git --git-dir=shadow --work-tree=tree -c user.name=a -c user.email=a@example.org -c gc.auto=0"
        self.add = f"{self.git} add -A && {self.git} commit -q --no-gpg-sign -m state"

    def round(self):
        out = {"git: first": self.shell(f"git init -q --bare shadow && {self.add}")}
        commit = do("git", "--git-dir=shadow", "rev-parse", "HEAD", cwd=self.top)
        self.work.carry_out()
        out["git: next"] = self.shell(self.add)
        out["git: back"] = self.shell(f"{self.git} checkout -q {commit} -- .")
        self.work.take_back()
        shutil.rmtree(f"{self.top}/shadow")
        return out


class Rsync(Peer):
    """Two copies of the tree: the one that the changes go to, and the one that a rollback comes from."""

    def __init__(self, bench, name):
        super().__init__(bench, name, "rsync")
        self.rsync = "rsync -aHAXS --delete"

    def ready(self):
        for copy in ("before", "next"):
            do("sh", "-ec", f"{self.rsync} tree/ {copy}/", cwd=self.top)

    def round(self):
        self.work.carry_out()
        out = {"rsync: there": self.shell(f"{self.rsync} tree/ next/")}
        out["rsync: back"] = self.shell(f"{self.rsync} before/ tree/")
        do("sh", "-ec", f"{self.rsync} before/ next/", cwd=self.top)
        return out


class Snap:
    """A tree of its own, of which copies are kept."""

    title = "?"

    def __init__(self, bench, base):
        self.bench, self.top = bench, f"{bench.top}/snap-{self.title}"
        self.tree = f"{self.top}/tree"
        os.makedirs(self.top)
        do("cp", "-a", base, self.tree)
        if bench.place.kind != "here":
            do("sync", "-f", self.tree)
        self.files = sorted(
            f"{directory}/{name}" for directory, _, names in os.walk(self.tree) for name in names if not os.path.islink(f"{directory}/{name}")
        )
        self.before, self.round = exact_state(self.tree), 0

    def shell(self, script):
        return clock("sh", "-ec", script, cwd=self.top)

    def change(self):
        """One file in ten gets more, one in fifty goes, one in fifty comes."""
        self.round += 1
        for i, path in enumerate(self.files):
            if i % 10 == 3:
                with open(path, "ab") as out:
                    out.write(f"round {self.round}\n".encode())
            elif i % 50 == 7:
                os.unlink(path)
            elif i % 50 == 17:
                put(f"{path}.new", f"new in round {self.round}\n".encode() * 100)

    def first(self):
        return {}

    def nothing(self):
        return {}


class SnapRecant(Snap):
    title = "recant"

    def snapshot(self, *words):
        return self.bench.recant("snapshot", *words, *(["--dir"] if words[0] == "restore" else ["--all"]), self.tree)

    def first(self):
        shutil.rmtree(self.bench.store, ignore_errors=True)
        if self.round == 0:
            self.bench.peak_of_first = self.bench.peak("snapshot", "create", "--all", self.tree)[1]
            shutil.rmtree(self.bench.store)
        return {"first": self.snapshot("create")}

    def nothing(self):
        times = []
        for _ in range(3):
            times.append((clock("find", self.tree, "-printf", "%T@"), self.snapshot("create", "--if-changed")))
        walk, nothing = (statistics.median(values) for values in zip(*times))
        return {"bare walk (find -printf %T@)": walk, "nothing changed": nothing}

    def next(self):
        self.change()
        return {"next": self.snapshot("create")}

    def back(self):
        seconds = self.snapshot("restore", "0")
        if exact_state(self.tree) != self.before:
            sys.exit("the restore did not give back the exact state")
        return {"restore": seconds}


class SnapCp(Snap):
    """cp -a as it is, which shares blocks where it can; and without that."""

    title = "cp"

    def first(self):
        out = {}
        for what, more in (("cp -a", ""), ("cp -a --reflink=never", " --reflink=never")):
            out[what] = self.shell(f"cp -a{more} tree copy; sync -f copy")
            shutil.rmtree(f"{self.top}/copy")
        return out

    def next(self):
        return {}

    def back(self):
        return {}


class SnapRsync(Snap):
    title = "rsync"

    def first(self):
        shutil.rmtree(f"{self.top}/0", ignore_errors=True)
        do("sh", "-ec", "rsync -aHAX tree/ 0/; sync -f 0", cwd=self.top)
        return {}

    def next(self):
        self.change()
        return {"rsync --link-dest": self.shell("rsync -aHAX --link-dest=$PWD/0 tree/ 1/; sync -f 1")}

    def back(self):
        seconds = self.shell("rsync -aHAX --delete 0/ tree/; sync -f tree")
        shutil.rmtree(f"{self.top}/1")
        return {"rsync --delete back": seconds}


class SnapGit(Snap):
    """A repository beside the tree, as undo tools keep one."""

    title = "git"

    def __init__(self, bench, base):
        super().__init__(bench, base)
        self.git = "git --git-dir=shadow --work-tree=tree -c user.name=a -c user.email=a@example.org -c gc.auto=0"
        self.add = f"{self.git} add -A && {self.git} commit -q --no-gpg-sign -m state; sync -f shadow"

    def first(self):
        shutil.rmtree(f"{self.top}/shadow", ignore_errors=True)
        return {"git, first": self.shell(f"git init -q --bare shadow && {self.add}")}

    def next(self):
        self.change()
        return {"git, next": self.shell(self.add)}

    def back(self):
        return {"git back (not exact)": self.shell(f"{self.git} reset -q --hard HEAD~1; sync -f tree")}


# key, what of recant's, what of the other's, the aim
SNAP_RATIOS = [
    ("first / cp -a", "first", "cp -a", 0.9),
    ("first / cp -a --reflink=never", "first", "cp -a --reflink=never", None),
    ("first / git", "first", "git, first", 0.6),
    ("next / rsync --link-dest", "next", "rsync --link-dest", 0.2),
    ("next / git", "next", "git, next", 0.5),
    ("nothing changed / bare walk", "nothing changed", "bare walk (find -printf %T@)", 1.1),
    ("restore / rsync --delete", "restore", "rsync --delete back", 0.6),
    ("restore / git", "restore", "git back (not exact)", None),
]


# What was found

TITLES = {
    "snap tiny": "Snapshots of 50 files of 1 KiB",
    "tiny": "50 files of 1 KiB",
    "snap small": "Snapshots of 20,000 files of 4 KiB: 10 % changed, 2 % deleted, 2 % created",
    "snap large": "Snapshots of 200 files of 5 MiB: 10 % changed, 2 % deleted, 2 % created",
    "snap million": "Snapshots of 1,000,000 files of 64 bytes: 10 % changed, 2 % deleted, 2 % created",
    "snap real": "Snapshots of a real source tree: 10 % changed, 2 % deleted, 2 % created",
    "small": "20,000 files of 4 KiB in 1,000 directories: 2,000 changed, 400 deleted, 1,000 created",
    "large": "200 files of 5 MiB: 20 changed, 4 deleted, 10 created",
    "one": "One file in a tree of 35,000",
    "list": "1,000 sessions, 1,000 commits of git",
    "memory": "100,000 changes",
    "run": "A command that does nothing",
    "steps": "Steps of a session",
    "agents": "A day of an agent",
    "review": "The screen",
    "programs": "What people run, held",
    "remote": "Another machine, over a shared connection, on this one",
    "rivals": "Beside others",
}


def report(results):
    for part, title in TITLES.items():
        for sort, what in (("ratio", "ratio"), ("ms", "ms, median"), ("other", "")):
            rows = {key[2]: value for key, value in results.items() if key[:2] == (part, sort)}
            if not rows:
                continue
            columns = list(dict.fromkeys(column for row in rows.values() for column in row))
            print(f"\n| {title}: {what} |" if what else f"\n| {title} |", " | ".join(columns), "|")
            print("|" + " --- |" * (len(columns) + 1))
            for key, row in rows.items():
                print(f"| {key} |", " | ".join(str(row.get(column, "")) for column in columns), "|")


if __name__ == "__main__":
    main()
