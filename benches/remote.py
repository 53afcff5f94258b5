"""Another machine: recant -H against ssh alone, over one shared connection, to an sshd of the bench's own on a loopback port.

Here both sides are one machine, and share its processors.
"""

import os
import pwd
import resource
import shutil
import socket
import subprocess
import time

from measuring import clock, do, median_ms, say, spread

FILES = 10_000


class Machine:
    """An sshd with a home of its own, and the settings of an ssh that knows it."""

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
        # HOME: or bash, begun by sshd, reads the real one's ~/.bashrc first.
        self.write("sshd", f"ListenAddress 127.0.0.1:{self.port}\nHostKey {top}/host\nAuthorizedKeysFile {top}/authorized\nStrictModes no\n"
                   "UsePAM no\nPidFile none\nPermitRootLogin yes\nUseDNS no\n"
                   f"ForceCommand {top}/login\nSetEnv HOME={self.home}\n")
        user = pwd.getpwuid(os.geteuid()).pw_name
        shared = f"ControlMaster auto\n  ControlPath {top}/%n\n  ControlPersist 600\n"
        self.write("ssh", f"Host *\n  HostName 127.0.0.1\n  Port {self.port}\n  User {user}\n  IdentityFile {top}/user\n  IdentitiesOnly yes\n"
                   f"  IdentityAgent none\n  UserKnownHostsFile {top}/known\n  StrictHostKeyChecking no\n  LogLevel ERROR\n  BatchMode yes\n  {shared}")
        self.start()
        version = do(recant, "--version").split()[-1]
        place = f"{self.home}/.local/lib/recant/bin/{version}"
        os.makedirs(place)
        os.symlink(recant, f"{place}/recant")
        self.env = dict(os.environ, HOME=f"{top}/near", XDG_CONFIG_HOME=f"{top}/near")
        os.makedirs(f"{top}/near/recant")
        self.write("near/recant/config.toml", f"[remote]\nssh = 'ssh -F {top}/ssh'\n")

    def write(self, name, text):
        with open(f"{self.top}/{name}", "w") as file:
            file.write(text)

    def start(self):
        self.sshd = subprocess.Popen([shutil.which("sshd") or "/usr/sbin/sshd", "-D", "-f", f"{self.top}/sshd"])
        end = time.time() + 20
        while socket.socket().connect_ex(("127.0.0.1", self.port)):
            assert time.time() < end, "sshd does not start"
            time.sleep(0.01)

    def stop(self):
        """Whoever shares a connection goes first, so that sshd has waited for all that it started."""
        for name in os.listdir(self.top):
            subprocess.run(["ssh", "-F", f"{self.top}/ssh", "-O", "exit", name], capture_output=True)
        self.sshd.terminate()
        self.sshd.wait()

    def processor_ms(self, *command):
        """Milliseconds of the processors that a command takes, with all that sshd starts for it: median of three times twenty."""
        self.stop()
        taken = sorted(self.spell(command, 20) - self.spell(command, 0) for _ in range(3))
        self.start()
        return taken[1] / 20 * 1000

    def spell(self, command, times):
        """Seconds of the processors from the start of an sshd to its end."""
        before = spent()
        self.start()
        for _ in range(times):
            do(*command, env=self.env)
        self.stop()
        return spent() - before

    def end(self):
        self.stop()
        shutil.rmtree(self.top)


def spent():
    """Seconds of the processors that all took that this process has waited for."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def measure(recant, directory, rounds):
    """Yields key and value, as bench.py's parts do."""
    if not shutil.which("ssh") or not (shutil.which("sshd") or os.path.exists("/usr/sbin/sshd")):
        print("\nskipped: another machine: openssh-server is not installed")
        return
    say("  another machine")
    machine = Machine(recant, f"{directory}/far")
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
    # What the processors have to do, whoever waits for whom.
    fresh = machine.processor_ms(*ssh, "-o", "ControlMaster=no", "-o", "ControlPath=none", "h1", "true")
    shared = machine.processor_ms(*ssh, "h1", "true")
    verb = machine.processor_ms(recant, "-H", "h1", "list")
    yield ("remote", "ms", "processors for ssh host true, a connection of its own"), f"{fresh:.1f}"
    yield ("remote", "ms", "processors for ssh host true, shared connection"), f"{shared:.1f}"
    yield ("remote", "ms", "processors for recant -H host list, shared connection"), f"{verb:.1f}"
    yield from moved(recant, machine, rounds)
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


def moved(recant, machine, rounds):
    """10,000 small files to another machine: a session's export and import, and tar, which is told to be durable as an import is."""
    near = f"{machine.top}/source"
    os.makedirs(near)
    env = dict(machine.env, RECANT_STORE=f"{machine.top}/near-store")
    for n in range(FILES):
        if n % 100 == 0:
            os.makedirs(f"{near}/d{n // 100}")
        with open(f"{near}/d{n // 100}/f{n}", "wb") as file:
            file.write(os.urandom(1024 + n % 3072))
    command = [recant, "run", "-q", "-n", "moved", "--", "cp", "-r", near, f"{machine.top}/copy"]
    subprocess.run(command, env=env, check=True)
    ssh = f"ssh -F {machine.top}/ssh h1"
    by_recant, by_tar, by_tar_durable = [], [], []
    for n in range(rounds):
        by_recant.append(clock("sh", "-c", f"{recant} session export moved | {recant} -H h1 session import", env=env))
        do(recant, "-H", "h1", "prune", "--sessions", "moved", "-y", env=env)
        by_tar.append(clock("sh", "-c", f"tar -C {near} -cf - . | {ssh} 'mkdir to && tar -C to -xf -'"))
        shutil.rmtree(f"{machine.home}/to")
        by_tar_durable.append(clock("sh", "-c", f"tar -C {near} -cf - . | {ssh} 'mkdir to && tar -C to -xf - && sync -f to'"))
        shutil.rmtree(f"{machine.home}/to")
    files = f"{FILES:,} small files"
    yield ("remote", "ms", f"export and import of {files}"), median_ms(by_recant)
    yield ("remote", "ratio", f"export | import of {files} / tar | ssh tar, sync -f"), spread([a / b for a, b in zip(by_recant, by_tar_durable)], 1.2)
    yield ("remote", "ratio", f"export | import of {files} / tar | ssh tar, nothing synced"), spread([a / b for a, b in zip(by_recant, by_tar)], None)


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
