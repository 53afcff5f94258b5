"""The Python SDK's client against `recant mcp`: `sdk.py MODE PROJECT LOG COMMAND…`, in the SDK's own environment.

Prints a line for each check: "ok NAME", or "failed NAME: why".
"""
import asyncio
import json
import os
import sys

from mcp.client.client import Client
from mcp.client.stdio import StdioServerParameters

MODE, PROJECT, LOG, *COMMAND = sys.argv[1:]
TAP = [sys.executable, os.path.join(os.path.dirname(os.path.abspath(__file__)), "tap.py"), LOG]


def demand(true, said):
    if not true:
        raise AssertionError(said)


def read(name):
    try:
        with open(os.path.join(PROJECT, name), encoding="utf-8") as file:
            return file.read()
    except FileNotFoundError:
        return None


def client():
    command = TAP + COMMAND
    server = StdioServerParameters(command=command[0], args=command[1:], cwd=PROJECT, env=dict(os.environ))
    return Client(server, mode=MODE)


async def call(of, tool, **arguments):
    result = await of.call_tool(tool, arguments)
    demand(result.structured_content is None and len(result.content) == 1, f"{tool}: {result}")
    return json.loads(result.content[0].text), result.is_error


async def done(of, tool, **arguments):
    document, is_error = await call(of, tool, **arguments)
    demand(not is_error, f"{tool}: {document}")
    return document


async def refused(of, tool, **arguments):
    document, is_error = await call(of, tool, **arguments)
    demand(is_error and document["kind"], f"{tool} was not refused: {document}")
    return document


async def tools_are_listed():
    async with client() as of:
        demand(of.protocol_version == ("2025-11-25" if MODE == "legacy" else "2026-07-28"), of.protocol_version)
        listed = (await of.list_tools()).tools
        demand(len(listed) == 13, [tool.name for tool in listed])
        demand((of.instructions or MODE != "auto") and (MODE == "2026-07-28" or of.server_info.name == "recant"), "no instructions")


async def a_command_is_held_and_looked_at():
    async with client() as of:
        beats = []

        async def progress(value, _total, _message):
            beats.append(value)

        arguments = {"shell": "seq 1 6000 > made; echo hello; sleep 1.2", "session": "work"}
        result = await of.call_tool("hold_run", arguments, progress_callback=progress)
        held = json.loads(result.content[0].text)
        demand(not result.is_error and held["changed"] == 1 and held["stdout"] == "hello\n", held)
        demand(beats and read("made") is None, f"{beats}")
        demand((await done(of, "sessions"))["total"] == 1, "sessions")
        await done(of, "log")
        demand((await done(of, "changes"))["changes"][0]["insertions"] == 6000, "changes")
        first = await done(of, "diff", session="work")
        rest = await done(of, "diff", session="work", cursor=first["next"])
        demand(rest["patch"].startswith("+"), rest)
        demand((await done(of, "cat", path="made"))["text"].startswith("1\n"), "cat")
        demand((await done(of, "steps"))["head"] == 1, "head")
        await done(of, "rewind", step=0)
        await done(of, "rewind", step=1)
        await done(of, "fork", name="other")
        await done(of, "discard", session="other")
        await done(of, "snapshot", message="start")
        await done(of, "diff", snapshot="last")
        await done(of, "log", paths=["made"])


async def a_cancelled_command_keeps_its_step():
    async with client() as of:
        arguments = {"shell": "touch kept; sleep 60", "session": "cut"}
        try:
            await asyncio.wait_for(of.call_tool("hold_run", arguments), 1.5)
            raise AssertionError("it was not cancelled")
        except asyncio.TimeoutError:
            pass
        more = await done(of, "hold_run", shell="touch more", session="cut")
        demand(more["session"], more)
        while (await done(of, "changes", session="cut"))["total"] != 2:
            await asyncio.sleep(0.1)


async def a_refactoring_of_89_files_is_looked_at_in_few_calls():
    names = [f"src/part{n % 8}/unit{n:02}.py" for n in range(89)]
    for n, name in enumerate(names):
        path = os.path.join(PROJECT, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w", encoding="utf-8") as file:
            for part in range(30):
                file.write(f"def compute_{n:02}_{part:02}(value):  # {'renamed' if 9 < part < 26 else 'stays'}\n    return value\n")
    async with client() as of:
        taken, calls = 0, 0

        async def counted(tool, **arguments):
            nonlocal taken, calls
            document = await done(of, tool, **arguments)
            text = json.dumps(document, ensure_ascii=False, separators=(",", ":"))
            taken, calls = taken + len(text.encode()), calls + 1
            return document

        async def pages(tool, key, **arguments):
            found = await counted(tool, **arguments)
            parts = [found[key]]
            while "next" in found:
                found = await counted(tool, **arguments, cursor=found["next"])
                parts.append(found[key])
            return parts

        line = "find src -name '*.py' | xargs sed -i '/# renamed$/s/compute_/calculate_/'; mkdir __pycache__; touch __pycache__/$$.pyc"
        held = await counted("hold_run", shell=line, session="refactoring")
        demand(held["exited"] == 0 and held["changed"] == 91, held)
        summary = [row["path"] for rows in await pages("changes", "changes") for row in rows if "path" in row]
        demand(set(names) <= set(summary) and len(summary) == len(set(summary)), summary)
        for name in names[::20]:
            patch = "".join(await pages("diff", "patch", paths=[name]))
            demand(patch.count(f"/{name}\n") == 3 and patch.count("\n+def calculate_") == 16, patch)
        demand(calls <= 15 and taken <= 60_000, f"{calls} calls, {taken} bytes")
        taken, calls = 0, 0
        patch = "".join(await pages("diff", "patch", full=True))
        whole = await printed("diff", "refactoring")
        demand(patch == whole and len(patch) > 160_000, f"{len(patch)} of {len(whole)} bytes")
        demand(calls <= 12, f"{calls} calls for {len(patch)} bytes")


async def printed(*words):
    """What recant prints for a person."""
    process = await asyncio.create_subprocess_exec(COMMAND[0], *words, cwd=PROJECT, stdout=asyncio.subprocess.PIPE)
    return (await process.communicate())[0].decode()


async def what_a_person_decides_is_a_command_to_type():
    async with client() as of:
        told = await done(of, "commit", session="work")
        demand(told["result"] == "awaiting_person" and told["command"].startswith("recant commit "), told)
        await refused(of, "commit", session="none")
        demand(read("made") is None, "it was made")


async def main():
    for check in (tools_are_listed, a_command_is_held_and_looked_at, a_cancelled_command_keeps_its_step,
                  a_refactoring_of_89_files_is_looked_at_in_few_calls, what_a_person_decides_is_a_command_to_type):
        try:
            await asyncio.wait_for(check(), 60)
            print(f"ok {check.__name__}", flush=True)
        except Exception as error:  # noqa: BLE001
            while isinstance(error, BaseExceptionGroup):
                error = error.exceptions[0]
            print(f"failed {check.__name__}: {type(error).__name__} {error}".replace("\n", " ")[:1500], flush=True)


asyncio.run(main())
