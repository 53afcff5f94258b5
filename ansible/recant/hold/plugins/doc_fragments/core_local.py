# Copyright: the authors of recant
# SPDX-License-Identifier: Apache-2.0
"""The options of Ansible's own local connection, as the Ansible that runs this has them."""
from __future__ import annotations

import yaml

from ansible.plugins.connection import local
from ansible_collections.recant.hold.plugins.doc_fragments.core_ssh import options_of


class ModuleDocFragment:
    pass


# Not in the class: Ansible's own linter takes what stands there for a literal.
ModuleDocFragment.DOCUMENTATION = yaml.safe_dump(options_of(local.DOCUMENTATION))
