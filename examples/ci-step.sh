#!/bin/sh
# A deploy in CI that a person approves: held, shown, then committed, and rolled back if it does not work.
#
#     ci-step.sh hold BUILD COMMAND…      runs COMMAND held, as session deploy-BUILD; exits as it does
#     ci-step.sh approve BUILD [CHECK…]   commits; runs CHECK, and rolls back if that fails
#     ci-step.sh reject BUILD             drops what is held
#     ci-step.sh fetch FILE               takes the session in from another machine's deploy.recant
#
#     ARTEFACTS=DIR                       default: artefacts. changes.html, result.json, deploy.recant
#     RECANT=PROGRAM                      default: the recant in PATH
#
# Exit statuses of approve: 0 deployed; 1 refused, or the check failed and all is rolled back; 3 conflict: somebody has changed the files
# since, nothing was done (conflicts.patch has both sides); 4 done but for what is named; others are recant's (recant --help).
set -eu
recant=${RECANT:-recant}
artefacts=${ARTEFACTS:-artefacts}

usage() {
    sed -n '2,/^set/s/^# \{0,1\}//p' "$0" >&2
    exit 2
}

hold() {
    build=$1 name=deploy-$1
    shift
    mkdir -p "$artefacts"
    status=0
    "$recant" run -n "$name" -- "$@" || status=$?
    "$recant" show "$name" --json >"$artefacts/result.json" || true
    if ! grep -q '"status":"pending"' "$artefacts/result.json"; then
        echo "ci-step: nothing is held, so there is nothing to approve" >&2
        return "$status"
    fi
    "$recant" diff "$name" --html >"$artefacts/changes.html"
    if [ "$status" != 0 ]; then
        # The page shows what it had done by then. Nobody shall approve half a deploy, and the next attempt may have the name.
        "$recant" -y discard "$name"
        return "$status"
    fi
    # For an approval on another machine. Where that is this machine, nobody needs it.
    "$recant" session export "$name" >"$artefacts/deploy.recant"
    echo "ci-step: approve with: ci-step.sh approve $build" >&2
}

approve() {
    name=deploy-$1
    shift
    status=0
    # A commit asks nobody: the job's approval was the question.
    "$recant" commit "$name" || status=$?
    case $status in
        0 | 4) ;;
        3)
            mkdir -p "$artefacts"
            "$recant" diff "$name" --conflicts >"$artefacts/conflicts.patch" || true
            return 3
            ;;
        *) return "$status" ;;
    esac
    if [ $# -gt 0 ] && ! "$@"; then
        echo "ci-step: the check failed; rolled back:" >&2
        "$recant" rollback "$name" || return
        return 1
    fi
    return "$status"
}

case ${1-}:$# in
    hold:[012] | approve:1) usage ;;
    hold:*) shift && hold "$@" ;;
    approve:*) shift && approve "$@" ;;
    reject:2) "$recant" -y discard "deploy-$2" ;;
    fetch:2) "$recant" session import <"$2" ;;
    *) usage ;;
esac
