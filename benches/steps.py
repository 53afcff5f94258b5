"""What it costs that a session has steps: one more of them, going back, listing, a fork; as root and as an ordinary user. Each is
timed in pairs with what it is to be compared with, mostly a run that does nothing."""

import json
import os
import shutil
import subprocess

from measuring import clock, commits, do, median_ms, say, spread

USER = 65534


def measure(bench, pairs):
    """Rows of the table, as the parts of bench.py give them."""
    for who in ("root", "user") if os.geteuid() == 0 else ("user",):
        ground = Ground(bench, who, pairs)
        if subprocess.run([ground.recant, "run", "--", "true"], capture_output=True, **ground.call).returncode:
            print(f"\nskipped: steps of a session, as {who}: recant run does not work there")
        else:
            yield from ground.steps([10, 100] if bench.args.quick else [10, 100, 1_000])
            yield from ground.full()
            yield from ground.rewind()
            yield from ground.list()
            yield from ground.fork()
        shutil.rmtree(ground.top)


class Ground:
    """A tree of 2,000 files that belongs to who works on it, and a store beside it."""

    def __init__(self, bench, who, pairs):
        self.who, self.recant, self.pairs = who, bench.args.recant, pairs
        self.top = f"{bench.top}/steps-{who}"
        self.tree, self.config = f"{self.top}/tree", f"{self.top}/config/recant"
        os.makedirs(self.tree)
        os.makedirs(self.config)
        for i in range(2_000):
            with open(f"{self.tree}/f{i:04}", "w") as out:
                out.write("an old line\n" * 300)
        env = dict(os.environ, HOME=self.top, RECANT_STORE=f"{self.top}/store", XDG_CONFIG_HOME=f"{self.top}/config")
        self.call = {"cwd": self.tree, "env": env}
        if who == "user" and os.geteuid() == 0:
            do("chown", "-R", f"{USER}:{USER}", self.top)
            self.call |= {"user": USER, "group": USER, "extra_groups": []}

    def do(self, *words):
        return do(self.recant, "-q", *words, **self.call)

    def step(self, session, script):
        self.do("run", "--session", session, "--", "sh", "-ec", script)

    def grow(self, session, count):
        for _ in range(count):
            self.step(session, "echo more >> f0000")

    def beside(self, name, aim, command, peer=None, ready=lambda _: None):
        """Times a command in pairs with a peer (name, words), else with a run that does nothing. `ready` is called before each pair
        with its number, and `command` gives the words for it."""
        say(f"  {name}, as {self.who}")
        peer_name, peer_words = peer or ("run -- true", [self.recant, "run", "--", "true"])
        times, peer_times = [], []
        for i in range(self.pairs):
            ready(i)
            times.append(clock(*command(i), **self.call))
            peer_times.append(clock(*peer_words, **self.call))
        ratios = [a / b for a, b in zip(times, peer_times)]
        yield ("steps", "ratio", f"{name} / {peer_name}, as {self.who}"), spread(ratios, aim)
        yield ("steps", "ms", f"{name}, as {self.who}"), median_ms(times)
        yield ("steps", "ms", f"{name}, as {self.who}: {peer_name} beside it"), median_ms(peer_times)

    def one_more(self, name, session):
        """A step that changes one file, always on the step at which the session stands now."""
        head = str(json.loads(self.do("steps", session, "--json"))["head"])
        change = [self.recant, "run", "--session", session, "--", "truncate", "-s", "+1", "f0000"]
        yield from self.beside(name, 1.4, lambda _: change, ready=lambda _: self.do("rewind", session, head))
        self.do("rewind", session, head)

    # What is measured

    def steps(self, counts):
        """The next step at so many; the settings are the usual ones, so that the oldest are merged."""
        at = 0
        for n in counts:
            self.grow("line", n - 1 - at)
            at = n - 1
            yield from self.one_more(f"step {n:,}, of one file", "line")

    def full(self):
        self.step("full", "mkdir full; cd full; seq 20000 | xargs touch")
        go_on = [self.recant, "run", "--session", "full", "--", "true"]
        yield from self.beside("true in a session of 20,000 paths", None, lambda _: go_on)

    def rewind(self):
        for i in range(11):
            self.step("back", f"for f in f{i:02}[0-9][0-9]; do echo more >> $f; done")
        ends = [[self.recant, "rewind", "back", n] for n in ("1", "11")]
        yield from self.beside("rewind over 10 steps of 100 files", 2.0, lambda i: ends[i % 2])

    def list(self):
        """Of steps that are all kept, as none are merged."""
        with open(f"{self.config}/config.toml", "w") as out:
            out.write("[steps]\nkeep = 10000\n")
        self.grow("long", 1_000)
        commits(f"{self.top}/repo", **self.call)
        listing = [self.recant, "steps", "long", "-v"]
        log = ("git log --graph --oneline", ["git", "-C", f"{self.top}/repo", "log", "--graph", "--oneline", "m"])
        yield from self.beside("steps of 1,000", 1.5, lambda _: listing, log)
        yield from self.one_more("step 1,001, of one file, with steps.keep = 10000", "long")
        os.unlink(f"{self.config}/config.toml")

    def fork(self):
        self.step("many", "sed -i s/old/new/ *")
        do("sh", "-ec", "cp -a . ../changed; cd ../changed; sed -i s/old/new/ *", **self.call)
        copy = ("cp -a, synced", ["sh", "-ec", "cp -a ../changed ../copy; sync -f ../copy"])

        def again(i):
            if i:
                self.do("discard", "-y", "other")
                self.do("prune", "--sessions", "-y", "other")
                shutil.rmtree(f"{self.top}/copy")

        make = [self.recant, "fork", "many", "-n", "other"]
        yield from self.beside("fork of 2,000 changed files", 1.0, lambda _: make, copy, again)
