"""Other machines: recant -H against ssh alone, over one shared connection, to an sshd of the bench's own on a loopback port."""

import os
import pwd
import shutil
import socket
import subprocess
import time

from measuring import clock, do, median_ms, say, spread

HOSTS = 50


class Machine:
    """An sshd with a home of its own, and the settings of an ssh that knows it by one name or by many."""

    def __init__(self, recant, top):
        self.top, self.home = top, f"{top}/home"
        os.makedirs(self.home)
        for key in ("user", "host"):
            do("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", f"{top}/{key}")
        shutil.copy(f"{top}/user.pub", f"{top}/authorized")
        if os.geteuid() == 0:
            os.makedirs("/run/sshd", exist_ok=True)
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        self.write("login", f'#!/bin/sh\nHOME={self.home}; cd {self.home}; export HOME; exec sh -c "$SSH_ORIGINAL_COMMAND"\n')
        os.chmod(f"{top}/login", 0o755)
        self.write("sshd", f"ListenAddress 127.0.0.1:{self.port}\nHostKey {top}/host\nAuthorizedKeysFile {top}/authorized\nStrictModes no\n"
                   "UsePAM no\nPidFile none\nPermitRootLogin yes\nMaxStartups 500\nMaxSessions 200\nUseDNS no\n"
                   f"ForceCommand {top}/login\n")
        user = pwd.getpwuid(os.geteuid()).pw_name
        shared = f"ControlMaster auto\n  ControlPath {top}/%n\n  ControlPersist 600\n"
        self.write("ssh", f"Host *\n  HostName 127.0.0.1\n  Port {self.port}\n  User {user}\n  IdentityFile {top}/user\n  IdentitiesOnly yes\n"
                   f"  IdentityAgent none\n  UserKnownHostsFile {top}/known\n  StrictHostKeyChecking no\n  LogLevel ERROR\n  BatchMode yes\n  {shared}")
        self.sshd = subprocess.Popen([shutil.which("sshd") or "/usr/sbin/sshd", "-D", "-f", f"{top}/sshd"])
        end = time.time() + 20
        while socket.socket().connect_ex(("127.0.0.1", self.port)):
            assert time.time() < end, "sshd does not start"
            time.sleep(0.01)
        version = do(recant, "--version").split()[-1]
        place = f"{self.home}/.cache/recant/bin/{version}"
        os.makedirs(place)
        os.symlink(recant, f"{place}/recant")
        self.env = dict(os.environ, HOME=f"{top}/near", XDG_CONFIG_HOME=f"{top}/near")
        os.makedirs(f"{top}/near/recant")
        self.write("near/recant/config.toml", f"[remote]\nssh = 'ssh -F {top}/ssh'\n")

    def write(self, name, text):
        with open(f"{self.top}/{name}", "w") as file:
            file.write(text)

    def end(self):
        for name in os.listdir(self.top):
            subprocess.run(["ssh", "-F", f"{self.top}/ssh", "-O", "exit", name], capture_output=True)
        self.sshd.terminate()
        self.sshd.wait()
        shutil.rmtree(self.top)


def measure(recant, folder, rounds):
    """Yields key and value, as bench.py's parts do."""
    if not shutil.which("ssh") or not (shutil.which("sshd") or os.path.exists("/usr/sbin/sshd")):
        print("\nskipped: other machines: openssh-server is not installed")
        return
    say("  other machines")
    machine = Machine(recant, f"{folder}/far")
    try:
        yield from compare(recant, machine, rounds)
    finally:
        machine.end()


def compare(recant, machine, rounds):
    ssh = ["ssh", "-F", f"{machine.top}/ssh"]
    far = lambda *words: clock(recant, "-H", *words, env=machine.env)
    do(*ssh, "h1", "true")
    bare, status = [], []
    for _ in range(max(15, rounds)):
        bare.append(clock(*ssh, "h1", "true"))
        status.append(far("h1", "status"))
    yield ("remote", "ms", "ssh host true"), median_ms(bare)
    yield ("remote", "ms", "recant -H host status"), median_ms(status)
    aim = f"at most {1.3 * sorted(bare)[len(bare) // 2] * 1000 + 10:.1f}"
    yield ("remote", "other", "recant -H host status, ms"), f"{median_ms(status)}, aim {aim}"
    yield ("remote", "ratio", "recant -H host status / ssh host true"), spread([a / b for a, b in zip(status, bare)], None)
    # 50 machines that are one: each has a connection of its own.
    names = ",".join(f"h{n}" for n in range(HOSTS))
    for n in range(HOSTS):
        do(*ssh, f"h{n}", "true")
    one, many = [], []
    for _ in range(rounds):
        one.append(far("h1", "list"))
        many.append(far(names, "--forks", "10", "list"))
    yield ("remote", "ms", f"{HOSTS} hosts, --forks 10"), median_ms(many)
    yield ("remote", "ratio", f"{HOSTS} hosts with --forks 10 / 5 x one host"), spread([a / (5 * b) for a, b in zip(many, one)], 1.3)
    tree(recant, machine)
    here, there = [], []
    env = dict(machine.env, HOME=machine.home, XDG_CONFIG_HOME=f"{machine.home}/none")
    for n in range(rounds):
        session = stage(recant, machine, env, f"there{n}")
        there.append(far("h1", "commit", session))
        do(recant, "rollback", session, env=env)
        session = stage(recant, machine, env, f"here{n}")
        here.append(clock(recant, "commit", session, env=env))
        do(recant, "rollback", session, env=env)
    trip = sorted(bare)[len(bare) // 2]
    yield ("remote", "ratio", "commit of 1,000 files there / (the same on that machine + ssh host true)"), spread(
        [a / (b + trip) for a, b in zip(there, here)], 1.1)


def tree(recant, machine):
    os.makedirs(f"{machine.home}/tree")
    for n in range(1000):
        with open(f"{machine.home}/tree/f{n}", "wb") as file:
            file.write(os.urandom(4096))


def stage(recant, machine, env, name):
    """A session that replaces every file of the tree."""
    script = "for f in tree/f*; do head -c 4096 /dev/urandom > $f.new; mv $f.new $f; done"
    subprocess.run([recant, "run", "-q", "-n", name, "--", "sh", "-c", script], env=env, cwd=machine.home, check=True)
    return name
