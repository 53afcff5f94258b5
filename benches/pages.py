#!/usr/bin/env python3
"""Writes the figures of docs/speed.md and README.md from what `make bench BENCH='--json FILE'` measured.

    pages.py FILE …     takes the figures of these runs, the later before the earlier, and writes both pages
    pages.py            writes them again from benches/figures.json
    pages.py --check    changes nothing; exit status 1 if a page is another, or a figure older than 60 days or of another minor version

benches/pages/ has the pages without figures: `{{small ratio commit / rsync to a copy}}` stands for a row of the run, with its lowest and
highest; `{{… | median}}` for the median alone; `{{date}}`, `{{machine}}`, `{{recant}}`, `{{rounds}}` for the newest of these runs.
"""
import datetime
import json
import os
import re
import sys
import tomllib

TOP = os.path.realpath(os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
FIGURES = os.path.join(TOP, "benches", "figures.json")
DAYS = 60


def main(words):
    if words == ["--check"]:
        sys.exit("".join(f"{fault}\n" for fault in faults(read(FIGURES), datetime.date.today())) or 0)
    if words:
        taken = together([read(path) for path in words])
        with open(FIGURES, "w", encoding="utf-8") as out:
            json.dump(taken, out, indent=1, ensure_ascii=False)
            out.write("\n")
    for path, text in pages(read(FIGURES)):
        with open(path, "w", encoding="utf-8") as out:
            out.write(text)


def read(path):
    with open(path, encoding="utf-8") as file:
        return json.load(file)


def together(runs):
    """One run: what the last of them says about the machine, and the figures of all. Of several file systems the first."""
    results = {}
    for run in runs:
        results |= {key: row if isinstance(row, str) else next(iter(row.values())) for key, row in run["results"].items()}
    return {**runs[-1], "machine": runs[-1]["machine"].split(", commit")[0], "results": results}


def pages(figures):
    """Each page with its text: docs/speed.md whole, of README.md the section of figures."""
    yield os.path.join(TOP, "docs", "speed.md"), filled("speed.md", figures)
    readme = os.path.join(TOP, "README.md")
    with open(readme, encoding="utf-8") as file:
        yield readme, re.sub(r"(?<=\n## Figures\n\n).*?(?=\n## )", lambda _: filled("readme.md", figures), file.read(), flags=re.S)


def filled(name, figures):
    with open(os.path.join(TOP, "benches", "pages", name), encoding="utf-8") as file:
        return re.sub(r"\{\{(.*?)\}\}", lambda found: figure(found[1], figures), file.read())


def figure(words, figures):
    key, _, median = words.partition(" | ")
    if key in figures and key != "results":
        return str(figures[key])
    row = figures["results"].get(key)
    if row is None:
        sys.exit(f"no run has measured: {key}")
    row = re.sub(r", aim .*", "", str(row))
    return row.split(" ")[0] if median else row


def faults(figures, today):
    for path, text in pages(figures):
        with open(path, encoding="utf-8") as file:
            if file.read() != text:
                yield f"{os.path.relpath(path, TOP)}: benches/pages.py writes another"
        for date in sorted(set(re.findall(r"\b20\d\d-\d\d-\d\d\b", text))):
            if (today - datetime.date.fromisoformat(date)).days > DAYS:
                yield f"{os.path.relpath(path, TOP)}: figures of {date}, more than {DAYS} days ago"
    with open(os.path.join(TOP, "Cargo.toml"), "rb") as file:
        wanted = tomllib.load(file)["package"]["version"]
    if wanted.split(".")[:2] != figures["recant"].split(".")[:2]:
        yield f"docs/speed.md: figures of recant {figures['recant']}; this is {wanted}"


if __name__ == "__main__":
    main(sys.argv[1:])
