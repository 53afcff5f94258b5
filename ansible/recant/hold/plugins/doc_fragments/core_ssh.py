# Copyright: the authors of recant
# SPDX-License-Identifier: Apache-2.0
"""The options of Ansible's own ssh, as the Ansible that runs this has them."""
from __future__ import annotations

import yaml

from ansible.plugins.connection import ssh


def options_of(documentation):
    """The options alone, without the versions of Ansible in which they came."""
    return {"options": _without_versions(yaml.safe_load(documentation).get("options", {}))}


def _without_versions(part):
    if isinstance(part, dict):
        return {key: _without_versions(value) for key, value in part.items() if key != "version_added"}
    if isinstance(part, list):
        return [_without_versions(item) for item in part]
    return part


class ModuleDocFragment:
    pass


# Not in the class: Ansible's own linter takes what stands there for a literal.
ModuleDocFragment.DOCUMENTATION = yaml.safe_dump(options_of(ssh.DOCUMENTATION))
