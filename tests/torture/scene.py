"""A world of its own with a session of about 40 paths of every kind, and the exact state of a tree to compare."""

import ctypes
import hashlib
import json
import os
import shutil
import stat
import subprocess

LIBC = ctypes.CDLL(None, use_errno=True)

# What the session changes, as commands that a run holds: every kind of object and of change.
CHANGES = r"""
for i in 1 2 3 4 5 6; do echo "new content $i, longer than before" > edit/$i; done
head -c 70000 /dev/zero | tr '\0' n > edit/large
: > edit/emptied; echo filled > edit/empty
mkdir -p made/deep/er made/hollow; for i in 1 2 3; do echo $i > made/$i; done; echo n > made/deep/er/n
truncate -s 1M made/sparse; mkfifo made/fifo; ln -s ../edit/1 made/link; ln made/1 made/1-too
rm -r gone; rm one-gone link-gone fifo-gone
chmod 0640 mode/file; chmod 0700 mode/directory; touch -d @900000000 mode/times
ln -sfn made turned; rm kind/file; mkdir kind/file; echo in > kind/file/in
rm -r kind/directory; echo "was a directory" > kind/directory; rm kind/link; echo "was a link" > kind/link
rm kind/fifo; ln -s nowhere kind/fifo; rm -r kind/to-link; ln -s ../edit kind/to-link
echo apart > group/a; mv moved/from moved/to
setfattr -n user.recant.test -v changed xattr/file || :
# All that has a time of its own now, and the directories that came: a time that can be told again, each another one.
n=0
{ find . ! -type d -newermt @1300000000; find made kind/file -depth -type d; } | sort | while read -r path; do
    n=$((n + 1)); touch -h -d "@1400000000.$((123456700 + n))" "$path"
done
"""


def fill(tree, links):
    """The tree before."""
    def write(name, content):
        path = os.path.join(tree, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "wb") as file:
            file.write(content)

    for i in range(1, 7):
        write(f"edit/{i}", b"old %d" % i)
    write("edit/large", b"o" * 200_000)
    write("edit/emptied", b"not for long")
    write("edit/empty", b"")
    for name in ["gone/1", "gone/2", "gone/sub/3", "one-gone", "mode/file", "mode/times", "kind/file", "kind/directory/in",
                 "kind/to-link/in", "moved/from", "xattr/file", "group/a", "apart/untouched"]:
        write(name, name.encode())
    os.mkdir(os.path.join(tree, "mode/directory"))
    os.chmod(os.path.join(tree, "edit/2"), 0o600)
    if links:
        os.link(os.path.join(tree, "group/a"), os.path.join(tree, "group/b"))
    for name, target in [("link-gone", "apart/untouched"), ("turned", "edit"), ("kind/link", "nowhere")]:
        os.symlink(target, os.path.join(tree, name))
    for name in ["fifo-gone", "kind/fifo"]:
        os.mkfifo(os.path.join(tree, name))
    for name in ["edit/1", "xattr/file"]:
        try:
            os.setxattr(os.path.join(tree, name), "user.recant.test", b"kept")
        except OSError:
            pass
    for top, directories, files in os.walk(tree, topdown=False):
        for i, name in enumerate(sorted(directories + files)):
            os.utime(os.path.join(top, name), ns=(10**18, 10**18 + i), follow_symlinks=False)
    os.utime(tree, ns=(10**18, 10**18))


# A directory's kind in a manifest.
DIRECTORY = f"{stat.S_IFDIR >> 12:x}"


def manifest(tree):
    """The exact state of all that lies under a directory: by path, apart from recant."""
    rows, names = {}, {}
    todo = [b""]
    top = os.fsencode(tree)
    while todo:
        below = todo.pop()
        path = os.path.join(top, below) if below else top
        meta = os.lstat(path)
        kind = stat.S_IFMT(meta.st_mode)
        if kind == stat.S_IFDIR:
            todo += [os.path.join(below, name) for name in os.listdir(path)]
            content = ""
        elif kind == stat.S_IFREG:
            with open(path, "rb") as file:
                content = hashlib.sha256(file.read()).hexdigest()[:16] + f" {meta.st_size}"
        elif kind == stat.S_IFLNK:
            content = os.readlink(path).decode(errors="backslashreplace")
        else:
            content = f"{meta.st_rdev}"
        if kind != stat.S_IFDIR and meta.st_nlink > 1:
            names.setdefault((meta.st_dev, meta.st_ino), []).append(below)
        try:
            xattrs = [(name, os.getxattr(path, name, follow_symlinks=False)) for name in
                      sorted(os.listxattr(path, follow_symlinks=False))]
        except OSError:
            xattrs = []
        rows[below] = [f"{kind >> 12:x}", f"{meta.st_mode & 0o7777:04o}", meta.st_uid, meta.st_gid, meta.st_mtime_ns, content, xattrs, None]
    for group in names.values():
        for path in group:
            rows[path][-1] = min(group)
    return rows


def settled(rows):
    """The same without the times of directories in which an operation has made or removed a name. All others are those of before, or of the session."""
    def row(known):
        late = known[0] == DIRECTORY and known[4] > 15 * 10**17
        return known[:4] + [0 if late else known[4]] + known[5:]
    return {path: row(known) for path, known in rows.items()}


def difference(wanted, found):
    """Lines for what differs; an empty list where nothing does."""
    lines = []
    for path in sorted(set(wanted) | set(found)):
        if wanted.get(path) != found.get(path):
            lines.append(f"  {os.fsdecode(path) or '.'}: wanted {wanted.get(path)}, found {found.get(path)}")
    return lines if len(lines) < 7 else [*lines[:6], f"  and {len(lines) - 6} more"]


class World:
    """A home, a tree and a store; `store_at` may be on another file system."""

    def __init__(self, recant, at, store_at=None):
        self.recant, self.at = recant, at
        self.tree, self.home = os.path.join(at, "tree"), os.path.join(at, "home")
        self.store = os.path.join(store_at or at, "store")
        self.env = {"PATH": os.environ["PATH"], "HOME": self.home, "RECANT_STORE": self.store, "LANG": "C.UTF-8"}
        self.id = None
        # A program that runs what is run.
        self.around = []

    def make(self):
        """Everything anew: the tree before, and a pending session."""
        for directory in [self.tree, self.home, self.store]:
            shutil.rmtree(directory, ignore_errors=True)
        for directory in [self.tree, self.home]:
            os.makedirs(directory)
        # Between two file systems a name outside the session cannot be joined again: rollback says so, exit 4.
        fill(self.tree, links=self.store.startswith(self.at + "/"))
        said = self.run("run", "-q", "--", "sh", "-c", CHANGES)
        if said.returncode != 0:
            raise SystemExit(f"the session cannot be made: {said.stderr.decode()}")
        ids = os.listdir(os.path.join(self.store, "sessions"))
        self.id = next(name for name in ids if not name.startswith("."))

    def command(self, *words):
        return [self.recant, *words]

    def run(self, *words, prefix=(), **more):
        return subprocess.run([*self.around, *prefix, *self.command(*words)], cwd=self.tree, env=self.env, stdin=subprocess.DEVNULL,
                              capture_output=True, **more)

    def status(self):
        said = self.run("show", self.id, "--json")
        return json.loads(said.stdout)["session"]["status"] if said.returncode == 0 else f"exit {said.returncode}"

    def manifest(self):
        return settled(manifest(self.tree))

    def leftovers(self):
        """What should not be there once an operation has ended or was recovered."""
        found = [os.fsdecode(path) for path in manifest(self.tree) if b".recant-" in path]
        return found + [f"journals/{name}" for name in os.listdir(os.path.join(self.store, "journals"))]
