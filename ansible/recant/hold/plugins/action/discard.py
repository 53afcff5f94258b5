# Copyright: the authors of recant
# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

from ansible_collections.recant.hold.plugins.plugin_utils.verb import VerbAction


class ActionModule(VerbAction):
    """Drops what a session holds, also what a rollback gave back to it."""

    ARGUMENTS = {"paths": {"type": "list", "elements": "str", "default": []}, "message": {"type": "str"}}

    def act(self):
        session = self.find()
        if session is None or session["status"] not in ("pending", "rolled_back"):
            return {"changed": False, "msg": "nothing is held"}
        options = ["--dry-run"] if self._task.check_mode else []
        if self.args["message"]:
            options += ["-m", self.args["message"]]
        answer = self.ask("discard", session["id"], *options, *self.args["paths"])
        return {"changed": True, "session": session["id"], "warnings": answer.warnings}
