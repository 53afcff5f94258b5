"""Agents from npm, driven by the stand-in model of tests/agents-reach, with `recant mcp` as their server.

The model holds a command, then asks for its commit, and the settings file is not made.
"""
import json
import os
import shutil
import subprocess
import sys

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
    """A turn of the agent. What went wrong, or None, and who holds the command."""
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
    return None, f"held by {by['agent']}"


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
