# Copyright: the authors of recant
# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

DOCUMENTATION = r"""
name: ssh
short_description: hold what tasks change on hosts that are reached over ssh
description:
  - Every command, upload and download of every task is run by recant on the host, in one session a host.
    Each task sees what the tasks before it changed, and nothing is real until the session is committed.
  - Set it for a whole run, as C(-e ansible_connection=recant.hold.ssh). An extra variable wins over what inventories, plays
    and tasks say, so that no task bypasses the session.
  - Where the connection's user is not root, recant is run by sudo, and the commands are run as that user again.
    A play's own become works as ever.
  - The hosts need recant; M(recant.hold.install) brings it there.
author:
  - the authors of recant (!UNKNOWN)
version_added: 0.1.0
extends_documentation_fragment:
  - recant.hold.held
  - recant.hold.core_ssh
  - connection_pipelining
"""

from ansible.plugins.connection import ssh
from ansible_collections.recant.hold.plugins.plugin_utils.held import Held


class Connection(Held, ssh.Connection):
    """Ansible's own ssh, whose commands are held."""

    # A terminal mixes the two streams of output.
    NO_TERMINAL = {"use_tty": False}
    # Ansible's way of transfer that is a command, and held as one.
    AS_COMMANDS = {"ssh_transfer_method": "piped"}

    def put_file(self, in_path, out_path):
        with self.set_meanwhile(self.AS_COMMANDS):
            return super().put_file(in_path, out_path)

    def fetch_file(self, in_path, out_path):
        with self.set_meanwhile(self.AS_COMMANDS):
            return super().fetch_file(in_path, out_path)
