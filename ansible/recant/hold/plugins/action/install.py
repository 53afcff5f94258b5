# Copyright: the authors of recant
# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import hashlib
import os

from ansible.errors import AnsibleActionFail
from ansible_collections.recant.hold.plugins.plugin_utils.verb import VerbAction

# By the file's ending: what installs the package, and what tells the version that is installed, and the package's own.
PACKAGES = {
    ".deb": ("dpkg -i \"$0\"", "dpkg-query -W -f '${Version}' recant 2>/dev/null || true", "dpkg-deb -f \"$0\" Version"),
    ".rpm": ("rpm -U --replacepkgs \"$0\"", "rpm -q --qf '%{VERSION}-%{RELEASE}' recant || true", "rpm -qp --qf '%{VERSION}-%{RELEASE}' \"$0\""),
}
# Beside its place, so that the name leads to a whole program at any moment.
PUT = 'mkdir -p "${0%/*}" && cat > "$0.new" && chmod 0755 "$0.new" && "$0.new" --version >/dev/null && mv "$0.new" "$0"'
FETCH = 'umask 77; file=$(mktemp /tmp/recant.XXXXXX) && cat > "$file" && echo "$file"'


class ActionModule(VerbAction):
    """Brings recant to the host: a static program, or a package."""

    ARGUMENTS = {"src": {"type": "path", "required": True}, "dest": {"type": "str", "default": "/usr/local/bin/recant"}}

    def act(self):
        source = self._find_needle("files", self.args["src"])
        with open(source, "rb") as file:
            content = file.read()
        ending = os.path.splitext(source)[1]
        return self._package(ending, content) if ending in PACKAGES else self._program(content)

    def _program(self, content):
        place = self.args["dest"]
        there = self._shell('sha256sum < "$0" 2>/dev/null || true', place).split()
        changed = hashlib.sha256(content).hexdigest() not in there
        if changed and not self._task.check_mode:
            self._shell(PUT, place, content)
        return {"changed": changed, "dest": place}

    def _package(self, ending, content):
        install, installed, offered = PACKAGES[ending]
        file = self._shell(FETCH, "sh", content)
        try:
            before, after = self._shell(installed, file), self._shell(offered, file)
            if before != after and not self._task.check_mode:
                self._shell(install, file)
        finally:
            self._shell('rm -f "$0"', file)
        return {"changed": before != after, "version": after}

    def _shell(self, script, word, content=None):
        status, out, said = self.run_there(["/bin/sh", "-c", script, word], content)
        if status != 0:
            raise AnsibleActionFail(f"{word}: {said.strip() or out.strip()}")
        return out.strip()
