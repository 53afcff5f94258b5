"""Plays a person at a terminal who works on another machine. Each scene prints its name when it came out as at home.

Takes the binary, the name of the machine, and its home directory.
"""
import os, re, shutil, sys

from terminal import Terminal, content

recant, host, home = sys.argv[1:4]
os.environ["SHELL"] = "/bin/sh"


def far(*words):
    return Terminal(recant, "-H", host, *words)


def a_command_with_a_terminal():
    t = far("run", "--", "sh", "-c", "tty; stty size; test -t 0 && test -t 1 && test -t 2 && echo all; read answer; echo got=$answer > answer; exit 5")
    t.read(rb"/dev/pts/\d+\r\n30 90\r\nall")
    t.type("it's me\n"); t.read(rb"held in session"); t.end(5)
    os.system(f"{recant} -H {host} commit last -y > /dev/null 2>&1")
    assert content(f"{home}/answer") == "got=it's me\n"


def statuses_that_ssh_or_recant_use_themselves():
    for status in (255, 213, 127, 1):
        far("run", "--", "sh", "-c", f"exit {status}").end(status)


def a_window_that_changes():
    program = "import os,signal,time;signal.signal(signal.SIGWINCH,lambda *a:print('now',*os.get_terminal_size(0)));print('at',*os.get_terminal_size(0));\nwhile 1:time.sleep(.1)"
    t = far("run", "--", "python3", "-uc", program)
    t.read(rb"at 90 30")
    t.resize(11, 44); t.read(rb"now 44 11")
    t.type("\x03"); t.end(130)


def a_shell_with_job_control():
    t = far("shell")
    t.type("PS1='> '; echo rea''dy\n"); t.read(rb"ready")
    t.type("sh -c 'echo g''o; exec sleep 60'\n"); t.read(rb"[\r\n]go\r"); t.type("\x1a"); t.read(rb"Stopped")
    t.type("jobs; echo list''ed\n"); t.read(rb"Stopped.*listed")
    t.type("kill -9 %1; disown %1; echo held > by-shell; exit 7\n")
    t.read(rb"held in session"); t.end(7)
    assert not os.path.exists(f"{home}/by-shell")


def a_question():
    t = far("discard", "last", "--now")
    t.read(rb"Free .*\[y/N\] "); t.type("n\n"); t.read(rb"nothing changed"); t.end(1)
    t = far("discard", "last", "--now")
    t.read(rb"Free .*\[y/N\] "); t.type("\x03"); t.end(130)
    t = far("discard", "last", "--now")
    t.read(rb"Free .*\[y/N\] "); t.type("y\n"); t.read(rb"is freed"); t.end(0)


def a_pager_of_this_side():
    with open(f"{home}/long", "w") as file:
        file.writelines(f"line {n}\n" for n in range(500))
    os.system(f"id=$({recant} -H {host} session new 2>&1); {recant} -H {host} session delete $id long > /dev/null 2>&1")
    t = far("diff", "last")
    t.read(rb"line 2\d"); t.type("G"); t.read(rb"line 499"); t.type("q"); t.end(0)


def no_connection():
    t = Terminal(recant, "-H", "nowhere.invalid", "run", "--", "true")
    t.read(rb"nowhere.invalid: the connection was cut|nowhere.invalid: no connection"); t.end(1)


scenes = [(a_command_with_a_terminal, "sh"), (statuses_that_ssh_or_recant_use_themselves, "sh"), (a_window_that_changes, "python3"), (a_shell_with_job_control, "bash"), (a_question, "sh"), (a_pager_of_this_side, "less"), (no_connection, "sh")]
for scene, program in scenes:
    if not shutil.which(program):
        print(f"skipped: {program} is not installed", file=sys.stderr)
        continue
    scene()
    print(scene.__name__, "as at home")
