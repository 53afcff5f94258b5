#!/usr/bin/env python3
"""Runs the tests: each in a process of its own, the longest first, one for each processor at a time.

    run.py [--user] [--disk] [--long | --all] [--record] [--list] [WORD …]

WORDs choose the tests whose names contain one of them: `engine::crash`. Without any, all are run.

Root gives the tests mounts of their own, with a tmpfs at /tmp if it has `user.*` attributes and there is memory; --disk leaves /tmp as it is.
What was skipped, and why, stands at the end: tests print lines that begin with `skipped:`. Before that the ways out of a run, from lines
that begin with `way:`; last of all what failed. All that was printed is in target/test.log.

A test that takes much longer than tests/times says is ended, and named. --record writes that file anew from this run.
"""

import argparse
import collections
import contextlib
import json
import os
import queue
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time

TOP = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
TARGET = os.path.join(TOP, os.environ.get("CARGO_TARGET_DIR", "target"))
TIMES = os.path.join(TOP, "tests", "times")
USER = 65534
# A test may take so many times as long as it took, and at least so many seconds; where all steps are swept or long tests run, so many.
PATIENCE, LEAST, LONG = 10, 120, 1800
# Rows of tests/times are for tests that take at least so many seconds.
SHORT = 0.5
# Memory that the worlds of tests may need, in KiB.
ROOM = 4 << 20

Test = collections.namedtuple("Test", "name program exact")
Done = collections.namedtuple("Done", "test seconds passed text")


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("words", nargs="*")
    parser.add_argument("--user", action="store_true", help="as an ordinary user, where root runs this")
    parser.add_argument("--disk", action="store_true", help="no tmpfs at /tmp")
    parser.add_argument("--long", action="store_true", help="the tests that `make test` leaves out, alone")
    parser.add_argument("--all", action="store_true", help="these, too")
    parser.add_argument("--record", action="store_true", help="write tests/times")
    parser.add_argument("--log", default=os.path.join(TARGET, "test.log"), help="where all that is printed goes")
    parser.add_argument("--list", action="store_true", help="print the names, run nothing")
    return parser.parse_args()


def main():
    args = arguments()
    # SIGINT is ignored where a script starts this in the background; tests send it to what they start.
    for number in [signal.SIGINT, signal.SIGTERM, signal.SIGHUP]:
        signal.signal(number, end_all)
    own_mounts(args)
    begun = time.monotonic()
    tests = chosen(args, programs(args.words))
    if args.list:
        print("\n".join(sorted(test.name for test in tests)))
        return 0
    if not tests:
        print("no test has such a name", file=sys.stderr)
        return 1
    seed = os.environ.setdefault("RECANT_SWEEP_SEED", str(int(time.time()) % 5040))
    print(f"{len(tests)} tests; seed of the sweeps: {seed} (RECANT_SWEEP_SEED={seed} plays it again)", flush=True)
    with tempfile.TemporaryDirectory(prefix="recant-tests-", dir="/var/tmp") as directory:
        is_long = args.long or args.all or "RECANT_SWEEP_EVERY" in os.environ
        done = run(tests, surroundings(args, directory), args.log, LONG if is_long else LEAST)
    if args.record:
        record(done)
    report(done, time.monotonic() - begun, args.log)
    return 0 if all(test.passed for test in done) else 1


RUNNING = set()


def end_all(number, _frame):
    """Ends what runs, and then this."""
    for child in list(RUNNING):
        with contextlib.suppress(ProcessLookupError):
            os.killpg(child.pid, signal.SIGKILL)
    os._exit(128 + number)


def own_mounts(args):
    """A mount namespace of the tests' own: what others mount meanwhile is no part of a run, and what is mounted here goes with it."""
    if os.geteuid() != 0 or not shutil.which("unshare"):
        return
    if "RECANT_TESTS" not in os.environ:
        os.environ["RECANT_TESTS"] = "in a mount namespace of their own"
        os.execvp("unshare", ["unshare", "-m", "--propagation", "private", sys.executable, *sys.argv])
    if args.list:
        return
    why = why_on_disk(args)
    # A run says a line about mounts below the places that it captures, which no test expects.
    for point in mounts_below(["/tmp/", "/var/tmp/"]):
        subprocess.run(["umount", "-l", point], capture_output=True)
    print(f"worlds lie in {tempfile.gettempdir()}: {why}" if why else "worlds lie on a tmpfs at /tmp", flush=True)


def mounts_below(places):
    """Mount points that lie there, the innermost first; not those of what is tested."""
    with open("/proc/self/mountinfo", encoding="utf-8") as lines:
        points = [line.split()[4] for line in lines]
    ours = [os.path.realpath(path) + "/" for path in [TOP, TARGET, sys.executable]]
    return [point for point in reversed(points)
            if any(point.startswith(place) for place in places) and not any(own.startswith(point + "/") for own in ours)]


def why_on_disk(args):
    """Mounts a tmpfs at /tmp, or says why not."""
    if args.disk:
        return "--disk"
    if "TMPDIR" in os.environ:
        return "TMPDIR is set"
    if any(os.path.realpath(path).startswith("/tmp/") for path in [TOP, TARGET, sys.executable]):
        return "what is tested lies in /tmp"
    if available() < ROOM:
        return "little memory is free"
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "mode=1777", "tmpfs", "/tmp"], capture_output=True).returncode != 0:
        return "no tmpfs can be mounted"
    try:
        os.setxattr("/tmp", "user.probe", b"1")
        os.removexattr("/tmp", "user.probe")
        return None
    except OSError as error:
        subprocess.run(["umount", "/tmp"], check=True)
        return f"a tmpfs has no user.* attributes here ({error.strerror})"


def available():
    """KiB of memory that can be had."""
    with open("/proc/meminfo", encoding="ascii") as lines:
        return next((int(line.split()[1]) for line in lines if line.startswith("MemAvailable:")), 0)


def programs(words):
    """Builds the tests; yields (name, path) of each program."""
    # Where each word names its program, these alone are built, and the examples, which tests run.
    named = {word.split("::")[0] for word in words if "::" in word}
    named = [option for name in sorted(named) for option in (["--lib"] if name == "src" else ["--test", name])]
    chosen_ones = named if words and all("::" in word for word in words) else []
    if chosen_ones:
        subprocess.run(["cargo", "build", "--locked", "--features", "crash-points", "--example", "capture"], cwd=TOP, check=True)
    command = ["cargo", "test", "--no-run", "--locked", "--features", "crash-points",
               "--message-format", "json-render-diagnostics"]
    built = subprocess.run([*command, *chosen_ones], cwd=TOP, stdout=subprocess.PIPE, text=True)
    if built.returncode != 0:
        sys.exit(built.returncode)
    for line in built.stdout.splitlines():
        row = json.loads(line)
        if row.get("reason") == "compiler-artifact" and row["profile"]["test"] and row["executable"]:
            kind = row["target"]["kind"][0]
            yield (row["target"]["name"] if kind == "test" else "src"), row["executable"]


def chosen(args, built):
    tests = []
    for program, path in built:
        long = names(path, ["--ignored"])
        usual = [name for name in names(path, []) if name not in long]
        wanted = long if args.long else long + usual if args.all else usual
        tests += [Test(f"{program}::{name}", path, name) for name in wanted]
    if not args.long:
        tests.append(Test("doc", None, None))
    return [test for test in tests if not args.words or any(word in test.name for word in args.words)]


def names(program, options):
    said = subprocess.run([program, "--list", "--format", "terse", *options], capture_output=True, text=True, check=True)
    return [line.removesuffix(": test") for line in said.stdout.splitlines() if line.endswith(": test")]


def surroundings(args, directory):
    """The environment of the tests, and the words before each of them."""
    os.chmod(directory, 0o755)
    # The build directory may be closed to other users, or lie below a directory that a test mounts over.
    built = os.path.join(TARGET, "debug", "recant")
    recant = os.path.join(directory, "recant")
    shutil.copy(built, recant)
    # Small, as it is copied again to machines and users of the tests.
    if shutil.which("strip"):
        subprocess.run(["strip", "--strip-debug", recant], check=True)
    env = {**os.environ, "CARGO_MANIFEST_DIR": TOP, "RECANT_BINARY": recant}
    if not (args.user and os.geteuid() == 0):
        return env, []
    home = os.path.join(directory, "home")
    os.mkdir(home)
    os.chown(home, USER, USER)
    kept = {name: value for name, value in env.items() if name in ["PATH", "CARGO_MANIFEST_DIR"] or name.startswith("RECANT_")}
    own = {"HOME": home, "LANG": "C.UTF-8", **kept}
    as_user = ["setpriv", f"--reuid={USER}", f"--regid={USER}", "--clear-groups"]
    os.environ[f"CARGO_TARGET_{host()}_RUNNER"] = example_runner(directory, home, as_user)
    return own, as_user


def host():
    """The name of this machine's kind in cargo's variables."""
    said = subprocess.run(["rustc", "-vV"], capture_output=True, text=True, check=True).stdout
    return next(line for line in said.splitlines() if line.startswith("host: "))[6:].upper().replace("-", "_")


def example_runner(directory, home, as_user):
    """A program that runs the examples in the library's documentation: root builds them, the user runs a copy."""
    path = os.path.join(directory, "example")
    with open(path, "w", encoding="ascii") as script:
        script.write(f'#!/bin/sh\ncopy=$(mktemp -d {home}/example.XXXXXX) && cp "$1" "$copy/example" && chmod -R a+rx "$copy" && shift\n'
                     f'cd {home} && exec {" ".join(as_user)} env HOME={home} "$copy/example" "$@"\n')
    os.chmod(path, 0o755)
    return path


def times():
    try:
        with open(TIMES, encoding="ascii") as rows:
            pairs = [row.split() for row in rows if not row.startswith("#")]
    except FileNotFoundError:
        return {}
    return {name: float(seconds) for seconds, name in pairs}


def run(tests, where, log, least):
    """Runs all of them; gives what became of each, in the order of their ends."""
    known = times()
    waiting = queue.SimpleQueue()
    for test in sorted(tests, key=lambda test: known.get(test.name, 0), reverse=True):
        waiting.put(test)
    done, lock, last = [], threading.Lock(), [time.monotonic()]
    os.makedirs(os.path.dirname(os.path.abspath(log)), exist_ok=True)
    with open(log, "w", encoding="utf-8") as out:
        def work():
            while True:
                try:
                    test = waiting.get_nowait()
                except queue.Empty:
                    return
                one = carry_out(test, max(least, PATIENCE * known.get(test.name, 0)), where)
                with lock:
                    done.append(one)
                    out.write(f"==== {'ok' if one.passed else 'FAILED'} {one.test.name} {one.seconds:.2f} s\n{one.text}\n")
                    out.flush()
                    if not one.passed:
                        print(f"FAILED {one.test.name}", flush=True)
                    if time.monotonic() - last[0] > 30:
                        last[0] = time.monotonic()
                        print(f"{len(done)} of {len(tests)} tests", flush=True)
        workers = [threading.Thread(target=work) for _ in range(len(os.sched_getaffinity(0)))]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()
    return done


def carry_out(test, limit, where):
    env, before = where
    begun = time.monotonic()
    if test.program is None:
        command, limit, env = ["cargo", "test", "--locked", "--features", "crash-points", "--doc"], 900, os.environ
    else:
        command = [*before, test.program, test.exact, "--exact", "--include-ignored", "--show-output", "--test-threads=1"]
    with tempfile.TemporaryFile(dir="/var/tmp") as said:
        child = subprocess.Popen(command, cwd=TOP, env=env, stdin=subprocess.DEVNULL, stdout=said, stderr=said,
                                 start_new_session=True)
        RUNNING.add(child)
        try:
            status = child.wait(limit)
        except subprocess.TimeoutExpired:
            os.killpg(child.pid, signal.SIGKILL)
            status = child.wait()
            said.write(f"\n{test.name} took more than {limit:.0f} s, and was ended\n".encode())
        RUNNING.discard(child)
        said.seek(0)
        text = said.read().decode(errors="replace")
    return Done(test, time.monotonic() - begun, status == 0, text)


def record(done):
    rows = sorted((-one.seconds, one.test.name) for one in done if one.seconds >= SHORT)
    with open(TIMES, "w", encoding="ascii") as out:
        out.write("# Seconds that a test took, by `tests/run.py --record` on two cores: those that took at least half a second.\n")
        out.writelines(f"{-seconds:.1f} {name}\n" for seconds, name in rows)


def report(done, seconds, log):
    lines = [line for one in done for line in one.text.splitlines()]
    ways = sorted({line[5:] for line in lines if line.startswith("way: ")})
    if ways:
        print(f"{len(ways)} ways out of a run were tried (what, who, on which road, what became of it):", *ways, sep="\n")
    skipped = collections.Counter(line for line in lines if line.startswith("skipped:"))
    print(f"{len(skipped)} things were skipped (how often, what, why):" if skipped else "nothing was skipped")
    for line, times_ in skipped.most_common():
        print(f"{times_:7} {line}")
    failed = [one for one in done if not one.passed]
    for one in failed:
        print(f"---- {one.test.name}\n{tail(one.text)}")
    print(f"took {int(seconds) // 60} min {int(seconds) % 60} s; the log is {os.path.relpath(log)}")
    for one in failed:
        print(f"failed: {one.test.name}")
    print(f"tests: {len(done) - len(failed)} passed, {len(failed)} failed")


def tail(text):
    """What a test that failed said last, from its panic on."""
    lines = text.splitlines()
    panic = next((n for n, line in enumerate(lines) if re.match(r"thread '.*' .*panicked at", line)), max(0, len(lines) - 20))
    return "\n".join(line[:400] for line in lines[panic:panic + 40])


if __name__ == "__main__":
    sys.exit(main())
