#!/usr/bin/env python3
"""Pictures of a terminal, made from real runs: demo/pictures.py RECANT DIRECTORY

Writes minute.svg, which moves, and review-tree.svg, review-diff.svg, review-side-by-side.svg and review-question.svg, in light and dark as
the reader has it. Wants tmux, sh and git.
"""

import argparse
import os
import re
import shutil
import subprocess
import tempfile
import time
from html import escape
from pathlib import Path

# The colours of a terminal: its own ones, and those of the first eight numbers; dark, and light.
BACK, FRONT = "var(--back)", "var(--front)"
COLORS = [f"var(--c{n})" for n in range(8)]
NAMES = ["back", "front", *(f"c{n}" for n in range(8))]
DARK = ["#1e2127", "#d7dae0", "#3f4451", "#e06c75", "#98c379", "#d6b06a", "#61afef", "#c678dd", "#56b6c2", "#d7dae0"]
LIGHT = ["#f6f8fa", "#24292f", "#d0d7de", "#b3261e", "#1a6e2e", "#7d4e00", "#0757b5", "#7a2f9c", "#0b6e7c", "#24292f"]
WIDE, HIGH, SIZE = 8.4, 18, 14

SCENE = r"""
mkdir -p src/net src/store docs old
git init -q .
for f in parse render index query cache lock; do
    printf 'use std::io;\n\npub fn %s(input: &str) -> io::Result<usize> {\n    let mut count = 0;\n    for line in input.lines() {\n        if line.is_empty() {\n            continue;\n        }\n        count += 1;\n    }\n    Ok(count)\n}\n' $f > src/$f.rs
done
for f in client server; do printf '//! The %s.\n\npub const PORT: u16 = 8080;\npub const RETRIES: u32 = 3;\n' $f > src/net/$f.rs; done
printf '[server]\nport = 8080\nworkers = 4\nlog = "info"\n\n[store]\npath = "/srv/demo"\nsync = true\n' > config.toml
for n in 1 2 3 4 5 6; do echo "# Chapter $n" > docs/chapter-$n.md; done
for n in 1 2 3 4; do echo "v$n" > old/notes-$n.txt; done
cat > agent.sh <<'X'
sed -i 's/let mut count = 0;/let mut found = 0usize;/; s/count += 1;/found += 1;/; s/Ok(count)/Ok(found)/; s/is_empty()/trim().is_empty()/' src/*.rs
sed -i 's/8080/8443/; s/RETRIES: u32 = 3/RETRIES: u32 = 5/' src/net/*.rs config.toml
sed -i 's/workers = 4/workers = 16/; s/log = "info"/log = "debug"/' config.toml
for n in 1 2 3 4 5 6; do printf '\nSee [the contents](contents.md).\n' >> docs/chapter-$n.md; done
printf '# Index\n\n1. Parse\n2. Render\n3. Query\n' | (cd docs && cat > contents.md)
printf 'pub mod lock;\npub mod cache;\n' > src/store/mod.rs
rm old/*
chmod 755 agent.sh
head -c 2048 /dev/zero | tr '\0' 'x' > docs/logo.bin
X
"$RECANT" run -q --session refactor -- sh agent.sh
"""


class Terminal:
    """A terminal in tmux, with a server of its own."""

    def __init__(self, env: dict, cwd: Path, columns: int, rows: int):
        self.socket = f"recant-pictures-{os.getpid()}-{columns}"
        self.env = env
        self.tmux("-f", "/dev/null", "new-session", "-d", "-x", str(columns), "-y", str(rows), "-c", str(cwd), "sh")
        self.keys("PS1='$ '", "Enter")
        self.clear()

    def tmux(self, *args: str) -> str:
        found = subprocess.run(["tmux", "-L", self.socket, *args], env=self.env, text=True, capture_output=True, timeout=20)
        if found.returncode:
            raise SystemExit(f"tmux {args[0]}: {found.stderr}")
        return found.stdout

    def keys(self, *keys: str) -> None:
        self.tmux("send-keys", *keys)

    def clear(self) -> None:
        self.keys("clear", "Enter")
        # What is typed before that is wiped away with it.
        for _ in range(200):
            if self.tmux("capture-pane", "-p").strip() == "$":
                break
            time.sleep(0.1)

    def wait_for(self, text: str) -> str:
        """The screen with its escapes, once it has `text` and stays as it is."""
        before = ""
        for _ in range(200):
            screen = self.tmux("capture-pane", "-p", "-e")
            if text in re.sub(r"\x1b\[[0-9;]*m", "", screen) and screen == before:
                return screen
            before = screen
            time.sleep(0.1)
        raise SystemExit(f"the screen never had {text!r}:\n{before}")

    def end(self) -> None:
        subprocess.run(["tmux", "-L", self.socket, "kill-server"], capture_output=True)


class Style:
    """What the escapes so far have set."""

    def __init__(self) -> None:
        self.front, self.bold, self.dim, self.under, self.turned = None, False, False, False, False

    def take(self, codes: str) -> None:
        # tmux writes one of the first eight colours as 38;5;n.
        for code in [int(code or 0) for code in re.sub(r"38;5;([0-7])\b", lambda found: str(30 + int(found[1])), codes).split(";")]:
            match code:
                case 0: self.__init__()
                case 1: self.bold = True
                case 2: self.dim = True
                case 4: self.under = True
                case 7: self.turned = True
                case 22: self.bold = self.dim = False
                case 24: self.under = False
                case 27: self.turned = False
                case 39: self.front = None
                case _ if 30 <= code < 38: self.front = code - 30

    def colors(self) -> tuple[str, str]:
        front = FRONT if self.front is None else COLORS[self.front]
        return (BACK, front) if self.turned else (front, BACK)


def drawn(screen: str) -> list[str]:
    """The lines of a screen: text stays text."""
    out = []
    style = Style()
    for row, line in enumerate(screen.rstrip("\n").split("\n")):
        y, column = 34 + row * HIGH, 0
        for piece in re.split(r"(\x1b\[[0-9;]*m)", line):
            if piece.startswith("\x1b"):
                style.take(piece[2:-1])
                continue
            if not piece:
                continue
            front, back = style.colors()
            x, wide = 12 + column * WIDE, len(piece) * WIDE
            column += len(piece)
            if back != BACK:
                out.append(f'<rect x="{x:.1f}" y="{y}" width="{wide:.1f}" height="{HIGH}" fill="{back}"/>')
            if not piece.strip():
                continue
            more = (' font-weight="bold"' if style.bold else "") + (' opacity=".6"' if style.dim else "")
            more += ' text-decoration="underline"' if style.under else ""
            out.append(
                f'<text x="{x:.1f}" y="{y + 13}" fill="{front}" textLength="{wide:.1f}" xml:space="preserve"{more}>{escape(piece)}</text>'
            )
    return out


def moving(seconds: list[float]) -> str:
    """The rules by which one frame after the other is seen, for so long; who wants no motion sees the last."""
    whole, since, rules = sum(seconds), 0.0, []
    for n, lasts in enumerate(seconds):
        at, to = 100 * since / whole, 100 * (since + lasts) / whole
        rules.append(f"@keyframes f{n}{{0%{{opacity:{int(n == 0)}}}{at:.2f}%{{opacity:1}}{to:.2f}%,100%{{opacity:0}}}}#f{n}{{animation:f{n} {whole:.1f}s step-end infinite}}")
        since += lasts
    return "".join(rules) + f"@media (prefers-reduced-motion:reduce){{g.f{{animation:none!important;opacity:0}}#f{len(seconds) - 1}{{opacity:1!important}}}}"


def svg(frames: list[tuple[str, float]], columns: int, rows: int, title: str) -> str:
    """Screens as a picture, each with the seconds for which it is seen."""
    width, height = columns * WIDE + 24, rows * HIGH + 48
    sheet = "".join(f"--{name}:{color};" for name, color in zip(NAMES, DARK))
    light = "".join(f"--{name}:{color};" for name, color in zip(NAMES, LIGHT))
    groups = [f'<g id="f{n}" class="f">\n' + "\n".join(drawn(screen)) + "\n</g>" for n, (screen, _) in enumerate(frames)]
    return "\n".join([
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:.0f} {height}" width="{width:.0f}" role="img">',
        f"<title>{escape(title)}</title>",
        f"<style>svg{{{sheet}}}@media (prefers-color-scheme:light){{svg{{{light}}}}}"
        + (moving([seconds for _, seconds in frames]) if len(frames) > 1 else "") + "</style>",
        f'<rect width="100%" height="100%" rx="8" fill="{BACK}"/>',
        '<circle cx="18" cy="16" r="5" fill="#ff5f57"/><circle cx="36" cy="16" r="5" fill="#febc2e"/>'
        '<circle cx="54" cy="16" r="5" fill="#28c840"/>',
        f'<g font-family="ui-monospace,SFMono-Regular,Menlo,Consolas,DejaVu Sans Mono,monospace" font-size="{SIZE}">',
        *groups,
        "</g>", "</svg>", "",
    ])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("recant", type=Path)
    parser.add_argument("directory", type=Path)
    args = parser.parse_args()
    if not shutil.which("tmux"):
        raise SystemExit("tmux is missing")
    args.directory.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as home:
        project = Path(home, "demo")
        project.mkdir()
        recant = args.recant.resolve()
        env = {
            "HOME": home, "RECANT_STORE": f"{home}/store", "RECANT": str(recant), "TERM": "xterm-256color",
            "LANG": "C.UTF-8", "PATH": f"{recant.parent}:{os.environ['PATH']}", "TZ": "UTC",
        }
        subprocess.run(["sh", "-ec", SCENE], cwd=project, env=env, check=True, timeout=120)

        def draw(name: str, title: str, columns: int, rows: int, steps: list[tuple[list[str], str]]) -> None:
            terminal = Terminal(env, project, columns, rows)
            try:
                screen = ""
                for keys, text in steps:
                    terminal.keys(*keys)
                    screen = terminal.wait_for(text)
                (args.directory / name).write_text(svg([(screen, 0)], columns, rows, title))
            finally:
                terminal.end()

        begin = (["recant review", "Enter"], "23 changes")
        to_file = (["/", "p", "a", "r", "s", "e", "Enter"], "src/parse.rs")
        draw("review-tree.svg", "recant review: the changes as a tree, and the difference of one", 110, 26, [begin, to_file, (["]", "Space"], "1 chosen")])
        draw("review-diff.svg", "recant review in 80 columns: blocks of one file, one of them chosen", 80, 24, [
            begin, to_file, (["Enter"], "4 blocks"), (["]", "Space"], "1 chosen"),
        ])
        draw("review-side-by-side.svg", "recant review: the two sides beside each other", 140, 26, [
            begin, (["/", "c", "o", "n", "f", "i", "g", "Enter"], "config.toml"), (["Enter"], "block"), (["|"], "beside"),
        ])
        draw("review-question.svg", "recant review: the question before a commit", 80, 24, [
            begin, to_file, (["Enter", "]", "Space", "q"], "1 chosen"),
            (["/", "d", "o", "c", "s", "/", "c", "Enter", "Left", "Space"], "chosen"), (["c"], "yes"),
        ])
        minute(args.directory / "minute.svg", env, project)


SMALL = r"""
mkdir old
printf '[server]\nport = 8080\nworkers = 4\n' > config.toml
for n in 1 2 3; do echo "note $n" > old/notes-$n.txt; done
printf 'sed -i s/8080/8443/ config.toml\nrm old/*\necho done > upgraded\n' > upgrade.sh
"""
# What is typed, after `|` on an empty screen; what is waited for, and the seconds that a reader has.
MINUTE = [
    ("ls old", "notes-3.txt\n$", 3),
    ("recant run -- sh upgrade.sh", "recant discard", 5),
    ("ls old  # nothing has happened: the changes are held", "held\nnotes-1.txt  notes-2.txt  notes-3.txt\n$", 5),
    ("|recant diff last config.toml", "+port = 8443", 5),
    ("|recant commit last", "to take it back", 5),
    ("ls old", "$ ls old\n$", 4),
    ("|recant rollback last", "rolled back", 5),
    ("ls old  # as before, to the nanosecond", "notes-3.txt\n$", 5),
]


def minute(path: Path, env: dict, project: Path) -> None:
    """Held, looked at, committed and taken back: a frame for each line as it is typed, and for what it says."""
    columns, rows = 80, 16
    project = project.with_name("small")
    project.mkdir()
    subprocess.run(["sh", "-ec", SMALL], cwd=project, env=env, check=True, timeout=20)
    terminal, frames = Terminal(env, project, columns, rows), []
    try:
        for typed, said, seconds in MINUTE:
            if typed.startswith("|"):
                terminal.clear()
            typed = typed.lstrip("|")
            terminal.keys("-l", typed)
            frames.append((terminal.wait_for(typed), 1.5))
            terminal.keys("Enter")
            frames.append((terminal.wait_for(said), seconds))
    finally:
        terminal.end()
    path.write_text(svg(frames, columns, rows, "A command is held, looked at, committed and taken back"))


if __name__ == "__main__":
    main()
