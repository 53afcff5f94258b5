"""Agents from npm, driven by the stand-in model of tests/agents-reach, with `recant mcp` as their server and mcp.ask on.

The model holds a command, then asks for its commit. No person is there. Whatever the agent answers by itself, the file is not made. Then one
is there: on a terminal (tmux) Claude Code shows the question, the code is typed, and the file is made.
"""
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(os.path.dirname(HERE), "agents-reach"))
sys.dont_write_bytecode = True
from drivers import AGENTS  # noqa: E402
from model import Model  # noqa: E402

SCRIPTS = {"hold": [["tool", "hold_run", {"shell": "echo held > made", "session": "work"}], ["tool", "commit", {"session": "work"}],
                    ["text", "It is held."]]}

# How each is told of the server, as docs/mcp.md says.
REGISTER = {
    "claude": lambda words: ["mcp", "add", "-s", "user", "recant", "--", *words],
    "codex": lambda words: ["mcp", "add", "recant", "--", *words],
    "gemini": lambda words: ["mcp", "add", "-s", "user", "recant", words[0], *words[1:]],
}


def placed(agent, world, url):
    """The environment of the agent in this world."""
    home = os.path.join(world.top, "home")
    agent.settings(home, world.project, url)
    environment = agent.environment(home, url)
    environment.update({name: world.environment[name] for name in ("XDG_CONFIG_HOME", "XDG_DATA_HOME")})
    # The model is offered each tool, and not a search for them.
    environment["ENABLE_TOOL_SEARCH"] = "false"
    return environment


def server(world, recant):
    """The words that start the server, with all that is said to it written down."""
    own = [f"{name}={world.environment[name]}" for name in ("XDG_CONFIG_HOME", "XDG_DATA_HOME")]
    return [shutil.which("env"), *own, sys.executable, os.path.join(HERE, "tap.py"), world.log, recant, "mcp"]


def drive(agent, world, recant):
    """A turn of the agent. What went wrong, or None, and how it answered the question."""
    with Model(world.project, SCRIPTS) as model:
        environment = placed(agent, world, model.url)

        def run(words, seconds):
            return subprocess.run(["timeout", str(seconds), agent.path(), *words], cwd=world.project, env=environment,
                                  stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)

        done = run(REGISTER[agent.name](server(world, recant)), 60)
        if done.returncode:
            return f"it takes no server: {(done.stderr or done.stdout).strip()[-300:]}", ""
        done = run([*agent.arguments("Please hold it. [[play hold]]", 1), *agent.subagents], 120)
    said = (done.stdout + done.stderr).strip()[-400:]
    shown = world.run([recant, "show", "work", "--json"])
    made = os.path.exists(os.path.join(world.project, "made"))
    if made:
        return "the file was made, and nobody confirmed it", ""
    if shown.returncode:
        return f"nothing is held; exit {done.returncode}: {said}", ""
    by = json.loads(shown.stdout)["session"].get("by") or {}
    if not by.get("agent"):
        return f"held by nobody: {shown.stdout[:400]}", ""
    called = [message["params"]["name"] for sign, message in world.lines() if sign == ">" and message.get("method") == "tools/call"]
    answers = world.answers() or ["nothing: it cannot ask" if "commit" in called else "the model: commit is for a person to allow"]
    return None, f"held by {by['agent']}; it answered {'; '.join(answers)}"


def person(agent, world, recant):
    """Claude Code on a terminal, and somebody who reads. What went wrong, or None."""
    home = os.path.join(world.top, "home")
    made = os.path.join(world.project, "made")

    def tmux(*words):
        return subprocess.run(["timeout", "10", "tmux", "-L", f"recant-mcp-{os.getpid()}", *words], capture_output=True, text=True, check=False).stdout

    with Model(world.project, SCRIPTS) as model:
        environment = placed(agent, world, model.url)
        environment["TERM"] = "xterm-256color"
        known = {"hasCompletedOnboarding": True, "theme": "dark", "customApiKeyResponses": {"approved": ["stand-in"], "rejected": []},
                 "projects": {world.project: {"hasTrustDialogAccepted": True, "hasCompletedProjectOnboarding": True}}}
        with open(os.path.join(home, ".claude.json"), "w", encoding="utf-8") as file:
            json.dump(known, file)
        subprocess.run(["timeout", "60", agent.path(), *REGISTER["claude"](server(world, recant))], cwd=world.project, env=environment,
                       stdin=subprocess.DEVNULL, capture_output=True, check=False)
        words = ["env", "-i", *[f"{name}={value}" for name, value in environment.items()], agent.path(), "--permission-mode", "default"]
        tmux("new-session", "-d", "-s", "c", "-x", "110", "-y", "45", "-c", world.project, shlex.join(words))
        screen, is_typed = "", False
        try:
            time.sleep(6)
            tmux("send-keys", "-t", "c", "-l", "Please hold it. [[play hold]]")
            for _ in range(40):
                time.sleep(1)
                screen = tmux("capture-pane", "-p", "-t", "c")
                code = re.search(r"the code (\w{6})", screen)
                if os.path.exists(made):
                    return None if is_typed else "it was made, and nobody had typed the code"
                if code and not is_typed:
                    is_typed = True
                    tmux("send-keys", "-t", "c", "-l", code[1])
                    time.sleep(0.5)
                # Sends the prompt, allows a call, leaves the field, accepts.
                tmux("send-keys", "-t", "c", "Enter")
            return f"it was not made: {' '.join(screen.split())[-600:]}"
        finally:
            tmux("kill-server")


def all_of(tally, world_of, recant, cache):
    """Each agent that can be installed."""
    for name in REGISTER:
        agent = AGENTS[name](cache)
        reason = agent.install()
        if reason:
            tally.skip(name, reason)
            continue
        with world_of(recant) as world:
            wrong, how = drive(agent, world, recant)
            tally.told(f"{name} {agent.version()}: held, and nothing is made{': ' + how if how else ''}", wrong)
            if name != "claude":
                continue
        if not shutil.which("tmux"):
            tally.skip("claude on a terminal", "there is no tmux")
            continue
        with world_of(recant) as world:
            tally.told(f"{name}, on a terminal: the code is seen and typed, and the commit made", person(agent, world, recant))
