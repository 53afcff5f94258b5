#!/usr/bin/env python3
"""git's own tests, held by recant and bare.

    git.py RECANT [--source DIR] [--as root|user] [--limit SECONDS] [PATTERN …]

Fetches the source of the distribution's git (deb-src, by lists of its own) into DIR (/var/tmp/recant-foreign/git) and builds it once. Then
runs t0* to t3* and t50* to t53*, or those whose names fit a PATTERN (t5601-*), and prints the subtests that differ. Exit status 0: each
difference has its reason below.
"""
import os
import shutil
import subprocess
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import tap

DEFAULT = ["t[0-3]*.sh", "t5[0-3]*.sh"]

# (user, script, number of the subtest, None for all) → the reason.
KNOWN = {
    ("user", "t1304-default-acl.sh", None): "ACLs of other users cannot be set in a run: docs/limits.md",
}


def options(parser):
    parser.add_argument("--source", type=os.path.abspath, default="/var/tmp/recant-foreign/git")


def fetch(directory):
    """Fetches the source without touching the machine's own lists of packages."""
    os.makedirs(os.path.join(directory, "lists", "partial"), exist_ok=True)
    os.makedirs(os.path.join(directory, "cache", "archives", "partial"), exist_ok=True)
    release = dict(line.rstrip().split("=", 1) for line in open("/etc/os-release", encoding="utf-8") if "=" in line)
    suite = release["VERSION_CODENAME"].strip('"')
    with open(os.path.join(directory, "sources.list"), "w", encoding="utf-8") as file:
        file.write(f"deb-src http://deb.debian.org/debian {suite} main\n")
    apt = ["apt-get", "-qq", "-o", f"Dir::Etc::SourceList={directory}/sources.list", "-o", "Dir::Etc::SourceParts=/dev/null",
           "-o", f"Dir::State::Lists={directory}/lists", "-o", f"Dir::Cache={directory}/cache", "-o", "APT::Sandbox::User="]
    subprocess.run([*apt, "update"], check=True)
    subprocess.run([*apt, "source", "git"], cwd=directory, check=True)


def built(directory):
    """The directory of a source that is built, fetched and built where it is missing."""
    def found():
        names = sorted(os.listdir(directory)) if os.path.isdir(directory) else []
        return [path for name in names if os.path.exists(os.path.join(path := os.path.join(directory, name), "t", "test-lib.sh"))]
    if not found():
        fetch(directory)
    [source] = found()
    if not os.path.exists(os.path.join(source, "GIT-BUILD-OPTIONS")) or not os.path.exists(os.path.join(source, "git")):
        without = [f"NO_{what}=1" for what in ("CURL", "EXPAT", "TCLTK", "GETTEXT")]
        subprocess.run(["nice", "make", "-s", "-j2", "CFLAGS=-O0 -w", *without, "all"], cwd=source, check=True)
    return source


def main():
    given = tap.arguments(__doc__, options)
    tests = os.path.join(built(given.source), "t")
    scripts = tap.chosen((name for name in os.listdir(tests) if name.startswith("t") and name.endswith(".sh")), given.patterns, DEFAULT)
    scripts = [name for name in scripts if name[1:5].isdigit()]

    def call(place, script):
        # The user's own, or it could not be held.
        own = os.path.join(place.top, "git")
        if not os.path.exists(own):
            shutil.copytree(os.path.dirname(tests), own, symlinks=True, ignore=shutil.ignore_patterns("*.o", "*.a"))
            place.give(own)
        place.environment["TEST_OUTPUT_DIRECTORY"] = place.work
        return ["sh", script], os.path.join(own, "t")

    tap.compare(given, scripts, call, KNOWN)


if __name__ == "__main__":
    main()
