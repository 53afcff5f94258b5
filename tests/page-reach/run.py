#!/usr/bin/env python3
"""The pages of `diff --html` in a real browser: Chromium, headless, from npm.

    run.py --recant PATH [--browser DIR] [--shots DIR]

A real run makes a page with every kind of change, and one of 5,000 files. look.mjs opens them at 380 and 1,400 px, light and dark: no
request goes out, axe-core finds nothing, lines stand side by side where it is wide and below each other where it is not, the keyboard folds
and unfolds, and paper shows all. Needs node, and npm's registry to install. Closing line: N passed, N failed, N skipped.
"""
import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
PACKAGES = ["playwright-core@1", "axe-core@4", "@sparticuz/chromium@147"]

SOURCE = """//! Reads the list.

use std::fs;

/// The most items of a list.
const MOST: usize = 20;

pub fn read(path: &str) -> Vec<String> {
    let text = fs::read_to_string(path).unwrap();
    text.lines().map(|line| line.to_owned()).collect()
}

pub fn count(items: &[String]) -> usize {
    items.len()
}

fn is_blank(line: &str) -> bool {
    line.trim().is_empty()
}
"""

EDITED = """//! Reads the list.

use std::{fs, io};

/// The most items of a list.
const MOST: usize = 50;

/// Reads a list, without its blank lines.
pub fn read(path: &str) -> io::Result<Vec<String>> {
    let text = fs::read_to_string(path)?;
    let lines = text.lines().filter(|line| !is_blank(line));
    Ok(lines.map(str::to_owned).take(MOST).collect())
}

fn is_blank(line: &str) -> bool {
    line.trim().is_empty()
}
"""

CHANGES = r"""
cp "$1" src/list.rs
rm notes/old.md
mkdir -p out/deep; echo 'fn main() {}' > out/deep/main.rs; : > out/empty
printf '#!/bin/sh\necho hello\n' > out/hello; chmod 755 out/hello
chmod 4755 tool
printf 'GIF89a\001\000\001\000\200\000\001' > logo.gif
ln -sfn src/list.rs link
mkfifo pipe
printf 'let user = "\342\200\256nimda\342\201\246"; // check\r\n\tname\377\n' > trojan.js
echo x > "$(printf 'a<script>alert("1")<\\script>\342\200\256txt\377')"
seq 1 1200 | sed 's/$/ a line of numbers, to be folded/' > long.txt
sed -i 's/80$/8080/; s/localhost/0.0.0.0/' config.ini; printf 'last' >> config.ini
"""


def world(top, recant):
    """A project, and a page of what a run does to it."""
    home = os.path.join(top, "home")
    project = os.path.join(home, "notes")
    for name, text in (("src/list.rs", SOURCE), ("notes/old.md", "# Old\n\nNobody needs this.\n"), ("tool", "#!/bin/sh\n"),
                       ("config.ini", "[server]\nhost = localhost\nport = 80\nlog = yes\n"), (".git/HEAD", "ref: refs/heads/main\n")):
        os.makedirs(os.path.dirname(os.path.join(project, name)), exist_ok=True)
        with open(os.path.join(project, name), "w", encoding="utf-8") as file:
            file.write(text)
    with open(os.path.join(project, "logo.gif"), "wb") as file:
        file.write(b"GIF89a\1\0\1\0\x80\0\0\xff")
    os.symlink("config.ini", os.path.join(project, "link"))
    edited = os.path.join(top, "edited.rs")
    with open(edited, "w", encoding="utf-8") as file:
        file.write(EDITED)
    environment = {"PATH": os.environ["PATH"], "HOME": home, "TZ": "UTC", "LANG": "C.UTF-8", "RECANT_AGENT": "claude"}

    def call(*words):
        done = subprocess.run([recant, *words], cwd=project, env=environment, stdin=subprocess.DEVNULL, capture_output=True, check=False)
        if done.returncode:
            sys.exit(f"recant {' '.join(words)}: exit {done.returncode}: {done.stderr.decode(errors='replace')}")
        return done

    call("run", "-n", "review", "--", "sh", "-c", CHANGES, "sh", edited)
    call("diff", "review", "--html", "-o", os.path.join(top, "page.html"))
    many = ("i=0; mkdir -p many; while [ $i -lt 4000 ]; do printf 'one %s\\ntwo\\n' $i > many/$i.txt; i=$((i+1)); done; "
            "rm -r gone")
    for n in range(1000):
        path = os.path.join(project, "gone", f"{n}.txt")
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w", encoding="utf-8") as file:
            file.write(f"gone {n}\nand its second line\n" * 5)
    call("run", "-n", "many", "--", "sh", "-c", many)
    call("diff", "many", "--html", "-o", os.path.join(top, "many.html"))


def install(browser):
    """Installs what is missing. The reason why that fails, if it does."""
    for program in ("node", "npm"):
        if not shutil.which(program):
            return f"there is no {program}"
    os.makedirs(browser, exist_ok=True)
    if all(os.path.isdir(os.path.join(browser, "node_modules", re.sub("(?<=.)@.*", "", package))) for package in PACKAGES):
        return None
    done = subprocess.run(["timeout", "300", "npm", "install", "--no-audit", "--no-fund", "--prefix", browser, *PACKAGES],
                          stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
    return f"npm: {done.stderr.strip()[-300:]}" if done.returncode else None


def main():
    parser = argparse.ArgumentParser(description="looks at the pages of diff --html in a browser")
    parser.add_argument("--recant", required=True)
    parser.add_argument("--browser", default="target/page-reach", help="where the browser is installed")
    parser.add_argument("--only", default="", help="words of a call: without 'page' in them nothing is done, but where there are none")
    parser.add_argument("--shots", help="leave the pages and their pictures there")
    given = parser.parse_args()
    if given.only and "page" not in given.only.split():
        return 0
    browser = os.path.abspath(given.browser)
    reason = install(browser)
    if reason:
        print(f"skipped: pages in a browser: {reason}\n0 passed, 0 failed, 1 skipped")
        return 0
    top = os.path.realpath(tempfile.mkdtemp(prefix="recant-pages-"))
    try:
        world(top, os.path.abspath(given.recant))
        shots = os.path.abspath(given.shots) if given.shots else os.path.join(top, "shots")
        os.makedirs(shots, exist_ok=True)
        if given.shots:
            for page in ("page.html", "many.html"):
                shutil.copy(os.path.join(top, page), shots)
        return subprocess.run(["timeout", "300", "node", os.path.join(HERE, "look.mjs"), browser, top, shots], stdin=subprocess.DEVNULL,
                              check=False).returncode
    finally:
        shutil.rmtree(top, ignore_errors=True)


if __name__ == "__main__":
    sys.exit(main())
