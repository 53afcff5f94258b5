"""Plays a person at a terminal who uses programs in a run. Each scene prints its name when it came out as bare.

Takes the binary, and whether the person is root. A program that is not installed is said as `skipped: …`.
"""
import os, pwd, re, shutil, signal, subprocess, sys, tempfile, time

from terminal import Terminal, content

recant, root = sys.argv[1], sys.argv[2] == "Root"
# An account that nobody logs in to has a shell that ends at once; tmux would start its windows in it, bare too.
os.environ["SHELL"] = "/bin/sh"
known = any(entry.pw_uid == os.getuid() for entry in pwd.getpwall())


def run(*words):
    return Terminal(recant, "run", "--", *words)


def a_shell_with_job_control():
    t = run("bash", "--norc", "-i")
    t.type("PS1='> '; echo rea''dy\n"); t.read(rb"ready")
    shell = t.foreground()
    t.type("sleep 60\n"); t.until_runs("sleep")
    t.type("\x1a"); t.read(rb"Stopped")
    t.type("bg; jobs; echo list''ed\n"); t.read(rb"Running.*listed")
    t.until(shell); t.type("fg\n"); t.until_runs("sleep")
    t.type("\x03"); t.until(shell)
    t.type("echo status=$?\n"); t.read(rb"status=130")
    t.type("(exit 7) | cat; echo ${PIPESTATUS[0]}; tty; echo held > by-shell; exit 5\n"); t.read(rb"7\r\n/dev/pts/")
    t.end(5)
    assert not os.path.exists("by-shell")


def a_job_of_a_shell():
    t = Terminal("bash", "--norc", "-i")
    t.type("PS1='> '; echo rea''dy\n"); t.read(rb"ready")
    t.type(f"{recant} run -- sh -c 'echo star''ted; exec sleep 50'; echo status=$?\n"); t.read(rb"started")
    t.type("\x03"); t.read(rb"status=130")
    t.type(f"{recant} run -- sh -c 'kill -STOP $$; echo wo''ke'\n"); t.read(rb"Stopped")
    t.type("fg\n"); t.read(rb"woke")
    t.type(f"{recant} run -- sh -c 'echo star''ted; sleep 1; echo do''ne'\n"); t.read(rb"started")
    t.type("\x1a"); t.read(rb"Stopped"); t.type("fg\n"); t.read(rb"done")
    t.type("exit\n"); t.end()


def one_fg_after_ctrl_z_at_any_moment():
    t = Terminal("bash", "--norc", "-i")
    t.type("PS1='> '; echo rea''dy\n"); t.read(rb"ready")
    for n in range(24):
        t.type(f"{recant} run -q -- sh -c 'echo star''ted; exec sleep 0.5'; echo status{n}=$?\n"); t.read(rb"started")
        time.sleep(0.002 * (n % 12)); t.type("\x1a"); t.read(rb"Stopped"); t.read(rb"> ")
        t.type(f"fg; echo do''ne{n}\n"); found = t.read(rb"done%d|Stopped" % n)
        assert found.group().startswith(b"done"), f"round {n}: stopped again by fg"
    t.type("exit\n"); t.end()


def a_shell_that_leaves_a_job():
    t = Terminal("sh", "-c", f"trap : INT; {recant} run -- bash --norc -i; read answer; echo got=$answer")
    t.type("PS1='> '; echo rea''dy\n"); t.read(rb"ready")
    t.type("sleep 600 &\n"); t.type("exit\n"); t.read(rb"left running: sleep")
    t.type("\x03"); t.read(rb"(held in session|no file change)")
    t.type("yes\n"); t.read(rb"got=yes"); t.end()


def a_shell_that_gives_the_terminal_back():
    # dash gives it back to the group that it found as it began, and fails if that has no number.
    for words in ["shell", "run -- sh", "run -- sh -i"]:
        t = Terminal("sh", "-c", f"trap : INT; {recant} {words}; echo status=$?; read answer; echo got=$answer")
        t.type("PS1='> '; echo rea''dy\n"); t.read(rb"ready")
        shell = t.foreground()
        t.type("sleep 60\n"); t.until_runs("sleep")
        t.type("\x1a"); t.read(rb"(Stopped|Suspended)"); t.until(shell)
        t.type("fg\n"); t.until_runs("sleep")
        t.type("\x03"); t.until(shell)
        t.type("exit 5\n"); t.read(rb"status=5\r\n")
        assert b"Cannot set" not in t.seen
        t.type("yes\n"); t.read(rb"got=yes"); t.end()


def a_window_that_changes():
    program = "import os,signal,time;signal.signal(signal.SIGWINCH,lambda *a:print('now',*os.get_terminal_size(0)));print('at',*os.get_terminal_size(0));\nwhile 1:time.sleep(.1)"
    t = run("python3", "-uc", program)
    t.read(rb"at 90 30")
    t.resize(11, 44); t.read(rb"now 44 11")
    t.type("\x03"); t.end(130)


def less():
    with open("long", "w") as file:
        file.writelines(f"line {n}\n" for n in range(500))
    t = run("less", "long")
    t.read(rb"line 28\r\n")
    t.type("G"); t.read(rb"line 499"); t.type("q"); t.end()


def vim():
    with open("note", "w") as file:
        file.write("one\n")
    t = run("vim", "-u", "NONE", "-N", "note")
    t.read(rb"one")
    t.type("otwo\x1b:wq\r"); t.end()
    assert content("note") == "one\n"
    os.system(f"{recant} commit last > /dev/null 2>&1")
    assert content("note") == "one\ntwo\n"


def tmux():
    # A server of its own, which goes on as a child in the background until its last window is closed.
    t = run("tmux", "-f", "/dev/null", "-L", "recant-test", "new-session", "sh")
    t.read(rb"[$#] ")
    t.type("echo by tmux > by-tmux; echo wri''tten\n"); t.read(rb"written")
    t.type("exit\n"); t.end()
    assert not os.path.exists("by-tmux")
    os.system(f"{recant} commit last > /dev/null 2>&1")
    assert content("by-tmux") == "by tmux\n"


def ssh():
    # An agent outside, whose socket lies in a captured place: it stays real by itself.
    out = os.popen("ssh-agent -a $PWD/agent -s; ssh-keygen -q -t ed25519 -N '' -f key; SSH_AUTH_SOCK=$PWD/agent ssh-add key 2>&1").read()
    os.environ["SSH_AUTH_SOCK"] = os.path.abspath("agent")
    try:
        t = run("sh", "-c", "ssh-add -l; ssh -G localhost | grep -i ^user; ssh-keygen -q -t ed25519 -N '' -f held && echo made")
        t.read(rb"ED25519"); t.read(rb"user "); t.read(rb"made"); t.end()
    finally:
        del os.environ["SSH_AUTH_SOCK"]
        os.kill(int(re.search(r"AGENT_PID=(\d+)", out)[1]), signal.SIGTERM)


def sudo():
    t = run("sudo", "-n", "sh", "-c", "echo $SUDO_UID; id -un; echo by sudo > by-sudo")
    t.read(rb"0\r\nroot"); t.end()
    os.system(f"{recant} commit last > /dev/null 2>&1")
    assert content("by-sudo") == "by sudo\n"


def a_window_that_is_closed():
    # recant leads the session there: what the kernel says of the hangup, it says to it alone.
    # On the real tree the store may not lie in /tmp, where the command may write.
    other = tempfile.mkdtemp(dir="/var/tmp")
    os.mkdir(f"{other}/tree")
    for words in [("run", "--commit"), ("--store", f"{other}/store", "run", "--in", f"{other}/tree")]:
        t = Terminal(recant, *words, "--", "sh", "-c", "echo rea''dy; sleep 15; echo x > after-the-end")
        t.read(rb"ready")
        closed = time.time()
        os.close(t.fd)
        os.waitpid(t.pid, 0)
        assert time.time() - closed < 10 and not os.path.exists("after-the-end"), words
    shutil.rmtree(other)


def ctrl_c_before_the_command_is_there():
    t = Terminal(recant, "run", "--session", "early", "--commit", "--", "sh", "-c", "sleep 2; echo x > too-late")
    end = time.time() + 20
    while b"early" not in subprocess.run([recant, "list", "--all"], capture_output=True).stdout:
        assert time.time() < end, "no session was begun"
    # It is not started; or it is there by then, and is ended as bare.
    t.type("\x03"); how = t.read(rb"stopped\s+by\s+SIGINT.*not\s+started|exited\s+with\s+130")
    t.end(125 if b"stopped" in how[0] else 130)
    assert not os.path.exists("too-late")


def a_pid_namespace_that_the_terminal_s_session_is_not_in():
    # The person's group and session have no number there (docker exec -t, say); those of the command's have one.
    for script in ["true", "bash -ic 'true'", "exit 3"]:
        t = Terminal("unshare", "--pid", "--fork", "--mount-proc", "--kill-child", recant, "run", "--", "sh", "-c", script)
        t.end(3 if script == "exit 3" else 0)


def su_to_another_user():
    t = run("setpriv", "--reuid=12345", "--regid=12345", "--clear-groups", "id", "-u")
    t.read(rb"12345"); t.end()
    t = run("su", "-s", "/bin/sh", "nobody", "-c", "id -un; touch /etc/by-nobody")
    t.read(rb"nobody.*Permission denied"); t.end(1)


scenes = [(a_shell_with_job_control, "bash"), (a_job_of_a_shell, "bash"), (one_fg_after_ctrl_z_at_any_moment, "bash"), (a_shell_that_leaves_a_job, "bash"), (a_shell_that_gives_the_terminal_back, "sh"), (a_window_that_changes, "python3"), (a_window_that_is_closed, "sh"), (ctrl_c_before_the_command_is_there, "sh"), (less, "less"), (vim, "vim"), (tmux, "tmux"), (ssh, "ssh-agent")]
if root:
    scenes += [(sudo, "sudo"), (su_to_another_user, "su"), (a_pid_namespace_that_the_terminal_s_session_is_not_in, "unshare")]
for scene, program in scenes:
    if scene is ssh and not known:
        print("skipped: ssh wants a user that /etc/passwd has", file=sys.stderr)
        continue
    if not shutil.which(program):
        print(f"skipped: {program} is not installed", file=sys.stderr)
        continue
    scene()
    print(scene.__name__, "as bare")
