# Copyright: the authors of recant
# SPDX-License-Identifier: Apache-2.0
"""What the actions share: recant's verbs on the host, which are for real, and their answers.

Over a held connection they go past the session, as the user whose recant holds it; over another one as the task's become says.
"""
from __future__ import annotations

import json
import re
import shlex

from ansible.errors import AnsibleActionFail
from ansible.plugins.action import ActionBase
from ansible_collections.recant.hold.plugins.plugin_utils.held import NOTES

DONE, CONFLICT, LEFT_OUT = 0, 3, 4
# As the connection notes it: the task's id, how, and the task's name.
FAILED = re.compile(r"^\S+ (cut off|failed \(\d+\)) (.*)$")
SESSION = {"session": {"type": "str"}, "program": {"type": "str"}, "store": {"type": "path"}}


class Answer:
    """How a verb ended: its status, its document, and what was said beside it."""

    def __init__(self, status, out, said):
        self.status = status
        self.document = _last_document(out)
        self.said = [_document(line) or {"warning": line} for line in said.splitlines() if line.strip()]

    @property
    def error(self):
        return next((said for said in self.said if "kind" in said), None)

    @property
    def warnings(self):
        return [said["warning"] for said in self.said if said.get("warning")]


class VerbAction(ActionBase):
    """An action whose `act` says what it did. `ARGUMENTS` are its own beside those that name the session."""

    ARGUMENTS: dict = {}
    RULES: dict = {}

    def run(self, tmp=None, task_vars=None):
        result = super().run(tmp, task_vars)
        spec = {**SESSION, **self.ARGUMENTS}
        _checked, self.args = self.validate_argument_spec(argument_spec=spec, **self.RULES)
        self.variables = task_vars or {}
        self.noted = {}
        result.update(self.act())
        return result

    def act(self):
        raise NotImplementedError

    # Words of the session.

    def name(self):
        """The session's name or id: the task's, else the one that holds the play."""
        return self.args["session"] or self._variable("recant_session") or "ansible"

    def find(self):
        """The session of that id, or the newest that was held under that name; None where there is none."""
        name, sessions = self.name(), self.ask("list", "--all").document["sessions"]
        named = [session for session in sessions if session.get("name") == name]
        by_id = [session for session in sessions if name in (session["id"], session["id"].rpartition("-")[2])]
        held = [session for session in named if session["origin"] == "captured"]
        begun = held[0]["created"] if held and not by_id else None
        self.parts = [session for session in named if begun and session["origin"] == "staged" and session["created"] > begun]
        return next(iter(by_id or held or named), None)

    def failed(self, session):
        """How the session's newest task failed; None if it did not. What the connection noted counts before what recant knows, which are
        commands that changed something: the last one of a task that failed may only have tidied up."""
        if session["status"] not in ("pending", "rolled_back"):
            return None
        ended = self._notes(session)[0]
        if ended:
            return None if ended == "ok" else FAILED.sub(r"\2: \1", ended)
        known = session.get("failed")
        if not known:
            return None
        how = "was cut off" if "cut_off" in known else f"failed ({known.get('exited', known.get('signaled'))})"
        return f"its newest command that changed something {how}"

    def left_out(self, session):
        """What tasks of this session would have done that no session holds."""
        begun = session["created"][:19]
        lines = (line.partition(" ") for line in self._notes(session)[1])
        return list(dict.fromkeys(what for when, _blank, what in lines if when[:19] >= begun))

    def _notes(self, session):
        """How the newest task ended, as the connection noted it, and the lines of what was left out."""
        if not session.get("name"):
            return "", []
        read = 'for note in ended left_out; do cat "$0/$note" 2>/dev/null; echo; done'
        if session["id"] not in self.noted:
            _status, out, _said = self.run_there(["/bin/sh", "-c", read, f"{NOTES}/{session['name']}"])
            ended, *left = out.splitlines() or [""]
            self.noted[session["id"]] = ended, [line for line in left if line]
        return self.noted[session["id"]]

    def conflicts(self, session):
        """What the next commit, or rollback, would stop at."""
        found = self.ask("diff", "--conflicts", session["id"]).document
        return [{"path": _text(row["path"]), "why": row["why"]} for row in [*found["conflicts"], *found["refused"]]]

    def patch(self, *words):
        """A diff as Ansible shows one."""
        status, out, said = self.run_there([*self._recant(), *words])
        if status not in (DONE, LEFT_OUT):
            raise AnsibleActionFail(said.strip())
        return {"prepared": out}

    # Verbs.

    def ask(self, *words):
        """The answer of a verb that must not fail."""
        answer = self.say(*words)
        if answer.status not in (DONE, LEFT_OUT):
            raise AnsibleActionFail(message(answer))
        return answer

    def say(self, *words):
        status, out, said = self.run_there([*self._recant(), "--json", *words])
        return Answer(status, out, said)

    def move(self, verb, session, *words, check=False, is_part=False):
        """Commits, or takes back: the task's result. Conflicts are a failure that names all paths. `is_part`: of the session of the play."""
        check = ["--dry-run"] if check or self._task.check_mode else []
        answer = self.say(verb, session["id"], *words, *check)
        result = {"session": session["id"], "warnings": list(answer.warnings)}
        if answer.status not in (DONE, LEFT_OUT):
            conflicts = [{"path": row["path"], "why": row["why"]} for row in (answer.error or {}).get("paths") or []]
            return {**result, "failed": True, "changed": False, "msg": message(answer), "conflicts": conflicts, "status": answer.status}
        # Without a document there was nothing to do.
        document = answer.document or {"paths": [], "skipped": []}
        paths = [{"path": _text(row["path"]), "done": row["done"]} for row in document["paths"]]
        left = [{"path": _text(row["path"]), "why": row["why"]} for row in document["skipped"]]
        result["warnings"] += [f"{row['path']}: left out: {row['why']}" for row in left]
        if is_part and verb == "rollback" and not check and not (answer.document or {}).get("part_of"):
            result["warnings"].append(f"the session goes on without {session['id']}: on the host recant redo {session['id']} commits it again")
        changed = any(row["done"] != "unchanged" for row in paths)
        return {**result, "changed": changed, "paths": paths, "left_out": left, "conflicts": [], "status": answer.status}

    def run_there(self, words, content=None):
        """Runs a program on the host: its status and its two streams."""
        if hasattr(self._connection, "exec_real"):
            status, out, said = self._connection.exec_real(words, content)
            return status, out.decode(errors="replace"), said.decode(errors="replace")
        # Input keeps ssh from asking for a terminal, which would mix the streams.
        done = self._low_level_execute_command(shlex.join(words), in_data=b"\n" if content is None else content)
        return done["rc"], done["stdout"], done["stderr"]

    def _recant(self):
        program = self.args["program"] or self._variable("recant_program") or "recant"
        store = self.args["store"] or self._variable("recant_store")
        return [program, *(["--store", store] if store else [])]

    def _variable(self, name):
        value = self.variables.get(name)
        return self._templar.template(value) if isinstance(value, str) else value


def message(answer):
    """What recant says of a failure, in one line."""
    error = answer.error
    if error is None:
        return "; ".join(answer.warnings) or f"recant ended with exit status {answer.status}"
    # The message has the path if it is about one.
    rows = [] if error.get("path") else error.get("paths") or []
    paths = "; ".join(f"{row['path']}: {row['why']}" for row in rows)
    return "; ".join(part for part in (error["message"], paths, error.get("state")) if part)


def _text(path):
    """A path as text: one that is no UTF-8 as its base64."""
    return path if isinstance(path, str) else "base64:" + path["b64"]


def _last_document(text):
    lines = [line for line in text.splitlines() if line.startswith("{")]
    return _document(lines[-1]) if lines else None


def _document(line):
    try:
        document = json.loads(line)
    except ValueError:
        return None
    return document if isinstance(document, dict) else None
