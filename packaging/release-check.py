#!/usr/bin/env python3
"""Whether this commit can be released: a table of what is well, what is not, and what was not tried. Exit status 1 if anything is not.

    release-check.py --recant PATH [--no-tests]

PATH is the release build. Nothing is changed but target/.
"""
import argparse
import os
import re
import statistics
import subprocess
import sys
import tempfile
import time
import tomllib

TOP = os.path.realpath(os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
# Bytes of the release build.
MOST = 11_500_000

OK, FAILED, NOT_TRIED = "ok", "FAILED", "not tried"


def run(*words, **more):
    """The exit status, and what it said. 127 where there is no such program."""
    try:
        done = subprocess.run(words, cwd=TOP, stdin=subprocess.DEVNULL, capture_output=True, text=True, errors="replace", check=False, **more)
    except FileNotFoundError as error:
        return 127, str(error)
    return done.returncode, (done.stdout + done.stderr).strip()


def last(text):
    return text.splitlines()[-1][:100] if text else ""


def version():
    with open(os.path.join(TOP, "Cargo.toml"), "rb") as file:
        wanted = tomllib.load(file)["package"]["version"]
    with open(os.path.join(TOP, "CHANGELOG.md"), encoding="utf-8") as file:
        top = re.search(r"^## \[([^]]+)\]", file.read(), re.M)
    found = top[1] if top else "nothing"
    if found == "Unreleased":
        _, tags = run("git", "tag", "--list", f"v{wanted}")
        return (FAILED, f"{wanted} is tagged already; CHANGELOG.md has more") if tags else (OK, f"{wanted}, unreleased")
    return (OK if found == wanted else FAILED), f"Cargo.toml {wanted}, CHANGELOG.md {found}"


def clean():
    status, said = run("git", "status", "--porcelain")
    return (FAILED, said if status else f"{len(said.splitlines())} files are no commit") if status or said else (OK, "")


def changelog():
    with open(os.path.join(TOP, "CHANGELOG.md"), encoding="utf-8") as file:
        before = file.read()
    with tempfile.TemporaryDirectory() as room:
        made = os.path.join(room, "CHANGELOG.md")
        status, said = run("make", "--no-print-directory", "changelog", f"CHANGELOG={made}")
        if status:
            return NOT_TRIED, f"git-cliff: {last(said)}"
        with open(made, encoding="utf-8") as file:
            return (OK, "") if file.read() == before else (FAILED, "make changelog makes another")


def figures():
    status, said = run("python3", "benches/pages.py", "--check")
    return (FAILED, last(said)) if status else (OK, "")


def make(goal):
    status, said = run("make", "--no-print-directory", goal)
    missed = [line for line in said.splitlines() if line.startswith("skipped:")]
    return (FAILED if status else OK), last(said) if status else "; ".join(missed)[:200]


def licences():
    status, said = run("tests/deny.sh")
    return (FAILED, last(said)) if status else (NOT_TRIED if "skipped: cargo deny:" in said else OK, last(said))


def semver():
    status, tag = run("git", "describe", "--tags", "--abbrev=0", "--match", "v[0-9]*")
    if status:
        return NOT_TRIED, "there is no tag yet to compare with"
    if run("cargo", "semver-checks", "--version")[0]:
        return NOT_TRIED, "cargo install --locked cargo-semver-checks"
    status, said = run("cargo", "semver-checks", "--baseline-rev", tag)
    return (FAILED if status else OK), f"since {tag}: {last(said)}"


def size(recant):
    found = os.path.getsize(recant)
    return (OK if found <= MOST else FAILED), f"{found:,} bytes; at most {MOST:,}"


def start(recant):
    """Against a program that prints one line, built in the same way: the median of 200 starts each, in turn."""
    with tempfile.TemporaryDirectory() as room:
        with open(os.path.join(room, "hello.rs"), "w", encoding="utf-8") as file:
            file.write('fn main() { println!("hello"); }\n')
        hello = os.path.join(room, "hello")
        status, said = run("rustc", "-O", "-C", "target-feature=+crt-static", "-C", "strip=symbols", "-o", hello, os.path.join(room, "hello.rs"))
        if status:
            return NOT_TRIED, last(said)
        calls = {"hello": [hello], "version": [recant, "--version"], "list": [recant, "list"]}
        took = {name: [] for name in calls}
        for _ in range(200):
            for name, call in calls.items():
                since = time.perf_counter()
                subprocess.run(call, env={"XDG_DATA_HOME": room, "HOME": room}, stdin=subprocess.DEVNULL, capture_output=True, check=False)
                took[name].append(time.perf_counter() - since)
        middle = {name: statistics.median(times) for name, times in took.items()}
    return OK, (f"--version {middle['version'] / middle['hello']:.1f} x, list {middle['list'] / middle['hello']:.1f} x "
                f"a program that says hello ({middle['hello'] * 1000:.1f} ms)")


def main():
    parser = argparse.ArgumentParser(description="whether this commit can be released")
    parser.add_argument("--recant", required=True)
    parser.add_argument("--no-tests", action="store_true", help="leave out make test, and say so")
    given = parser.parse_args()
    recant = os.path.abspath(given.recant)
    rows = {
        "version": version,
        "all is committed": clean,
        "changelog": changelog,
        "figures": figures,
        "lint": lambda: make("lint"),
        "tests": lambda: (NOT_TRIED, "LEFT OUT, as asked: make test has to pass first") if given.no_tests else make("test"),
        "licences": licences,
        "semver": semver,
        "size": lambda: size(recant),
        "start": lambda: start(recant),
    }
    failed = 0
    for name, ask in rows.items():
        state, note = ask()
        failed += state == FAILED
        print(f"{name:18} {state:10} {note}".rstrip(), flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
