# Copyright: the authors of recant
# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

from ansible_collections.recant.hold.plugins.plugin_utils.verb import VerbAction


class ActionModule(VerbAction):
    """Commits again what was rolled back."""

    ARGUMENTS = {"paths": {"type": "list", "elements": "str", "default": []}, "force": {"type": "bool", "default": False}}

    def act(self):
        session = self.find()
        if session is None or session["in"] == session["ever_in"]:
            return {"changed": False, "msg": "nothing is rolled back", "paths": [], "left_out": [], "conflicts": []}
        return self.move("redo", session, *(["--force"] if self.args["force"] else []), *self.args["paths"])
