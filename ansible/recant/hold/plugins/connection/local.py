# Copyright: the authors of recant
# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

DOCUMENTATION = r"""
name: local
short_description: hold what tasks change on the controller
description:
  - Every command, upload and download of every task is run by recant on this machine, in one session.
    Each task sees what the tasks before it changed, and nothing is real until the session is committed.
  - Set it for a whole run, as C(-e ansible_connection=recant.hold.local). An extra variable wins over what inventories, plays
    and tasks say, so that no task bypasses the session.
author:
  - the authors of recant (!UNKNOWN)
version_added: 0.1.0
extends_documentation_fragment:
  - recant.hold.held
  - recant.hold.core_local
  - connection_pipelining
"""

import os
import shlex

from ansible.errors import AnsibleError, AnsibleFileNotFound
from ansible.plugins.connection import local
from ansible_collections.recant.hold.plugins.plugin_utils.held import Held


class Connection(Held, local.Connection):
    """Ansible's own local connection, whose commands are held."""

    def put_file(self, in_path, out_path):
        if not os.path.exists(in_path):
            raise AnsibleFileNotFound(f"file or module does not exist: {in_path}")
        with open(in_path, "rb") as file:
            self._transfer(f"cat > {shlex.quote(out_path)}", out_path, file.read())

    def fetch_file(self, in_path, out_path):
        content = self._transfer(f"cat {shlex.quote(in_path)}", in_path)
        with open(out_path, "wb") as file:
            file.write(content)

    def _transfer(self, command, path, content=None):
        status, out, error = self.exec_command(command, in_data=content, sudoable=False)
        if status != 0:
            raise AnsibleError(f"{path}: {error.decode(errors='replace').strip()}")
        return out
