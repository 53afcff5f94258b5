# Copyright: the authors of recant
# SPDX-License-Identifier: Apache-2.0
"""The documentation of the action of this name."""
from __future__ import annotations

DOCUMENTATION = r"""
module: snapshot
short_description: Take a snapshot of a directory, or go back to one
version_added: 0.1.0
description:
  - Takes a numbered copy of a directory, where something has changed since the last one.
  - Or makes the directory exactly as it was in one, which a rollback takes back.
extends_documentation_fragment:
  - recant.hold.verb
options:
  path:
    description: The directory, or a file.
    type: path
    required: true
  state:
    description: Whether a snapshot is taken, or gone back to.
    type: str
    choices: [created, restored]
    default: created
  message:
    description: What the new snapshot is for.
    type: str
  label:
    description: A word by which the new snapshot is found again.
    type: str
  snapshot:
    description: The number or the label of the snapshot to go back to.
    type: str
    default: last
  force:
    description: Go back over what changes meanwhile, or is open for writing.
    type: bool
    default: false
"""

EXAMPLES = r"""
- name: Take a snapshot
  recant.hold.snapshot:
    path: /srv/app
    label: before-upgrade

- name: Go back to it
  recant.hold.snapshot:
    path: /srv/app
    state: restored
    snapshot: before-upgrade
"""

RETURN = r"""
snapshot:
  description: The snapshot's number.
  returned: success, not in check mode of V(created)
  type: int
session:
  description: What M(recant.hold.rollback) takes back.
  returned: where a restore changed something
  type: str
"""
