#!/usr/bin/env python3
"""A preprocessor of mdbook: the reference of verbs, from what the program in $RECANT says.

mdbook gives [context, book] on standard input, and wants the book back (mdBook's guide, "Preprocessors"). The page
reference/verbs.md gets the lists of `recant --help`, and a page below it for each verb: its help, and that of its own verbs.
"""

import json
import os
import re
import subprocess
import sys

MARK = "<!-- the verbs: book/verbs.py -->"


def help_of(*verb: str) -> str:
    environment = {**os.environ, "NO_COLOR": "1", "COLUMNS": "80"}
    said = subprocess.run([os.environ["RECANT"], *verb, "--help"], env=environment, text=True, capture_output=True, check=True)
    return said.stdout.rstrip()


def groups(text: str) -> list[tuple[str, list[tuple[str, str]]]]:
    """The headings before the options, each with its verbs and what they do."""
    found = []
    for line in text.split("Options of all verbs:")[0].splitlines():
        if heading := re.fullmatch(r"([A-Z][^:]*):", line):
            found.append((heading[1], []))
        elif found and (verb := re.fullmatch(r"  ([a-z]+)  +(.+)", line)):
            found[-1][1].append((verb[1], verb[2]))
    return [(heading, verbs) for heading, verbs in found if verbs]


def shown(*verb: str) -> str:
    text = help_of(*verb)
    level = "#" * len(verb)
    page = f"{level} {' '.join(verb)}\n\n```text\n{text}\n```\n"
    own = next((verbs for heading, verbs in groups(text) if heading == "Commands"), [])
    return page + "".join("\n" + shown(*verb, name) for name, _ in own if name != "help")


def fill(chapter: dict) -> None:
    lists = []
    for heading, verbs in groups(help_of()):
        rows = "".join(f"| [`{name}`](verbs/{name}.md) | {does} |\n" for name, does in verbs)
        lists.append(f"## {heading}\n\n| verb | does |\n| --- | --- |\n{rows}")
        for name, _ in verbs:
            number = [*chapter["number"], len(chapter["sub_items"]) + 1]
            page = {"name": name, "content": shown(name), "number": number, "sub_items": [], "path": f"reference/verbs/{name}.md"}
            chapter["sub_items"].append({"Chapter": {**page, "source_path": None, "parent_names": ["Verbs"]}})
    options = "## Options of all verbs\n\n```text" + help_of().split("Options of all verbs:")[1].split("Examples:")[0].rstrip() + "\n```\n"
    chapter["content"] = chapter["content"].replace(MARK, "\n".join([*lists, options]))


def chapters(items: list):
    for item in items:
        if isinstance(item, dict) and "Chapter" in item:
            yield item["Chapter"]
            yield from chapters(item["Chapter"]["sub_items"])


if sys.argv[1:2] == ["supports"]:
    sys.exit(0)
_, book = json.load(sys.stdin)
with_verbs = [chapter for chapter in chapters(book["items"]) if MARK in chapter["content"]]
if len(with_verbs) != 1:
    sys.exit(f"{len(with_verbs)} pages have the mark of the verbs")
fill(with_verbs[0])
json.dump(book, sys.stdout)
