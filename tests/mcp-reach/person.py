"""A person beside Claude Code, each at a terminal of tmux: the agent asks for a commit by `recant mcp` and waits, the person commits a half of
it and discards the rest, each with a reason, and the agent goes on with that.
"""
import os
import shutil
import subprocess
import time

from agents import AGENTS, REGISTER, placed, server
from drivers import as_json
from model import Model

SCRIPTS = {"half": [
    ["tool", "hold_run", {"shell": "mkdir docs tests; echo guide > docs/guide.md; echo test > tests/a.py", "session": "work"}],
    ["tool", "commit", {}],
    ["tool", "await", {}],
    ["tool", "hold_run", {"shell": "echo better > tests/a.py; cat docs/guide.md"}],
    ["tool", "await", {}],
    ["tool", "hold_run", {"shell": "echo notes > notes.md; ls"}],
    ["text", "Only the notes are held now."],
]}
PERSONS = ("PATH", "HOME", "LANG", "XDG_CONFIG_HOME", "XDG_DATA_HOME")


class Screen:
    """Two terminals, one above the other, until it is left."""

    def __init__(self, world):
        self.world = world
        self.tmux = ["tmux", "-S", os.path.join(world.top, "tmux"), "-f", "/dev/null"]

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.call("kill-server")

    def call(self, *words):
        return subprocess.run([*self.tmux, *words], capture_output=True, text=True, check=False).stdout

    def begin(self, words, environment, *how):
        variables = [f"{name}={value}" for name, value in {**environment, "TERM": "xterm-256color"}.items()]
        self.call(*how, "-c", self.world.project, "env", "-i", *variables, *words)

    def types(self, pane, line):
        self.call("send-keys", "-t", pane, "-l", line)
        self.call("send-keys", "-t", pane, "Enter")

    def shows(self, pane):
        return self.call("capture-pane", "-p", "-t", pane)


def until(true, seconds=60):
    """Waits for it. True if it came."""
    ends = time.monotonic() + seconds
    while not true():
        if time.monotonic() > ends:
            return False
        time.sleep(0.1)
    return True


def answers(world):
    """What the tools have answered."""
    return [message["result"]["content"][0]["text"] for method, message in world.messages() if method == "tools/call" and "result" in message]


def approve(agent, world, recant):
    """What went wrong, or None."""
    with Model(world.project, SCRIPTS) as model, Screen(world) as screen:
        environment = placed(agent, world, model.url)
        trusted = {"hasTrustDialogAccepted": True, "hasCompletedProjectOnboarding": True}
        as_json(f"{environment['HOME']}/.claude.json", {
            "hasCompletedOnboarding": True, "theme": "dark", "projects": {world.project: trusted},
            "customApiKeyResponses": {"approved": [environment["ANTHROPIC_API_KEY"]], "rejected": []},
        })
        subprocess.run([agent.path(), *REGISTER["claude"](server(world, recant))], cwd=world.project, env=environment, capture_output=True, check=True)
        words = [agent.path(), "--permission-mode", "default", "--allowedTools", "mcp__recant"]
        screen.begin(words, environment, "new-session", "-d", "-x", "120", "-y", "50")
        persons = {name: world.environment[name] for name in PERSONS if name in world.environment}
        persons.update({"PATH": f"{os.path.dirname(recant)}:{persons['PATH']}", "PAGER": "cat", "PS1": "$ "})
        screen.begin(["bash", "--norc", "--noprofile"], persons, "split-window", "-v", "-l", "20")
        if not until(lambda: any(method == "tools/list" and "result" in message for method, message in world.messages())):
            return f"the agent asks for no tools: {screen.shows('0')}"
        # The agent may not take keys yet.
        if not until(lambda: "❯" in screen.shows("0")):
            return f"the agent takes no prompt: {screen.shows('0')}"
        screen.types("0", "Write the docs and the tests. [[play half]]")
        for asked, reads, types in ((2, "recant diff work", "recant commit work docs -m 'the docs are right'"),
                                    (4, "recant diff work", "recant discard work -y -m 'not the tests'")):
            if not until(lambda: len(answers(world)) == asked):
                return f"{len(answers(world))} answers, not {asked}: {answers(world)}: {screen.shows('0')}"
            if not until(lambda: "waits for a person: recant review work" in screen.shows("0")):
                return f"the person is not told: {screen.shows('0')}"
            screen.types("1", f"clear; {reads}; {types}; echo status $?")
            if not until(lambda: len(answers(world)) > asked):
                return f"the agent goes on waiting: {screen.shows('1')}"
            if not until(lambda: "status 0" in screen.shows("1")):
                return f"the person's command failed: {screen.shows('1')}"
        if not until(lambda: "Only the notes are held now." in screen.shows("0")):
            return f"the agent has not ended: {screen.shows('0')}"
        shown = screen.shows("0") + screen.shows("1")
    heard = model.asked[-1]
    real = sorted(name for name in os.listdir(world.project) if not name.startswith("."))
    for reason in ("the docs are right", "not the tests"):
        if reason not in heard:
            return f"the model was not told: {reason}: {answers(world)}"
    if real != ["docs"]:
        return f"made real: {real}: {shown}"
    pending = world.run([recant, "list", "--json"]).stdout
    return None if "notes" in world.run([recant, "diff", "last"]).stdout else f"the notes are not held: {pending}"


def all_of(tally, world_of, recant, cache):
    """The person and Claude Code, where both can be had."""
    agent = AGENTS["claude"](cache)
    reason = agent.install() or (None if shutil.which("tmux") else "there is no tmux")
    if reason:
        return tally.skip("a person beside claude", reason)
    with world_of(recant) as world:
        return tally.told(f"claude {agent.version()}: a person approves a half with a reason, and the agent goes on with it", approve(agent, world, recant))
