# Copyright: the authors of recant
# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

from ansible_collections.recant.hold.plugins.plugin_utils.verb import VerbAction


class ActionModule(VerbAction):
    """Takes a snapshot of a directory, or makes the directory as it was in one."""

    ARGUMENTS = {
        "path": {"type": "path", "required": True},
        "state": {"type": "str", "choices": ["created", "restored"], "default": "created"},
        "message": {"type": "str"},
        "label": {"type": "str"},
        "snapshot": {"type": "str", "default": "last"},
        "force": {"type": "bool", "default": False},
    }

    def act(self):
        return self._create() if self.args["state"] == "created" else self._restore()

    def _create(self):
        if self._task.check_mode:
            return {"changed": True, "msg": "a snapshot would be taken, unless nothing has changed since the last one"}
        options = ["--if-changed"]
        if self.args["message"]:
            options += ["-m", self.args["message"]]
        if self.args["label"]:
            options += ["--label", self.args["label"]]
        answer = self.ask("snapshot", "create", *options, self.args["path"])
        unread = [f"{row['path']}: not in the snapshot: {row['why']}" for row in answer.document["unread"]]
        return {"changed": answer.document["result"] == "created", "snapshot": answer.document["n"], "warnings": answer.warnings + unread}

    def _restore(self):
        where = ["--dir", self.args["path"], self.args["snapshot"]]
        result = {}
        if self._task.diff:
            result["diff"] = self.patch("snapshot", "diff", *where)
        options = [*(["--force"] if self.args["force"] else ["--yes"]), *(["--dry-run"] if self._task.check_mode else [])]
        document = self.ask("snapshot", "restore", *options, *where).document
        left = [f"{row['path']}: left out: {row['why']}" for row in document["skipped"]]
        return {**result, "changed": bool(document["paths"]), "snapshot": document["n"], "session": document.get("session"), "warnings": left}
