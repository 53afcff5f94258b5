#!/usr/bin/env python3
"""Projects of package managers, installed, built, tested and upgraded held, as an ordinary user.

    run.py --recant RECANT [--only WORDS]

npm, pnpm, pip and cargo fetch from their registries, as the caller has set them; go, composer and bundler use what is vendored. All steps of
a project are commands of one session. They must end as they end bare; what is committed must be what a bare run leaves in the same place;
and the rollback must leave what was there. Debian's packages that a project needs are installed if root runs this. What cannot be had is
skipped, with the reason. Closing line: N passed, N failed, N skipped.
"""
import argparse
import fnmatch
import glob
import hashlib
import os
import shutil
import stat
import subprocess
import sys
import tempfile

USER = 54321
LIMIT = 600

# Where callers keep their registries, which the user of the projects gets too.
SETTINGS = [".npmrc", ".cargo/config.toml", ".cargo/config", ".config/pip/pip.conf"]

# name: (programs, or files, with Debian's packages that have them; what is made bare, steps, names whose content varies from run to run)
PROJECTS = {
    "npm": (
        {"npm": "npm"},
        """echo '{"name":"app","version":"1.0.0","scripts":{"build":"tsc a.ts","test":"node test.js"},
            "dependencies":{"express":"4.18.2","typescript":"5.4.2"}}' > package.json
        echo 'export const n: number = 7' > a.ts; echo 'require("express"); if (require("./a.js").n !== 7) process.exit(1)' > test.js""",
        ["npm install", "npm run build && npm test", "npm install express@4.19.2", "npm ci", "npm test", "npm uninstall express", "npm prune"],
        [".package-lock.json"],
    ),
    "pnpm": (
        {"npm": "npm"},
        """npm install --prefix ../tool pnpm@9.1.0
        echo '{"name":"app","version":"1.0.0","dependencies":{"express":"4.18.2","ms":"2.1.2"}}' > package.json
        echo 'require("express"); require("ms")' > test.js""",
        ["../tool/node_modules/.bin/pnpm " + words for words in ("install", "exec node test.js", "add express@4.19.2", "update ms", "remove ms")],
        [".modules.yaml", ".pnpm-workspace-state.json", "lock.yaml"],
    ),
    "pip": (
        {"/usr/lib/python3.*/ensurepip": "python3-venv"},
        "/usr/bin/python3 -m venv venv; echo 'import requests, flask; print(requests.__version__)' > test.py",
        ["venv/bin/pip install requests==2.31.0 flask==3.0.0", "venv/bin/python test.py", "venv/bin/pip install requests==2.32.3",
         "venv/bin/python test.py", "venv/bin/pip uninstall -y flask", "venv/bin/pip check"],
        ["*.pyc"],
    ),
    "cargo": (
        {},
        """cargo init -q --name app --vcs none; echo 'itoa = "=1.0.9"' >> Cargo.toml
        echo 'fn main() { println!("{}", itoa::Buffer::new().format(7)) } #[test] fn t() {}' > src/main.rs""",
        ["cargo build", "cargo test", "sed -i s/=1.0.9/=1.0.10/ Cargo.toml; cargo update", "cargo build --release", "cargo run", "cargo clean", "cargo build"],
        ["*.d", "invoked.timestamp", "dep-*", "output", ".rustc_info.json"],
    ),
    "go": (
        {"go": "golang-go"},
        """mkdir -p ../dep; echo 'module x.test/dep' > ../dep/go.mod; echo 'package dep; func N() int { return 7 }' > ../dep/dep.go
        printf 'module x.test/app\\n\\nrequire x.test/dep v0.0.0\\n\\nreplace x.test/dep => ../dep\\n' > go.mod
        printf 'package main\\n\\nimport "x.test/dep"\\n\\nfunc main() { println(dep.N()) }\\n' > main.go
        printf 'package main\\n\\nimport "testing"\\n\\nfunc TestN(t *testing.T) {}\\n' > main_test.go""",
        ["go mod vendor", "go build -o app", "go test ./...", "echo 'package dep; func N() int { return 8 }' > ../dep/dep.go; go mod vendor",
         "go build -o app && ./app", "go clean -cache"],
        [],
    ),
    "composer": (
        {"composer": "composer", "php": "php-cli"},
        """mkdir -p ../dep/src; printf '%s' '{"name":"x/dep","version":"1.0.0","autoload":{"psr-4":{"Dep\\\\":"src/"}}}' > ../dep/composer.json
        echo '<?php namespace Dep; class N { const N = 7; }' > ../dep/src/N.php
        echo '{"name":"x/app","repositories":[{"type":"path","url":"../dep","options":{"symlink":false}},{"packagist.org":false}],
            "require":{"x/dep":"*"}}' > composer.json
        printf '%s' '<?php require "vendor/autoload.php"; exit(Dep\\N::N - 7);' > test.php""",
        ["composer install -q", "php test.php", "sed -i s/1.0.0/1.1.0/ ../dep/composer.json; composer update -q", "php test.php",
         "composer dump-autoload -q -o"],
        ["autoload*.php", "ClassLoader.php"],
    ),
    "bundler": (
        {"bundle": "ruby-bundler", "gem": "ruby"},
        """mkdir -p ../dep/lib vendor/cache; cd ../dep; echo 'module Dep; N = 7; end' > lib/dep.rb
        for v in 1.0.0 1.1.0; do
            printf "Gem::Specification.new { |s| s.name = 'dep'; s.version = '$v'; s.summary = 's'; s.authors = ['a']; s.files = ['lib/dep.rb'] }\\n" > dep.gemspec
            gem build -q dep.gemspec 2> /dev/null; done; mv dep-1.0.0.gem ../app/vendor/cache; cd ../app
        printf "source 'https://rubygems.org'\\ngem 'dep'\\n" > Gemfile; echo 'require "dep"; exit Dep::N - 7' > test.rb
        bundle config set --local path vendor/bundle""",
        ["bundle install --local", "bundle exec ruby test.rb", "mv ../dep/dep-1.1.0.gem vendor/cache; bundle update --local dep",
         "bundle exec ruby test.rb", "bundle clean --force"],
        ["gem_make.out", "*.gemspec"],
    ),
}


class World:
    """A home on a disk, whose user is no one else's."""

    def __init__(self, recant, sysroot):
        self.top = tempfile.mkdtemp(prefix="recant-packages-", dir="/var/tmp")
        self.home = os.path.join(self.top, "home")
        os.mkdir(self.home)
        self.recant = shutil.copy(recant, os.path.join(self.top, "recant"))
        self.environment = {name: value for name, value in os.environ.items() if name.startswith(("PIP_", "npm_config_", "NODE_", "SSL_"))}
        self.environment |= {
            "HOME": self.home, "LANG": "C.UTF-8", "TERM": "dumb", "PATH": f"{sysroot}/bin:/usr/local/bin:/usr/bin:/bin",
            "GOFLAGS": "-mod=mod", "GOPROXY": "off", "GONOSUMDB": "*", "COMPOSER_DISABLE_NETWORK": "1", "CI": "1",
            # Names of what is compiled incrementally are new each time.
            "CARGO_INCREMENTAL": "0",
        }
        for name in SETTINGS:
            there = os.path.join(os.path.expanduser("~"), name)
            if os.path.exists(there):
                os.makedirs(os.path.dirname(os.path.join(self.home, name)), exist_ok=True)
                shutil.copy(there, os.path.join(self.home, name))
        self.rights = ["setpriv", f"--reuid={USER}", f"--regid={USER}", "--clear-groups"] if os.geteuid() == 0 else []
        if self.rights:
            subprocess.run(["chown", "-R", f"{USER}:{USER}", self.top], check=True)

    def run(self, words, directory):
        done = subprocess.run(["timeout", str(LIMIT), *self.rights, *words], cwd=directory, env=self.environment, stdin=subprocess.DEVNULL,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
        return done.returncode, done.stdout.decode(errors="replace")

    def must(self, words, directory):
        status, said = self.run(words, directory)
        if status:
            raise Wrong(f"{' '.join(words)}: {status}\n{said[-1500:]}")

    def remove(self):
        subprocess.run(["chmod", "-R", "u+rwX", self.top], stderr=subprocess.DEVNULL, check=False)
        shutil.rmtree(self.top, ignore_errors=True)


class Wrong(Exception):
    """What is wrong, as text."""


def seen(top, varies):
    """What lies below a directory: sort, mode and content by path; not the content of what `varies`."""
    found = {}
    for directory, directories, files in os.walk(top):
        for name in directories + files:
            path = os.path.join(directory, name)
            look = os.lstat(path)
            content = ""
            if stat.S_ISLNK(look.st_mode):
                content = os.readlink(path)
            elif stat.S_ISREG(look.st_mode) and not any(fnmatch.fnmatch(name, pattern) for pattern in varies):
                with open(path, "rb") as file:
                    content = hashlib.file_digest(file, "sha256").hexdigest() if hasattr(hashlib, "file_digest") \
                        else hashlib.sha256(file.read()).hexdigest()
            found[os.path.relpath(path, top)] = (oct(look.st_mode), content)
    return found


def same(what, one, other):
    differ = sorted(path for path in one.keys() | other.keys() if one.get(path) != other.get(path))
    if differ:
        rows = [f"{path}: {one.get(path)}, {other.get(path)}" for path in differ[:8]]
        raise Wrong(f"{what}: {len(differ)} paths differ\n" + "\n".join(rows))


def play(recant, sysroot, project):
    _, made, steps, varies = project
    world = World(recant, sysroot)
    try:
        work = os.path.join(world.home, "work")
        app = os.path.join(work, "app")
        world.must(["mkdir", "-p", app], world.home)
        world.must(["sh", "-ec", made], app)
        before, kept = seen(work, []), os.path.join(world.home, "kept")
        world.must(["cp", "-a", work, kept], world.home)
        held = [world.run([world.recant, "run", "-q", "--session", "s", "--", "sh", "-ec", step], app) for step in steps]
        same("held", before, seen(work, []))
        world.must([world.recant, "commit", "s", "-y"], app)
        after = seen(work, varies)
        world.must([world.recant, "rollback", "s", "-y"], app)
        same("rolled back", before, seen(work, []))
        # In the same place, of the same copy: what a rollback leaves in caches does not count.
        world.must(["rm", "-rf", work], world.home)
        world.must(["mv", kept, work], world.home)
        for step, (status, said) in zip(steps, held):
            bare, out = world.run(["sh", "-ec", step], app)
            if bare != status:
                raise Wrong(f"{step}: {status} held, {bare} bare\n{said[-1500:]}\n{out[-500:]}")
            if bare:
                raise Wrong(f"{step}: {bare} bare as held\n{out[-1500:]}")
        same("committed and bare", after, seen(work, varies))
        return f"{len(steps)} commands, {len(after)} paths"
    finally:
        world.remove()


def lacks(needs):
    """Why a project cannot be tried; nothing if it can."""
    def missing():
        path = "/usr/local/bin:/usr/bin:/bin"
        return [package for need, package in needs.items() if not (glob.glob(need) if need.startswith("/") else shutil.which(need, path=path))]
    if missing() and os.geteuid() == 0:
        subprocess.run(["apt-get", "-qq", "install", "-y", "--no-install-recommends", *missing()], stdout=subprocess.DEVNULL, check=False)
    return f"{', '.join(missing())} cannot be installed" if missing() else ""


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--recant", required=True, type=os.path.realpath)
    parser.add_argument("--only", default="", help="names of projects; 'packages' for all")
    given = parser.parse_args()
    sysroot = subprocess.run(["rustc", "--print", "sysroot"], capture_output=True, text=True, check=True).stdout.strip()
    if os.geteuid() == 0:
        if "RECANT_OWN_MOUNTS" not in os.environ:
            # The toolchain may lie in a home that is closed to the user.
            os.execvpe("unshare", ["unshare", "-m", sys.executable, *sys.argv], os.environ | {"RECANT_OWN_MOUNTS": "1"})
        subprocess.run(["mount", "--bind", sysroot, "/mnt"], check=True)
        sysroot = "/mnt"
    passed = failed = skipped = 0
    for name, project in PROJECTS.items():
        if given.only and not {name, "packages"} & set(given.only.split()):
            continue
        why = lacks(project[0])
        if why:
            skipped += 1
            print(f"skipped: {name}: {why}", flush=True)
            continue
        try:
            note = play(given.recant, sysroot, project)
            passed += 1
            print(f"ok {name} ({note})", flush=True)
        except Wrong as wrong:
            failed += 1
            print(f"FAILED {name}: {wrong}", flush=True)
    print(f"{passed} passed, {failed} failed, {skipped} skipped")
    sys.exit(failed > 0)


if __name__ == "__main__":
    main()
