"""Runs the scripts of a suite that print TAP, bare and held by recant, as root and as an ordinary user, and prints in what they differ."""
import argparse
import fnmatch
import os
import re
import shutil
import subprocess
import sys
import tempfile

USER = 54321
LINE = re.compile(rb"(ok|not ok) (\d+)(.*)")


def arguments(about, takes):
    """The command line of a suite: the program, what the suite `takes` more, and patterns of the names of scripts."""
    parser = argparse.ArgumentParser(description=about, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("recant", type=os.path.realpath)
    takes(parser)
    parser.add_argument("--as", dest="users", choices=["root", "user"], action="append", help="as this user alone")
    parser.add_argument("--limit", type=int, default=600, help="seconds that a script may take (600)")
    parser.add_argument("patterns", nargs="*", metavar="PATTERN", help="of the names of scripts, as the shell has them")
    given = parser.parse_intermixed_args()
    given.users = given.users or (["root", "user"] if os.geteuid() == 0 else ["user"])
    if "root" in given.users and os.geteuid() != 0:
        parser.error("--as root: run it as root")
    return given


def chosen(names, patterns, default):
    """The names that fit one of the patterns, in order."""
    return sorted(name for name in names if any(fnmatch.fnmatch(name, pattern) for pattern in patterns or default))


class Place:
    """A home, a directory to work in and a copy of the program, for one user, on a disk."""

    def __init__(self, recant, who):
        self.who = who
        self.top = tempfile.mkdtemp(prefix="recant-foreign-", dir="/var/tmp")
        self.recant = os.path.join(self.top, "recant")
        self.work = os.path.join(self.top, "work")
        self.environment = {
            "HOME": os.path.join(self.top, "home"), "PATH": os.environ["PATH"], "LANG": "C.UTF-8", "TERM": "dumb",
            "XDG_DATA_HOME": os.path.join(self.top, "data"),
        }
        shutil.copy(recant, self.recant)
        os.mkdir(self.environment["HOME"])
        os.mkdir(self.work)
        self.rights = []
        if who == "user" and os.geteuid() == 0:
            self.rights = ["setpriv", f"--reuid={USER}", f"--regid={USER}", "--clear-groups"]
        self.give(self.top)

    def give(self, path):
        """Makes a directory the user's own, with all in it."""
        if self.rights:
            subprocess.run(["chown", "-R", f"{USER}:{USER}", path], check=True)

    def run(self, words, directory, limit):
        """Runs a program at the lowest priority. Its output; after the limit, with a line that says so."""
        call = [*self.rights, "nice", "-n", "19", *words]
        try:
            done = subprocess.run(call, cwd=directory, env=self.environment, stdin=subprocess.DEVNULL, timeout=limit,
                                  stdout=subprocess.PIPE, stderr=subprocess.STDOUT, start_new_session=True)
        except subprocess.TimeoutExpired as late:
            return (late.stdout or b"") + b"\nnot ok 0 - ended after the limit\n"
        return done.stdout

    def bare(self, words, directory, limit):
        return self.run(words, directory, limit)

    def held(self, words, directory, limit):
        said = self.run([self.recant, "run", "-q", "--", *words], directory, limit)
        self.run([self.recant, "discard", "-y", "--now", "last"], "/", 300)
        return said

    def empty(self):
        """Empties the directory to work in, where a bare run left something."""
        subprocess.run(["chmod", "-R", "u+rwX", self.work], stderr=subprocess.DEVNULL)
        shutil.rmtree(self.work, ignore_errors=True)
        os.makedirs(self.work, exist_ok=True)
        self.give(self.work)

    def remove(self):
        subprocess.run(["chmod", "-R", "u+rwX", self.top], stderr=subprocess.DEVNULL)
        shutil.rmtree(self.top, ignore_errors=True)


def results(said):
    """What each subtest came to, by its number, with its name."""
    found = {}
    for line in said.splitlines():
        match = LINE.fullmatch(line.strip())
        if not match:
            continue
        verdict, name = match[1].decode(), match[3].decode(errors="replace").strip(" -")
        if "# skip" in name.lower():
            verdict = "skipped"
        elif "# todo" in name.lower():
            verdict = "a known breakage" if verdict == "not ok" else "a breakage that vanished"
        found[int(match[2])] = (verdict, name.split("#")[0].strip())
    return found


def differences(bare, held):
    """The numbers of subtests that came to something else, with both verdicts and the name."""
    for number in sorted(bare.keys() | held.keys()):
        none = ("no line", "")
        (before, name), (after, other) = bare.get(number, none), held.get(number, none)
        if before != after:
            yield number, before, after, name or other


def compare(given, scripts, call, known):
    """Runs the scripts. `call`: the words that run a script in a place, and the directory. `known`: the reason for which a subtest of a script
    differs, by (user, script, number). Exit status: 0 if each difference has one."""
    unexplained = subtests = 0
    for who in given.users:
        place = Place(given.recant, who)
        for script in scripts:
            words, directory = call(place, script)
            place.empty()
            bare = results(place.bare(words, directory, given.limit))
            place.empty()
            held = results(place.held(words, directory, given.limit))
            subtests += len(bare)
            if not bare:
                print(f"{who} {script}: no subtests", flush=True)
            for number, before, after, name in differences(bare, held):
                reason = known.get((who, script, number)) or known.get((who, script, None))
                unexplained += reason is None
                print(f"{who} {script} {number}: bare {before}, held {after}: {name}{f' ({reason})' if reason else ''}", flush=True)
        place.remove()
    print(f"{len(scripts)} scripts, {subtests} subtests; {unexplained} differences without a reason")
    sys.exit(unexplained > 0)
