# Copyright: the authors of recant
# SPDX-License-Identifier: Apache-2.0
"""The documentation of the action of this name."""
from __future__ import annotations

DOCUMENTATION = r"""
module: discard
short_description: Drop what a session holds
version_added: 0.1.0
description:
  - Drops what a session holds. recant's C(undo) brings it back for a week.
  - Where nothing is held, nothing is done.
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
  message:
    description: The reason, for recant's log.
    type: str
"""

EXAMPLES = r"""
- name: Drop what the play changed
  recant.hold.discard:

- name: Drop what it changed in one directory
  recant.hold.discard:
    paths: [/etc/nginx]
"""

RETURN = r"""
session:
  description: The session's id.
  returned: where there is one
  type: str
"""
