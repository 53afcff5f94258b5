# Copyright: the authors of recant
# SPDX-License-Identifier: Apache-2.0
"""What makes a connection of Ansible's a held one.

A command of Ansible's becomes `recant run --session NAME -- COMMAND` on the host. Where the user there is not root, sudo runs recant, and
inside the run the command is that user's again, with that user's environment:

    sh -> sudo -> sh (START) -> recant run -> sudo -u USER -> env -> sh -c COMMAND
"""
from __future__ import annotations

import contextlib
import functools
import json
import shlex
import time

from ansible.constants import LOCALHOST
from ansible.errors import AnsibleActionFail, AnsibleActionSkip
from ansible.plugins.loader import become_loader, connection_loader

# A refusal of the script that is run on the host begins so. The status is recant's for a run that could not be set up.
MARK = "recant.hold: "
NOT_SET_UP = 125

# Runs as root, before recant. $0 is the program.
ELSEWHERE = "recant_program= names another place (recant -H: .local/lib/recant/bin/VERSION/recant)"
START = f"""command -v "$0" >/dev/null || {{ echo "{MARK}$0 is not on this host; recant.hold.install brings it there, {ELSEWHERE}" >&2; exit {NOT_SET_UP}; }}
exec "$0" "$@\""""

# In place of START for a task's own commands: notes beside the session how they ended, as one that changed nothing leaves no step. What of
# the task failed stays noted until another task begins; one that never ends is noted as cut off.
NOTED = START.partition("\n")[0] + """
note() { (umask 77; mkdir -p %(notes)s; case $(cat %(notes)s/ended) in %(kept)s) ;; *) printf '%%s\\n' "$1" > %(notes)s/ended ;; esac) 2>/dev/null; }
%(left)s
note "%(task)s cut off "%(name)s
"$0" "$@"
status=$?
if [ $status = 0 ] || %(may_fail)s; then note ok; else note "%(task)s failed ($status) "%(name)s; fi
exit $status"""

# Notes what was left out, and when: a report has what was left out since its session began.
LEFT = '(umask 77; mkdir -p %(notes)s; echo "$(date -u +%%FT%%TZ) "%(what)s >> %(notes)s/left_out) 2>/dev/null'

# Below it is a directory of notes for each session's name. They go with the machine's next start.
NOTES = "/run/recant.hold"

# Behind a sudo that was given no password: tells whether it wanted one.
WITHOUT_PASSWORD = f"""
status=$?
[ $status != 1 ] || sudo -n -H -- /bin/sh -c : 2>/dev/null || {{
    echo "{MARK}sudo runs recant on this host, and asks for a password: give it by -K (--ask-become-pass)" >&2; exit {NOT_SET_UP}
}}
exit $status"""

# Runs as the user, in the run. $1 is Ansible's command.
COMMAND = 'exec /bin/sh -c "$1"'

# What of the user's environment a command keeps behind sudo.
KEPT = """HOME PATH USER LOGNAME SHELL MAIL LANG LANGUAGE LC_ALL LC_CTYPE LC_MESSAGES TERM TZ XDG_RUNTIME_DIR
    SSH_AUTH_SOCK SSH_CLIENT SSH_CONNECTION SSH_TTY""".split()

# How long a command waits for one that runs in the session.
WAIT = "10m"

SERVICES = {"service", "systemd", "systemd_service", "sysvinit"}
SERVICE_STATES = {"started", "stopped", "restarted", "reloaded"}
MOUNT_STATES = {"mounted", "unmounted", "remounted", "ephemeral"}
NOT_HELD = {
    "services": "it starts, stops or reloads a service of systemd, which no session holds",
    "reboot": "it reboots the host",
    "mounts": "it mounts or unmounts, which no session holds",
    "kernel": "it changes the running kernel, which no session holds",
    "synchronize": "it copies past the connection, and would be real",
}


class Held:
    """Mixed in before one of Ansible's own connections."""

    NO_TERMINAL: dict = {}

    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self._task_id = kwargs.get("task_uuid") or "task"

    def set_options(self, task_keys=None, var_options=None, direct=None):
        super().set_options(task_keys=task_keys, var_options=var_options, direct=direct)
        self._given = {"task_keys": task_keys, "var_options": var_options}
        if self._is_held() and self._task_kind() == "synchronize" and "synchronize" not in self.get_option("recant_leave_out"):
            # It takes the connection's address, and copies by a connection of its own.
            self._refuse_or_leave_out("synchronize")
        if self._is_held() and self._task_kind() == "services" and "services" in self.get_option("recant_leave_out"):
            # For the task's modules systemd is offline, as in a chroot. Stands behind become, which would drop it.
            self._shell.env_prefix = functools.partial(self._shell.env_prefix, SYSTEMD_OFFLINE="1")

    @property
    def transport(self):
        """Read first of all by synchronize, which copies by a connection of its own then: it is left out here, or never."""
        if hasattr(self, "_given") and self._is_held() and self._task_kind() == "synchronize":
            self._refuse_or_leave_out("synchronize")
        return super().transport

    def exec_command(self, cmd, in_data=None, sudoable=True):
        if self._is_controller():
            return self._controllers_own().exec_command(cmd, in_data=in_data, sudoable=sudoable)
        if not self._is_held():
            return super().exec_command(cmd, in_data=in_data, sudoable=sudoable)
        if self._task_kind() not in (None, "services"):
            if self._task_kind() in self.get_option("recant_leave_out") and not self.get_option("recant_task_check"):
                self.exec_real(["/bin/sh", "-c", self._noting_left()])
            self._refuse_or_leave_out(self._task_kind())
        if self.get_option("recant_task_async") and sudoable and "async_wrapper" in cmd:
            # Its upload and its modes are not sudoable.
            return self._background(cmd)
        return self._foreground(cmd, in_data, sudoable)

    def put_file(self, in_path, out_path):
        if self._is_controller():
            return self._controllers_own().put_file(in_path, out_path)
        return super().put_file(in_path, out_path)

    def fetch_file(self, in_path, out_path):
        if self._is_controller():
            return self._controllers_own().fetch_file(in_path, out_path)
        return super().fetch_file(in_path, out_path)

    def exec_real(self, words, in_data=None):
        """Runs a program that is not held, as the user who runs recant."""
        if self._is_controller():
            return self._controllers_own().exec_real(words, in_data)
        return self._run_by_sudo(f"set -- {shlex.join(words)}\n", None, in_data, False)

    def recant_words(self):
        """The program on the host, with the options of all verbs."""
        store = self.get_option("recant_store")
        return [self.get_option("recant_program"), *(["--store", store] if store else [])]

    @contextlib.contextmanager
    def set_meanwhile(self, options):
        """Has other values of options for a while."""
        before = {name: self.get_option(name) for name in options}
        for name, value in options.items():
            self.set_option(name, value)
        try:
            yield
        finally:
            for name, value in before.items():
                self.set_option(name, value)

    # Which tasks are held.

    def _is_held(self):
        return self.get_option("recant_held")

    def _is_controller(self):
        """A loopback address is the controller's, unless a port makes it another machine's."""
        if super().transport == "local":
            return False
        address = self.get_option("host") or self._play_context.remote_addr
        return address in LOCALHOST and not self.get_option("port")

    def _controllers_own(self):
        """The connection for a task of the controller."""
        held = self._is_held() and self.get_option("recant_controller") != "real"
        if held and self.get_option("recant_controller") == "fail":
            raise AnsibleActionFail(
                f"{self._task_name()}: it is for the controller, which is not held; "
                "recant_controller=held holds it there, recant_controller=real runs it for real")
        here = connection_loader.get("recant.hold.local", self._play_context, None)
        here.set_options(**self._given, direct={"recant_held": held})
        here._shell = self._shell
        here.set_become_plugin(self.become)
        return here._connect()

    def _task_kind(self):
        """What the task does beside files, by its action and arguments; None for all that a session holds."""
        action = (self.get_option("recant_task_action") or "").rpartition(".")[2]
        arguments = self.get_option("recant_task_args") or {}
        state = arguments.get("state")
        if action in SERVICES and (state in SERVICE_STATES or arguments.get("daemon_reload")):
            return "services"
        if action == "mount" and state in MOUNT_STATES:
            return "mounts"
        if action == "modprobe" or action == "sysctl" and arguments.get("sysctl_set"):
            return "kernel"
        return action if action in ("reboot", "synchronize") else None

    def _refuse_or_leave_out(self, kind):
        if kind in self.get_option("recant_leave_out"):
            raise AnsibleActionSkip(f"{NOT_HELD[kind]}: left out")
        raise AnsibleActionFail(self._refusal(kind))

    def _refusal(self, kind):
        return f'{self._task_name()}: {NOT_HELD[kind]}; recant_leave_out={kind} leaves it out'

    def _task_name(self):
        return self.get_option("recant_task_name") or self.get_option("recant_task_action") or "a task"

    def _label(self):
        """The task's name, as recant takes it: in one line that has an end."""
        return " ".join("".join(letter if letter.isprintable() else " " for letter in self._task_name()).split())[:200] or "a task"

    # What is run on the host.

    def _foreground(self, cmd, in_data, sudoable):
        # For commands of other tasks, and for a session that is being put away. Jobs of async are services, which it joins.
        options = ["--wait", WAIT, "--wait-background", self.get_option("recant_wait_background")]
        start = self._noted() if sudoable and not self.get_option("recant_task_check") else START
        return self._run_by_sudo(self._held_run(options), self._without_services() + COMMAND, in_data, sudoable, cmd, start=start)

    def _background(self, cmd):
        """Begins a job of async as a service of the session: it goes on there, and commands that come meanwhile join it."""
        run = self._held_run(["--serve", f"async-{time.time_ns():x}", "--json"])
        for _again in range(100):
            status, _out, said = self._run_by_sudo(run, COMMAND, None, False, cmd)
            answer = _last_answer(said)
            if answer.get("kind") != "busy":
                break
            # The session is being put away; the command was not started.
            time.sleep(0.1)
        if answer.get("result") != "serves":
            return status, b"", said
        # What it says may come after the second that recant waits.
        read = 'for i in $(seq 100); do [ ! -s "$0" ] || break; sleep 0.1; done; cat "$0"'
        return self.exec_real(["/bin/sh", "-c", read, answer["output"]])

    def _without_services(self):
        """Refuses a task for systemd's services where systemd runs."""
        if self._task_kind() != "services" or "services" in self.get_option("recant_leave_out"):
            return ""
        return f"[ ! -d /run/systemd/system ] || {{ echo {shlex.quote(MARK + self._refusal('services'))} >&2; exit {NOT_SET_UP}; }}\n"

    def _noted(self):
        """The script that starts a command of the task's own, and notes how it ends."""
        task = self._task_id
        # What tries again has failed only where its last try did.
        kept = "-" if self.get_option("recant_task_until") else f'"{task} failed"*'
        may_fail = self.get_option("recant_task_ignore_errors") or self.get_option("recant_task_failed_when")
        is_left = self._task_kind() == "services" and "services" in self.get_option("recant_leave_out")
        return NOTED % {
            "notes": self._notes(), "kept": kept, "task": task, "name": shlex.quote(self._label()),
            "may_fail": "true" if may_fail else "false", "left": self._noting_left() if is_left else ":",
        }

    def _noting_left(self):
        """The script that notes what the task would have done beside files."""
        arguments = self.get_option("recant_task_args") or {}
        does = arguments.get("state") or ("daemon_reload" if arguments.get("daemon_reload") else "")
        on = arguments.get("name") or arguments.get("service") or arguments.get("unit") or arguments.get("path") or ""
        what = " ".join(part for part in (str(does) or self._task_kind(), str(on), f"({self._label()})") if part)
        return LEFT % {"notes": self._notes(), "what": shlex.quote(" ".join(what.split()))}

    def _notes(self):
        return shlex.quote(f"{NOTES}/{self.get_option('recant_session')}")

    def _held_run(self, options):
        """Sets the words of `recant run` as the arguments of a shell."""
        words = ["--session", self.get_option("recant_session"), "--label", self._label(), *options]
        for path in self.get_option("recant_pass"):
            words += ["--pass", path]
        return f"set -- {shlex.join([*self.recant_words(), '-q', 'run', *words])} --\n"

    def _run_by_sudo(self, arguments, inner, in_data, sudoable, cmd="", start=START):
        """Runs the arguments that a shell is given as root's command. `inner` is the script that it runs for the user."""
        sudo = self._sudo_with_password()
        script = "command=$1\n" + arguments + self._held_start(sudo, inner, start)
        line = shlex.join(["/bin/sh", "-c", script, "recant.hold", cmd])
        with contextlib.ExitStack() as stack:
            if not sudoable:
                stack.enter_context(self.set_meanwhile(self.NO_TERMINAL))
            if sudo or not sudoable:
                stack.callback(setattr, self, "become", self.become)
                self.become = sudo
            status, out, error = super().exec_command(line, in_data=in_data, sudoable=sudoable or bool(sudo))
        _raise_refusal(status, out, error)
        return status, out, error

    def _held_start(self, sudo, inner, start):
        """The end of the script, which becomes its arguments: root's as they are, another user's by sudo, with a command that is the user's."""
        start = "/bin/sh -c " + shlex.quote((f"echo {sudo.success}\n" if sudo else "") + start)
        as_root = f'exec {start} "$@"'
        if inner is not None:
            inner = f'/bin/sh -c {shlex.quote(inner)} recant.hold "$command"'
            as_root += f" {inner}"
        if not self.get_option("recant_sudo"):
            return as_root
        text = f'[ "$(id -u)" != 0 ] || {as_root}\n'
        by_sudo = f"exec sudo -H -S -p {shlex.quote(sudo.prompt)} -- {start}" if sudo else f"sudo -n -H -- {start}"
        end = "" if sudo else WITHOUT_PASSWORD
        if inner is None:
            return text + f'{by_sudo} "$@"{end}'
        if sudo and self.become and self.become.expect_prompt():
            # The password was given: inside, become goes from root, who is not asked again.
            return text + as_root.replace(f"exec {start}", by_sudo)
        return text + f"""set -- "$@" sudo -n -H -u "$(id -un)" -- env -i
for name in {" ".join(KEPT)}; do eval "[ -z \\"\\${{$name+set}}\\" ] || set -- \\"\\$@\\" \\"$name=\\$$name\\""; done
{by_sudo} "$@" {inner}{end}"""

    def _sudo_with_password(self):
        """The plugin that answers sudo's question for a password; None where no password is known."""
        password = self.get_option("recant_sudo_password") or self._play_context.become_pass
        if not password or not self.get_option("recant_sudo"):
            return None
        sudo = become_loader.get("ansible.builtin.sudo")
        sudo.set_options(direct={"become_pass": password})
        sudo.build_become_command("true", self._shell)
        return sudo


def _last_answer(said):
    try:
        return json.loads(said.splitlines()[-1])
    except (IndexError, ValueError):
        return {}


def _raise_refusal(status, out, error):
    text = (error + out).decode(errors="replace")
    if status == NOT_SET_UP and MARK in text:
        raise AnsibleActionFail(text.partition(MARK)[2].splitlines()[0])
