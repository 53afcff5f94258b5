#!/usr/bin/env python3
"""The agents that npm ships, driven by a stand-in model, on the real tree, with the hooks that `recant agent install` writes.

    run.py [AGENT…] --recant PATH [--agents DIR] [--keep]

Each agent gets a HOME and a project of its own, does two turns (its own tools and shell commands write, replace, remove, link and make
executable), and then has to be known by `agent status`, have told its model what is covered or held, be told by `agent turns`, and be undone
by `agent undo 1` to the byte; the redo and `agent uninstall` are exact, too. No account, no model, no network but npm's registry, to install. Closing line: N passed, N failed, N skipped.
"""
import argparse
import collections
import hashlib
import json
import os
import shutil
import stat
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)
sys.dont_write_bytecode = True
from drivers import AGENTS, write  # noqa: E402
from model import Model  # noqa: E402

SCRIPTS = {
    "first": [
        ["write", "made.txt", "one\ntwo\n"],
        ["shell", "mkdir -p deep/er && echo shell > deep/er/file && rm gone.txt && ln -sf made.txt link && chmod 755 script && echo x >> kept.txt"],
        ["edit", "made.txt", "one", "ONE"],
        ["text", "The first part is done."],
    ],
    "second": [
        ["write", "second.txt", "second\n"],
        ["shell", "echo ignored > new.gen && rm hollow/.keep && rmdir hollow && cd deep && mv er file-er"],
        ["shell", "false"],
        ["agent", "Do your own part. [[play inner]]"],
        ["text", "The second part is done."],
    ],
    "third": [
        ["shell", "echo other > .env && mv dist public && rm old.gen && git commit -qam third && git branch topic"],
        ["text", "The third part is done."],
    ],
    "inner": [["shell", "echo inner > inner.txt"], ["text", "The inner part is done."]],
}
PARTS = ("first", "second")
# They give their model what a hook says at the start.
TOLD = ("claude", "codex", "gemini")
# What an agent sets for its commands would make recant refuse, as it does an agent; a person's shell has none of it.
OF_AGENTS = ("CLAUDE", "CODEX", "GEMINI", "COPILOT", "OPENCODE", "PI_", "CURSOR", "RECANT", "AI_AGENT", "AGENT")


class Failed(Exception):
    pass


def demand(true, said):
    if not true:
        raise Failed(said)


def tree(root):
    """All that is below a directory, but .git: kind, mode, content or target."""
    found = {}
    for at, directories, files in os.walk(root):
        if ".git" in directories:
            directories.remove(".git")
        for name in directories + files:
            path = os.path.join(at, name)
            about = os.lstat(path)
            if stat.S_ISLNK(about.st_mode):
                what = os.readlink(path)
            elif stat.S_ISREG(about.st_mode):
                with open(path, "rb") as source:
                    what = hashlib.sha256(source.read()).hexdigest()
            else:
                what = ""
            found[os.path.relpath(path, root)] = (oct(about.st_mode), what)
    return found


def differing(one, other):
    return sorted(path for path in one.keys() | other.keys() if one.get(path) != other.get(path))


def exactly(now, then, said):
    wrong = differing(now, then)
    demand(not wrong, f"{said}: {len(wrong)} paths differ: {', '.join(wrong[:6])}")


class Project:
    def __init__(self, top, recant):
        self.home = os.path.join(top, "home")
        self.path = os.path.join(self.home, "project")
        self.recant = recant
        os.makedirs(self.path)
        subprocess.run(["git", "init", "-q", self.path], check=True)
        for name, text in (("kept.txt", "kept\n"), ("gone.txt", "gone\n"), ("script", "#!/bin/sh\n"), ("old.gen", "old\n"),
                           ("hollow/.keep", ""), (".gitignore", "*.gen\n.env\n"), (".env", "KEY=1\n"), ("dist/app", "built\n")):
            write(f"{self.path}/{name}", text)
        for name, value in (("user.name", "a"), ("user.email", "a@b")):
            subprocess.run(["git", "-C", self.path, "config", name, value], check=True)
        subprocess.run(f"cd {self.path} && git add kept.txt && git commit -qm one", shell=True, check=True)
        os.symlink("kept.txt", f"{self.path}/link")
        os.mkdir(f"{self.path}/empty")
        self.environment = {name: value for name, value in os.environ.items() if not name.startswith(OF_AGENTS)}
        self.environment.update({"HOME": self.home, "PATH": f"{os.path.dirname(recant)}:{os.environ['PATH']}"})
        for name in ("XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_STATE_HOME", "XDG_CACHE_HOME"):
            self.environment.pop(name, None)

    def call(self, *words, status=0):
        """What recant prints: JSON where it was asked for."""
        done = subprocess.run(["timeout", "60", self.recant, *words], cwd=self.path, env=self.environment, stdin=subprocess.DEVNULL,
                              capture_output=True, text=True)
        command = f"recant {' '.join(words)}"
        said = json.loads(done.stdout) if "--json" in words and done.stdout else done.stdout
        left = json.dumps(said["skipped"]) if isinstance(said, dict) and said.get("skipped") else said
        demand(done.returncode == status, f"{command}: exit {done.returncode}, not {status}: {(done.stderr or str(left)).strip()[:800]}")
        return said


def drive(agent, project):
    """Its turns, each a run of the agent. The settings before, and the trees before, between and after."""
    trees = [tree(project.path)]
    with Model(project.path, SCRIPTS) as model:
        agent.settings(project.home, project.path, model.url)
        settings = settings_of(project)
        project.call("agent", "install", agent.name, "-y")
        demand(differing(settings_of(project), settings), "agent install changed nothing")
        # Nothing has fired yet: 4.
        project.call("agent", "status", agent.name, status=4)
        environment = agent.environment(project.home, model.url)
        environment["PATH"] = f"{os.path.dirname(project.recant)}:{environment['PATH']}"
        agent.review(project.home, project.path, environment)
        for turn, part in enumerate((*PARTS, "third"), 1):
            words = agent.arguments(f"Please do the {part} part. [[play {part}]]", turn)
            done = subprocess.run(["timeout", "120", agent.path(), *words], cwd=project.path, env=environment, stdin=subprocess.DEVNULL,
                                  capture_output=True, text=True)
            said = (done.stdout + done.stderr).strip()[-400:]
            demand(done.returncode == 0 and f"The {part} part is done." in done.stdout, f"turn {turn}: exit {done.returncode}: {said}")
            was_told(agent, model, f"recant: your turns in {project.path} can be taken back", f"turn {turn}")
            trees.append(tree(project.path))
            demand(differing(*trees[-2:]), f"turn {turn} changed nothing")
    for path in ("made.txt", "deep/file-er/file", "second.txt", "new.gen"):
        demand(path in trees[-1], f"the agent has not made {path}")
    return settings, trees


def was_told(agent, model, line, turn):
    """What recant says at the start of a conversation is in what the model is asked."""
    if agent.name in TOLD:
        demand(line in model.asked[-1], f"{turn}: the model was not told: {line}")


def check(agent, project):
    settings, (before, between, after, _) = drive(agent, project)
    check_borders(project, after)
    status = project.call("agent", "status", agent.name, "--json")
    demand(all(one["fires"] for one in status["agents"]) and status["agents"], f"agent status: {json.dumps(status)[:600]}")
    turns = project.call("agent", "turns", "--json")["turns"]
    demand([turn["n"] for turn in turns] == [3, 2, 1], f"agent turns: {json.dumps(turns)[:600]}")
    for turn, part, trees in zip(turns[:0:-1], PARTS, ((before, between), (between, after))):
        told = json.dumps(turn)
        demand(turn["agent"] == agent.name and f"{part} part" in turn["prompt"], f"turn of another: {told}")
        demand(turn["covered"] and turn["ended"], f"not whole: {told}")
        changed = differing(*trees)
        demand(turn["paths"] > 0, f"no paths: {told}")
        diff = project.call("agent", "diff", str(turn["n"]), "--json")["changes"]
        told = {os.path.relpath(change["path"], project.path) for change in diff}
        missing = [path for path in changed if path not in told and not any(path.startswith(f"{one}/") for one in told)]
        demand(not missing, f"agent diff {turn['n']} leaves out {missing}")
    undone = project.call("agent", "undo", "1", "-y", "--json")
    exactly(tree(project.path), before, "agent undo 1")
    project.call("rollback", undone["session"], "-y")
    exactly(tree(project.path), after, "its rollback")
    project.call("agent", "undo", "2", "-y")
    exactly(tree(project.path), between, "agent undo 2")
    project.call("agent", "uninstall", agent.name, "-y")
    exactly(settings_of(project), settings, "agent uninstall")


def check_borders(project, after):
    """The third turn crossed the borders of what is covered: what does not go back is named, and its commands take it back."""
    done = subprocess.run([project.recant, "agent", "undo", "3"], cwd=project.path, env=project.environment, stdin=subprocess.DEVNULL,
                          capture_output=True, text=True)
    demand(done.returncode == 2, f"agent undo without a terminal: exit {done.returncode}")
    undone = project.call("agent", "undo", "3", "-y", "--json", status=4)
    rows = {os.path.relpath(row["path"], project.path): row for row in undone["not_covered"]}
    demand(sorted(rows) == [".git", ".git/refs/heads/topic", "dist"], f"not covered: {json.dumps(rows)[:600]}")
    for row in rows.values():
        subprocess.run(row["remedy"], shell=True, cwd=project.path, check=True)
    exactly(tree(project.path), after, "agent undo 3 and its commands")
    commits = subprocess.run(["git", "log", "--all", "--oneline"], cwd=project.path, capture_output=True, text=True).stdout
    demand(len(commits.splitlines()) == 1, f"commits that stay: {commits}")


def check_held(agent, project):
    """The same two turns in `recant agent run`, which reaches the stand-in alone: nothing on the tree, then the second undone in the session,
    the rest committed, and back."""
    before = tree(project.path)
    bin = os.path.join(project.home, "..", "bin")
    os.mkdir(bin)
    os.symlink(agent.path(), f"{bin}/{agent.name}")
    trees = []

    def seen():
        """The project as a command in the session sees it."""
        copy = tempfile.mkdtemp(dir=os.path.dirname(project.home))
        words = [project.recant, "run", "--session", session, "--", "tar", "-cf", "-", "."]
        packed = subprocess.run(words, cwd=project.path, env=project.environment, stdin=subprocess.DEVNULL, capture_output=True)
        subprocess.run(["tar", "-xf", "-", "-C", copy], input=packed.stdout, check=True)
        return tree(copy)

    with Model(project.path, SCRIPTS) as model:
        agent.settings(project.home, project.path, model.url)
        project.call("agent", "install", agent.name, "-y")
        settings = settings_of(project)
        environment = agent.environment(project.home, model.url)
        environment["PATH"] = f"{bin}:{os.path.dirname(project.recant)}:{environment['PATH']}"
        agent.review(project.home, project.path, environment)
        session = f"{agent.name}-project"
        for turn, part in enumerate(PARTS, 1):
            words = agent.arguments(f"Please do the {part} part. [[play {part}]]", turn)
            listed = ["--network", model.url.removeprefix("http://")]
            words = [project.recant, "agent", "run", *listed, *(["--session", session] if turn > 1 else []), agent.name, *words]
            done = subprocess.run(["timeout", "120", *words], cwd=project.path, env=environment, stdin=subprocess.DEVNULL,
                                  capture_output=True, text=True)
            said = (done.stdout + done.stderr).strip()[-1200:]
            demand(done.returncode == 0 and f"The {part} part is done." in done.stdout, f"held turn {turn}: exit {done.returncode}: {said}")
            was_told(agent, model, "recant: held: what you change in files lies in session ", f"held turn {turn}")
            exactly(tree(project.path), before, f"held turn {turn} is on the tree")
            exactly(settings_of(project), settings, f"held turn {turn} has changed settings")
            trees.append(seen())
            demand(differing(trees[-1], before if turn == 1 else trees[0]), f"held turn {turn} changed nothing")
    undone = subprocess.run([project.recant, "run", "--session", session, "--", "recant", "agent", "undo", "2", "-y"], cwd=project.path,
                            env=project.environment, stdin=subprocess.DEVNULL, capture_output=True, text=True)
    demand(undone.returncode == 0, f"agent undo 2 in the session: exit {undone.returncode}: {undone.stderr.strip()[-800:]}")
    exactly(seen(), trees[0], "agent undo 2 in the session")
    beside = [path for path in project.call("diff", session, "--name-only").split() if not path.startswith(project.path)]
    places = collections.Counter("/".join(path.replace(project.home, "~").split("/")[:3]) for path in beside)
    told = ", ".join(f"{place} ({count})" for place, count in sorted(places.items()))
    print(f"note: {agent.name}: held beside the project: {told or 'nothing'}", flush=True)
    project.call("commit", session)
    exactly(tree(project.path), trees[0], "the commit")
    project.call("rollback", session)
    exactly(tree(project.path), before, "its rollback")


def settings_of(project):
    """The files in which hooks stand, without what agents keep beside them."""
    wanted = ("settings.json", "hooks.json", "recant.json", "recant.js", "recant.ts")
    below = {".claude", ".codex", ".gemini", ".copilot", ".config", ".pi"}
    return {path: what for path, what in tree(project.home).items()
            if path.split("/")[0] in below and os.path.basename(path) in wanted}


def main():
    parser = argparse.ArgumentParser(description="drives the agents that npm ships by a stand-in model")
    parser.add_argument("agent", nargs="*", help=", ".join(AGENTS))
    parser.add_argument("--recant", required=True)
    parser.add_argument("--agents", default="target/agents", help="where the agents are installed")
    parser.add_argument("--way", nargs="+", default=["real", "held"], choices=["real", "held"], help="on the real tree, or held")
    parser.add_argument("--keep", action="store_true", help="leave the HOME and the project of what fails")
    given = parser.parse_args()
    recant = os.path.abspath(given.recant)
    counts = {"passed": 0, "failed": 0, "skipped": 0}

    def tell(word, name, reason=None):
        counts[word] += 1
        print(f"{word}: {name}" + (f": {reason}" if reason else ""), flush=True)

    known = subprocess.run([recant, "agent", "install", "--help"], capture_output=True, stdin=subprocess.DEVNULL).returncode == 0
    for name in given.agent or [name for name in AGENTS if name != "copilot-pascal"]:
        agent = AGENTS[name](os.path.abspath(given.agents))
        reason = agent.install() if known else "this recant has no `agent install`"
        if reason:
            tell("skipped", name, reason)
            continue
        top = os.path.realpath(tempfile.mkdtemp(prefix="recant-reach-"))
        try:
            ways = {"real": check, "held": check_held}
            for way in given.way:
                os.mkdir(f"{top}/{way}")
                ways[way](agent, Project(f"{top}/{way}", recant))
            tell("passed", f"{name} {agent.version()} ({', '.join(given.way)})")
        except Failed as failed:
            tell("failed", f"{name} {agent.version()}", failed)
            if given.keep:
                print(f"  kept: {top}")
                continue
        shutil.rmtree(top, ignore_errors=True)
    print(", ".join(f"{count} {word}" for word, count in counts.items()))
    return 1 if counts["failed"] else 0


if __name__ == "__main__":
    sys.exit(main())
