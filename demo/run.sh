#!/usr/bin/env bash
# A real job on real input: a refactoring over thousands of real source files is held, looked at, committed, and rolled
# back; diff and find, which know nothing of recant, say whether everything is as it was. `make demo` builds and runs it.
#
#     demo/run.sh [PROGRAM]          default: target/release/recant
#     DEMO_INPUT=DIR                 take the sources from there
#     DEMO_DIR=DIR                   make the temporary directory there; default $TMPDIR, else /tmp
set -euo pipefail
cd "$(dirname "$0")/.."
recant=$(realpath "${1:-target/release/recant}")

least=2000
count() { find "$1" -type f \( -name '*.rs' -o -name '*.c' -o -name '*.h' -o -name '*.py' \) 2>/dev/null | head -n $least | wc -l; }
input=
for directory in "${DEMO_INPUT:-}" "$(rustc --print sysroot 2>/dev/null)/lib/rustlib/src/rust/library" \
    "${CARGO_HOME:-$HOME/.cargo}/registry/src" /usr/include /usr/lib/python3; do
    if [ -d "$directory" ] && [ "$(count "$directory")" -ge $least ]; then
        input=$directory
        break
    fi
done
if [ -z "$input" ]; then
    echo "no directory with $least source files is on this machine; DEMO_INPUT names one" >&2
    exit 1
fi

work=$(mktemp -d "${DEMO_DIR:-${TMPDIR:-/tmp}}/recant-demo.XXXXXX")
trap 'chmod -R u+rwx "$work" 2>/dev/null; rm -rf "$work"' EXIT
export RECANT_STORE=$work/store XDG_CONFIG_HOME=$work/config
step() { if [ -t 1 ]; then printf '\n\033[1m$ %s\033[0m\n' "$*"; else printf '\n$ %s\n' "$*"; fi; }
# What it prints, cut to the last lines where it is long.
say() { step "recant $*"; "$recant" "$@" | tail -n "${lines:-20}"; }

# Kind, mode, owner, time to the nanosecond and link target of each path; sizes and names of files too.
state() { (cd "$1" && find . -printf '%y %m %U:%G %T@ %p -> %l\n' | LC_ALL=C sort); }

echo "a copy of $input in $work is refactored, with its changes held, then committed and rolled back"
cp -a "$input" "$work/tree"
cp -a "$work/tree" "$work/before"
state "$work/tree" >"$work/state.before"
echo "copied: $(find "$work/tree" -type f | wc -l) files in $(find "$work/tree" -type d | wc -l) directories, $(du -sh "$work/tree" | cut -f1)"
cd "$work/tree"

# The refactoring: a word changed everywhere, files renamed, tests and a whole directory removed, a report written.
cat >"$work/refactor" <<'SCRIPT'
grep -rlZ --include='*.rs' --include='*.h' --include='*.c' --include='*.py' -w -e 'unsafe' -e 'define' -e 'import' . |
    xargs -0r sed -i -e 's/\bunsafe\b/UNSAFE/g' -e 's/\bdefine\b/DEFINE/g' -e 's/\bimport\b/IMPORT/g'
find . -depth -name '*error*' -type f | while IFS= read -r path; do mv "$path" "$(dirname "$path")/renamed-$(basename "$path")"; done
find . -type d \( -name tests -o -name linux \) -prune -print0 | xargs -0r rm -r
find . -name 'README*' -exec chmod 0600 {} +
mkdir -p reports/deep
find . -type f | wc -l >reports/deep/files.txt
ln -s deep/files.txt reports/latest
SCRIPT

say run -- sh "$work/refactor"

step "diff -r before tree        # nothing has happened to the tree yet"
diff -r --no-dereference "$work/before" . && state . | cmp - "$work/state.before" && echo "the tree is untouched"

lines=12 say diff --stat last
lines=5 say commit last
step "diff -rq before tree | wc -l        # now it has"
{ diff -rq --no-dereference "$work/before" . || true; } | wc -l
lines=12 say checkpoint show last
lines=5 say rollback last

step "diff -r before tree; find -printf of kind, mode, owner, time, link"
diff -r --no-dereference "$work/before" "$work/tree"
state "$work/tree" | diff "$work/state.before" -
echo "exactly as before: $(wc -l <"$work/state.before") paths, content and metadata"
