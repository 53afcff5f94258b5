# Copyright: the authors of recant
# SPDX-License-Identifier: Apache-2.0
"""The documentation of the action of this name."""
from __future__ import annotations

DOCUMENTATION = r"""
module: rollback
short_description: Take back what was committed
version_added: 0.1.0
description:
  - Takes back a session's commit. Everything is as it was before.
  - By the session's name, parts that were committed before the rest are taken back with it. By its id it is that session alone.
  - Where nothing is committed, nothing is done.
extends_documentation_fragment:
  - recant.hold.verb
attributes:
  diff_mode:
    description: No patch is shown.
    support: none
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
  message:
    description: The reason, for recant's log.
    type: str
"""

EXAMPLES = r"""
- name: Take it back
  recant.hold.rollback:
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
