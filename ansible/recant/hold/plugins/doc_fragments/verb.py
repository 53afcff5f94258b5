# Copyright: the authors of recant
# SPDX-License-Identifier: Apache-2.0
"""What the actions share."""
from __future__ import annotations


class ModuleDocFragment:
    DOCUMENTATION = r"""
options:
  session:
    description: The session's name or id. Of several with a name the newest. Else C(recant_session), or C(ansible).
    type: str
  program:
    description: The program on the host. Else C(recant_program), or C(recant).
    type: str
  store:
    description: The store on the host. Else C(recant_store), or the one that recant chooses.
    type: path
notes:
  - Over P(recant.hold.ssh#connection) and P(recant.hold.local#connection) it goes past the session, as the user whose recant holds the play.
    Over another connection recant is run as the task's become says.
attributes:
  check_mode:
    description: What would be done is told, and nothing is changed.
    support: full
  diff_mode:
    description: The session's patch is shown.
    support: full
author:
  - the authors of recant (!UNKNOWN)
"""
