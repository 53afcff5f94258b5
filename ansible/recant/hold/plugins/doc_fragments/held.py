# Copyright: the authors of recant
# SPDX-License-Identifier: Apache-2.0
"""The options that both connections have."""
from __future__ import annotations


class ModuleDocFragment:
    DOCUMENTATION = r"""
options:
  recant_session:
    description: The session that holds the play on each host. A name that is used again after a commit begins a new session.
    type: str
    default: ansible
    vars:
      - name: recant_session
  recant_held:
    description:
      - Whether the task is held. With V(false) it runs for real, as with Ansible's own connection.
      - Meant for single tasks that have to be real, such as a health check after a commit.
    type: bool
    default: true
    vars:
      - name: recant_held
  recant_controller:
    description:
      - What becomes of tasks for the controller (C(delegate_to), C(local_action) with C(localhost) or another loopback address without a port).
      - V(fail) names such a task and fails it, V(held) holds it in a session of the controller, V(real) runs it for real.
    type: str
    choices: [fail, held, real]
    default: fail
    vars:
      - name: recant_controller
  recant_leave_out:
    description:
      - What to leave out instead of failing, because no session can hold it.
      - V(services) leaves out starting, stopping and reloading of systemd's services; what a task changes in files is held all the same.
      - V(reboot), V(mounts), V(kernel) and V(synchronize) skip the tasks which reboot, mount, set the kernel's parameters,
        or copy past the connection.
    type: list
    elements: str
    choices: [services, reboot, mounts, kernel, synchronize]
    default: []
    vars:
      - name: recant_leave_out
  recant_program:
    description: The program on the host.
    type: str
    default: recant
    vars:
      - name: recant_program
  recant_store:
    description: The store on the host; else the one that recant chooses there.
    type: str
    vars:
      - name: recant_store
  recant_pass:
    description: Paths on the host that stay real while the play is held, such as a socket. Not to be had together with C(async).
    type: list
    elements: str
    default: []
    vars:
      - name: recant_pass
  recant_wait_background:
    description: How long a task waits for processes that it leaves in the background. They are ended after that time.
    type: str
    default: 10s
    vars:
      - name: recant_wait_background
  recant_sudo:
    description:
      - Whether recant is run by sudo where the connection's user is not root. Without it recant holds what that user may change.
    type: bool
    default: true
    vars:
      - name: recant_sudo
  recant_sudo_password:
    description: The password that sudo asks for; else the one that become has.
    type: str
    vars:
      - name: ansible_sudo_pass
      - name: ansible_become_pass
      - name: ansible_become_password
      - name: recant_sudo_password
  recant_task_name:
    description: The task's name, which labels its steps. Not meant to be set.
    type: str
    keyword:
      - name: name
  recant_task_action:
    description: The task's action. Not meant to be set.
    type: str
    keyword:
      - name: action
  recant_task_args:
    description: The task's arguments. Not meant to be set.
    type: dict
    keyword:
      - name: args
  recant_task_async:
    description: How long the task may run in the background. Not meant to be set.
    type: int
    keyword:
      - name: async_val
  recant_task_check:
    description: Whether the task only tells. Not meant to be set.
    type: bool
    keyword:
      - name: check_mode
  recant_task_until:
    description: What the task is tried again for. Not meant to be set.
    type: raw
    keyword:
      - name: until
  recant_task_ignore_errors:
    description: Whether the play goes on where the task fails. Not meant to be set.
    type: bool
    keyword:
      - name: ignore_errors
  recant_task_failed_when:
    description: What decides whether the task failed. Not meant to be set.
    type: raw
    keyword:
      - name: failed_when
"""
