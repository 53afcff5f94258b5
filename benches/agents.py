"""What it costs that an agent's hooks call recant, and what can be given back afterwards: a day of 40 turns and 800 uses of tools in a
repository of 8,000 files, bare, with the hooks, held as a whole (root and user, with the hooks too), and with a shadow git
repository that gets a commit a turn, as other agents' checkpoints do. The day is composed here, always the same: no agent and no model is
asked."""

import json
import os
import random
import shutil
import stat
import subprocess
import sys
import time

from measuring import do, median_ms, say, spread

TURNS, TOOLS, FILES, BACK_TO = 40, 20, 8_000, 21
SIZES = (FILES, 100_000, 200_000)
GITIGNORE = "*.log\n/target/\n/cache/\n"


def measure(bench, rounds):
    """Rows of the table, as the parts of bench.py give them."""
    top = f"{bench.top}/agents"
    os.makedirs(top)
    base, day = f"{top}/base", composed()
    project(base)
    kinds = (Bare, Hooks, Held, HeldWithHooks, HeldByUser, Shadow)
    times = {kind.name: [] for kind in kinds}
    hooks, last = [], {}
    for i in range(rounds):
        for kind in kinds:
            say(f"  a day, {kind.name}, round {i + 1}")
            at = f"{top}/{kind.name.replace(' ', '-')}"
            shutil.rmtree(at, ignore_errors=True)
            os.makedirs(at)
            do("cp", "-a", base, f"{at}/tree")
            os.sync()
            worker = kind(bench, at)
            times[kind.name].append(worker.carry_out(day))
            hooks += worker.hooks
            last[kind.name] = worker
    for name, seconds in times.items():
        yield ("agents", "ms", f"a turn of 20 tools, {name}"), median_ms([s / TURNS for s in seconds])
    for name in [kind.name for kind in kinds[1:]]:
        extra = [(a - b) / TURNS for a, b in zip(times[name], times[Bare.name])]
        yield ("agents", "ms", f"added to a turn by {name}"), median_ms(extra)
    for event in ("UserPromptSubmit", "PreToolUse", "PostToolUse", "Stop"):
        own = sorted(s for name, s in hooks if name == event)
        yield ("agents", "ms", f"the hook at {event}: median, 95th of 100"), f"{median_ms(own)}, {own[len(own) * 95 // 100] * 1000:.1f}"
    for name in [kind.name for kind in kinds[1:]]:
        yield ("agents", "other", f"store after a day, {name}"), f"{size(last[name].store) / 2**20:.1f} MiB"
    for name in [kind.name for kind in kinds if issubclass(kind, Held)]:
        commit, rollback = last[name].both_ways()
        yield ("agents", "ms", f"commit of the day, {name}"), f"{commit * 1000:.0f}"
        yield ("agents", "ms", f"rollback of the day, {name}"), f"{rollback * 1000:.0f}"
    for name in (Hooks.name, Shadow.name):
        worker = last[name]
        seconds, lost = worker.back()
        yield ("agents", "ms", f"back to before turn {BACK_TO}, {name}"), f"{seconds * 1000:.0f}"
        for what, (got, all_of_it) in lost.items():
            yield ("agents", "other", f"given back by {name}: {what}"), f"{got} of {all_of_it}"
    shutil.rmtree(top)
    for files in SIZES[:1] if bench.args.quick else SIZES:
        yield from of_size(bench, files, rounds)


def of_size(bench, files, rounds):
    """What hooks cost where nothing has changed: a use of a tool above two starts of an empty program, an event that has nothing to do above
    one, a turn's beginning and end against `git status`, in turn; then the undo of a turn that changed ten files."""
    top = f"{bench.top}/agents-{files}"
    say(f"  {files:,} files")
    os.makedirs(f"{top}/tree")
    chance = random.Random(1)
    for d in range(files // 10):
        directory = f"{top}/tree/src/m{d // 100}/d{d}"
        os.makedirs(directory)
        for f in range(10):
            with open(f"{directory}/f{f}.rs", "w") as out:
                out.write("fn f() {}\n" * chance.randrange(20, 200))
    git = ["git", "-C", f"{top}/tree", "-c", "user.name=A", "-c", "user.email=a@example.org", "-c", "gc.auto=0", "-c", "maintenance.auto=false"]
    do("git", "init", "-q", f"{top}/tree")
    do(*git, "add", "-A")
    do(*git, "commit", "-q", "-m", "all")
    worker = Hooks(bench, top)
    first = clocked(worker.begin)
    status = lambda: do(*git, "status", "--short")
    status(), worker.prompt(1), worker.stop(1)
    starts, uses, idle, begins, ends, statuses = [], [], [], [], [], []
    look = ("Bash", "true")
    for turn in range(2, 2 + rounds):
        begins.append(clocked(worker.prompt, turn))
        statuses.append(clocked(status))
        for n in range(4):
            starts.append(clocked(do, "true") + clocked(do, "true"))
            uses.append(clocked(worker.before, turn, n, look) + clocked(worker.after, turn, n, look))
            idle.append(clocked(worker.reads, turn) - clocked(do, "true"))
        ends.append(clocked(worker.stop, turn))
    last = 2 + rounds
    worker.prompt(last)
    worker.before(last, 0, look)
    do("sh", "-c", f"for f in {top}/tree/src/m0/d[0-9]/f0.rs; do echo changed >> $f; done")
    worker.after(last, 0, look)
    worker.stop(last)
    undo = clocked(lambda: do(bench.args.recant, "agent", "undo", str(last), "-y", "-q", cwd=worker.tree, env=worker.env))
    name = f"{files:,} files"
    yield ("agents", "ms", f"{name}: the start of a session"), f"{first * 1000:.0f}"
    above = sorted(use - start for use, start in zip(uses, starts))
    yield ("agents", "ms", f"{name}: a use of a tool above two starts: median, 95th of 100"), f"{median_ms(above)}, {above[len(above) * 95 // 100] * 1000:.1f}"
    yield ("agents", "ms", f"{name}: an event with nothing to do above a start"), median_ms(idle)
    yield ("agents", "ratio", f"{name}: a turn's beginning to git status"), spread([a / b for a, b in zip(begins, statuses)], 2 if files == FILES else 1.5)
    yield ("agents", "ratio", f"{name}: a turn's end to git status"), spread([a / b for a, b in zip(ends, statuses)], 2 if files == FILES else 1.5)
    yield ("agents", "ms", f"{name}: undo of ten files"), f"{undo * 1000:.0f}"
    shutil.rmtree(top)


def clocked(act, *words):
    begun = time.perf_counter()
    act(*words)
    return time.perf_counter() - begun


def project(top):
    """A repository of 8,000 files in 200 directories, committed."""
    chance = random.Random(1)
    for d in range(200):
        os.makedirs(f"{top}/src/d{d:03}")
        for f in range(FILES // 200):
            with open(f"{top}/src/d{d:03}/f{f:02}.rs", "w") as out:
                out.write("".join(f"fn f{line}() {{ {chance.random()} }}\n" for line in range(chance.randrange(5, 120))))
    with open(f"{top}/.gitignore", "w") as out:
        out.write(GITIGNORE)
    # No gc in the background: it would go on while the tree is copied.
    git = ["git", "-C", top, "-c", "user.name=A", "-c", "user.email=a@example.org", "-c", "gc.auto=0", "-c", "maintenance.auto=false"]
    do("git", "init", "-q", top)
    do(*git, "add", "-A")
    do(*git, "commit", "-q", "-m", "all")


def composed():
    """The turns: each a list of uses of tools, (tool, path, content) or (tool, script)."""
    chance = random.Random(7)

    def file():
        return f"src/d{chance.randrange(200):03}/f{chance.randrange(40):02}.rs"

    def use(turn, n):
        name = f"t{turn}-{n}"
        looks = [f"grep -rl 'fn f{chance.randrange(99)}' src/d{chance.randrange(200):03} || true", "git status --short | head -20", f"wc -l {file()}"]
        shells = [
            f"sed -i 's/fn f3/fn g{turn}/' {file()} {file()} 2>/dev/null || true",
            f"echo 'line {turn}.{n}' >> {file()}",
            f"mkdir -p src/new-{name} && echo x > src/new-{name}/mod.rs",
            f"chmod {chance.choice(['755', '600'])} {file()} 2>/dev/null || true",
            f"rm -f {file()}",
            f"f={file()}; if [ -f $f ]; then mv $f src/moved-{name}.rs; fi",
            f"ln -sf ../README src/link-{name}",
            f"mkdir -p empty/{name}",
            f"mkdir -p target cache; head -c 20000 /dev/urandom > cache/{chance.randrange(30)}; echo built >> build.log",
            f"ln -f {file()} src/second-{name}.rs 2>/dev/null || true",
        ]
        roll = chance.random()
        if roll < 0.45:
            return ("Bash", chance.choice(looks))
        if roll < 0.75:
            return ("Write", file(), f"// {name}\n" + "fn f() {}\n" * chance.randrange(5, 100))
        return ("Bash", chance.choice(shells))

    return [[use(turn, n) for n in range(TOOLS)] for turn in range(1, TURNS + 1)]


class Bare:
    """The day by itself."""

    name = "bare"

    def __init__(self, bench, top):
        self.recant, self.tree, self.store = bench.args.recant, f"{top}/tree", f"{top}/store"
        self.env = dict(os.environ, HOME=top, RECANT_STORE=self.store, XDG_CONFIG_HOME=f"{top}/config")
        self.hooks, self.seen = [], None

    def carry_out(self, day):
        begun, apart = time.perf_counter(), 0.0
        self.begin()
        for turn, uses in enumerate(day, 1):
            if turn == BACK_TO:
                # Looking is no part of the day.
                looked = time.perf_counter()
                self.seen = state(self.tree)
                apart = time.perf_counter() - looked
            self.prompt(turn)
            for n, use in enumerate(uses):
                self.before(turn, n, use)
                if use[0] == "Write":
                    if os.path.isdir(os.path.dirname(f"{self.tree}/{use[1]}")):
                        with open(f"{self.tree}/{use[1]}", "w") as out:
                            out.write(use[2])
                else:
                    subprocess.run(["sh", "-c", use[1]], cwd=self.tree, env=self.env, stdout=subprocess.DEVNULL, check=True)
                self.after(turn, n, use)
            self.stop(turn)
        return time.perf_counter() - begun - apart

    def begin(self):
        pass

    def prompt(self, turn):
        pass

    def before(self, turn, n, use):
        pass

    def after(self, turn, n, use):
        pass

    def stop(self, turn):
        pass

    def back(self):
        """Goes back to before turn BACK_TO: seconds, and by kind how many of the paths that had changed are as they were."""
        later = state(self.tree)
        changed = {path for path in self.seen.keys() | later.keys() if self.seen.get(path) != later.get(path)}
        begun = time.perf_counter()
        self.give_back()
        seconds = time.perf_counter() - begun
        lost = {}
        for path in changed:
            was, now = self.seen.get(path), state_of(self.tree, path)
            what = kind(path, was, later.get(path))
            got, all_of_it = lost.get(what, (0, 0))
            lost[what] = (got + (was == now), all_of_it + 1)
        return seconds, dict(sorted(lost.items()))


class Hooks(Bare):
    """With recant's hooks, as Claude Code calls them."""

    name = "recant's hooks"

    def event(self, name, turn, **fields):
        event = {"session_id": "day", "prompt_id": f"p{turn}", "cwd": self.tree, "hook_event_name": name, **fields}
        begun = time.perf_counter()
        subprocess.run([self.recant, "hook", "claude"], input=json.dumps(event).encode(), cwd=self.tree, env=self.env, stdout=subprocess.DEVNULL, check=True)
        self.hooks.append((name, time.perf_counter() - begun))

    def begin(self):
        self.event("SessionStart", 0, source="startup")

    def prompt(self, turn):
        self.event("UserPromptSubmit", turn, prompt=f"do number {turn}")

    def tool(self, use):
        fields = {"file_path": f"{self.tree}/{use[1]}", "content": use[2]} if use[0] == "Write" else {"command": use[1]}
        return {"tool_name": use[0], "tool_input": fields}

    def before(self, turn, n, use):
        self.event("PreToolUse", turn, tool_use_id=f"{turn}-{n}", **self.tool(use))

    def after(self, turn, n, use):
        self.event("PostToolUse", turn, tool_use_id=f"{turn}-{n}", tool_response={}, **self.tool(use))

    def reads(self, turn):
        self.event("PreToolUse", turn, tool_name="Read", tool_input={"file_path": f"{self.tree}/README"})

    def stop(self, turn):
        self.event("Stop", turn)

    def give_back(self):
        done = subprocess.run([self.recant, "agent", "undo", str(BACK_TO), "-y", "-q"], cwd=self.tree, env=self.env, capture_output=True)
        if done.returncode not in (0, 4):
            raise SystemExit(done.stderr.decode())


class Held(Bare):
    """The whole day in `recant agent run`: this file is the agent, as a program of its own."""

    name, hooked, user = "held", False, False

    def __init__(self, bench, top):
        super().__init__(bench, top)
        self.top, self.before = top, state(self.tree)
        os.mkdir(f"{top}/bin")
        # The directory of the build may be closed to another user, and so may this one.
        shutil.copy(self.recant, f"{top}/bin/recant")
        self.recant = f"{top}/bin/recant"
        self.env["PATH"] = f"{top}/bin:{self.env['PATH']}"

    def words(self, *words):
        as_user = ["setpriv", "--reuid", USER, "--regid", USER, "--clear-groups"] if self.user else []
        return [*as_user, *words]

    def hand_over(self):
        os.chmod(self.top, 0o755)
        if self.user:
            do("chown", "-hR", f"{USER}:{USER}", self.top)
        os.sync()

    def carry_out(self, day):
        with open(f"{self.top}/day.json", "w") as out:
            json.dump([day, self.tree, self.recant if self.hooked else None], out)
        with open(f"{self.top}/bin/claude", "w") as out:
            # Root's own Python may be closed to another user.
            python = "/usr/bin/python3" if self.user else sys.executable
            out.write(f"#!/bin/sh\nexec {python} {self.top}/bin/agents.py {self.top}/day.json\n")
        os.chmod(f"{self.top}/bin/claude", 0o755)
        for name in ("agents.py", "measuring.py"):
            shutil.copy(os.path.join(os.path.dirname(os.path.abspath(__file__)), name), f"{self.top}/bin/{name}")
        self.hand_over()
        begun = time.perf_counter()
        do(*self.words(self.recant, "agent", "run", "--name", "day", "claude"), cwd=self.tree, env=self.env)
        return time.perf_counter() - begun

    def both_ways(self):
        """Seconds of a commit of the day, and of its rollback, which has to be exact."""
        seconds = []
        for verb in ("commit", "rollback"):
            os.sync()
            begun = time.perf_counter()
            do(*self.words(self.recant, verb, "day", "-q"), cwd=self.tree, env=self.env)
            seconds.append(time.perf_counter() - begun)
        if state(self.tree) != self.before:
            raise SystemExit(f"{self.name}: the rollback is not exact")
        return seconds


class HeldWithHooks(Held):
    name, hooked = "held, with the hooks", True


class HeldByUser(Held):
    name, user = "held, as a user", True


USER = "54321"


class Played(Hooks):
    """The day as the held agent does it. Without a recant it calls no hooks."""

    def __init__(self, tree, recant):
        self.tree, self.recant, self.env, self.hooks = tree, recant, dict(os.environ), []

    def event(self, name, turn, **fields):
        if self.recant:
            super().event(name, turn, **fields)


class Shadow(Bare):
    """With a shadow git repository that gets a commit before each turn."""

    name = "a shadow git repository"

    def git(self, *words):
        own = ["-c", "user.name=A", "-c", "user.email=a@example.org", "-c", "core.excludesFile=", "-c", "gc.auto=0"]
        return do("git", *own, f"--git-dir={self.store}", f"--work-tree={self.tree}", *words, cwd=self.tree, env=self.env)

    def begin(self):
        do("git", "init", "-q", "--bare", self.store)

    def prompt(self, turn):
        self.git("add", "-A")
        self.git("commit", "-q", "--allow-empty", "-m", f"before turn {turn}")
        self.git("tag", f"t{turn}")

    def give_back(self):
        self.git("add", "-A")
        self.git("commit", "-q", "--allow-empty", "-m", "now")
        self.git("reset", "-q", "--hard", f"t{BACK_TO}")
        self.git("clean", "-q", "-fd", "-e", "/.git")


def state(tree):
    """What is at each path but git's own."""
    found = {}
    for directory, names, files in os.walk(tree):
        names[:] = [name for name in names if name != ".git"]
        for name in names + files:
            path = os.path.relpath(f"{directory}/{name}", tree)
            found[path] = state_of(tree, path)
    return found


def state_of(tree, path):
    """Kind, mode, content and number of names; not its times."""
    try:
        found = os.lstat(f"{tree}/{path}")
    except FileNotFoundError:
        return None
    if stat.S_ISLNK(found.st_mode):
        return "link", os.readlink(f"{tree}/{path}")
    if stat.S_ISDIR(found.st_mode):
        return "directory", found.st_mode, not os.listdir(f"{tree}/{path}")
    with open(f"{tree}/{path}", "rb") as file:
        return "file", found.st_mode, file.read(), found.st_nlink


def kind(path, was, now):
    """The sort of a path that had changed, for the table."""
    if path == "build.log" or path.split("/")[0] in ("target", "cache"):
        return "ignored files"
    seen = [side for side in (was, now) if side]
    if any(side[0] == "link" for side in seen):
        return "symlinks"
    if any(side[0] == "directory" for side in seen):
        return "empty directories" if any(side[-1] is True for side in seen) else "directories"
    if any(side[3] > 1 for side in seen):
        return "hard links"
    modes = {side[1] & 0o777 for side in seen}
    return "files with a mode that git does not keep" if modes - {0o644, 0o755} else "files"


def size(top):
    seen = set()
    for directory, names, files in os.walk(top):
        for name in names + files:
            found = os.lstat(f"{directory}/{name}")
            seen.add((found.st_ino, found.st_blocks * 512))
    return sum(bytes_of for _, bytes_of in seen)


if __name__ == "__main__":
    with open(sys.argv[1]) as written:
        day, tree, recant = json.load(written)
    Played(tree, recant).carry_out(day)
