# Copyright: the authors of recant
# SPDX-License-Identifier: Apache-2.0
"""The documentation of the action of this name."""
from __future__ import annotations

DOCUMENTATION = r"""
module: commit
short_description: Make real what a session holds
version_added: 0.1.0
description:
  - Makes a session's changes real, with a checkpoint to go back to. All of them, or none.
  - What was rolled back is committed again. Where nothing is held, or all of it is committed, nothing is done.
extends_documentation_fragment:
  - recant.hold.verb
options:
  paths:
    description: Only these paths and all below them.
    type: list
    elements: str
    default: []
  force:
    description: Go on over conflicts. What is found is kept.
    type: bool
    default: false
  merge:
    description: Merge the changes into files that were edited since.
    type: bool
    default: false
  message:
    description: The reason, for recant's log.
    type: str
  confirm_within:
    description:
      - The host rolls it back unless O(confirm) comes within this time, such as V(5m).
      - For commits that may cut the host off, and for those that are part of something on many hosts.
    type: str
  confirm:
    description: Keep a commit that was made with O(confirm_within), instead of committing. Fails where it was rolled back.
    type: bool
    default: false
  failed:
    description: Commit also where the newest task failed or was cut off, as the changes may be half of what was meant.
    type: bool
    default: false
"""

EXAMPLES = r"""
- name: Commit what the play changed
  recant.hold.commit:

- name: Commit one directory
  recant.hold.commit:
    paths: [/etc/nginx]

- name: Commit, unless the host is lost by it
  recant.hold.commit:
    confirm_within: 5m

- name: Let it stay
  recant.hold.commit:
    confirm: true
"""

RETURN = r"""
session:
  description: The session's id.
  returned: where there is one
  type: str
paths:
  description: What was done to which path, or would be in check mode.
  returned: success
  type: list
  elements: dict
  sample: [{path: /etc/motd, done: modified}]
left_out:
  description: What was left out, and why. recant's exit status is 4 then; the task is well, with a warning for each.
  returned: success
  type: list
  elements: dict
  sample: [{path: /var/cache/app, why: changed since the run}]
conflicts:
  description: Paths that were changed since. The task fails, and nothing was changed.
  returned: always
  type: list
  elements: dict
  sample: [{path: /etc/motd, why: changed since the run}]
status:
  description: recant's exit status.
  returned: where recant was asked
  type: int
"""
