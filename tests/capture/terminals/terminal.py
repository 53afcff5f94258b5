"""A terminal that a test plays a person at."""
import fcntl, os, pty, re, select, signal, struct, termios, time


class Terminal:
    """A terminal with a command in it, and what the command wrote so far."""

    def __init__(self, *words, rows=30, columns=90):
        self.seen = b""
        self.pid, self.fd = pty.fork()
        if self.pid == 0:
            signal.signal(signal.SIGINT, signal.SIG_DFL)
            os.environ["TERM"] = "xterm"
            os.execvp(words[0], words)
        self.resize(rows, columns)

    def resize(self, rows, columns):
        fcntl.ioctl(self.fd, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def type(self, text):
        os.write(self.fd, text.encode())

    def read(self, wanted, limit=20):
        """Reads on until a regular expression matches what has not been read before."""
        end = time.time() + limit
        while not (found := re.search(wanted, self.seen, re.S)):
            assert time.time() < end, f"waited in vain for {wanted}: {self.seen}"
            if select.select([self.fd], [], [], 0.1)[0]:
                try:
                    self.seen += os.read(self.fd, 65536)
                except OSError:  # EIO: nobody has the terminal open any more
                    assert re.search(wanted, self.seen, re.S), f"ended without {wanted}: {self.seen}"
        self.seen = self.seen[found.end():]
        return found

    def foreground(self):
        """The process group that has the terminal."""
        return os.tcgetpgrp(self.fd)

    def until(self, group):
        end = time.time() + 20
        while self.foreground() != group:
            assert time.time() < end, f"the foreground stayed: {self.seen}"
            time.sleep(0.01)

    def until_runs(self, program):
        """Waits until the foreground is this program: a shell's copy that is to become it still ignores Ctrl-Z."""
        end = time.time() + 20
        while content(f"/proc/{self.foreground()}/comm") != f"{program}\n":
            assert time.time() < end, f"{program} did not start: {self.seen}"
            time.sleep(0.01)

    def end(self, status=0):
        """Reads to the end and asserts the exit status."""
        try:
            while data := os.read(self.fd, 65536):
                self.seen += data
        except OSError:
            pass
        ended = os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])
        assert ended == status, f"exit status {ended}: {self.seen}"


def content(path):
    with open(path) as file:
        return file.read()
