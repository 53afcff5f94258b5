#!/usr/bin/env python3
"""The files of a release, as those who install them use them.

    run.py [--dist DIR] [--work DIR] [--only WORDS] [--quick]

DIR is what packaging/dist.sh made; where there is none it is made. The archive is used from an empty directory, the .deb in a Debian root of
debootstrap's and on this machine, the .rpm in a root by a database of its own: each by root and by an ordinary user, then removed.
Sums, the list of crates (SBOM), the list in the program itself, lintian, the form of the file names that cargo-binstall asks for,
`cargo install`. Last, the same commit is built again elsewhere, and gives the same bytes (--quick: not). What cannot be had is skipped, with
the reason. Closing line: N passed, N failed, N skipped.
"""
import argparse
import glob
import json
import os
import platform
import re
import shutil
import struct
import subprocess
import sys
import tempfile
import tomllib
import zlib

TOP = os.path.realpath(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", ".."))
with open(os.path.join(TOP, "Cargo.toml"), "rb") as file:
    CARGO = tomllib.load(file)
VERSION = CARGO["package"]["version"]
HERE = platform.machine()
DEBIAN = {"x86_64": "amd64", "aarch64": "arm64"}
USER = 65534

# A snapshot there and back; a run, where one can be had; a session by hand, a rollback. $1: the program.
USE = r"""
set -eu
recant=$1 scene=$(mktemp -d)
trap 'rm -rf "$scene"' EXIT
export HOME=$scene XDG_DATA_HOME=$scene/store XDG_CONFIG_HOME=$scene/config
mkdir "$scene/tree"; cd "$scene/tree"
[ "$("$recant" --version)" = "recant $2" ] || { echo "another version: $("$recant" --version)"; exit 1; }
echo one >file
"$recant" -q snapshot create .
echo two >file
"$recant" -q snapshot restore 0 --force .
[ "$(cat file)" = one ] || { echo "not restored"; exit 1; }
id=$("$recant" session new)
echo three | "$recant" -q session write "$id" file
"$recant" -q commit "$id"; [ "$(cat file)" = three ] || { echo "not committed"; exit 1; }
"$recant" -q rollback "$id"; [ "$(cat file)" = one ] || { echo "not rolled back"; exit 1; }
status=0; "$recant" run -- sh -c 'echo four >file' >said 2>&1 || status=$?
case $status in
    0) [ "$(cat file)" = one ] || { echo "a run was not held"; exit 1; }; echo "with a run" ;;
    125) echo "without a run: $(tail -n 1 said)" ;;
    *) cat said; exit 1 ;;
esac
"""


class Tally:
    passed = failed = skipped = 0

    def check(self, name, wrong, note=""):
        """wrong: what is, as text; nothing if all is well."""
        if wrong:
            self.failed += 1
            print(f"FAILED {name}: {wrong}")
        else:
            self.passed += 1
            print(f"ok {name}{f' ({note})' if note else ''}")
        sys.stdout.flush()

    def skip(self, name, reason):
        self.skipped += 1
        print(f"skipped: {name}: {reason}")
UNITS = ["/usr/lib/systemd/system/recant-recover.service", "/usr/lib/systemd/system/multi-user.target.d/recant.conf",
         "/usr/lib/systemd/user/recant-recover.service", "/usr/lib/systemd/user/default.target.d/recant.conf"]


def run(words, seconds=300, **more):
    more.setdefault("stdin", subprocess.DEVNULL)
    done = subprocess.run(["timeout", str(seconds), *map(str, words)], capture_output=True, text=True, errors="replace", check=False, **more)
    return done.returncode, (done.stdout + done.stderr).strip()


def use(tally, name, program, prefix=()):
    """As root and as an ordinary user. prefix: what enters a root."""
    ways = [("root", [])] if os.geteuid() == 0 else [("this user", [])]
    if os.geteuid() == 0:
        ways.append(("an ordinary user", ["setpriv", f"--reuid={USER}", f"--regid={USER}", "--clear-groups"]))
    for who, way in ways:
        status, said = run([*prefix, *way, "sh", "-c", USE, "sh", program, VERSION])
        tally.check(f"{name}, used by {who}", said[-300:] if status else "", said.splitlines()[-1] if said else "")


def installed(words):
    """Whether the programs are there; else Debian's packages of them are asked for, where they may be."""
    if all(shutil.which(word) for word in words):
        return True
    if os.geteuid() == 0 and shutil.which("apt-get"):
        run(["sh", "-c", "apt-get update -qq; DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends " + " ".join(words)])
    return all(shutil.which(word) for word in words)


def archives(tally, dist, work):
    for path in sorted(glob.glob(f"{dist}/recant-*-linux.tar.gz")):
        name = os.path.basename(path)[:-len(".tar.gz")]
        place = os.path.join(work, "archive")
        shutil.rmtree(place, ignore_errors=True)
        os.makedirs(place)
        os.chmod(place, 0o755)
        status, said = run(["tar", "-C", place, "-xzf", path])
        wanted = {"recant", "LICENSE", "README.md", "CHANGELOG.md", "THIRD-PARTY", "INSTALL", "man1/recant.1", "man1/recant-run.1",
                  "completions/recant.bash", "completions/_recant", "completions/recant.fish", "apparmor/recant", "docs/index.md", "examples/ci-step.sh"}
        lacking = [one for one in sorted(wanted) if not os.path.exists(os.path.join(place, name, one))]
        tally.check(f"{name}: its files", said if status else ", ".join(lacking))
        with open(os.path.join(place, name, "THIRD-PARTY"), encoding="utf-8") as listed:
            text = listed.read()
        lacking = [one for one in linked() if f"\n{one.replace('@', ' ')}:" not in text]
        tally.check(f"{name}: a licence for each crate", ", ".join(lacking))
        program = os.path.join(place, name, "recant")
        auditable(tally, name, program)
        if f"-{HERE}-" in name:
            use(tally, name, program)
            for shell in ("bash", "zsh", "fish"):
                status, said = run([program, "completions", shell])
                given = {"bash": "recant.bash", "zsh": "_recant", "fish": "recant.fish"}[shell]
                with open(os.path.join(place, name, "completions", given), encoding="utf-8") as written:
                    tally.check(f"{name}: completions of {shell}", "others" if status or written.read().strip() != said else "")
        elif "aarch64" in name and shutil.which("qemu-aarch64-static"):
            status, said = run(["qemu-aarch64-static", program, "--version"])
            tally.check(f"{name}: starts, by qemu", said if status or said != f"recant {VERSION}" else "")
        else:
            tally.skip(f"{name}, used", "it is for another processor")
        metadata = CARGO["package"]["metadata"]["binstall"]
        processor = re.search(r"-([a-z0-9_]+)-linux$", name)[1]
        values = {"name": "recant", "version": VERSION, "target-arch": processor, "bin": "recant", "repo": "REPO"}
        fill = lambda form: re.sub(r"\{ ([a-z-]+) \}", lambda found: values[found[1]], form)
        wrong = "" if fill(metadata["pkg-url"]).endswith("/" + os.path.basename(path)) else fill(metadata["pkg-url"])
        wrong = wrong or ("" if os.path.exists(os.path.join(place, fill(metadata["bin-dir"]))) else fill(metadata["bin-dir"]))
        tally.check(f"{name}: what cargo-binstall asks for", wrong)
    if not CARGO["package"].get("repository"):
        tally.skip("cargo-binstall's address", "Cargo.toml has no `repository` yet")


def linked():
    """name@version of each crate that is part of the program on Linux."""
    status, said = run(["cargo", "tree", "--locked", "--edges", "normal", "--prefix", "none", "--target", f"{HERE}-unknown-linux-gnu",
                        "--no-dedupe"], cwd=TOP)
    assert status == 0, said
    # Of the program itself, all files tell.
    found = {re.sub(r" v(\S+).*", r"@\1", line) for line in said.splitlines()} - {f"recant@{VERSION}"}
    return sorted(one for one in found if "@" in one)


def section(path, wanted):
    """A section of a 64-bit little-endian ELF file."""
    with open(path, "rb") as program:
        data = program.read()
    at, = struct.unpack_from("<Q", data, 0x28)
    size, count, names = struct.unpack_from("<HHH", data, 0x3A)
    parts = [struct.unpack_from("<IIQQQQ", data, at + size * i) for i in range(count)]
    text = parts[names][4]
    for name, _, _, _, offset, length in parts:
        if data[text + name:data.index(b"\0", text + name)] == wanted:
            return data[offset:offset + length]
    return None


def auditable(tally, name, program):
    packed = section(program, b".dep-v0")
    if packed is None:
        tally.check(f"{name}: the list of crates in the program", "there is none")
        return
    listed = {f"{one['name']}@{one['version']}" for one in json.loads(zlib.decompress(packed))["packages"]}
    tally.check(f"{name}: the list of crates in the program", ", ".join(set(linked()) - listed), f"{len(listed)} crates")


def lists(tally, dist):
    status, said = run(["sha256sum", "--check", "--strict", "--quiet", "SHA256SUMS"], cwd=dist)
    with open(os.path.join(dist, "SHA256SUMS"), encoding="utf-8") as sums:
        named = {line.split()[1] for line in sums}
    others = set(os.listdir(dist)) - named - {"SHA256SUMS"}
    tally.check("SHA256SUMS", said if status else ", ".join(others))
    with open(os.path.join(dist, f"recant-{VERSION}.cdx.json"), encoding="utf-8") as sbom:
        text = sbom.read()
    listed = json.loads(text)
    found = {f"{one['name']}@{one['version']}" for one in listed["components"]}
    wrong = ", ".join(set(linked()) - found) or ("" if listed["bomFormat"] == "CycloneDX" else "no CycloneDX")
    tally.check("the list of crates (SBOM)", wrong or ("it names this directory" if TOP in text else ""), f"{len(found)} crates")


def deb(tally, dist, work):
    profile(tally, work)
    for path in sorted(glob.glob(f"{dist}/*.deb")):
        if installed(["lintian"]):
            # Its plain user: it warns about root.
            status, said = run(["lintian", "--fail-on", "error", "--allow-root", path])
            tally.check(f"{os.path.basename(path)}: lintian has no error", said if status else "", f"{said.count('W: ')} warnings")
        else:
            tally.skip(f"{os.path.basename(path)}: lintian", "it is not installed")
    mine = f"{dist}/recant_{VERSION}-1_{DEBIAN.get(HERE)}.deb"
    if os.geteuid() != 0 or not os.path.exists(mine) or not shutil.which("dpkg"):
        tally.skip("the .deb, installed", "needs root, dpkg, and a package for this processor")
        return
    if installed(["debootstrap"]):
        root = os.path.join(work, "debian")
        status, said = 0, ""
        if not os.path.exists(os.path.join(root, "usr/bin/man")):
            shutil.rmtree(root, ignore_errors=True)
            status, said = run(["debootstrap", "--variant=minbase", "--include=man-db", "stable", root], 900)
        if status:
            tally.skip("the .deb in a Debian root", f"debootstrap: {said[-200:]}")
        else:
            shutil.copy(mine, os.path.join(root, "recant.deb"))
            # In namespaces of its own: what is mounted goes with it.
            in_package(tally, "the .deb in a Debian root", root, "/recant.deb",
                       ["unshare", "--mount", "--pid", "--fork", "--", "sh", "-c",
                        'cd "$0" && mount -t proc proc proc && exec chroot . "$@"', root])
    if shutil.which("recant") in ("/usr/bin/recant", "/bin/recant") or run(["dpkg", "-s", "recant"])[0] == 0:
        tally.skip("the .deb on this machine", "it has a recant of its own at /usr/bin")
    else:
        in_package(tally, "the .deb on this machine", "", mine, [])


def in_package(tally, name, root, package, way):
    """Installed, used, removed and purged. way: what enters the root."""
    def dpkg(*words):
        return run([*way, "dpkg", *words], env={**os.environ, "DEBIAN_FRONTEND": "noninteractive"})
    def left():
        status, said = run(["find", f"{root}/usr", f"{root}/etc", f"{root}/var/lib/dpkg/info", "-xdev", "(", "-name", "recant", "-o",
                            "-name", "recant[.-]*", "-o", "-name", "_recant", ")"])
        return said.split()
    before = left()
    status, said = dpkg("--install", package)
    tally.check(f"{name}: installed", said[-300:] if status else "")
    if status:
        return
    status, said = dpkg("--listfiles", "recant")
    # Documents may be left out by the system's own settings.
    wanted = ["/usr/bin/recant", "/usr/share/recant/apparmor/recant", "/usr/share/bash-completion/completions/recant",
              "/usr/share/zsh/vendor-completions/_recant", "/usr/share/fish/vendor_completions.d/recant.fish", *UNITS]
    tally.check(f"{name}: its files", ", ".join(one for one in wanted if not os.path.exists(root + one)))
    use(tally, name, "/usr/bin/recant", way)
    if os.path.exists(f"{root}/usr/share/man/man1/recant.1.gz") and os.path.exists(f"{root}/usr/bin/man"):
        status, said = run([*way, "env", "MANPAGER=cat", "man", "recant-snapshot-restore"])
        tally.check(f"{name}: a manual page", said[-200:] if status or "snapshot" not in said else "")
    else:
        tally.skip(f"{name}: a manual page", "this system leaves manual pages out, or has no man")
    status, said = dpkg("--remove", "recant")
    rest = set(left()) - set(before) - {f"{root}/var/lib/dpkg/info/recant.list",
                                        f"{root}/var/lib/dpkg/info/recant.postrm"}
    tally.check(f"{name}: removed", said[-300:] if status else ", ".join(rest))
    status, said = dpkg("--purge", "recant")
    tally.check(f"{name}: purged, nothing left", said[-300:] if status else ", ".join(set(left()) - set(before)))


def profile(tally, work):
    """The scripts of the .deb, with other directories and a stand-in for the parser: few machines have both of its kinds."""
    place = os.path.join(work, "profile")
    for kernel, takes, there in [(True, True, True), (True, False, False), (False, True, False)]:
        shutil.rmtree(place, ignore_errors=True)
        for name in ["bin", "etc/apparmor.d", "proc", "usr/share/recant/apparmor"]:
            os.makedirs(os.path.join(place, name))
        shutil.copy(os.path.join(TOP, "packaging/apparmor/recant"), os.path.join(place, "usr/share/recant/apparmor/recant"))
        if kernel:
            open(os.path.join(place, "proc/restrict"), "w").close()
        with open(os.path.join(place, "bin/apparmor_parser"), "w") as stand_in:
            stand_in.write(f"#!/bin/sh\nexit {0 if takes else 1}\n")
        os.chmod(stand_in.name, 0o755)

        def script(name, word):
            with open(os.path.join(TOP, "packaging/deb", name), encoding="utf-8") as text:
                text = text.read().replace("/proc/sys/kernel/apparmor_restrict_unprivileged_userns", f"{place}/proc/restrict")
            text = text.replace("/usr/share/recant", f"{place}/usr/share/recant").replace("/etc/apparmor.d", f"{place}/etc/apparmor.d")
            path = {**os.environ, "PATH": f"{place}/bin:{os.environ['PATH']}"}
            return run(["sh", "-c", text, name, word], env=path)
        put = os.path.join(place, "etc/apparmor.d/recant")
        what = f"the profile where the kernel {'asks' if kernel else 'does not ask'} for one and the parser {'takes' if takes else 'refuses'} it"
        status, said = script("postinst", "configure")
        is_right = not status and os.path.exists(put) == there
        tally.check(f"{what}: {'put in place' if there else 'left out'}", "" if is_right else said or "it is not so")
        if there:
            script("prerm", "upgrade")
            kept = os.path.exists(put)
            script("prerm", "remove")
            tally.check("the profile stays in an upgrade and goes with the package", "" if kept and not os.path.exists(put) else "it does not")
            script("postinst", "configure")
            with open(put, "a") as changed:
                changed.write("# mine\n")
            script("prerm", "remove")
            tally.check("a profile that somebody changed stays", "" if os.path.exists(put) else "it is gone")


def rpm(tally, dist, work):
    path = f"{dist}/recant-{VERSION}-1.{HERE}.rpm"
    if os.geteuid() != 0 or not os.path.exists(path) or not installed(["rpm"]):
        tally.skip("the .rpm", "needs root, rpm, and a package for this processor")
        return
    tally.skip("the .rpm in a root of Fedora's or SUSE's", "none can be had from crates.io, PyPI, npm or Debian: another root, by Debian's rpm")
    # Its scripts want a shell.
    root, how = os.path.join(work, "debian"), []
    if not os.path.exists(os.path.join(root, "usr/bin/dpkg")):
        root, how = os.path.join(work, "rpm"), ["--noscripts"]
        shutil.rmtree(root, ignore_errors=True)
        os.makedirs(root)
        os.chmod(root, 0o755)
        tally.skip("the .rpm's scripts", "there is no root with a shell")
    shutil.rmtree(os.path.join(root, "var/lib/rpm"), ignore_errors=True)
    status, said = run(["rpm", "--root", root, "--initdb"])
    # The shell is no package of that database.
    status, said = run(["rpm", "--root", root, *how, "--nodeps", "--ignorearch", "-i", path])
    tally.check("the .rpm: installed", said[-300:] if status else "")
    if status:
        return
    status, said = run(["rpm", "--root", root, "--nodeps", "-V", "recant"])
    tally.check("the .rpm: all as packed", said if status else "")
    status, said = run(["rpm", "--root", root, "-q", "--requires", "recant"])
    odd = [line for line in said.splitlines() if not line.startswith(("rpmlib(", "config(")) and line != "/bin/sh"]
    tally.check("the .rpm: needs a shell alone", ", ".join(odd))
    wanted = ["/usr/bin/recant", "/usr/share/man/man1/recant.1.gz", "/usr/share/bash-completion/completions/recant",
              "/usr/share/licenses/recant/THIRD-PARTY.gz", "/usr/share/recant/apparmor/recant", *UNITS]
    tally.check("the .rpm: its files", ", ".join(one for one in wanted if not os.path.exists(root + one)))
    use(tally, "the .rpm", f"{root}/usr/bin/recant")
    status, said = run(["rpm", "--root", root, *how, "--nodeps", "-e", "recant"])
    rest = [one for one in wanted if os.path.exists(root + one)]
    shutil.rmtree(os.path.join(root, "var/lib/rpm"), ignore_errors=True)
    tally.check("the .rpm: removed, nothing left", said[-300:] if status else ", ".join(rest))


def cargo_install(tally, work):
    place = os.path.join(work, "cargo")
    shutil.rmtree(place, ignore_errors=True)
    # For use once: quick to build.
    quick = {"CARGO_PROFILE_RELEASE_LTO": "off", "CARGO_PROFILE_RELEASE_OPT_LEVEL": "0", "CARGO_PROFILE_RELEASE_CODEGEN_UNITS": "16",
             "CARGO_TARGET_DIR": os.path.join(work, "cargo-build")}
    status, said = run(["cargo", "install", "--quiet", "--locked", "--path", TOP, "--root", place], 1200, env={**os.environ, **quick})
    tally.check("cargo install --path .", said[-300:] if status else "")
    if not status:
        os.chmod(place, 0o755)
        use(tally, "cargo install --path .", os.path.join(place, "bin", "recant"))
    shutil.rmtree(os.path.join(work, "cargo-build"), ignore_errors=True)


def again(tally, dist, work):
    """The same commit, cloned and built elsewhere, for this processor."""
    status, said = run(["git", "status", "--porcelain"], cwd=TOP)
    if status or said:
        tally.skip("the same bytes from another directory", "there are changes that are no commit, or this is no git work tree")
        return
    place = os.path.join(work, "elsewhere")
    shutil.rmtree(place, ignore_errors=True)
    status, said = run(["git", "clone", "--quiet", "--no-local", TOP, place])
    assert status == 0, said
    target = os.path.join(place, "built")
    os.makedirs(target)
    tools = os.path.join(os.environ.get("CARGO_TARGET_DIR", os.path.join(TOP, "target")), "dist-tools")
    if os.path.exists(tools):
        os.symlink(os.path.realpath(tools), os.path.join(target, "dist-tools"))
    status, said = run(["packaging/dist.sh", HERE], 3600, cwd=place, env={**os.environ, "CARGO_TARGET_DIR": target})
    if status:
        tally.check("the same bytes from another directory", said[-300:])
        return
    for name in sorted(os.listdir(os.path.join(target, "dist"))):
        if name != "SHA256SUMS":
            same = run(["cmp", os.path.join(target, "dist", name), os.path.join(dist, name)])
            tally.check(f"{name}: the same bytes from another directory", same[1] if same[0] else "")
    shutil.rmtree(place)


PARTS = ("lists", "archive", "deb", "rpm", "cargo", "again")


def main():
    target = os.environ.get("CARGO_TARGET_DIR", os.path.join(TOP, "target"))
    parser = argparse.ArgumentParser(description="the files of a release, installed and used")
    parser.add_argument("--dist", default=os.path.join(target, "dist"))
    parser.add_argument("--work", help="where roots are made, else a directory in /var/tmp that is removed")
    parser.add_argument("--only", default="", help="words of a call: without 'dist' in them nothing is done, but where there are none; "
                        f"then parts: {', '.join(PARTS)}")
    parser.add_argument("--quick", action="store_true", help="do not build again")
    given = parser.parse_args()
    words = given.only.split()
    if words and "dist" not in words:
        return 0
    parts = [part for part in PARTS if part in words] or [part for part in PARTS if part != "again" or not given.quick]
    dist, tally = os.path.abspath(given.dist), Tally()
    if not os.path.exists(os.path.join(dist, "SHA256SUMS")):
        subprocess.run([os.path.join(TOP, "packaging", "dist.sh")], check=True)
    work = given.work or tempfile.mkdtemp(prefix="recant-dist-", dir="/var/tmp")
    os.makedirs(work, exist_ok=True)
    os.chmod(work, 0o755)
    try:
        for part in parts:
            {"lists": lambda: lists(tally, dist), "archive": lambda: archives(tally, dist, work), "deb": lambda: deb(tally, dist, work),
             "rpm": lambda: rpm(tally, dist, work), "cargo": lambda: cargo_install(tally, work),
             "again": lambda: again(tally, dist, work)}[part]()
    finally:
        if not given.work:
            shutil.rmtree(work, ignore_errors=True)
    print(f"{tally.passed} passed, {tally.failed} failed, {tally.skipped} skipped")
    return 1 if tally.failed else 0


if __name__ == "__main__":
    sys.exit(main())
