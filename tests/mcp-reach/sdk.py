"""The Python SDK's client against `recant mcp`: `sdk.py MODE PROJECT LOG COMMAND…`, in the SDK's own environment.

Prints a line for each check: "ok NAME", or "failed NAME: why". The SDK checks each result against the tool's output schema by itself.
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
    document = result.structured_content
    demand(json.loads(result.content[0].text) == document, f"{tool}: the text is another than the document")
    return document, result.is_error


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
        demand(len(listed) == 14 and all(tool.output_schema for tool in listed), [tool.name for tool in listed])
        demand((of.instructions or MODE != "auto") and (MODE == "2026-07-28" or of.server_info.name == "recant"), "no instructions")


async def a_command_is_held_and_looked_at():
    async with client() as of:
        beats = []

        async def progress(value, _total, _message):
            beats.append(value)

        arguments = {"shell": "seq 1 60 > made; echo hello; sleep 1.2", "session": "work"}
        result = await of.call_tool("hold_run", arguments, progress_callback=progress)
        held = result.structured_content
        demand(not result.is_error and held["changes"] == 1 and held["output"]["stdout"] == "hello\n", held)
        demand(beats and read("made") is None, f"{beats}")
        await done(of, "status")
        await done(of, "log")
        first = await done(of, "diff", session="work")
        demand(len(first["patch"]["lines"]) == 20, first)
        rest = await done(of, "diff", session="work", cursor=first["patch"]["next"])
        demand(rest["patch"]["line"] == 20, rest)
        demand((await done(of, "steps", session="work"))["head"] == 1, "head")
        await done(of, "rewind", session="work", step=0)
        await done(of, "rewind", session="work", step=1)
        await done(of, "snapshot_create", message="start")
        demand((await done(of, "snapshot_list"))["total"] >= 1, "no snapshot")
        await done(of, "snapshot_diff", snapshot="last")
        await done(of, "log", paths=["made"])
        await call(of, "turns")


async def a_cancelled_command_keeps_its_step():
    async with client() as of:
        arguments = {"shell": "touch kept; sleep 60", "session": "cut"}
        try:
            await asyncio.wait_for(of.call_tool("hold_run", arguments), 1.5)
            raise AssertionError("it was not cancelled")
        except asyncio.TimeoutError:
            pass
        more = await done(of, "hold_run", shell="touch more", session="cut")
        demand(more["changes"] == 2 and more["step"] == 2, more)


async def what_a_person_decides_is_a_command_to_type():
    async with client() as of:
        for tool, arguments in (("commit", {"session": "work"}), ("snapshot_restore", {"snapshot": "last"})):
            told = await refused(of, tool, **arguments)
            demand(tool == "snapshot_restore" or told["command"].startswith("recant commit "), f"{tool}: {told}")
        demand(read("made") is None, "it was made")


async def main():
    for check in (tools_are_listed, a_command_is_held_and_looked_at, a_cancelled_command_keeps_its_step,
                  what_a_person_decides_is_a_command_to_type):
        try:
            await asyncio.wait_for(check(), 60)
            print(f"ok {check.__name__}", flush=True)
        except Exception as error:  # noqa: BLE001
            while isinstance(error, BaseExceptionGroup):
                error = error.exceptions[0]
            print(f"failed {check.__name__}: {type(error).__name__} {error}".replace("\n", " ")[:1500], flush=True)


asyncio.run(main())
