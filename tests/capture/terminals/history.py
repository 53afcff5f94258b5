"""Plays a person in `recant shell`. Takes the binary and how many commands to type; $SHELL is the shell."""
import re, sys, time

from terminal import Terminal

recant, count = sys.argv[1], int(sys.argv[2])
t = Terminal(recant, "shell")
t.read(rb"a shell with every file change held but its history; 'exit' ends it")
time.sleep(1)
for n in range(count):
    t.type(f"echo typed-{n}\r"); t.read(rb"[\r\n]typed-%d\r" % n)
t.type("echo x > held; exit\r")
said = t.read(rb".*held in session", limit=60)[0]
t.end()
assert b"rename" not in said and b"history" not in said, said
