# Copyright: the authors of recant
# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

from ansible_collections.recant.hold.plugins.plugin_utils.verb import VerbAction


NOTHING: dict = {"changed": False, "changes": [], "dangerous": [], "conflicts": [], "failed_task": None, "left_out": []}


class ActionModule(VerbAction):
    """Tells what a session holds."""

    ARGUMENTS = {"paths": {"type": "list", "elements": "str", "default": []}, "hashes": {"type": "bool", "default": False}}

    def act(self):
        session = self.find()
        if session is None:
            return {**NOTHING, "exists": False, "summary": "nothing is held"}
        if session["status"] == "discarded":
            about = {name: session.get(name) for name in ("name", "status")}
            return {**NOTHING, **about, "exists": True, "session": session["id"], "summary": "discarded"}
        shown = self.ask("show", session["id"], *self.args["paths"]).document
        changes = [_change(row) for row in shown["changes"] if row["change"] != "times"]
        if self.args["hashes"] and session["status"] == "pending":
            self._hash(session, [row for row in changes if row["kind"] == "file" and not row["hash"]])
        result = {
            "changed": False,
            "exists": True,
            "session": session["id"],
            "name": session.get("name"),
            "status": session["status"],
            "changes": changes,
            "dangerous": [row for row in changes if row["danger"]],
            "conflicts": self.conflicts(session) if session["status"] in ("pending", "committed", "rolled_back") else [],
            "failed_task": self.failed(session),
            "left_out": self.left_out(session),
            "summary": _summary(session, changes),
        }
        if self._task.diff:
            # Not as the result's `diff`: Ansible shows that once, twice or not at all where nothing changed.
            patch = self.patch("diff", session["id"], *self.args["paths"])
            self._display.display(f"{self._task_host()}:\n{patch['prepared']}")
        return result

    def _task_host(self):
        return self.variables.get("inventory_hostname", "")

    def _hash(self, session, files):
        """Reads the content of files, which recant reads at a commit alone."""
        if not files:
            return
        names = b"".join(row["path"].encode() + b"\0" for row in files)
        read = ["run", "--session", session["id"], "--", "xargs", "-0", "sha256sum", "-z", "--"]
        _status, out, _said = self.run_there([*self._recant(), "-q", *read], names)
        hashes = {line[66:]: line[:64] for line in out.split("\0")}
        for row in files:
            row["hash"] = hashes.get(row["path"])


def _change(row):
    after = row.get("after") or {}
    return {
        "path": row["path"] if isinstance(row["path"], str) else "base64:" + row["path"]["b64"],
        "change": row["change"],
        "danger": row.get("danger"),
        "kind": after.get("kind"),
        "mode": after.get("mode"),
        "hash": after.get("hash"),
        "target": after.get("target"),
    }


def _summary(session, changes):
    counts = {}
    for row in changes:
        counts[row["change"]] = counts.get(row["change"], 0) + 1
    counted = ", ".join(f"{count} {change}" for change, count in sorted(counts.items()))
    return f"{session['status']}: {counted or 'no changes'}"
