#!/usr/bin/env python3
"""Clients of others against `recant mcp`: the Python SDK's, from PyPI, and the inspector's, from npm.

    run.py --recant PATH [--clients DIR] [--agents DIR] [--schema DIR]

The SDK's client in modes legacy, auto and 2026-07-28: every tool, progress, cancellation, a refactoring of 89 files that is looked at in few
calls, and the command that a person is given. The inspector's command line in three eras: the list with --strict, and each tool. All that the
server said in between is checked against the schemas of the specification: those in --schema (VERSION.json or VERSION/schema.json, as in its
repository), else from GitHub. Then agents from npm, with a stand-in model (agents.py): they make nothing real; and a person
beside one of them (person.py). What cannot be installed is
skipped. Closing line: N passed, N failed, N skipped.
"""
import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import urllib.request

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)
sys.dont_write_bytecode = True
import agents  # noqa: E402
import person  # noqa: E402

MODES = ("legacy", "auto", "2026-07-28")
ERAS = ("legacy", "auto", "modern")
VERSIONS = ("2026-07-28", "2025-11-25", "2025-06-18", "2025-03-26")
PYTHON = ["mcp>=2.3,<3", "jsonschema>=4,<5"]
# The inspector wants a newer node than many systems have.
NODE = ["node@22", "@modelcontextprotocol/inspector@2"]
SOURCE = "https://raw.githubusercontent.com/modelcontextprotocol/modelcontextprotocol/main/schema/{}/schema.json"
OF_AGENTS = ("CLAUDE", "CODEX", "GEMINI", "COPILOT", "OPENCODE", "PI_", "CURSOR", "RECANT", "AI_AGENT", "AGENT")


class World:
    """A home and a project."""

    def __init__(self, recant):
        self.top = os.path.realpath(tempfile.mkdtemp(prefix="recant-mcp-"))
        self.project = os.path.join(self.top, "home", "project")
        self.log = os.path.join(self.top, "log")
        self.recant = recant
        os.makedirs(os.path.join(self.project, ".git"))
        self.environment = {name: value for name, value in os.environ.items() if not name.startswith(OF_AGENTS)}
        self.environment.update({"HOME": os.path.join(self.top, "home"), "XDG_CONFIG_HOME": os.path.join(self.top, "config"),
                                 "XDG_DATA_HOME": os.path.join(self.top, "data")})

    def __enter__(self):
        return self

    def __exit__(self, *_):
        shutil.rmtree(self.top, ignore_errors=True)

    def run(self, words, seconds=120, **more):
        return subprocess.run(["timeout", str(seconds), *words], cwd=self.project, env={**self.environment, **more},
                              stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)

    def lines(self):
        try:
            with open(self.log, encoding="utf-8") as log:
                return [(sign, json.loads(text)) for sign, text in map(json.loads, log) if text.strip()]
        except FileNotFoundError:
            return []

    def messages(self):
        """What the server said, each with the method of the request that it answers, or its own."""
        asked, said = {}, []
        for sign, message in self.lines():
            if sign == ">" and "method" in message and "id" in message:
                # Ids begin anew with each connection.
                asked[message["id"]] = message["method"]
            elif sign == "<":
                said.append((message.get("method") or asked.get(message.get("id"), "?"), message))
        return said


def python(clients):
    """The environment of the SDK. The reason why there is none, if so."""
    home = os.path.join(clients, "python")
    own = os.path.join(home, "bin", "python")
    if not os.path.exists(own):
        done = subprocess.run([sys.executable, "-m", "venv", home], capture_output=True, text=True, check=False)
        if done.returncode:
            return None, f"venv: {(done.stderr or done.stdout).strip()[-200:]}"
    done = subprocess.run(["timeout", "300", own, "-m", "pip", "install", "--quiet", *PYTHON], stdin=subprocess.DEVNULL,
                          capture_output=True, text=True, check=False)
    return (None, f"pip: {done.stderr.strip()[-200:]}") if done.returncode else (own, None)


def inspector(clients):
    """The inspector's directory of programs, its own node among them. The reason why there is none, if so."""
    if not shutil.which("npm"):
        return None, "there is no npm"
    programs = os.path.join(clients, "node_modules", ".bin")
    if not os.path.exists(os.path.join(programs, "mcp-inspector")):
        os.makedirs(clients, exist_ok=True)
        done = subprocess.run(["timeout", "300", "npm", "install", "--no-audit", "--no-fund", "--prefix", clients, *NODE],
                              stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
        if done.returncode:
            return None, f"npm: {done.stderr.strip()[-200:]}"
    return programs, None


def schemas(given, clients):
    """The paths of schemas by version, and why some are missing."""
    found, reason = {}, None
    for version in VERSIONS:
        kept = os.path.join(clients, "schema", f"{version}.json")
        places = [kept] + ([os.path.join(given, f"{version}.json"), os.path.join(given, version, "schema.json")] if given else [])
        there = next((place for place in places if os.path.exists(place)), None)
        if not there:
            try:
                with urllib.request.urlopen(SOURCE.format(version), timeout=20) as answer:
                    text = answer.read()
                os.makedirs(os.path.dirname(kept), exist_ok=True)
                with open(kept, "wb") as file:
                    file.write(text)
                there = kept
            except OSError as error:
                reason = f"no schema of {version}: {error}"
                continue
        found[version] = there
    return found, reason


CHECK = r"""
import json, sys
import jsonschema
version, path = sys.argv[1:]
schema = json.load(open(path, encoding="utf-8"))
key = "$defs" if "$defs" in schema else "definitions"
names = schema[key]
def validator(*wanted):
    found = [name for name in wanted if name in names]
    assert found, f"none of {wanted} in {version}"
    return jsonschema.validators.validator_for(schema)({**schema, "anyOf": [{"$ref": f"#/{key}/{name}"} for name in found]})
RESULTS = {"initialize": ["InitializeResult"], "server/discover": ["DiscoverResult"], "tools/list": ["ListToolsResult"],
           "tools/call": ["CallToolResult"], "ping": ["EmptyResult"]}
OWN = {"notifications/progress": "ProgressNotification"}
count = 0
for method, message in json.load(sys.stdin):
    if "method" in message:
        wrong, value = validator(OWN[method]), message
    elif "error" in message:
        wrong, value = validator("JSONRPCErrorResponse", "JSONRPCError"), message
    else:
        value = message["result"]
        wrong = validator(*RESULTS[method])
        validator("JSONRPCResultResponse", "JSONRPCResponse").validate(message)
    wrong.validate(value)
    count += 1
print(count)
"""


class Tally:
    def __init__(self):
        self.passed = self.failed = self.skipped = 0

    def told(self, name, why):
        if why:
            self.failed += 1
            print(f"failed: {name}: {why}", flush=True)
        else:
            self.passed += 1
            print(f"passed: {name}", flush=True)

    def skip(self, name, why):
        self.skipped += 1
        print(f"skipped: {name}: {why}", flush=True)


def by_schema(tally, own, found, version, messages, name):
    """Checks what the server said against the schema of its version."""
    if not own or version not in found:
        return tally.skip(f"{name}, by the schema of {version}", "no jsonschema" if not own else "there is no schema")
    done = subprocess.run(["timeout", "60", own, "-c", CHECK, version, found[version]], input=json.dumps(messages), capture_output=True,
                          text=True, check=False)
    why = (done.stderr.strip() or "ended early")[-600:].replace("\n", " ") if done.returncode else None
    return tally.told(f"{name}: {len(messages)} messages fit the schema of {version}", why or (None if messages else "nothing was said"))


def with_sdk(tally, own, found, recant):
    for mode in MODES:
        with World(recant) as world:
            done = world.run([own, os.path.join(HERE, "sdk.py"), mode, world.project, world.log, recant, "mcp"], 300)
            lines = [line for line in done.stdout.splitlines() if line.startswith(("ok ", "failed "))]
            for line in lines:
                word, rest = line.split(" ", 1)
                name, _, why = rest.partition(": ")
                tally.told(f"SDK, {mode}: {name.replace('_', ' ')}", why if word == "failed" else None)
            if len(lines) != 5:
                tally.told(f"SDK, {mode}", f"{len(lines)} of 5 checks: {done.stderr.strip()[-600:]}")
            by_schema(tally, own, found, "2025-11-25" if mode == "legacy" else "2026-07-28", world.messages(), f"SDK, {mode}")


def with_inspector(tally, programs, own, found, recant):
    for era in ERAS:
        with World(recant) as world:
            path = f"{programs}:{os.environ['PATH']}"
            tap = [sys.executable, os.path.join(HERE, "tap.py"), world.log, recant, "mcp"]

            def call(*words):
                done = world.run(["mcp-inspector", "--cli", *tap, "--protocol-era", era, "--format", "json", *words], PATH=path)
                try:
                    return done, json.loads(done.stdout)
                except ValueError:
                    return done, None

            done, said = call("--method", "tools/list", "--strict")
            clean = done.returncode == 0 and said and len(said["result"]["tools"]) == 13
            tally.told(f"inspector, {era}: the list, strictly", None if clean else f"exit {done.returncode}: {done.stderr[-600:]}")
            wrong = None
            for tool, arguments in (("hold_run", {"shell": "echo x > made", "session": "s"}), ("sessions", {}), ("changes", {}), ("diff", {}),
                                    ("cat", {"path": "made"}), ("steps", {}), ("rewind", {"step": 1}), ("fork", {"name": "t"}),
                                    ("discard", {"session": "t"}), ("snapshot", {"message": "m"}), ("log", {"paths": ["made"]})):
                done, said = call("--method", "tools/call", "--tool-name", tool, "--tool-args-json", json.dumps(arguments))
                if done.returncode or not said or said["result"].get("isError"):
                    wrong = wrong or f"{tool}: exit {done.returncode}: {(done.stdout + done.stderr)[-600:]}"
            tally.told(f"inspector, {era}: the tools that hold and look", wrong)
            done, said = call("--method", "tools/call", "--tool-name", "commit", "--tool-args-json", '{"session": "s"}')
            made = os.path.exists(os.path.join(world.project, "made"))
            tally.told(f"inspector, {era}: a commit, which is for a person", "it was made" if made else f"exit {done.returncode}" if done.returncode else None)
            by_schema(tally, own, found, "2025-11-25" if era == "legacy" else "2026-07-28", world.messages(), f"inspector, {era}")


def by_hand(tally, own, found, recant):
    """The older versions, which no client of today asks for."""
    for version in VERSIONS[2:]:
        with World(recant) as world:
            lines = [{"id": 1, "method": "initialize", "params": {"protocolVersion": version, "capabilities": {}, "clientInfo": {"name": "x", "version": "1"}}},
                     {"method": "notifications/initialized"}, {"id": 2, "method": "tools/list"}, {"id": 3, "method": "ping"},
                     {"id": 4, "method": "tools/call", "params": {"name": "sessions"}}, {"id": 5, "method": "resources/list"}]
            text = "".join(json.dumps({"jsonrpc": "2.0", **line}) + "\n" for line in lines)
            tap = [sys.executable, os.path.join(HERE, "tap.py"), world.log, recant, "mcp"]
            subprocess.run(["timeout", "30", *tap], input=text, cwd=world.project, env=world.environment, capture_output=True, text=True, check=False)
            messages = world.messages()
            tally.told(f"by hand, {version}: all is answered", None if len(messages) == 5 else f"{len(messages)} of 5")
            by_schema(tally, own, found, version, messages, "by hand")


def main():
    parser = argparse.ArgumentParser(description="clients of others against recant mcp")
    parser.add_argument("--recant", required=True)
    parser.add_argument("--clients", default="target/mcp-reach", help="where the clients are installed")
    parser.add_argument("--agents", default="target/agents", help="where the agents are installed")
    parser.add_argument("--schema", default=os.environ.get("RECANT_MCP_SCHEMA"), help="the specification's schemas, else from GitHub")
    parser.add_argument("--only", default="", help="words of a call: without 'mcp' in them nothing is done, but where there are none")
    given = parser.parse_args()
    if given.only and "mcp" not in given.only.split():
        return 0
    recant, clients, tally = os.path.abspath(given.recant), os.path.abspath(given.clients), Tally()
    own, reason = python(clients)
    found, missing = schemas(given.schema, clients)
    if missing:
        tally.skip("the specification's schemas", missing)
    by_hand(tally, own, found, recant)
    if own:
        with_sdk(tally, own, found, recant)
    else:
        tally.skip("the Python SDK's client", reason)
    programs, reason = inspector(clients)
    if programs:
        with_inspector(tally, programs, own, found, recant)
    else:
        tally.skip("the inspector", reason)
    agents.all_of(tally, World, recant, os.path.abspath(given.agents))
    person.all_of(tally, World, recant, os.path.abspath(given.agents))
    print(f"{tally.passed} passed, {tally.failed} failed, {tally.skipped} skipped")
    return 1 if tally.failed else 0


if __name__ == "__main__":
    sys.exit(main())
