#!/usr/bin/env python3
"""pjdfstest, the POSIX tests of file systems, held by recant and bare.

    pjdfstest.py RECANT CLONE [--as root|user] [--limit SECONDS] [PATTERN …]

CLONE is a clone of github.com/pjd/pjdfstest. Its program is built there once, which needs autoconf and automake. Runs all tests, or those
whose names (chmod/00.t) fit a PATTERN, and prints the assertions that differ. As an ordinary user most tests say that they want root.
Exit status 0: each difference has its reason below.
"""
import os
import subprocess
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import tap

# (user, script, number of the assertion, None for all) → the reason.
NO_OVERLAY = "it asks only file systems of which it knows that a rename changes the ctime, and knows no overlay"
NO_NODE = "a node 0:0 cannot be made in a run: docs/limits.md"
KNOWN = {
    ("root", "rename/22.t", None): NO_OVERLAY,
    ("user", "rename/22.t", None): NO_OVERLAY,
    ("user", "mknod/08.t", 19): NO_NODE,
    ("user", "mknod/08.t", 24): NO_NODE,
}

def main():
    given = tap.arguments(__doc__, lambda parser: parser.add_argument("clone", type=os.path.realpath))
    if not os.path.exists(os.path.join(given.clone, "pjdfstest")):
        subprocess.run("autoreconf -ifs && ./configure -q && make -s", shell=True, cwd=given.clone, check=True)
    tests = os.path.join(given.clone, "tests")
    names = (os.path.relpath(os.path.join(top, name), tests) for top, _, files in os.walk(tests) for name in files if name.endswith(".t"))
    scripts = tap.chosen(names, given.patterns, ["*"])
    tap.compare(given, scripts, lambda place, script: (["sh", os.path.join(tests, script)], place.work), KNOWN)


if __name__ == "__main__":
    main()
