#!/usr/bin/env bash
# recant for another processor: built for aarch64 and run by qemu's user emulation, on the files of this machine.
set -euo pipefail
cd "$(dirname "$0")/.."

skip() { echo "skipped: recant for aarch64: $*"; exit 0; }
[ "$(uname -m)" != aarch64 ] || skip "this machine is one: all other tests are of it"
# shellcheck source=packaging/aarch64.sh
. packaging/aarch64.sh

export CARGO_TARGET_DIR=$room/built
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
