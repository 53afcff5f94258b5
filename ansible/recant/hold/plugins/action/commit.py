# Copyright: the authors of recant
# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

from ansible_collections.recant.hold.plugins.plugin_utils.verb import VerbAction


class ActionModule(VerbAction):
    """Makes a session's changes real, or lets a commit stay."""

    ARGUMENTS = {
        "paths": {"type": "list", "elements": "str", "default": []},
        "force": {"type": "bool", "default": False},
        "merge": {"type": "bool", "default": False},
        "message": {"type": "str"},
        "confirm_within": {"type": "str"},
        "confirm": {"type": "bool", "default": False},
        "failed": {"type": "bool", "default": False},
    }
    RULES = {"mutually_exclusive": [("force", "merge"), ("confirm", "confirm_within"), ("confirm", "paths")]}

    def act(self):
        session = self.find()
        if session is None or session["status"] not in ("pending", "committed", "rolled_back"):
            return {"changed": False, "msg": "nothing is held", "paths": [], "left_out": [], "conflicts": []}
        if self.args["confirm"]:
            return self._confirm(session)
        if session["status"] == "committed" and session["in"] == session["changes"]:
            return {"changed": False, "session": session["id"], "msg": "it is committed", "paths": [], "left_out": [], "conflicts": []}
        failed = self.failed(session)
        if failed and not self.args["failed"]:
            return {"failed": True, "changed": False, "session": session["id"], "msg": f"{failed}; failed=true commits it all the same"}
        result = self.move("commit", session, *self._options(), *self.args["paths"])
        if self._task.diff and not result.get("failed"):
            result["diff"] = self.patch("diff", session["id"], *self.args["paths"])
        return result

    def _options(self):
        # It is asked about above.
        options = ["--yes", *(f"--{name}" for name in ("force", "merge") if self.args[name])]
        if self.args["message"]:
            options += ["-m", self.args["message"]]
        if self.args["confirm_within"] and not self._task.check_mode:
            options += ["--confirm-within", self.args["confirm_within"]]
        return options

    def _confirm(self, session):
        if session["status"] == "rolled_back":
            return {"failed": True, "changed": False, "session": session["id"], "msg": "it was rolled back, as it was not confirmed in time"}
        waiting = [row["session"] for row in self.ask("status").document["unconfirmed"]]
        if session["id"] not in waiting:
            return {"changed": False, "session": session["id"], "msg": "nothing waits to be confirmed"}
        if not self._task.check_mode:
            self.ask("confirm", session["id"])
        return {"changed": True, "session": session["id"], "msg": "it stays"}
