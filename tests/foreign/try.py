#!/usr/bin/env python3
"""The tests of binpash/try, with recant in try's place: try-by-recant.

    try.py RECANT CLONE [PATTERN …]

CLONE is a clone of github.com/binpash/try, which stays as it is: a copy is tested. Its utilities are built by cc; one test wants expect(1).
Exit status 0: each test passed, or has its reason below.
"""
import os
import re
import shutil
import subprocess
import sys
import tempfile

# Test → the reason for which it fails.
KNOWN = {
    "merge_multiple_dirs.sh": "-L lays directories of try's own over each other",
    "reuse_problematic_sandbox.sh": "writes into a directory of try's own",
}
HERE = os.path.dirname(os.path.abspath(__file__))


def main():
    recant, clone, *patterns = [*(os.path.realpath(path) for path in sys.argv[1:3]), *sys.argv[3:]]
    with tempfile.TemporaryDirectory(prefix="recant-foreign-", dir="/var/tmp") as top:
        copy, home, programs, temporary = (os.path.join(top, name) for name in ("try", "home", "bin", "tmp"))
        shutil.copytree(clone, copy, symlinks=True)
        shutil.copy(os.path.join(HERE, "try-by-recant"), os.path.join(copy, "try"))
        os.mkdir(home)
        os.mkdir(programs)
        os.mkdir(temporary)
        for program, sources in {"make-socket": ["make-socket"], "try-commit": ["excludes", "try-commit"],
                                 "try-summary": ["excludes", "try-summary"]}.items():
            paths = [f"{copy}/utils/{name}.c" for name in sources]
            subprocess.run(["cc", "-w", "-o", f"{programs}/{program}", *paths], check=True)
        # The marks of an agent would make its commits a person's to decide.
        environment = {"PATH": f"{programs}:{os.environ['PATH']}", "HOME": home, "LANG": "C.UTF-8", "TERM": "dumb", "SHELL": "/bin/bash", "TMPDIR": temporary,
                       "RECANT": recant, "TRY_TOP": copy}
        said = subprocess.run(["nice", "sh", "scripts/run_tests.sh", *patterns], cwd=copy, env=environment, stdin=subprocess.DEVNULL,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace", check=False).stdout
    results = dict(re.findall(r"^Running (\S+?)\.\.\. +(PASS|FAIL|SKIP)", said, re.MULTILINE))
    failed = [name for name, result in results.items() if result != "PASS"]
    if any(name not in KNOWN for name in failed):
        print(said)
    for name in failed:
        print(f"{name}: {results[name]} ({KNOWN.get(name, 'without a reason')})")
    passed = len(results) - len(failed)
    print(f"{passed} of {len(results)} passed")
    sys.exit(not passed or any(name not in KNOWN for name in failed))


if __name__ == "__main__":
    main()
