#!/usr/bin/env bash
# cargo test with these arguments; what was skipped, and why, stands at the end: tests print lines that begin with
# `skipped:`. Before that the ways out of a run, from lines that begin with `way:`; last of all what failed, with the first lines of why.
# All that was printed is in target/test.log.
set -uo pipefail
cd "$(dirname "$0")/.."

cargo_args=() test_args=(--show-output)
while [ $# -gt 0 ]; do
    case $1 in
    --) shift; test_args+=("$@"); break ;;
    *) cargo_args+=("$1"); shift ;;
    esac
done

log=${CARGO_TARGET_DIR:-target}/test.log
mkdir -p "${log%/*}"
begun=$SECONDS
cargo test --locked --no-fail-fast "${cargo_args[@]}" -- "${test_args[@]}" 2>&1 | tee "$log"
status=$?

echo
echo "took $(((SECONDS - begun) / 60)) min $(((SECONDS - begun) % 60)) s; the log is $log"
ways=$(grep -ah '^way: ' "$log" | cut -c6- | sort -u)
if [ -n "$ways" ]; then
    echo "$(wc -l <<<"$ways") ways out of a run were tried (what, who, on which road, what became of it):"
    echo "$ways"
fi
skipped=$(grep -ah '^skipped:' "$log" | sort | uniq -c | sort -rn)
if [ -n "$skipped" ]; then
    echo "$(wc -l <<<"$skipped") things were skipped (how often, what, why):"
    echo "$skipped"
else
    echo "nothing was skipped"
fi
if [ $status -ne 0 ]; then
    echo "failed:"
    # The report of a test that failed begins with its name, and a panic in it says why.
    grep -ahE '^test .* FAILED$' "$log"
    grep -ah -A6 "^thread '.* panicked at" "$log" | cut -c1-400 | grep -v 'RUST_BACKTRACE' | tail -n 80
fi
exit $status
