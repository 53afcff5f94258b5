"""Snapshots under the same faults as calls.py: each system call of create, prune and restore that changes something is the last one,
or fails. Afterwards every snapshot that is listed gives back exactly what it was taken of, what was said to be done is there, the tree is
as before or as wanted, and the same command again is done. So for a run on the real tree, between two snapshots: wherever that ends, what was
there before comes back."""

import json
import os
import shutil
import subprocess

from calls import DONE, INTERRUPTED, KINDS, LIES, NOTHING, OTHERS, RETRIES, STUCK, Found, Missed, documented, inject, points, renumbered
from scene import World, difference, fill, manifest

WORDS = {
    "create": ["snapshot", "create"],
    "prune": ["prune", "--snapshots", "--keep", "1"],
    "restore": ["snapshot", "restore", "1"],
    "run": ["run", "--in", ".", "--", "sh", "-ec", "echo more >> edit/1; rm -r gone; mkdir come; echo come > come/file"],
}


# A run has its command's status, too, and 125 where there was no capture.
STATUSES = {"run": (DONE, *NOTHING, 4, STUCK, 125)}


class Scene:
    """Snapshots 0 to 2 of three states of a tree that is in a fourth; kept aside, to begin again from."""

    def __init__(self, recant, at):
        self.world = World(recant, at)
        self.saved = os.path.join(at, "saved")
        world = self.world
        for directory in [world.tree, world.home, self.saved]:
            os.makedirs(directory)
        fill(world.tree, links=True)
        self.wanted = []
        for i in range(4):
            for name, size in [("edit/1", 2_000), ("edit/large", 200_000)]:
                with open(os.path.join(world.tree, name), "wb") as file:
                    file.write(bytes([48 + i]) * size)
                os.utime(os.path.join(world.tree, name), ns=(10**18, 10**18 + i))
            with open(os.path.join(world.tree, f"new-{i}"), "w") as file:
                file.write("n")
            os.utime(os.path.join(world.tree, f"new-{i}"), ns=(10**18, 10**18))
            if i:
                os.unlink(os.path.join(world.tree, f"new-{i - 1}"))
            os.utime(world.tree, ns=(10**18, 10**18 + i))
            self.wanted.append(manifest(world.tree))
            if i < 3:
                self.must("snapshot", "create")
        self.copy(world.at, self.saved)

    def copy(self, origin, to):
        subprocess.run(["cp", "-a", os.path.join(origin, "tree"), os.path.join(origin, "store"), to], check=True)

    def reset(self):
        for directory in [self.world.tree, self.world.store, self.world.home]:
            shutil.rmtree(directory)
        # A run that is killed early leaves the caches that it made in the home: then a later one has other calls.
        os.makedirs(self.world.home)
        self.copy(self.saved, self.world.at)

    def must(self, *words, kind="lost"):
        said = self.world.run(*words)
        if said.returncode != 0:
            raise Found(kind, f"{' '.join(words)}: exit {said.returncode}: {said.stderr.decode()}")
        return said.stdout

    def listed(self):
        return sorted(row["n"] for row in json.loads(self.must("snapshot", "list", "--json"))["snapshots"])

    def give_back(self, numbers):
        for n in numbers:
            self.must("snapshot", "restore", str(n))
            differs = difference(self.wanted[min(n, 3)], manifest(self.world.tree))
            if differs:
                raise Found("lost", f"snapshot {n} gave something else back:\n" + "\n".join(differs))

    def judge_run(self, said, text):
        """Its session takes back what the command did, by a recovery where it was killed; where there is none, the command was not started."""
        self.must("recover", kind="mixed")
        if said.returncode == 0 and os.path.exists(os.path.join(self.world.tree, "gone")):
            raise Found("mixed", f"exit 0, but the command did not come to its end; {text}")
        listed, held = self.listed(), self.must("list").strip()
        if said.returncode == 0 and not held:
            raise Found("mixed", "exit 0, but there is no session")
        if held:
            self.must("rollback", "last")
        differs = difference(self.wanted[3], manifest(self.world.tree))
        if differs and held and "not in both snapshots" in text:
            # What could not be looked at is named, and in no session: the snapshot from before has it.
            self.must("snapshot", "restore", "3")
            differs = difference(self.wanted[3], manifest(self.world.tree))
        if differs:
            raise Found("lost", f"exit {said.returncode}, {'a session' if held else listed}:\n" + "\n".join(differs) + f"\n{text}")
        left = self.world.leftovers()
        if left:
            raise Found("mixed", f"exit {said.returncode}, left: {left}; {text}")
        self.give_back([n for n in listed if n <= 3])
        return "after" if held else "before"

    def judge(self, verb, said, kind):
        text = said.stderr.decode(errors="backslashreplace").strip()
        if kind != "KILL" and said.returncode != 0 and not text:
            raise Found("mixed", f"exit {said.returncode} without a word")
        documented(kind, said, STATUSES.get(verb, (DONE, *NOTHING, STUCK)))
        if verb == "run":
            return self.judge_run(said, text)
        outcome = self.judge_restore(said, text) if verb == "restore" else None
        listed = self.listed()
        kept = [2] if verb == "prune" else [0, 1, 2]
        if not set(kept) <= set(listed):
            raise Found("lost", f"exit {said.returncode}: of {kept} only {listed} are there; {text}")
        done = {"create": [0, 1, 2, 3], "prune": [2]}.get(verb)
        if done and said.returncode == 0 and listed != done:
            raise Found("mixed", f"exit 0, but {listed} is what there is")
        # Before another create stores anew what it finds missing.
        self.must("snapshot", "verify")
        if verb != "restore":
            self.must(*WORDS[verb], kind="mixed")
            outcome = "after" if listed == done else "before"
        now = self.listed()
        if not set(listed) <= set(now) and verb == "create":
            raise Found("lost", f"of {listed} only {now} are there")
        self.give_back(now)
        return outcome

    def judge_restore(self, said, text):
        world = self.world
        self.must("recover", kind="mixed")
        found = manifest(world.tree)
        before, wanted = difference(self.wanted[3], found), difference(self.wanted[1], found)
        if said.returncode == 0 and wanted or before and wanted:
            raise Found("mixed", f"exit {said.returncode}, but\n" + "\n".join(wanted) + f"\n{text}")
        left = world.leftovers()
        if left:
            raise Found("mixed", f"exit {said.returncode}, left: {left}; {text}")
        if not wanted and self.must("list"):
            self.must("rollback", "last")
            differs = difference(self.wanted[3], manifest(world.tree))
            if differs:
                raise Found("lost", "rolled back:\n" + "\n".join(differs))
        return "stuck" if said.returncode == 7 else "before" if wanted else "after"


def inject_again(scene, found, point, fault, words):
    """Lets the call fail, by another number where that is none of them by now."""
    now = point
    for again in range(RETRIES):
        scene.reset()
        try:
            return inject(scene.world, *now, fault, *words)
        except Missed:
            if again == RETRIES - 1:
                raise
        scene.reset()
        now = renumbered(scene.world, found, point, *words)


def sweep(recant, directory, report, every=1, verbs=WORDS, plant=lambda world: None):
    scene = Scene(recant, directory)
    for verb in verbs:
        words = WORDS[verb]
        scene.reset()
        found = points(scene.world, *words)
        for kind in KINDS:
            for i, point in enumerate(found):
                if (i + len(kind)) % every or kind == "EINTR" and point[0] not in INTERRUPTED:
                    continue
                fault = OTHERS[i % len(OTHERS)] if kind == "other" else kind
                if (point[0], fault) in LIES:
                    continue
                try:
                    said = inject_again(scene, found, point, fault, words)
                    plant(scene.world)
                    report.count(kind, f"snapshot {verb}", scene.judge(verb, said, kind))
                except Missed as why:
                    report.count(kind, f"snapshot {verb}", "missed")
                    report.say(f"missed: snapshot {verb}: {fault} ({i}) at {point[0]} {point[1]}: {why}")
                except Found as wrong:
                    report.count(kind, f"snapshot {verb}", wrong.kind)
                    report.say(f"{wrong.kind}: snapshot {verb}: {fault} ({i}) at {point[0]} {point[1]}:\n{wrong}")
