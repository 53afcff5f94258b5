"""What `recant run` adds to what people run: each command bare, on the same overlay mounted by hand, and held by recant, as root
and as an ordinary user, in rounds. The overlay by hand is `volatile`, as recant's are, and is not synced at its end."""

import contextlib
import os
import shutil
import statistics
import subprocess
import sys
import time

from measuring import do, median_ms, say, spread

USER = 65534

# name, command, the tree it works on, whether it changes that, ratio to bare that is about to be expected (root, user)
JOBS = [
    ("sed -i over 5,000 files", "find . -type f -print0 | xargs -0 sed -i s/old/new/", "text", True, (1.1, 1.1)),
    ("tar x of 24,000 files in 1,000 directories", "tar xf ../files.tar", "empty", True, (1.5, 1.5)),
    ("git clone of 10,000 files", "git clone -q --no-hardlinks ../repo clone", "empty", True, (1.6, 1.6)),
    ("rm -rf of 5,000 files", "rm -rf ./*", "text", True, (1.8, 2.2)),
    ("grep -r over 5,000 files", "! grep -r nowhere .", "text", False, (2.2, 2.2)),
    ("appending to 5,000 files", "find . -type f -exec sh -c 'for f; do echo more >> $f; done' sh {} +", "text", True, (5.6, 4.5)),
    ("cargo build of a small crate", "cargo build --offline -q", "crate", True, (1.05, 1.05)),
]
MOUNTS = """mkdir mounts; cd mounts
for i in $(seq $1); do mkdir $i; mount --bind $i $i; done
cd ..; for i in 1 2 3 4 5 6 7; do s=$(date +%s%N); "$2" run -- true; e=$(date +%s%N); echo $((e - s)); done"""


def measure(bench, rounds):
    """Rows of the table, as the parts of bench.py give them."""
    for who in ("root", "user") if os.geteuid() == 0 else ("user",):
        ground = Ground(bench, who)
        for job in JOBS:
            yield from ground.compare(*job, rounds)
        ground.clear()
    if os.geteuid() == 0:
        yield mounts(bench)


class Ground:
    """A directory of trees that belong to who works on them, and a store beside it."""

    def __init__(self, bench, who):
        self.who, self.recant = who, bench.args.recant
        self.top = f"{bench.top}/programs-{who}"
        self.work, self.store = f"{self.top}/work", f"{self.top}/store"
        os.makedirs(self.top)
        self.env = dict(os.environ, HOME=self.top, RECANT_STORE=self.store, XDG_CONFIG_HOME=f"{self.top}/config")
        self.env |= {name: os.environ.get(name, os.path.expanduser(f"~/.{name[:-5].lower()}")) for name in ("CARGO_HOME", "RUSTUP_HOME")}
        self.as_user = ["setpriv", f"--reuid={USER}", f"--regid={USER}", "--clear-groups"] if who == "user" and os.geteuid() == 0 else []
        self.rust = f"{bench.top}/rust" if self.as_user and self.lend_rust(f"{bench.top}/rust") else None
        self.make()

    def make(self):
        for i in range(5_000):
            put(f"{self.top}/text/d{i % 100:02}/f{i:04}", "an old line\n" * 300)
        for i in range(24_000):
            put(f"{self.top}/files/d{i % 1_000:03}/f{i:05}", f"{i}\n" * 100)
        for i in range(10_000):
            put(f"{self.top}/repo/d{i % 200:03}/f{i:05}", f"{i}\n" * 100)
        put(f"{self.top}/crate/src/main.rs", "fn main() { println!(\"{}\", std::env::args().count()) }\n")
        put(f"{self.top}/crate/Cargo.toml", '[package]\nname = "small"\nversion = "0.1.0"\nedition = "2021"\n')
        os.makedirs(f"{self.top}/empty")
        git = "git -c user.name=a -c user.email=a@example.org -c gc.auto=0"
        do("sh", "-ec", f"tar cf files.tar -C files .; rm -r files; cd repo; git init -q; git add -A; {git} commit -qm all", cwd=self.top)
        if self.as_user:
            do("chown", "-R", f"{USER}:{USER}", self.top)

    def lend_rust(self, at):
        """Shows the toolchain outside of a home directory that nobody else may enter. Whether there is one."""
        if shutil.which("rustc") is None:
            return False
        os.makedirs(at)
        do("mount", "--bind", do("rustc", "--print", "sysroot").strip(), at)
        self.env |= {"PATH": f"{at}/bin:{os.environ['PATH']}", "CARGO_HOME": f"{self.top}/cargo"}
        return True

    def clear(self):
        if self.rust:
            do("umount", self.rust)
            os.rmdir(self.rust)
        shutil.rmtree(self.top)

    def compare(self, name, command, tree, changes, about, rounds):
        if self.timed(["sh", "-ec", command], tree)[0] is None:
            print(f"\nskipped: {name}, as {self.who}: it cannot be run bare", file=sys.stderr)
            return
        say(f"  {name}, as {self.who}")
        times = {"bare": [], "overlay": [], "recant": [], "after": []}
        for _ in range(rounds):
            times["bare"].append(self.timed(["sh", "-ec", command], tree if changes else None)[0])
            seconds = self.timed(self.by_hand(command), tree)[0]
            if seconds is None:
                sys.exit(f"{name}, as {self.who}: the overlay cannot be mounted by hand")
            times["overlay"].append(seconds)
            seconds, ended = self.timed([self.recant, "-q", "run", "--", "sh", "-ec", f"{command}; date +%s%N"], tree)
            if seconds is None:
                sys.exit(f"{name}, as {self.who}: recant run has failed")
            times["recant"].append(seconds)
            times["after"].append((self.end - ended) / 1e9)
            self.let_go()
        column = f"as {self.who}"
        more = [a / b for a, b in zip(times["recant"], times["bare"])]
        limit = [a / b for a, b in zip(times["recant"], times["overlay"])]
        expected = about[self.who == "user"]
        yield ("programs", "ratio", f"{name}: recant run / bare, {column} (about {expected})"), spread(more, None)
        yield ("programs", "ratio", f"{name}: recant run / the overlay by hand, {column}"), spread(limit, 1.1)
        said = {"bare": "bare", "overlay": "on the overlay by hand", "recant": "recant run", "after": "of that after the command"}
        for key, what in said.items():
            yield ("programs", "ms", f"{name}, {column}: {what}"), median_ms(times[key])

    def by_hand(self, command):
        for name in ("upper", "overlay"):
            shutil.rmtree(f"{self.top}/{name}", ignore_errors=True)
            do(*self.as_user, "mkdir", f"{self.top}/{name}")
        options = f"lowerdir={self.work},upperdir={self.top}/upper,workdir={self.top}/overlay,volatile"
        if self.who == "user":
            options += ",userxattr"
        mount = f"mount -t overlay -o {options} overlay {self.work}; cd {self.work}; {command}"
        return ["unshare", "-m" if self.who == "root" else "-Urm", "sh", "-ec", mount]

    def timed(self, command, fresh):
        """Seconds, and what it printed as a number; None for seconds where it failed. `fresh` names the tree to work on, made anew."""
        if fresh:
            shutil.rmtree(self.work, ignore_errors=True)
            do("cp", "-a", f"{self.top}/{fresh}", self.work)
            os.sync()
        start = time.perf_counter()
        done = subprocess.run(self.as_user + command, cwd=self.work, env=self.env, capture_output=True, text=True)
        seconds = time.perf_counter() - start
        self.end = time.time_ns()
        if done.returncode:
            print(done.stderr, file=sys.stderr)
            return None, 0
        last = done.stdout.split()[-1:] or ["0"]
        return seconds, int(last[0]) if last[0].isdigit() else 0

    def let_go(self):
        with contextlib.suppress(FileNotFoundError):
            for session in os.listdir(f"{self.store}/sessions"):
                if session.startswith("."):
                    continue  # on its way out
                do(*self.as_user, self.recant, "discard", "-y", session, env=self.env)
                do(*self.as_user, self.recant, "prune", "--sessions", "-y", session, env=self.env)


def mounts(bench):
    """What 500 mounts more cost a command that does nothing."""
    medians = []
    for count in (0, 500):
        directory = f"{bench.top}/mounts-{count}"
        os.makedirs(directory)
        told = do("unshare", "-m", "sh", "-ec", MOUNTS, "sh", str(count), bench.args.recant, cwd=directory, env=bench.env)
        medians.append(statistics.median(int(line) for line in told.split()) / 1e6)
    more = medians[1] - medians[0]
    return ("programs", "other", "ms that 500 mounts more add to recant run -- true (aim 5)"), f"{more:.1f}"


def put(path, text):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "w") as out:
        out.write(text)
