"""A stand-in for a model: it listens on 127.0.0.1 alone, speaks the four wire formats that coding agents use (Anthropic Messages,
OpenAI Responses, OpenAI chat completions, Gemini generateContent), and plays a script instead of thinking.

A prompt chooses its script by the mark `[[play NAME]]`. What was played already is counted in the conversation that each request carries, so
the server keeps no state, and any number of sessions may go on at once. A request without a mark, or which offers no tool that the next
step can use (titles, summaries), is answered with a line of text.

A step is one of
    ["write", PATH, CONTENT]   ["edit", PATH, OLD, NEW]   ["shell", COMMAND]   ["read", PATH]   ["agent", PROMPT]   ["text", WORDS]
    ["tool", END, ARGUMENTS]: the tool whose name ends so, as one of an MCP server
    ["error", WORDS]: the request is refused with 400
and is told in the agent's own tools: their names come from `tools` of the request, their arguments from the schemas that stand there.

    python3 model.py --project DIR [--scripts FILE.json] [--log DIR]        prints its address, and serves until stdin closes
"""
import argparse
import json
import os
import re
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

MARK = re.compile(r"\[\[play ([a-z0-9-]+)\]\]")

# The tools that a step may use, the preferred ones first. All in lower case.
TOOLS = {
    "write": ["write", "write_file", "create", "apply_patch", "create_file"],
    "edit": ["edit", "replace", "apply_patch", "str_replace", "edit_file"],
    "shell": ["bash", "run_shell_command", "shell_command", "exec_command", "shell", "local_shell"],
    "read": ["read", "read_file", "view"],
    "agent": ["agent", "task", "spawn_agent", "invoke_agent"],
}


def patch(step):
    """One step as the patch that `apply_patch` takes."""
    path = step[1]
    if step[0] == "write":
        body = "".join(f"+{line}\n" for line in step[2].splitlines())
        return f"*** Begin Patch\n*** Add File: {path}\n{body}*** End Patch\n"
    old = "".join(f"-{line}\n" for line in step[2].splitlines())
    new = "".join(f"+{line}\n" for line in step[3].splitlines())
    return f"*** Begin Patch\n*** Update File: {path}\n@@\n{old}{new}*** End Patch\n"


def value(name, step, project, schema, told=""):
    """The argument that a tool calls `name`, or None where this step has nothing to say to it. `told`: all that the request says of it."""
    key = name.lower().replace("_", "")
    kind = step[0]
    if kind in ("write", "edit", "read") and key in ("filepath", "path", "absolutepath", "file"):
        return os.path.join(project, step[1])
    if kind == "write" and key in ("content", "filetext", "contents", "text"):
        return step[2]
    if kind == "edit" and key in ("oldstring", "oldstr", "oldtext"):
        return step[2]
    if kind == "edit" and key in ("newstring", "newstr", "newtext"):
        return step[3]
    if kind == "edit" and key == "edits":
        fields = schema.get("items", {}).get("properties", {"oldText": {}, "newText": {}})
        return [{field: value(field, step, project, {}) for field in fields if value(field, step, project, {}) is not None}]
    if kind in ("write", "edit") and key in ("input", "patch", "patchtext"):
        return patch(step)
    if kind == "shell" and key in ("command", "cmd"):
        return ["bash", "-c", step[1]] if schema.get("type") == "array" else step[1]
    if kind == "agent" and key in ("prompt", "message"):
        return step[1]
    if key in ("subagenttype", "agenttype"):
        return "general-purpose" if "general-purpose" in told else "default" if "default" in told else "general"
    if key == "agentname":
        return "generalist"
    if key in ("name", "taskname"):
        return "stand_in"
    if key in ("description", "instruction", "explanation"):
        return "a step of the stand-in"
    return None


class Tool:
    """A tool that a request offers. Without a schema it takes text."""

    def __init__(self, schema, told, namespace=None):
        self.schema = schema
        self.told = json.dumps(told)
        self.namespace = namespace


def call(step, tools, project):
    """The call that tells this step in one of `tools` (by name): (name, arguments), or None."""
    if step[0] == "tool":
        name = next((name for name in tools if name.lower().endswith(step[1])), None)
        return (name, step[2]) if name else None
    lower = {name.lower(): name for name in tools}
    for wanted in TOOLS.get(step[0], []):
        if wanted not in lower:
            continue
        name = lower[wanted]
        schema = tools[name].schema
        if schema is None:
            return name, patch(step)
        fields = schema.get("properties", {})
        arguments = {}
        for field, inner in fields.items():
            found = value(field, step, project, inner, tools[name].told)
            if found is not None:
                arguments[field] = found
        for field in schema.get("required", []):
            if field not in arguments:
                kind = fields.get(field, {}).get("type", "string")
                arguments[field] = {"boolean": False, "integer": 0, "number": 0, "array": [], "object": {}}.get(kind, "")
        return name, arguments
    return None


class Script:
    """The scripts by name, and the tree in which they happen."""

    def __init__(self, project, scripts):
        self.project = project
        self.scripts = scripts

    def next(self, conversation, tools):
        """`conversation`: ("user", text) and ("call", name) in their order. What comes next: ("text", words), ("call", name, args), ("error", words)."""
        name, done = None, 0
        for kind, what in conversation:
            marks = MARK.findall(what) if kind == "user" else []
            if marks:
                name, done = marks[-1], 0
            elif kind == "call":
                done += 1
        steps = self.scripts.get(name, [])
        # A step for which this agent has no tool is passed over: it does not count as played.
        known = [step for step in steps if step[0] == "error" or call(step, tools, self.project)]
        if done < len(known) and known[done][0] == "error":
            return tuple(known[done])
        if done < len(known):
            return ("call", *call(known[done], tools, self.project))
        words = [step[1] for step in steps if step[0] == "text"]
        return ("text", words[-1] if words else "ok")


def texts(content):
    """The text of a message's content, whichever of the usual forms it has."""
    if isinstance(content, str):
        return content
    return "\n".join(part.get("text", "") for part in content or [] if isinstance(part, dict) and isinstance(part.get("text"), str))


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def note(self, kind, body):
        if not self.server.log:
            return
        with self.server.lock:
            self.server.count += 1
            number = self.server.count
        with open(os.path.join(self.server.log, f"{number:03}-{kind}.json"), "w") as out:
            json.dump({"method": self.command, "path": self.path, "body": body}, out, indent=1)

    def send_plain(self, body, status=200):
        data = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(data)

    def send_stream(self, events, named=True, done=False):
        """Server-sent events; the connection ends with them."""
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Connection", "close")
        self.end_headers()
        for event in events:
            if named:
                self.wfile.write(f"event: {event['type']}\n".encode())
            self.wfile.write(f"data: {json.dumps(event)}\n\n".encode())
            self.wfile.flush()
        if done:
            self.wfile.write(b"data: [DONE]\n\n")
        self.close_connection = True

    def do_HEAD(self):
        self.send_plain({})

    def do_GET(self):
        self.note("get", None)
        path = self.path.split("?")[0]
        if path.endswith("/models"):
            return self.send_plain({"object": "list", "data": [{"id": "stand-in", "object": "model", "created": 0, "owned_by": "nobody"}]})
        self.send_plain({"error": {"type": "not_found_error", "message": f"the stand-in does not know {path}"}}, 404)

    def do_POST(self):
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        if self.headers.get("Content-Encoding") == "gzip":
            import gzip
            body = gzip.decompress(body)
        try:
            request = json.loads(body or b"{}")
        except ValueError:
            return self.send_plain({"error": {"message": "the stand-in reads JSON alone"}}, 400)
        self.server.asked.append(json.dumps(request, ensure_ascii=False))
        path = self.path.split("?")[0]
        self.note(path.strip("/").replace("/", "-").replace(":", "-")[-40:], request)
        if path.endswith("/count_tokens"):
            return self.send_plain({"input_tokens": 1000})
        if path.endswith("/messages"):
            return self.say_anthropic(request)
        if path.endswith("/responses"):
            return self.say_responses(request)
        if path.endswith("/chat/completions"):
            return self.say_chat(request)
        if path.endswith(":countTokens"):
            return self.send_plain({"totalTokens": 1000})
        if path.endswith(("generateContent", "streamGenerateContent", ":streamGenerateContent")):
            return self.say_gemini(request, "streamGenerateContent" in path)
        self.send_plain({"error": {"type": "not_found_error", "message": f"the stand-in does not know {path}"}}, 404)

    def next_number(self):
        with self.server.lock:
            self.server.calls += 1
            return self.server.calls

    def say_anthropic(self, request):
        tools = {tool["name"]: Tool(tool["input_schema"], tool) for tool in request.get("tools") or [] if "input_schema" in tool}
        conversation = []
        for message in request.get("messages", []):
            if message["role"] == "user":
                conversation.append(("user", texts(message["content"])))
            elif isinstance(message["content"], list):
                conversation += [("call", part["name"]) for part in message["content"] if part.get("type") == "tool_use"]
        said = self.server.script.next(conversation, tools)
        if said[0] == "error":
            return self.send_plain({"type": "error", "error": {"type": "invalid_request_error", "message": said[1]}}, 400)
        number = self.next_number()
        if said[0] == "call":
            block = {"type": "tool_use", "id": f"toolu_{number:06}", "name": said[1], "input": said[2]}
        else:
            block = {"type": "text", "text": said[1]}
        stop = "tool_use" if said[0] == "call" else "end_turn"
        message = {"id": f"msg_{number:06}", "type": "message", "role": "assistant", "model": request.get("model", "stand-in"),
                   "content": [block], "stop_reason": stop, "stop_sequence": None, "usage": {"input_tokens": 10, "output_tokens": 10}}
        if not request.get("stream"):
            return self.send_plain(message)
        if said[0] == "call":
            empty = {**block, "input": {}}
            delta = {"type": "input_json_delta", "partial_json": json.dumps(said[2])}
        else:
            empty = {"type": "text", "text": ""}
            delta = {"type": "text_delta", "text": said[1]}
        self.send_stream([
            {"type": "message_start", "message": {**message, "content": [], "stop_reason": None}},
            {"type": "content_block_start", "index": 0, "content_block": empty},
            {"type": "content_block_delta", "index": 0, "delta": delta},
            {"type": "content_block_stop", "index": 0},
            {"type": "message_delta", "delta": {"stop_reason": stop, "stop_sequence": None}, "usage": {"output_tokens": 10}},
            {"type": "message_stop"},
        ])

    def say_responses(self, request):
        tools = {}
        for tool in request.get("tools") or []:
            if tool.get("type") == "function":
                tools[tool["name"]] = Tool(tool.get("parameters") or {}, tool)
            elif tool.get("type") == "custom":
                tools[tool["name"]] = Tool(None, tool)
            elif tool.get("type") == "namespace":
                for one in tool.get("tools") or []:
                    tools[one["name"]] = Tool(one.get("parameters") or {}, one, tool["name"])
        conversation = []
        given = request.get("input", [])
        for item in [{"type": "message", "role": "user", "content": given}] if isinstance(given, str) else given:
            kind = item.get("type", "message")
            if kind == "message" and item.get("role") == "user":
                conversation.append(("user", texts(item.get("content"))))
            elif kind in ("function_call", "custom_tool_call", "local_shell_call"):
                conversation.append(("call", item.get("name", "")))
        said = self.server.script.next(conversation, tools)
        if said[0] == "error":
            return self.send_plain({"type": "error", "error": {"type": "invalid_request_error", "message": said[1]}}, 400)
        number = self.next_number()
        if said[0] == "text":
            item = {"type": "message", "id": f"msg_{number:06}", "role": "assistant", "status": "completed",
                    "content": [{"type": "output_text", "text": said[1], "annotations": []}]}
        elif isinstance(said[2], str):
            item = {"type": "custom_tool_call", "id": f"ctc_{number:06}", "call_id": f"call_{number:06}", "name": said[1], "input": said[2],
                    "status": "completed"}
        else:
            item = {"type": "function_call", "id": f"fc_{number:06}", "call_id": f"call_{number:06}", "name": said[1],
                    "arguments": json.dumps(said[2]), "status": "completed"}
            if tools[said[1]].namespace:
                item["namespace"] = tools[said[1]].namespace
        usage = {"input_tokens": 10, "input_tokens_details": {"cached_tokens": 0}, "output_tokens": 10,
                 "output_tokens_details": {"reasoning_tokens": 0}, "total_tokens": 20}
        whole = {"id": f"resp_{number:06}", "object": "response", "created_at": int(time.time()), "model": request.get("model"),
                 "status": "completed", "output": [item], "usage": usage}
        if not request.get("stream"):
            return self.send_plain(whole)
        begun = {**whole, "status": "in_progress", "output": [], "usage": None}
        events = [{"type": "response.created", "response": begun}, {"type": "response.output_item.added", "output_index": 0, "item": item}]
        if item["type"] == "message":
            events += [
                {"type": "response.output_text.delta", "item_id": item["id"], "output_index": 0, "content_index": 0, "delta": said[1]},
                {"type": "response.output_text.done", "item_id": item["id"], "output_index": 0, "content_index": 0, "text": said[1]},
            ]
        elif item["type"] == "function_call":
            events.append({"type": "response.function_call_arguments.done", "item_id": item["id"], "output_index": 0,
                           "arguments": item["arguments"]})
        events += [{"type": "response.output_item.done", "output_index": 0, "item": item}, {"type": "response.completed", "response": whole}]
        for at, event in enumerate(events):
            event["sequence_number"] = at
        self.send_stream(events)

    def say_chat(self, request):
        tools = {}
        for tool in request.get("tools") or []:
            if tool.get("type") == "function":
                tools[tool["function"]["name"]] = Tool(tool["function"].get("parameters") or {}, tool)
            elif tool.get("type") == "custom":
                tools[tool["custom"]["name"]] = Tool(None, tool)
        conversation = []
        for message in request.get("messages", []):
            if message["role"] == "user":
                conversation.append(("user", texts(message.get("content"))))
            for one in message.get("tool_calls") or []:
                conversation.append(("call", (one.get("function") or one.get("custom") or {}).get("name", "")))
        said = self.server.script.next(conversation, tools)
        if said[0] == "error":
            return self.send_plain({"type": "error", "error": {"type": "invalid_request_error", "message": said[1]}}, 400)
        number = self.next_number()
        if said[0] == "text":
            message, stop = {"role": "assistant", "content": said[1]}, "stop"
        else:
            one = {"id": f"call_{number:06}"}
            if isinstance(said[2], str):
                one.update({"type": "custom", "custom": {"name": said[1], "input": said[2]}})
            else:
                one.update({"type": "function", "function": {"name": said[1], "arguments": json.dumps(said[2])}})
            message, stop = {"role": "assistant", "content": None, "tool_calls": [one]}, "tool_calls"
        usage = {"prompt_tokens": 10, "completion_tokens": 10, "total_tokens": 20}
        head = {"id": f"chatcmpl-{number:06}", "created": int(time.time()), "model": request.get("model")}
        if not request.get("stream"):
            choice = {"index": 0, "message": message, "finish_reason": stop}
            return self.send_plain({**head, "object": "chat.completion", "choices": [choice], "usage": usage})
        delta = dict(message)
        if "tool_calls" in delta:
            delta["tool_calls"] = [{"index": 0, **one} for one in delta["tool_calls"]]
        head["object"] = "chat.completion.chunk"
        self.send_stream([
            {**head, "choices": [{"index": 0, "delta": delta, "finish_reason": None}]},
            {**head, "choices": [{"index": 0, "delta": {}, "finish_reason": stop}], "usage": usage},
        ], named=False, done=True)

    def say_gemini(self, request, streamed):
        tools = {}
        for tool in request.get("tools") or []:
            for one in tool.get("functionDeclarations") or []:
                tools[one["name"]] = Tool(one.get("parametersJsonSchema") or one.get("parameters") or {}, one)
        conversation = []
        for content in request.get("contents", []):
            for part in content.get("parts", []):
                if content.get("role") == "user" and "text" in part:
                    conversation.append(("user", part["text"]))
                elif "functionCall" in part:
                    conversation.append(("call", part["functionCall"]["name"]))
        asks_json = "json" in str((request.get("generationConfig") or {}).get("responseMimeType"))
        said = self.server.script.next(conversation, tools)
        if said[0] == "error":
            return self.send_plain({"type": "error", "error": {"type": "invalid_request_error", "message": said[1]}}, 400)
        if said[0] == "call":
            part = {"functionCall": {"id": f"call_{self.next_number():06}", "name": said[1], "args": said[2]}}
        else:
            # The one thing that Gemini CLI asks for in JSON of its own accord: who speaks next.
            part = {"text": json.dumps({"reasoning": "the script is over", "next_speaker": "user"}) if asks_json else said[1]}
        answer = {"candidates": [{"content": {"role": "model", "parts": [part]}, "finishReason": "STOP", "index": 0}],
                  "usageMetadata": {"promptTokenCount": 10, "candidatesTokenCount": 10, "totalTokenCount": 20}, "modelVersion": "stand-in"}
        if streamed:
            return self.send_stream([answer], named=False)
        self.send_plain(answer)


class Model(ThreadingHTTPServer):
    """The server; `with Model(project, scripts) as model:` serves it in a thread, `model.url` is its address."""
    daemon_threads = True

    def __init__(self, project, scripts, log=None):
        super().__init__(("127.0.0.1", 0), Handler)
        self.script = Script(project, scripts)
        self.log = log
        self.lock = threading.Lock()
        self.count = self.calls = 0
        # The requests, as JSON.
        self.asked = []
        self.url = f"http://127.0.0.1:{self.server_address[1]}"

    def __enter__(self):
        threading.Thread(target=self.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *_):
        self.shutdown()
        self.server_close()


def main():
    parser = argparse.ArgumentParser(description="plays the model for a coding agent")
    parser.add_argument("--project", required=True, help="the directory in which the agent works")
    parser.add_argument("--scripts", required=True, help="a JSON file: {name: [step, …]}")
    parser.add_argument("--log", help="a directory to which each request is written")
    given = parser.parse_args()
    with open(given.scripts) as source:
        scripts = json.load(source)
    with Model(os.path.abspath(given.project), scripts, given.log) as model:
        print(model.url, flush=True)
        sys.stdin.read()


if __name__ == "__main__":
    main()
