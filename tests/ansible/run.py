#!/usr/bin/env python3
"""The collection recant.hold, built and installed, on machines with sshds of their own.

    run.py --recant RECANT [--long] [WORD …]

Each machine has a root on a tmpfs in a mount namespace. WORDs choose scenes. Ansible comes from PyPI, into a Python environment beside the
program. What cannot be had is skipped, with the reason. Closing line: N passed, N failed, N skipped.
"""
import argparse
import contextlib
import glob
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import traceback

HERE = os.path.dirname(os.path.abspath(__file__))
TOP = os.path.dirname(os.path.dirname(HERE))
COLLECTION = os.path.join(TOP, "ansible", "recant", "hold")
CORE = "ansible-core>=2.16,<2.22"
LIMIT = 300


class Skip(Exception):
    """Why a scene cannot be played here."""


class Ansible:
    """ansible-core, with the collection as `ansible-galaxy` installs it."""

    def __init__(self, environment, core):
        self.programs = os.path.join(environment, "bin")
        if not self._works():
            made = quiet(sys.executable, "-m", "venv", environment)
            pip = [os.path.join(self.programs, "pip"), "install", "-q", "--disable-pip-version-check", "--timeout", "20", core]
            if not made or not quiet(*pip) or not self._works():
                raise Skip("ansible-core cannot be had here by pip, or Python has no venv")

    def _works(self):
        return quiet(self.program("ansible-playbook"), "--version")

    def program(self, name):
        return os.path.join(self.programs, name)

    @property
    def roles(self):
        return os.path.join(os.path.dirname(self.programs), "share", "ansible", "roles")

    def add(self, package, dependencies=False):
        """Installs roles that PyPI has, or a program with what it needs."""
        alone = [] if dependencies else ["--no-deps"]
        if not quiet(self.program("pip"), "install", "-q", "--disable-pip-version-check", "--timeout", "20", *alone, package):
            raise Skip(f"{package} cannot be had here by pip")

    def own_pip(self, home):
        """Gives ansible-test the pip that this Python has: it would fetch one from a place that may be out of reach."""
        [path] = glob.glob(os.path.join(os.path.dirname(self.programs), "lib", "python3*", "site-packages", "ansible_test", "_internal"))
        with open(os.path.join(path, "python_requirements.py"), encoding="utf-8") as file:
            version = re.search(r"pip='([0-9.]+)'", file.read()).group(1)
        cache = os.path.join(home, ".ansible", "test", "cache")
        os.makedirs(cache)
        with open(os.path.join(cache, f"get_pip_{version.replace('.', '_')}.py"), "w", encoding="utf-8") as file:
            file.write("import ensurepip; ensurepip.bootstrap(upgrade=True)\n")

    def install(self, directory):
        """Builds the collection, and installs the file."""
        built = os.path.join(directory, "built")
        galaxy = self.program("ansible-galaxy")
        run(galaxy, "collection", "build", COLLECTION, "--output-path", built)
        [file] = os.listdir(built)
        run(galaxy, "collection", "install", "--offline", "-p", os.path.join(directory, "collections"), os.path.join(built, file))


class Machine:
    """A root of its own with an sshd, which goes with `end`."""

    def __init__(self, directory, name, recant):
        self.name = name
        with socket.create_server(("127.0.0.1", 0)) as free:
            self.port = free.getsockname()[1]
        words = ["unshare", "-m", "--propagation", "private", os.path.join(HERE, "host.sh"), directory, str(self.port), recant, name]
        self.log = open(os.path.join(directory, name + ".log"), "w+")
        self.cp = os.path.join(directory, "cp")
        self.sshd = subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=self.log, stderr=self.log)

    def wait(self):
        for _ in range(200):
            with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", self.port)):
                return
            if self.sshd.poll() is not None:
                break
            time.sleep(0.05)
        self.log.seek(0)
        raise Skip(f"no sshd in a root of its own: {self.log.read().strip()}")

    def stop(self):
        """Nobody can reach it any more, until it goes on."""
        end_connections(self.cp)
        os.kill(self.sshd.pid, signal.SIGSTOP)

    def go_on(self):
        os.kill(self.sshd.pid, signal.SIGCONT)

    def end(self):
        self.sshd.kill()
        self.sshd.wait()
        self.log.close()

    def run(self, *words):
        """Runs a program there, past ssh and recant: what it prints."""
        return run("nsenter", "-t", str(self.sshd.pid), "-m", "-r", "-w", *words)

    def sh(self, script):
        return self.run("/bin/sh", "-c", script)

    def until_none_is_committed(self):
        for _ in range(300):
            if '"status":"committed"' not in self.sh("recant list --all --json"):
                return
            time.sleep(0.2)
        raise AssertionError(f"{self.name} does not take its commit back: " + self.sh("recant status"))

    def manifest(self):
        with open(os.path.join(HERE, "manifest.py"), encoding="utf-8") as file:
            return self.run("/usr/bin/python3", "-c", file.read()).splitlines()


class World:
    """Machines, and an Ansible that reaches them."""

    def __init__(self, ansible, recant, count):
        self.ansible, self.recant = ansible, recant
        self.directory = tempfile.mkdtemp(prefix="recant-ansible-", dir="/var/tmp")
        for key in ("user", "host"):
            run("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", os.path.join(self.directory, key))
        self.machines = [Machine(self.directory, f"web{n}", recant) for n in range(1, count + 1)]
        ansible.install(self.directory)
        for machine in self.machines:
            machine.wait()
        self.write("hosts", "".join(f"{machine.name} ansible_host=127.0.0.1 ansible_port={machine.port}\n" for machine in self.machines))

    def write(self, name, text):
        path = os.path.join(self.directory, name)
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
        return path

    def play(self, text, *words, held=True, user="root", **variables):
        """Plays a playbook: its status, and all that it says."""
        if held:
            variables["ansible_connection"] = "recant.hold.ssh"
        given = [word for name, value in variables.items() for word in ("-e", f"{name}={value}")]
        inventory = ["-i", os.path.join(self.directory, "hosts")]
        return self.call("ansible-playbook", *inventory, "-u", user, self.write("play.yml", text), *given, *words)

    def call(self, program, *words, within=None, **more):
        """A program of Ansible's: its status, and all that it says."""
        environment = {name: value for name, value in os.environ.items() if not name.startswith(("ANSIBLE_", "RECANT_"))}
        environment |= {
            "ANSIBLE_COLLECTIONS_PATH": os.path.join(self.directory, "collections"), "ANSIBLE_HOST_KEY_CHECKING": "0",
            "ANSIBLE_ROLES_PATH": self.ansible.roles,
            "ANSIBLE_PRIVATE_KEY_FILE": os.path.join(self.directory, "user"), "ANSIBLE_PIPELINING": "1", "ANSIBLE_NOCOLOR": "1",
            "ANSIBLE_SSH_CONTROL_PATH_DIR": os.path.join(self.directory, "cp"), "ANSIBLE_PYTHON_INTERPRETER": "/usr/bin/python3",
            "ANSIBLE_DEPRECATION_WARNINGS": "0", "ANSIBLE_LOCALHOST_WARNING": "0", "ANSIBLE_TIMEOUT": "5", "LC_ALL": "C.UTF-8",
        } | more
        command = [self.ansible.program(program), *words]
        done = subprocess.run(command, env=environment, cwd=within or self.directory, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=LIMIT)
        return done.returncode, done.stdout + done.stderr

    def played(self, text, *words, **how):
        status, said = self.play(text, *words, **how)
        assert status == 0, said
        return said

    def changed(self, text, first, then):
        """A task tells what it would change, changes it, and has nothing to change any more."""
        for words, count in ((["--check"], first), ([], first), ([], then)):
            said = self.played(text, *words)
            recap = said.partition("PLAY RECAP")[2]
            assert recap.count(f"changed={count} ") == len(self.machines), said

    def manifests(self):
        return [machine.manifest() for machine in self.machines]

    def end(self):
        end_connections(os.path.join(self.directory, "cp"))
        for machine in self.machines:
            machine.end()
        shutil.rmtree(self.directory)


def run(*words):
    done = subprocess.run(words, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=LIMIT)
    assert done.returncode == 0, f"{words}: {done.returncode}\n{done.stdout}{done.stderr}"
    return done.stdout


def quiet(*words):
    with contextlib.suppress(OSError):
        return subprocess.run(words, stdin=subprocess.DEVNULL, capture_output=True, timeout=LIMIT).returncode == 0
    return False


def end_connections(directory):
    """Ends what ssh shares."""
    for name in os.listdir(directory) if os.path.isdir(directory) else []:
        quiet("ssh", "-o", "ControlPath=" + os.path.join(directory, name), "-O", "exit", "host")


def same(before, after, what):
    gone = [f"- {line}" for line in before if line not in set(after)]
    new = [f"+ {line}" for line in after if line not in set(before)]
    assert not gone + new, f"{what}:\n" + "\n".join(gone + new)


SITE = """
- hosts: all
  gather_facts: false
  tasks:
    - name: greet
      ansible.builtin.copy: {dest: /etc/motd, content: "held\\n", mode: "0644"}
      notify: greeted
    - name: a user
      ansible.builtin.user: {name: alice}
    - name: as that user
      ansible.builtin.shell: id -un > who
      args: {chdir: /home/alice}
      become: true
      become_user: alice
    - name: a line
      ansible.builtin.lineinfile: {path: /etc/hosts, line: "192.0.2.7 db"}
    - name: what the task before did is seen
      ansible.builtin.command: grep -c db /etc/hosts
      register: seen
      failed_when: seen.stdout != '1'
    - name: a file of the host's own
      ansible.builtin.copy: {dest: /srv/name, content: "{{ inventory_hostname }}\\n", mode: "0644"}
  handlers:
    - name: greeted
      ansible.builtin.shell: echo handled >> /etc/motd
"""


def book(tasks):
    return "- hosts: all\n  gather_facts: false\n" + tasks


def role(name, **variables):
    return book(f"  roles:\n    - role: recant.hold.{name}\n" + "".join(f"      {key}: {value}\n" for key, value in variables.items()))


COMMIT_ALL = role("commit_all")
ROLLBACK = book("  tasks:\n    - recant.hold.rollback:\n")
RED = "fatal: ["


def on_all_or_on_none(world):
    """A held play changes nothing; a conflict on one machine commits none; then all are committed, and all are as before again."""
    before = world.manifests()
    world.played(SITE)
    for machine, was in zip(world.machines, before):
        same(was, machine.manifest(), f"{machine.name} is untouched while it is held")

    world.machines[1].sh("cp -a /etc/motd /srv/mine; echo mine > /etc/motd")
    status, said = world.play(COMMIT_ALL)
    assert status != 0 and "web2: /etc/motd: " in said, said
    assert "web1: /etc/motd" not in said, said
    same(before[0], world.machines[0].manifest(), "nothing is committed where there is no conflict either")
    assert world.machines[1].sh("cat /etc/motd") == "mine\n"

    world.machines[1].sh("mv /srv/mine /etc/motd")
    world.played(COMMIT_ALL)
    for machine in world.machines:
        assert machine.sh("cat /etc/motd /home/alice/who /srv/name") == f"held\nhandled\nalice\n{machine.name}\n"
    assert "changed=0" in world.played(COMMIT_ALL), "it is committed already"
    world.played(ROLLBACK)
    same(before[0], world.machines[0].manifest(), "rolled back")


EACH_WAY = """
- hosts: all
  tasks:
    - name: a command of the user's
      ansible.builtin.shell: "id -un; echo $HOME; test -z $SUDO_USER$command; echo mine > ~/mine"
      register: mine
    - name: a file of root's
      ansible.builtin.copy: {dest: /etc/motd, content: "held\\n", mode: "0644"}
      become: true
    - name: another user
      ansible.builtin.user: {name: alice}
      become: true
    - name: as that user
      ansible.builtin.shell: id -un > /home/alice/who
      become: true
      become_user: alice
    - name: raw
      ansible.builtin.raw: id -un > /srv/raw
      become: true
    - name: script
      ansible.builtin.script: script.sh
      become: true
    - name: a job
      ansible.builtin.shell: sleep 4; id -un > /srv/job
      become: true
      async: 60
      poll: 0
      register: job
    - name: a job does not block
      ansible.builtin.command: test ! -e /srv/job
    - name: the job's end
      ansible.builtin.async_status: {jid: "{{ job.ansible_job_id }}"}
      become: true
      register: end
      until: end.finished
      retries: 60
      delay: 1
    - name: a daemon does not hang
      ansible.builtin.shell: (sleep 1000; touch /srv/never) > /dev/null 2>&1 < /dev/null &
      become: true
      vars: {recant_wait_background: 1s}
    - name: fetch
      ansible.builtin.fetch: {src: /srv/job, dest: "fetched-{{ inventory_hostname }}", flat: true}
    - name: another machine's
      ansible.builtin.copy: {dest: "/srv/from-{{ inventory_hostname }}", content: "", mode: "0644"}
      become: true
      delegate_to: web2
    - name: what came out
      ansible.builtin.assert:
        that: mine.stdout_lines == [user, home] and end.finished
      vars: {user: "{{ ansible_user_id }}", home: "{{ ansible_user_dir }}"}
"""
# What a play writes anew each time, or with the day in it.
ANEW = re.compile(r"^\(b'/(etc/(shadow|passwd|group|gshadow|subuid|subgid)-?|root/\.ansible.*|home/\w+/\.ansible.*|var/log/\w+)'")


def without_times(manifest):
    return [line.rpartition(", ")[0] for line in manifest if not ANEW.match(line)]


def each_way_to_become(world):
    """Root, a user who becomes root without a password, and one with: held, committed and rolled back."""
    world.write("script.sh", "echo script > /srv/script\n")
    for user, words in (("root", []), ("op", []), ("opp", ["-e", "ansible_become_password=secret"])):
        before = world.manifests()
        world.played(EACH_WAY, *words, user=user)
        for machine, was in zip(world.machines, before):
            same(was, machine.manifest(), f"{machine.name} is untouched while {user}'s play is held")
        world.played(COMMIT_ALL, *words, user=user)
        for machine in world.machines:
            said = machine.sh("cat /etc/motd /srv/script /srv/raw /srv/job /home/alice/who; ls /srv")
            wanted = "from-web1\nfrom-web2\n" if machine.name == "web2" else ""
            assert said == f"held\nscript\nroot\nroot\nalice\n{wanted}job\nraw\nscript\n", said
        world.played(ROLLBACK, *words, user=user)
        for machine, was in zip(world.machines, before):
            same(was, machine.manifest(), f"{machine.name} is as before {user}'s play")
    status, said = world.play(EACH_WAY, "-e", "ansible_become_password=wrong", user="opp")
    assert status != 0 and "Incorrect sudo password" in said, said
    for text in (EACH_WAY, ROLLBACK):
        status, said = world.play(text, user="opp")
        assert status != 0 and "sudo runs recant on this host, and asks for a password: give it by -K" in said, said


# The variables that the role has for Red Hat's family alone.
ROLE = SITE.replace("  gather_facts: false\n", """  vars:
    chrony_role_action: config
    chrony_manage_service: false
    chrony_config_file_location: /etc/chrony.conf
    chrony_driftfile_path: /var/lib/chrony/drift
    chrony_logdir_path: /var/log/chrony
    chrony_makestep: 1.0 3
    chrony_rtc_settings: [rtcsync]
  roles:
    - chrony
""")


def equal_to_the_bare_play(world):
    """A play with a public role on three machines: untouched while it is held, reported, committed on all, rolled back, and then run bare."""
    world.ansible.add("ansible-role-chrony==1.3.0")
    before = world.manifests()
    world.played(ROLE)
    for machine, was in zip(world.machines, before):
        same(was, machine.manifest(), f"{machine.name} is untouched while it is held")
    world.played(role("report"))
    with open(os.path.join(world.directory, "recant-report.md"), encoding="utf-8") as file:
        report = file.read()
    assert "- created `/etc/chrony.conf`: all hosts\n" in report and "- created `/srv/name`: web3\n" in report, report
    world.played(COMMIT_ALL)
    committed = world.manifests()
    world.played(ROLLBACK)
    for machine, was in zip(world.machines, before):
        same(was, machine.manifest(), f"{machine.name} is rolled back")
    world.played(ROLE, held=False)
    for machine, held in zip(world.machines, committed):
        same(without_times(machine.manifest()), without_times(held), f"{machine.name}: bare, and held")


NOT_HELD = {
    "delegated": ("ansible.builtin.file: {path: marker, state: touch, mode: '0644'}\n      delegate_to: localhost", "it is for the controller"),
    "an action here": ("local_action: {module: ansible.builtin.file, path: marker, state: touch, mode: '0644'}", "it is for the controller"),
    "a reboot": ("ansible.builtin.reboot:", "recant_leave_out=reboot"),
    "a service": ("ansible.builtin.systemd_service: {name: ssh, state: restarted}", "recant_leave_out=services"),
    "a copy past it": ("synchronize:", "recant_leave_out=synchronize"),
}


# As ansible.posix has it: asks how the connection goes, and copies by another one.
SYNCHRONIZE = """
from ansible.plugins.action import ActionBase
class ActionModule(ActionBase):
    def run(self, tmp=None, task_vars=None):
        assert self._connection.transport == 'ssh'
        open('copied', 'w').close()
        return {'changed': True}
"""


def what_is_not_held_is_named(world):
    """A task that would bypass the session fails by name, and is left out where a variable says so."""
    os.mkdir(os.path.join(world.directory, "library"))
    os.mkdir(os.path.join(world.directory, "action_plugins"))
    world.write("library/synchronize.py", "#!/usr/bin/python\n")
    world.write("action_plugins/synchronize.py", SYNCHRONIZE)
    marker = os.path.join(world.directory, "marker")
    world.machines[0].sh("mkdir -p /run/systemd/system")
    for name, (task, why) in NOT_HELD.items():
        text = book(f"  tasks:\n    - name: {name}\n      {task}\n").replace("path: marker", f"path: {marker}")
        status, said = world.play(text)
        assert status != 0 and f"{name}: " in said and why in said, said
        assert not os.path.exists(marker), said
        if "leave_out" in why:
            said = world.played(text, recant_leave_out=why.partition("=")[2])
            assert not os.path.exists(os.path.join(world.directory, "copied")), said
            assert ("ok=1" if "services" in why else "skipped=1") in said, said
        else:
            world.played(text, recant_controller="real")
            os.remove(marker)
    text = book("  tasks:\n    - ansible.builtin.file: {path: /srv/real, state: touch, mode: '0644'}\n      vars: {recant_held: false}\n")
    world.played(text)
    world.machines[0].sh("rm /srv/real")
    for machine in world.machines:
        machine.sh("rm /usr/local/bin/recant || true; hash -r")
    status, said = world.play(SITE)
    assert status != 0 and "recant is not on this host; recant.hold.install" in said and "recant_program=" in said, said


def the_actions(world):
    """Each tells what it would do, does it once, and has nothing to do then."""
    recant = world.recant
    for machine in world.machines:
        machine.sh("rm /usr/local/bin/recant")
    install = book(f"  tasks:\n    - recant.hold.install: {{src: {recant}}}\n")
    world.changed(install, 1, 0)
    world.played(SITE)
    for verb in ("commit", "rollback", "redo", "rollback", "discard"):
        world.changed(book(f"  tasks:\n    - recant.hold.{verb}:\n"), 1, 0)
    # What was discarded is no ground for the next play.
    world.played(book("  tasks:\n    - shell: test ! -e /etc/motd || ! grep held /etc/motd\n"))
    world.played(SITE)
    said = world.played(book("  tasks:\n    - recant.hold.session:\n      register: held\n    - debug: {var: held.dangerous}\n"), "--diff")
    assert said.count("+192.0.2.7 db") == len(world.machines) and "/etc/passwd" in said, said
    for words in ([], ["--diff"]):
        status, said = world.call("ansible", "all", "-i", "hosts", "-u", "root", "-e", "ansible_connection=recant.hold.ssh", *words,
                                  "-m", "recant.hold.session", "-a", "paths=/etc/hosts")
        assert status == 0 and said.count("+192.0.2.7 db") == (len(world.machines) if words else 0), said
    for machine in world.machines:
        machine.sh("echo mine >> /etc/hosts")
    status, said = world.play(book("  tasks:\n    - recant.hold.commit:\n      ignore_errors: true\n      register: commit\n"
                                   "    - assert: {that: \"commit.conflicts | map(attribute='path') | list == ['/etc/hosts'] and commit.status == 3\"}\n"
                                   "    - assert: {that: \"commit.msg.count('/etc/hosts') == 1\"}\n"))
    assert status == 0, said
    world.changed(book("  tasks:\n    - recant.hold.discard:\n"), 1, 0)
    # A part that the session went on from, as a later one was merged, is named with what commits it again.
    world.played(SITE)
    world.changed(book("  tasks:\n    - recant.hold.commit: {paths: [/etc/motd]}\n"), 1, 0)
    for machine in world.machines:
        machine.sh("sed -i '1i # mine' /etc/hosts")
    for task in ("commit: {paths: [/etc/hosts], merge: true}", "commit: {}"):
        world.changed(book(f"  tasks:\n    - recant.hold.{task}\n"), 1, 0)
    said = world.played(book("  tasks:\n    - recant.hold.rollback:\n"))
    assert "the session goes on without" in said and "commits it again" in said, said
    world.changed(book("  tasks:\n    - recant.hold.discard:\n"), 1, 0)
    world.changed(book("  tasks:\n    - recant.hold.snapshot: {path: /srv}\n"), 1, 0)
    for machine in world.machines:
        machine.sh("touch /srv/new")
    world.changed(book("  tasks:\n    - recant.hold.snapshot: {path: /srv, state: restored}\n"), 1, 0)
    for machine in world.machines:
        machine.sh("test ! -e /srv/new")


def a_machine_is_lost(world):
    """One dies before the commit, one between commit and confirmation: none is committed alone, and each is named."""
    before = world.manifests()
    world.played(SITE)
    lost = world.machines[1]
    lost.stop()
    status, said = world.play(COMMIT_ALL)
    assert status != 0 and "web2: the host is lost" in said, said
    same(before[0], world.machines[0].manifest(), "nothing is committed where another is lost")
    lost.go_on()
    # recant is killed in the commit of one: the next call there undoes it.
    lost.sh(KILLED.replace("PATTERN", "confirm-within"))
    status, said = world.play(COMMIT_ALL)
    assert status != 0 and "web2: " in said and "rolled back on all hosts that answer" in said, said
    same(before[0], world.machines[0].manifest(), "taken back where it was committed")
    lost.sh(MENDED)
    world.played(COMMIT_ALL)
    assert [machine.sh("cat /etc/motd") for machine in world.machines] == ["held\nhandled\n"] * 2


# Runs recant, and cuts the machine off after a commit: nobody comes in, and the connection ends.
CUT_OFF = """#!/bin/sh
/usr/local/bin/real "$@"
status=$?
case "$*" in *confirm-within*)
    kill -STOP LISTENER
    above=$PPID
    until [ "$(cat /proc/$above/comm)" = sshd ]; do above=$(cut -d' ' -f4 /proc/$above/stat); done
    kill -9 $above ;;
esac
exit $status
"""


def a_machine_is_lost_after_its_commit(world):
    """The others are rolled back, and it takes its commit back by itself; the playbook once more commits on all."""
    before = world.manifests()
    world.played(SITE)
    lost = world.machines[1]
    lost.sh("mv /usr/local/bin/recant /usr/local/bin/real; cat > /usr/local/bin/recant <<'E'\n"
            + CUT_OFF.replace("LISTENER", str(lost.sshd.pid)) + "E\nchmod +x /usr/local/bin/recant")
    status, said = world.play(COMMIT_ALL.replace("commit_all\n", "commit_all\n      commit_all_within: 10s\n"))
    assert status != 0 and "web2: the host is lost" in said, said
    same(before[0], world.machines[0].manifest(), "web1 is rolled back")
    lost.stop()
    lost.sh("mv /usr/local/bin/real /usr/local/bin/recant")
    lost.until_none_is_committed()
    assert lost.sh("cat /etc/motd") != "held\nhandled\n", "it takes it back by itself"
    lost.go_on()
    world.played(COMMIT_ALL)
    assert [machine.sh("cat /etc/motd") for machine in world.machines] == ["held\nhandled\n"] * 2


def a_machine_is_lost_before_it_confirms(world):
    """The others are rolled back, though they had confirmed, and it takes its commit back; that is said, with what makes sure."""
    before = world.manifests()
    world.played(SITE)
    lost = world.machines[1]
    lost.sh("mv /usr/local/bin/recant /usr/local/bin/real; cat > /usr/local/bin/recant <<'E'\n"
            + CUT_OFF_FIRST.replace("LISTENER", str(lost.sshd.pid)) + "E\nchmod +x /usr/local/bin/recant")
    status, said = world.play(COMMIT_ALL.replace("commit_all\n", "commit_all\n      commit_all_within: 10s\n"))
    assert status != 0 and "rolled back on all hosts that answer: web2: the host is lost" in said, said
    assert "rolls back within 10s" in said and "-m recant.hold.rollback makes sure" in said, said
    same(before[0], world.machines[0].manifest(), "web1 is rolled back")
    lost.stop()
    lost.sh("mv /usr/local/bin/real /usr/local/bin/recant")
    lost.until_none_is_committed()
    lost.go_on()
    # What went back at its time is not let stay.
    world.played(book("  tasks:\n    - recant.hold.commit: {confirm_within: 1s}\n"))
    for machine in world.machines:
        machine.until_none_is_committed()
    status, said = world.play(book("  tasks:\n    - recant.hold.commit: {confirm: true}\n"))
    assert status != 0 and "fatal: [web2]" in said and "it was rolled back, as it was not confirmed in time" in said, said
    world.played(COMMIT_ALL)
    assert [machine.sh("cat /etc/motd") for machine in world.machines] == ["held\nhandled\n"] * 2


# Cuts the machine off before recant confirms.
CUT_OFF_FIRST = """#!/bin/sh
case "$*" in *"json confirm "*)
    kill -STOP LISTENER
    above=$PPID
    until [ "$(cat /proc/$above/comm)" = sshd ]; do above=$(cut -d' ' -f4 /proc/$above/stat); done
    kill -9 $above
    exit 1 ;;
esac
exec /usr/local/bin/real "$@"
"""

# Ends on web2 in one of these ways, behind a task that changed something, with one more behind it.
FAILS = """
- hosts: all
  gather_facts: false
  tasks:
    - name: first
      ansible.builtin.copy: {dest: /srv/first, content: "", mode: "0644"}
    - name: the end
      TASK
    - name: last
      ansible.builtin.command: "true"
      when: WHERE
"""
ON_2 = "\n      when: inventory_hostname == 'web2'"
FAILED = [
    ("ansible.builtin.command: 'false'" + ON_2, "the end: failed (1)"),
    ("ansible.builtin.shell: touch /srv/half; exit 3" + ON_2, "the end: failed (1)"),
    ("ansible.builtin.copy: {dest: /nowhere/at/all, src: hosts, mode: '0644'}" + ON_2, "the end: failed (1)"),
    ("ansible.builtin.command: '{{ item }}'\n      loop: ['false', 'true']" + ON_2, "the end: failed (1)"),
    ("ansible.builtin.raw: kill -9 $PPID; kill -9 $$" + ON_2, "the end: failed ("),
]
PASSED = [
    "ansible.builtin.command: 'false'\n      ignore_errors: true",
    "ansible.builtin.command: 'false'\n      failed_when: false",
    "ansible.builtin.shell: test -e /srv/twice || { touch /srv/twice; false; }\n      register: end\n      until: end is succeeded\n      retries: 2\n      delay: 0",
]


def a_play_that_failed_is_committed_nowhere(world):
    """Also where the task changed nothing, or its last command only tidied up; and a task that may fail is no failure."""
    discard = book("  tasks:\n    - recant.hold.discard:\n")
    for n, (task, why) in enumerate([*FAILED, FAILED[0]]):
        status, said = world.play(FAILS.replace("TASK", task).replace("WHERE", "true"), ansible_pipelining="true" if n % 2 else "false")
        assert status != 0, said
        status, said = world.play(role("report") + COMMIT_ALL)
        assert status != 0 and f"nothing was committed on any host: web2: {why}" in said, f"{task}\n{said}"
        with open(os.path.join(world.directory, "recant-report.md"), encoding="utf-8") as file:
            assert f"- web2: {why}" in file.read()
        world.machines[0].sh("test ! -e /srv/first")
        if n == 0:
            status, said = world.play(book("  tasks:\n    - recant.hold.commit:\n"), "--limit", "web2")
            assert status != 0 and why in said and "failed=true" in said, said
        world.played(discard)
    for task in PASSED:
        world.played(FAILS.replace("TASK", task).replace("WHERE", "false") + COMMIT_ALL.lstrip())
        world.played(ROLLBACK + discard)
    status, said = world.play(FAILS.replace("TASK", FAILED[1][0]).replace("WHERE", "true"))
    assert status != 0, said
    world.played(role("commit_all", commit_all_failed="true"))
    assert [machine.sh("ls /srv") for machine in world.machines] == ["first\n", "first\nhalf\n"]


def where_nothing_is_held(world):
    """A name that was never held is a failure; hosts that hold nothing are named; what was discarded is in no report."""
    world.played(SITE, "--limit", "web1")
    for words in ([], ["--check"]):
        status, said = world.play(COMMIT_ALL, *words, recant_session="ansibel")
        assert status != 0 and "fatal: [web2]: FAILED! => {\"changed\": false, \"msg\": \"nothing is held on any host in the session ansibel\"" in said, said
    said = world.played(COMMIT_ALL)
    assert "held on 1 of 2 hosts: not web2" in said, said
    world.played(ROLLBACK)
    world.played(role("report"))
    report = os.path.join(world.directory, "recant-report.md")
    with open(report, encoding="utf-8") as file:
        assert "`/etc/motd`" in file.read(), "what was rolled back would change"
    world.played(book("  tasks:\n    - recant.hold.discard:\n"))
    world.played(role("report"))
    with open(report, encoding="utf-8") as file:
        text = file.read()
    assert "/etc/motd" not in text and "| web1 | discarded |" in text and "| web2 | nothing is held |" in text, text


SERVICE = """
- hosts: all
  tasks:
    - name: its settings
      ansible.builtin.copy: {dest: /etc/a.conf, content: "held\\n", mode: "0644"}
      notify: restart it
    - name: what manages services
      ansible.builtin.assert: {that: ansible_facts.service_mgr == 'systemd'}
  handlers:
    - name: restart it
      ansible.builtin.service: {name: ssh, state: restarted}
"""


# In place of systemd's, for what is done by hand.
SYSTEMCTL = """#!/bin/sh
echo "$*" >> /srv/calls
[ "$1" != show ] || printf 'LoadState=loaded\\nActiveState=active\\n'
"""


def what_was_left_out_is_reported(world):
    """A held play sees what the machine has as pid 1; a service that is left out is in the report, and started by hand."""
    for machine in world.machines:
        machine.sh("mkdir -p /run/systemd/system; echo systemd > /srv/comm; mount --bind /srv/comm /proc/1/comm")
    status, said = world.play(SERVICE)
    assert status != 0 and "restart it: it starts, stops or reloads a service" in said, said
    # The handler was notified then: it comes again only if what notified it does.
    world.played(book("  tasks:\n    - recant.hold.discard:\n"))
    said = world.played(SERVICE, recant_leave_out="services")
    assert "systemd is offline" in said, said
    world.played(book("  tasks:\n    - ansible.builtin.reboot:\n      name: anew\n"), recant_leave_out="reboot")
    world.played(role("report") + COMMIT_ALL)
    with open(os.path.join(world.directory, "recant-report.md"), encoding="utf-8") as file:
        report = file.read()
    assert "## Left out" in report and "- restarted ssh (restart it): all hosts\n" in report and "- reboot (anew): all hosts\n" in report, report
    assert "changed=0" in world.played(SERVICE, held=False), "no later play notifies it"
    for machine in world.machines:
        machine.sh("cat > /usr/local/bin/systemctl <<'E'\n" + SYSTEMCTL + "E\nchmod +x /usr/local/bin/systemctl")
    status, said = world.call("ansible", "all", "-i", "hosts", "-u", "root", "-b", "-m", "service", "-a", "name=ssh state=restarted")
    assert status == 0 and [machine.sh("grep restart /srv/calls") for machine in world.machines] == ["restart ssh\n"] * 2, said


def a_merge_is_foretold(world):
    """With --check, where all that is held would be merged."""
    world.machines[0].sh("seq 9 > /srv/nine")
    world.played(book("  tasks:\n    - ansible.builtin.lineinfile: {path: /srv/nine, regexp: '^2$', line: two}\n"))
    session = world.machines[0].sh("recant list --json")
    for path in ("/root/.ansible", "/root"):
        world.play(book(f"  tasks:\n    - recant.hold.discard: {{paths: [{path}]}}\n"))
    world.machines[0].sh("sed -i 's/^8$/eight/' /srv/nine")
    said = world.played(book("  tasks:\n    - recant.hold.commit: {merge: true}\n      register: end\n    - debug: {var: end.paths}\n"), "--check")
    assert "changed=1" in said and "/srv/nine" in said, session + said
    assert world.machines[0].sh("grep -c two /srv/nine || true") == "0\n"


# In place of recant: killed before it does what fits.
KILLED = """mv /usr/local/bin/recant /usr/local/bin/real
printf '#!/bin/sh\\ncase "$*" in *PATTERN*) kill -9 $$ ;; esac\\nexec /usr/local/bin/real "$@"\\n' > /usr/local/bin/recant
chmod +x /usr/local/bin/recant"""
MENDED = "mv /usr/local/bin/real /usr/local/bin/recant"


def recant_is_killed_in_the_rescue(world):
    """One machine does not commit, and another one cannot roll back: it takes its commit back by itself."""
    before = world.manifests()
    world.played(SITE)
    world.machines[0].sh(KILLED.replace("PATTERN", "rollback"))
    world.machines[1].sh(KILLED.replace("PATTERN", "confirm-within"))
    status, said = world.play(COMMIT_ALL.replace("commit_all\n", "commit_all\n      commit_all_within: 5s\n"))
    assert status != 0 and "fatal: [web1]" in said and "web2: " in said, said
    for machine in world.machines:
        machine.sh(MENDED)
    world.machines[0].until_none_is_committed()
    for machine, was in zip(world.machines, before):
        same([line for line in was if "usr/local/bin" not in line], [line for line in machine.manifest() if "usr/local/bin" not in line], machine.name)
    world.played(COMMIT_ALL)
    assert [machine.sh("cat /etc/motd") for machine in world.machines] == ["held\nhandled\n"] * 2


def a_disk_is_full(world):
    """The commit on one machine has no room: none is committed, and that one is named."""
    before = world.manifests()
    world.played(SITE)
    full = world.machines[1]
    full.sh("mount -o remount,size=512M /; head -c 1G /dev/zero > /srv/fill 2> /dev/null || true")
    status, said = world.play(COMMIT_ALL)
    assert status != 0 and "web2: " in said, said
    same(before[0], world.machines[0].manifest(), "nothing stays committed where there is room")
    full.sh("rm /srv/fill")
    world.played(COMMIT_ALL)
    assert [machine.sh("cat /etc/motd") for machine in world.machines] == ["held\nhandled\n"] * 2


def one_after_the_other(world):
    """rollout ends at the first machine that is not well, and takes it back there."""
    before = world.manifests()
    world.played(SITE)
    world.machines[1].sh("touch /tmp/sick")
    rollout = role("rollout", rollout_check="test ! -e /tmp/sick", rollout_retries=1, rollout_delay=0)
    rollout = rollout.replace("  gather_facts", "  serial: 1\n  any_errors_fatal: true\n  gather_facts")
    status, said = world.play(rollout)
    assert status != 0 and "web2: " in said and "the commit is rolled back" in said, said
    assert world.machines[0].sh("cat /etc/motd") == "held\nhandled\n"
    same([line for line in before[1] if b"/tmp" not in line.encode()], [line for line in world.machines[1].manifest() if "/tmp" not in line], "web2")


def on_the_controller(world):
    """recant.hold.local holds a play here, and so does a task that another play has for the controller."""
    here = os.path.join(world.directory, "here")
    os.mkdir(here)
    how = {"recant_program": world.recant, "recant_store": os.path.join(world.directory, "store")}
    recant = [world.recant, "--store", how["recant_store"]]
    task = f"  tasks:\n    - ansible.builtin.copy: {{dest: {here}/file, content: mine, mode: '0644'}}\n"
    world.played(book(task), "-i", "localhost,", "--limit", "localhost", ansible_connection="recant.hold.local", held=False, **how)
    assert os.listdir(here) == []
    world.played(book(task + "      delegate_to: localhost\n"), recant_controller="held", recant_session="delegated", **how)
    assert os.listdir(here) == []
    for session in ("ansible", "delegated"):
        assert os.path.join(here, "file") in run(*recant, "diff", "--name-only", session)
    world.played(book("  tasks:\n    - recant.hold.commit:\n"), "-i", "localhost,", "--limit", "localhost",
                 ansible_connection="recant.hold.local", held=False, **how)
    assert os.listdir(here) == ["file"]


PAGE = os.path.join(TOP, "docs", "howto", "fleet.md")


def the_page_of_a_fleet(world):
    """What the page of a fleet shows of Ansible, as a reader would do it."""
    with open(PAGE, encoding="utf-8") as file:
        page = file.read()
    blocks = re.findall(r"^```(yaml|sh)\n(.*?)^```", page, re.M | re.S)
    shown = re.search(r"^```text\n(\| web1.*?)^```", page, re.M | re.S).group(1)
    for kind, text in blocks:
        if kind == "yaml":
            world.write(text.split()[1], text)
    [archive] = os.listdir(os.path.join(world.directory, "built"))
    shutil.copy(os.path.join(world.directory, "built", archive), os.path.join(world.directory, "recant-hold-0.1.0.tar.gz"))
    before = world.manifests()
    before_motd = world.machines[0].sh("cat /etc/motd")
    lines = [line for kind, text in blocks if kind == "sh" for line in text.splitlines()]
    seen: list = []
    for line in lines:
        words = line.replace("/usr/local/bin/recant", world.recant).split()
        status, said = world.call(words[0], *words[1:])
        assert status == 0, f"{line}\n{said}"
        if "recant.hold.report" in line:
            with open(os.path.join(world.directory, "recant-report.md"), encoding="utf-8") as file:
                found = file.read()
            assert shown in found, found
        seen.append({machine.sh("cat /etc/motd; test ! -e /etc/site.key || echo with a key") for machine in world.machines})
    there = {before_motd}
    assert seen == [there] * 4 + [{"Welcome\n"}, {"Welcome\nwith a key\n"}, there, there], (lines, seen)
    with open(os.path.join(world.directory, "recant-report.md"), encoding="utf-8") as file:
        report = file.read()
    assert "`/etc/site.key`: web1\n" in report and "`/etc/site.key`: web2\n" in report, "each has a key of its own: " + report
    for machine, was in zip(world.machines, before):
        same(was, machine.manifest(), f"{machine.name} is as before")


def its_linters(world):
    """Ansible's own say nothing against the collection."""
    world.ansible.add("ansible-lint", dependencies=True)
    hold = os.path.join(world.directory, "ansible_collections", "recant", "hold")
    shutil.copytree(COLLECTION, hold)
    world.ansible.own_pip(world.directory)
    python = f"{sys.version_info.major}.{sys.version_info.minor}"
    for words in (["ansible-lint", "--offline", "--profile", "production"], ["ansible-test", "sanity", "--python", python]):
        status, said = world.call(*words, within=hold, HOME=world.directory, PATH=f"{world.ansible.programs}:{os.environ['PATH']}")
        assert status == 0, said


SHORT = [(on_all_or_on_none, 2)]
LONG = [
    (its_linters, 0),
    (each_way_to_become, 2),
    (equal_to_the_bare_play, 3),
    (what_is_not_held_is_named, 1),
    (the_actions, 2),
    (a_machine_is_lost, 2),
    (a_machine_is_lost_after_its_commit, 2),
    (a_machine_is_lost_before_it_confirms, 2),
    (a_play_that_failed_is_committed_nowhere, 2),
    (where_nothing_is_held, 2),
    (what_was_left_out_is_reported, 2),
    (a_merge_is_foretold, 1),
    (recant_is_killed_in_the_rescue, 2),
    (a_disk_is_full, 2),
    (one_after_the_other, 2),
    (on_the_controller, 1),
    (the_page_of_a_fleet, 2),
]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--recant", required=True)
    parser.add_argument("--core", default=CORE, help="what pip is asked for")
    parser.add_argument("--long", action="store_true", help="the scenes that take long, alone")
    parser.add_argument("words", nargs="*")
    args = parser.parse_args()
    recant = os.path.abspath(args.recant)
    counts = {"passed": 0, "failed": 0, "skipped": 0}
    for scene, machines in LONG if args.long else SHORT:
        if args.words and not any(word in scene.__name__ for word in args.words):
            continue
        begun = time.monotonic()
        result = play(scene, machines, recant, args.core)
        counts[result] += 1
        print(f"{result}: {scene.__name__} ({time.monotonic() - begun:.1f} s)", flush=True)
    print(", ".join(f"{count} {result}" for result, count in counts.items()))
    return 1 if counts["failed"] else 0


def play(scene, machines, recant, core):
    world = None
    try:
        missing = [name for name in ("unshare", "nsenter", "sudo", "ssh", "/usr/sbin/sshd") if not shutil.which(name)]
        if os.geteuid() != 0 or missing:
            raise Skip("machines with roots of their own need root" + "".join(f", and {name}" for name in missing))
        environment = os.path.join(os.path.dirname(recant), "ansible-" + re.sub("[^0-9.]+", "-", core))
        world = World(Ansible(environment, core), recant, machines)
        scene(world)
        return "passed"
    except Skip as why:
        print(f"skipped: Ansible's collection: {why}")
        return "skipped"
    except Exception:
        traceback.print_exc()
        return "failed"
    finally:
        if world:
            world.end()


if __name__ == "__main__":
    sys.exit(main())
