"""What the benches have in common: running a command and telling what came of it."""

import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time


def clock(*command, **more):
    """Seconds of one process, from its start to its end. Nothing waits to be written at its start."""
    os.sync()
    with tempfile.TemporaryFile() as errors:
        begun = time.perf_counter()
        child = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=errors, **more)
        child.wait()
        seconds = time.perf_counter() - begun
        if child.returncode:
            errors.seek(0)
            sys.exit(f"{' '.join(command)}: status {child.returncode}\n{errors.read().decode(errors='replace')}")
    return seconds


def do(*command, **more):
    done = subprocess.run(command, capture_output=True, text=True, **more)
    if done.returncode:
        sys.exit(f"{' '.join(command)}: status {done.returncode}\n{done.stderr}")
    return done.stdout.strip()


named = set()


def has(program, what="what is measured beside it"):
    """True if a program is here; else names it once, with what is not measured."""
    if shutil.which(program):
        return True
    if (program, what) not in named:
        named.add((program, what))
        print(f"\nskipped: no {program} here: {what}", flush=True)
    return False


def commits(repo, **more):
    """A repository with 1,000 commits on branch m."""
    do("git", "init", "-q", repo, **more)
    stream = "".join(
        f"commit refs/heads/m\ncommitter A <a@example.org> {1_600_000_000 + i} +0000\ndata 8\nchange {i % 10}\n" for i in range(1000)
    )
    do("git", "fast-import", "--quiet", **(more | {"cwd": repo, "input": stream}))


def say(text):
    print(text, file=sys.stderr, flush=True)


def median_ms(values):
    return f"{statistics.median(values) * 1000:.1f}"


def spread(ratios, aim):
    median = statistics.median(ratios)
    text = f"{median:.2f} [{min(ratios):.2f} to {max(ratios):.2f}]"
    return text if aim is None else f"{text}, aim {aim}{'' if median <= aim else ': MISSED'}"
