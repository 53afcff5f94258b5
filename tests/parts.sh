#!/usr/bin/env bash
# The parts of `make torture` and `make test-all`, each meant to take half an hour at most on two cores: `parts.sh N …` runs these, `parts.sh of COMMIT`
# the one that the commit's hash chooses, `parts.sh list` lists them.
set -euo pipefail
cd "$(dirname "$0")/.."

parts=(
    "every step of each sweep: recovery, engine"
    "every step of each sweep: all other tests"
    "every system call of commit, rollback, redo and recover fails once, on one file system"
    "the same on two file systems"
    "the same of snapshots; file systems are shut down at each sync and rename; each engine catches a planted bug"
    "images of disks that lose what no flush had ordered, and disks that fail"
    "all states after a power cut; that each sync is needed"
    "long tests of engine, recovery, session, snapshot"
    "long tests of all others; what needs the release build"
    "everything as an ordinary user; the demo; built for aarch64"
)

every_step() { RECANT_SWEEP_EVERY=1 tests/run.py "$@"; }
torture() { tests/torture/torture.py "$recant" "$@"; }
demo() { demo/run.sh "$recant"; }
long() { every_step --long "$@"; }

run() {
    tests/needs.sh --long
    echo "part $1 of 0 to 9: ${parts[$1]}"
    [[ $1 == [0167] ]] || make --no-print-directory static
    recant=$(realpath -m "${CARGO_TARGET_DIR:-target}/$(make --no-print-directory triple)/release/recant")
    case $1 in
    0) every_step recovery:: engine:: ;;
    1) every_step agents:: capture:: cli:: fs:: remote:: screen:: session:: snapshot:: ;;
    2) torture calls ;;
    3) torture apart ;;
    4) torture snaps shut && torture --self-test ;;
    5) torture wlog ;;
    6) RECANT_STATES=24 tests/run.py --all recovery::replay ;;
    7) long engine:: recovery::crash recovery::faults recovery::forced recovery::late recovery::races recovery::recover session:: snapshot:: ;;
    8) long agents:: capture:: cli:: fs:: remote:: screen:: && tests/ansible/run.py --recant "$recant" --long ;;
    9) tests/run.py --user && demo && tests/processor.sh ;;
    *) echo "there is no part $1" >&2; exit 2 ;;
    esac
}

case ${1-} in
list) printf '%s\n' "${parts[@]}" | nl -v 0 ;;
of) run $((16#$(git rev-parse "$2" | cut -c1-8) % ${#parts[@]})) ;;
*) for part in "$@"; do run "$part"; done ;;
esac
