#!/usr/bin/env python3
"""Texts of the packages, on standard output.

    texts.py third-party FILE                      FILE: what cargo-bundle-licenses wrote, as JSON
    texts.py changelog VERSION MAINTAINER SECONDS  Debian's form: one entry, which points to CHANGELOG.md
    texts.py copyright                             Debian's form (DEP 5)
"""
import email.utils
import json
import sys
import tomllib

with open("Cargo.toml", "rb") as file:
    PACKAGE = tomllib.load(file)["package"]


def third_party(path):
    print("Crates that are part of the program, and their licences. The program also has Rust's standard library (MIT or Apache-2.0)\n"
          "and, unless it was built for musl, the GNU C Library (LGPL-2.1-or-later): whoever builds recant from its source can link\n"
          "another version.")
    with open(path, encoding="utf-8") as listed:
        libraries = json.load(listed)["third_party_libraries"]
    texts = {}
    for one in libraries:
        name = f"{one['package_name']} {one['package_version']}"
        print(f"\n{'=' * 100}\n{name}: {one['license']}")
        if one.get("repository"):
            print(one["repository"])
        for licence in one["licenses"]:
            text = licence["text"].replace("\r\n", "\n").strip("\n")
            # Most crates have one of a few texts.
            first = texts.setdefault(" ".join(text.split()), name)
            print(f"\n{'-' * 40} {licence['license']}\n\n{text if first == name else f'The text that {first} has, above.'}")


def changelog(version, maintainer, seconds):
    print(f"recant ({version}) unstable; urgency=medium\n\n  * Built from the source of this version, whose CHANGELOG.md has what changed.\n\n"
          f" -- {maintainer}  {email.utils.formatdate(int(seconds))}")


def copyright_():
    print("Format: https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/\nUpstream-Name: recant")
    if PACKAGE.get("repository"):
        print(f"Source: {PACKAGE['repository']}")
    print(f"\nFiles: *\nCopyright: {', '.join(PACKAGE.get('authors', ['the authors of recant']))}\nLicense: {PACKAGE['license']}\n"
          "\nLicense: Apache-2.0\n On Debian systems, its text is in /usr/share/common-licenses/Apache-2.0.\n"
          "Comment: The crates that are part of the program, and their licences, are in\n /usr/share/doc/recant/THIRD-PARTY.gz.")


{"third-party": third_party, "changelog": changelog, "copyright": copyright_}[sys.argv[1]](*sys.argv[2:])
