# Copyright: the authors of recant
# SPDX-License-Identifier: Apache-2.0
"""The documentation of the action of this name."""
from __future__ import annotations

DOCUMENTATION = r"""
module: install
short_description: Bring recant to a host
version_added: 0.1.0
description:
  - Copies recant's static program to the host, or installs its package, where another one or none is there.
  - Needs root there, by sudo as the connection has it, or by the task's become.
extends_documentation_fragment:
  - recant.hold.verb
attributes:
  diff_mode:
    description: No patch is shown.
    support: none
options:
  src:
    description: The program, or a V(.deb) or V(.rpm), on the controller.
    type: path
    required: true
  dest:
    description: Where the program goes. Packages have places of their own.
    type: str
    default: /usr/local/bin/recant
"""

EXAMPLES = r"""
- name: Bring recant there
  hosts: all
  gather_facts: false
  tasks:
    - name: Copy the static program
      recant.hold.install:
        src: /usr/local/bin/recant
"""

RETURN = r"""
dest:
  description: Where the program is.
  returned: where it is no package
  type: str
version:
  description: The package's version.
  returned: where it is a package
  type: str
"""
