"""How soon the screen of `review` stands, and how soon it answers a key, in a session of 100,000 changes: in a terminal of 80×24 that
reads all that is drawn, up to the last byte before a pause."""

import fcntl
import os
import pty
import select
import shutil
import statistics
import struct
import termios
import time

from measuring import do, say

DIRECTORIES, FILES = 500, 200
# Without output for so long the screen counts as drawn, in seconds.
PAUSE = 0.03
KEYS = [b"j", b"\r", b"j", b"\x1b[6~", b"A", b"v", b"v", b"G", b"g", b"o", b"o", b"o", b"k", b"?", b"q"]

MAKE = f"""
import os
for d in range({DIRECTORIES}):
    os.makedirs(f'd{{d // 25}}/e{{d}}')
    for f in range({FILES}):
        open(f'd{{d // 25}}/e{{d}}/f{{f}}', 'w').write('x\\n')
"""


def measure(bench, rounds):
    """Rows of the table, as the parts of bench.py give them."""
    top = f"{bench.top}/review"
    os.makedirs(f"{top}/project")
    env = dict(os.environ, HOME=top, RECANT_STORE=f"{top}/store", TERM="xterm-256color")
    do(bench.args.recant, "run", "-q", "--session", "big", "--", "python3", "-c", MAKE, cwd=f"{top}/project", env=env)
    opened, keys, asked, memory = [], [], [], []
    for i in range(rounds):
        say(f"  review of 100,000 changes, round {i + 1}")
        screen = Screen(bench.args.recant, f"{top}/project", env)
        opened.append(screen.until(b"quit"))
        keys += [screen.press(key) for key in KEYS]
        begun = time.perf_counter()
        os.write(screen.terminal, b"c")
        screen.until(b"yes")
        asked.append(time.perf_counter() - begun)
        memory.append(screen.end())
    shutil.rmtree(top)
    yield ("review", "ms", "100,000 changes: the screen stands"), f"{statistics.median(opened) * 1000:.0f}"
    keys.sort()
    yield ("review", "ms", "a key: median, 95th of 100, slowest"), ", ".join(
        f"{keys[at] * 1000:.1f}" for at in (len(keys) // 2, len(keys) * 95 // 100, -1)
    )
    yield ("review", "ms", "the question before all of it is committed"), f"{statistics.median(asked) * 1000:.0f}"
    yield ("review", "other", "memory at most"), f"{statistics.median(memory) / 1024:.0f} MiB"


class Screen:
    """The screen in a terminal of its own."""

    def __init__(self, recant, cwd, env):
        self.begun = time.perf_counter()
        self.pid, self.terminal = pty.fork()
        if self.pid == 0:
            os.chdir(cwd)
            fcntl.ioctl(0, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
            os.execve(recant, ["recant", "review", "big"], env)

    def until(self, text):
        """Seconds from the start until it has drawn `text`."""
        drawn = b""
        while text not in drawn:
            if not select.select([self.terminal], [], [], 30)[0]:
                raise SystemExit(f"review: {text!r} was never drawn")
            drawn += os.read(self.terminal, 1 << 16)
        return time.perf_counter() - self.begun

    def press(self, key):
        """Seconds from a key to the last byte that it drew."""
        while select.select([self.terminal], [], [], PAUSE)[0]:
            os.read(self.terminal, 1 << 16)
        begun = last = time.perf_counter()
        os.write(self.terminal, key)
        wait = 5.0
        while select.select([self.terminal], [], [], wait)[0]:
            os.read(self.terminal, 1 << 16)
            last, wait = time.perf_counter(), PAUSE
        return last - begun

    def end(self):
        """Leaves it. KiB of memory that it took at most."""
        os.write(self.terminal, b"\x03")
        try:
            while os.read(self.terminal, 1 << 16):
                pass
        except OSError:
            pass
        _, _, used = os.wait4(self.pid, 0)
        os.close(self.terminal)
        return used.ru_maxrss
