# Copyright: the authors of recant
# SPDX-License-Identifier: Apache-2.0
"""The documentation of the action of this name."""
from __future__ import annotations

DOCUMENTATION = r"""
module: session
short_description: Tell what a session holds
version_added: 0.1.0
description:
  - Tells the changes that a session holds, the dangerous ones among them, and what a commit would stop at. Changes nothing.
  - With C(--diff) it shows the session's patch.
extends_documentation_fragment:
  - recant.hold.verb
options:
  paths:
    description: Only these paths and all below them.
    type: list
    elements: str
    default: []
  hashes:
    description: Read the content of files that are held, so that C(hash) is there before a commit, too.
    type: bool
    default: false
"""

EXAMPLES = r"""
- name: Look at what the play would change
  recant.hold.session:
  register: held

- name: Stop where something is dangerous
  ansible.builtin.assert:
    that: held.dangerous == []
"""

RETURN = r"""
exists:
  description: Whether there is such a session. A play that changed nothing leaves none.
  returned: always
  type: bool
session:
  description: The session's id.
  returned: where there is one
  type: str
name:
  description: The session's name.
  returned: where there is one
  type: str
status:
  description: V(pending), V(committed), V(rolled_back), V(discarded) or V(running).
  returned: where there is one
  type: str
summary:
  description: The status and the numbers of changes, in one line.
  returned: always
  type: str
  sample: "pending: 3 created, 1 modified"
changes:
  description: The changes. C(change) is V(created), V(modified), V(deleted) or V(metadata); the rest is as it would be afterwards.
  returned: always
  type: list
  elements: dict
  sample: [{path: /etc/motd, change: modified, danger: null, kind: file, mode: "0644", hash: 2c26…, target: null}]
dangerous:
  description: Those of the changes that a person should see first; C(danger) says why.
  returned: always
  type: list
  elements: dict
conflicts:
  description: Paths that were changed since, at which a commit or a rollback would stop.
  returned: always
  type: list
  elements: dict
  sample: [{path: /etc/motd, why: changed since the run}]
failed_task:
  description:
    - The newest task, if its command failed or was cut off, and how. Not known of a task that failed on the controller, nor of one with
      C(failed_when) or C(ignore_errors).
  returned: always
  type: str
  sample: "Install nginx: failed (1)"
left_out:
  description: What C(recant_leave_out) left out since the session began, until the host is started anew.
  returned: always
  type: list
  elements: str
  sample: ["restarted nginx (Restart nginx)"]
"""
