# Copyright: the authors of recant
# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import functools

from ansible_collections.recant.hold.plugins.plugin_utils.verb import VerbAction

NOTHING = {"changed": False, "msg": "nothing is committed", "paths": [], "left_out": [], "conflicts": []}


class ActionModule(VerbAction):
    """Takes back what was committed."""

    ARGUMENTS = {
        "paths": {"type": "list", "elements": "str", "default": []},
        "force": {"type": "bool", "default": False},
        "message": {"type": "str"},
    }

    def act(self):
        session = self.find()
        if session is None:
            return NOTHING
        # Parts that were committed before the rest are sessions of their own.
        committed = sorted((one for one in [session, *self.parts] if one["in"]), key=lambda one: one["changed"], reverse=True)
        if not committed:
            return NOTHING
        if len(committed) > 1:
            # All of them, or none.
            for one in committed:
                tried = self._roll_back(one, one is not session, check=True)
                if tried.get("failed"):
                    return tried
        return functools.reduce(_both, (self._roll_back(one, one is not session) for one in committed))

    def _roll_back(self, session, is_part, check=False):
        options = ["--force"] if self.args["force"] else []
        if self.args["message"]:
            options += ["-m", self.args["message"]]
        return self.move("rollback", session, *options, *self.args["paths"], check=check, is_part=is_part)


def _both(first, second):
    lists = {name: first.get(name, []) + second.get(name, []) for name in ("paths", "left_out", "conflicts", "warnings")}
    return {**first, **second, **lists, "changed": first["changed"] or second["changed"]}
