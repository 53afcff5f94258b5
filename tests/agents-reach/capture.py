#!/usr/bin/env python3
"""Makes the fixtures of tests/fixtures/agents: drives each agent by the stand-in model, with hooks that write down what they are given.

    python3 capture.py AGENT… [--agents DIR] [--to DIR] [--keep]

Of the payloads of one kind (event, tool, subagent or not, how the session began) the first is kept. Paths of this machine become
/home/user and /home/user/project. `environment.json` has the names of the variables that the agent set for hooks and for shell commands.
"""
import argparse
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)
sys.dont_write_bytecode = True
from drivers import AGENTS, write  # noqa: E402
from model import Model  # noqa: E402

NAMES = ("CLAUDE", "CODEX", "GEMINI", "COPILOT", "OPENCODE", "PI_", "CURSOR", "AGENT", "AI_AGENT", "RECANT")

SCRIPTS = {
    "one": [
        ["write", "by-tool.txt", "one\ntwo\n"],
        ["shell", "echo from the shell > by-shell.txt; env > ../shell-environment"],
        ["edit", "by-tool.txt", "one", "ONE"],
        ["text", "The first turn is done."],
    ],
    "two": [
        ["write", "second.txt", "second\n"],
        ["shell", "rm by-shell.txt; mkdir -p sub; cd sub; echo deep > deep.txt"],
        ["shell", "false"],
        ["edit", "by-tool.txt", "not in this file", "never"],
        ["text", "The second turn is done."],
    ],
    "three": [["agent", "Do your part. [[play inner]]"], ["shell", "sleep 2; echo outer > by-outer.txt"], ["text", "Both are done."]],
    "inner": [["shell", "echo inner > by-inner.txt"], ["write", "inner.txt", "inner\n"], ["text", "The inner part is done."]],
    "four": [["agent", "Do your part. [[play slow]]"], ["text", "It goes on without me."]],
    "slow": [["shell", "sleep 2; echo late > by-late.txt"], ["text", "The slow part is done."]],
    "five": [["error", "the stand-in refuses"]],
    "six": [["shell", "echo begun > begun.txt; sleep 5"], ["text", "Nobody interrupted me."]],
}


def record(file, agent, event):
    """What a hook does in a capture."""
    given = sys.stdin.buffer.read().decode("utf-8", "surrogateescape")
    names = sorted(name for name in os.environ if name.startswith(NAMES))
    line = json.dumps({"event": event, "stdin": given, "environment": names, "cwd": os.getcwd()})
    with open(file, "a") as out:
        out.write(line + "\n")


def session(payload):
    return payload.get("sessionId") or payload.get("session_id")


def kind(event, payload, first):
    """Two payloads of one kind tell a test the same. `first`: the session that Copilot began with, whose subagents have sessions too."""
    if not isinstance(payload, dict):
        return event
    name = payload.get("event", event)
    tool = payload.get("tool_name") or payload.get("toolName") or payload.get("tool")
    inner = bool(payload.get("agent_id") or payload.get("subagent") or session(payload) not in (None, first))
    failed = payload.get("error") is True or "Exit Code: 1" in json.dumps(payload.get("tool_response", ""))
    waiting = bool(payload.get("background_tasks"))
    return name, tool, inner, payload.get("prompt"), failed, waiting, payload.get("source")


def drive(agent, keep):
    """Six turns; the events as they came."""
    top = os.path.realpath(tempfile.mkdtemp(prefix="capture"))
    home, project = os.path.join(top, "home", "user"), os.path.join(top, "home", "user", "project")
    os.makedirs(project)
    subprocess.run(["git", "init", "-q", project], check=True)
    write(f"{project}/old.txt", "old\n")
    log = os.path.join(top, "log")
    command = [sys.executable, os.path.abspath(__file__), "--record", log, agent.name]
    with Model(project, SCRIPTS) as model:
        agent.settings(home, project, model.url)
        agent.hooks(home, project, lambda event: [*command, event])
        environment = agent.environment(home, model.url)
        if agent.plugin:
            shutil.copy(os.path.join(HERE, "..", "..", "src", "agent", "plugins", agent.plugin[0]), place(home, agent))
            write(f"{top}/bin/recant", "#!/bin/sh\nexec " + " ".join(command) + ' "$@"\n')
            os.chmod(f"{top}/bin/recant", 0o755)
            environment["PATH"] = f"{top}/bin:{environment['PATH']}"
        for turn, name in enumerate(("one", "two", "three", "four", "five", "six"), 1):
            words = agent.arguments(f"Please do part {name}. [[play {name}]]", turn)
            if name in ("three", "four"):
                words += agent.subagents
            running = subprocess.Popen([agent.path(), *words], cwd=project, env=environment, stdin=subprocess.DEVNULL,
                                       stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
            if name == "six":
                interrupt(running, f"{project}/begun.txt")
            try:
                said = running.communicate(timeout=120)[0].strip()
            except subprocess.TimeoutExpired:
                running.kill()
                said = running.communicate()[0].strip()
            print(f"{agent.name}: turn {name}: exit {running.returncode}: {said[-100:]!r}")
        time.sleep(5)
    with open(log) as source:
        events = [json.loads(line) for line in source.read().replace(top, "").replace(top.replace("/", "-"), "").splitlines()]
    shell = f"{home}/shell-environment"
    variables = []
    if os.path.exists(shell):
        with open(shell) as source:
            variables = sorted({line.split("=")[0] for line in source if line.startswith(NAMES)})
    if keep:
        print(f"{agent.name}: kept {top}")
    else:
        shutil.rmtree(top)
    return events, variables, set(environment)


def interrupt(running, begun):
    """As a person does by Ctrl-C, in the middle of a command."""
    for _ in range(200):
        if os.path.exists(begun) or running.poll() is not None:
            break
        time.sleep(0.1)
    time.sleep(0.5)
    running.send_signal(signal.SIGINT)


def place(home, agent):
    path = os.path.join(home, agent.plugin[1])
    os.makedirs(os.path.dirname(path), exist_ok=True)
    return path


def main():
    if sys.argv[1:2] == ["--record"]:
        return record(*sys.argv[2:4], sys.argv[4])
    parser = argparse.ArgumentParser(description="makes the fixtures of agents' hook payloads")
    parser.add_argument("agent", nargs="+", choices=sorted(AGENTS))
    parser.add_argument("--agents", default="target/agents", help="where the agents are installed")
    parser.add_argument("--to", default=os.path.join(HERE, "..", "fixtures", "agents"))
    parser.add_argument("--keep", action="store_true", help="leave the HOME and the project")
    given = parser.parse_args()
    for name in given.agent:
        agent = AGENTS[name](os.path.abspath(given.agents))
        reason = agent.install()
        if reason:
            print(f"skipped: {name}: {reason}")
            continue
        events, shell, own = drive(agent, given.keep)
        target = os.path.join(given.to, name)
        shutil.rmtree(target, ignore_errors=True)
        seen = set()
        first = None
        hooks = {}
        for event in events:
            hooks.setdefault(event["event"], set()).update(set(event["environment"]) - own)
            try:
                payload = json.loads(event["stdin"])
            except ValueError:
                payload = None
            first = first or session(payload or {})
            one = kind(event["event"], payload, first)
            if one in seen:
                continue
            seen.add(one)
            told = payload.get("event", event["event"]) if isinstance(payload, dict) else event["event"]
            write(f"{target}/{len(seen):02}-{told}.json", event["stdin"].rstrip("\n") + "\n")
        common = set.intersection(*hooks.values()) if hooks else set()
        write(f"{target}/environment.json", json.dumps({
            "version": agent.version(), "hooks": sorted(common), "shell": sorted(set(shell) - own),
            "only": {event: sorted(names - common) for event, names in hooks.items() if names - common},
        }, indent=2) + "\n")
        print(f"{name}: {len(events)} events, {len(seen)} kept")


if __name__ == "__main__":
    main()
