#!/usr/bin/env bash
# All tests once more as an ordinary user, where root runs this: the program's ways differ for the two.
set -euo pipefail
cd "$(dirname "$0")/.."

if [ "$(id -u)" != 0 ]; then
    echo "nothing more to do: you are an ordinary user, and the tests above were run as you"
    exit 0
fi
user=65534
as_user() { setpriv --reuid=$user --regid=$user --clear-groups "$@"; }
if ! as_user test -x "${CARGO_TARGET_DIR:-target}/debug"; then
    echo "skipped: the tests as an ordinary user: user $user may not enter $(pwd)/${CARGO_TARGET_DIR:-target}"
    exit 0
fi

home=$(mktemp -d /tmp/recant-user.XXXXXX)
trap 'rm -rf "$home" "$home.log" "$home.run"' EXIT
chown $user:$user "$home"
log=$home.log failed=()
while read -r program; do
    as_user env -i PATH="$PATH" HOME="$home" TMPDIR="$home" LANG=C.UTF-8 CARGO_MANIFEST_DIR="$PWD" \
        "$program" --show-output >"$log" 2>&1 || failed+=("$program")
    grep -aE '^(test result|skipped:|test .* FAILED)' "$log" | sort | uniq -c | sed "s|^|$(basename "${program%-*}"): |"
    [ ${#failed[@]} = 0 ] || [ "${failed[-1]}" != "$program" ] || tail -n 40 "$log"
done < <(cargo test --locked --no-run --features crash-points 2>&1 | sed -n 's/^ *Executable .*(\(.*\))$/\1/p')

# The examples in the library's documentation: built as root, run by a copy that the user may reach.
cat >"$home.run" <<END
#!/bin/sh
cp "\$1" $home/example && chmod 0755 $home/example && shift && cd $home || exit 1
exec setpriv --reuid=$user --regid=$user --clear-groups env HOME=$home TMPDIR=$home $home/example "\$@"
END
chmod 0755 "$home.run"
host=$(rustc -vV | sed -n 's/^host: //p' | tr 'a-z-' 'A-Z_')
env "CARGO_TARGET_${host}_RUNNER=$home.run" cargo test --locked --features crash-points --doc >"$log" 2>&1 || {
    failed+=(examples)
    tail -n 40 "$log"
}
grep -aE '^(test result|test .* FAILED)' "$log" | sed 's/^/examples: /'
[ ${#failed[@]} = 0 ] || { echo "failed as an ordinary user: ${failed[*]}" >&2; exit 1; }
