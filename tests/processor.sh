#!/usr/bin/env bash
# recant for another processor: built for aarch64 and run by qemu's user emulation, on the files of this machine. A toolchain
# without that target's library is lent Debian's compiler and library, unpacked below target/, where root may fetch them.
set -euo pipefail
cd "$(dirname "$0")/.."

triple=aarch64-unknown-linux-gnu
room=$(realpath -m "${CARGO_TARGET_DIR:-target}")/processor
skip() { echo "skipped: recant for aarch64: $*"; exit 0; }

[ "$(uname -m)" != aarch64 ] || skip "this machine is one: all other tests are of it"
apt=no
[ "$(id -u)" != 0 ] || ! command -v apt-get >/dev/null || apt=yes
if ! command -v aarch64-linux-gnu-gcc >/dev/null || ! command -v qemu-aarch64-static >/dev/null; then
    [ $apt = yes ] || skip "no aarch64-linux-gnu-gcc or qemu-aarch64-static (Debian: gcc-aarch64-linux-gnu, qemu-user-static)"
    { apt-get update -qq && apt-get install -y -qq --no-install-recommends \
        gcc-aarch64-linux-gnu libc6-dev-arm64-cross qemu-user-static; } >/dev/null 2>&1 || skip "apt-get could not install its compiler"
fi

# Debian's compiler with the library for both processors, as of one version: nothing is installed, only unpacked.
lend() {
    local foreign=no packages
    dpkg --print-foreign-architectures | grep -qx arm64 || { foreign=yes; dpkg --add-architecture arm64; }
    apt-get update -qq >/dev/null 2>&1 || true
    packages=$(apt-cache depends rustc-web libstd-rust-web-dev 2>/dev/null | sed -n 's/^ *Depends: \(libstd-rust-web[-.0-9a-z]*\)$/\1/p' | sort -u)
    packages="$packages $(for package in $packages; do apt-cache depends "$package"; done | sed -n 's/^ *Depends: \(libllvm[0-9]*\)$/\1/p' | sort -u)"
    mkdir -p "$room/fetched"
    # shellcheck disable=SC2086
    (cd "$room/fetched" && apt-get download -qq rustc-web libstd-rust-web-dev:arm64 $packages) >/dev/null 2>&1 || packages=
    [ $foreign = no ] || { dpkg --remove-architecture arm64; apt-get update -qq >/dev/null 2>&1 || true; }
    [ -n "$packages" ] || return 1
    for package in "$room"/fetched/*.deb; do dpkg-deb -x "$package" "$room/lent"; done
    rm -r "$room/fetched"
    printf '#!/bin/sh\nlent=%q\nLD_LIBRARY_PATH=$lent/usr/lib/%s-linux-gnu:$(echo $lent/usr/lib/llvm-*/lib) exec $lent/usr/bin/rustc "$@"\n' \
        "$room/lent" "$(uname -m)" >"$room/rustc"
    chmod +x "$room/rustc"
}
if [ ! -d "$(rustc --print sysroot)/lib/rustlib/$triple/lib" ]; then
    if [ ! -x "$room/rustc" ]; then
        [ $apt = yes ] || skip "the toolchain has no library for $triple (rustup target add $triple)"
        lend || skip "the toolchain has no library for $triple, and Debian's rustc-web could not be fetched"
    fi
    export RUSTC=$room/rustc
fi

export CARGO_TARGET_DIR=$room/built CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_LINKER=aarch64-linux-gnu-gcc
make --no-print-directory static TARGET=$triple 2>&1 | grep -E '^(warning|error|    Finished)' || true
built=$CARGO_TARGET_DIR/$triple/release/recant

# A session there and back, and its parts that moved between the two processors.
scene=$(mktemp -d)
trap 'rm -rf "$scene"' EXIT
mkdir "$scene/tree"
cd "$scene/tree"
export XDG_DATA_HOME=$scene/store XDG_CONFIG_HOME=$scene/config
there() { qemu-aarch64-static "$built" "$@"; }
state() { find . -printf '%p %y %m %T@ %s %l\n' | sort; find . -type f -exec sha256sum {} + | sort -k2; }
mkdir -p kept gone/deep
echo one >kept/file; : >kept/empty; ln -s file kept/link; echo away >gone/deep/file; chmod 0640 kept/file
before=$(state)
id=$(there session new)
echo two | there session write "$id" kept/file
echo full | there session write "$id" kept/empty
echo new | there session write -p "$id" made/file
there session delete "$id" -r gone
there diff "$id" | grep -qx '+two' || { echo "the diff lacks its line" >&2; exit 1; }
there commit "$id"
[ "$(cat kept/file made/file kept/empty)" = "$(printf 'two\nnew\nfull')" ] && [ ! -e gone ] || { echo "not committed" >&2; exit 1; }
there checkpoint verify "$id"
there rollback "$id"
[ "$(state)" = "$before" ] || { echo "not exactly as before:"; diff <(echo "$before") <(state); exit 1; } >&2
there redo "$id"
there rollback "$id"
[ "$(state)" = "$before" ] || { echo "not exactly as before the redo" >&2; exit 1; }
there snapshot create -m first .
echo other >kept/file
there snapshot restore 0 --force .
[ "$(state)" = "$before" ] || { echo "not exactly as in the snapshot" >&2; exit 1; }
echo "ok: recant for $triple, run by qemu: commit, rollback, redo, verify, snapshot, restore"
