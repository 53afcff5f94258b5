#!/usr/bin/env bash
# Three attempts at one task, side by side: each works in a fork of a session that holds what all of them need. Tests are
# run in each fork and decide; the best attempt is committed, the others are dropped. Until then the project is as it was.
#
#     examples/attempts.sh [DIR]     makes DIR and leaves it; default: a temporary directory, which goes
#     RECANT=PROGRAM                 default: the recant in PATH
set -euo pipefail
recant=${RECANT:-recant}

if [ $# -gt 0 ]; then
    mkdir "$1"
    work=$(cd "$1" && pwd)
else
    work=$(mktemp -d "${TMPDIR:-/tmp}/recant-attempts.XXXXXX")
    trap 'rm -rf "$work"' EXIT
fi
# A store and settings of its own, so that yours are left alone.
export RECANT_STORE=$work/store XDG_CONFIG_HOME=$work/config

# The project: a program that is to make a file name of a title, and does not do it yet.
mkdir "$work/project"
cd "$work/project"
cat >slug <<'SCRIPT'
#!/bin/sh
echo "$1"
SCRIPT
chmod +x slug

echo '== the preparation: a session with the tests'
"$recant" run --session task -- sh -eu <<'SCRIPT'
mkdir tests
cat >tests/cases <<'CASES'
Notes=notes
Shopping list=shopping-list
What, now?=what-now
 two  blanks =two-blanks
CASES
cat >tests/run <<'RUN'
# Exits with the number of cases that fail.
failed=0
while IFS='=' read -r title want; do
    got=$(./slug "$title")
    [ "$got" = "$want" ] || { failed=$((failed + 1)); echo "  '$title': '$got' instead of '$want'"; }
done <tests/cases
exit "$failed"
RUN
SCRIPT

echo '== three forks of it, and an attempt in each, all at once'
for attempt in one two three; do
    "$recant" fork task -n "$attempt"
done
# In real life each is an agent, or the same one asked anew: recant run --session one -- AGENT.
try() { "$recant" -q run --session "$1" -- sh -c 'cat >slug'; }
try one <<'SCRIPT' &
#!/bin/sh
echo "$1" | tr ' ' -
SCRIPT
try two <<'SCRIPT' &
#!/bin/sh
echo "$1" | tr A-Z a-z | tr ' ' -
SCRIPT
try three <<'SCRIPT' &
#!/bin/sh
echo "$1" | tr A-Z a-z | tr -cs 'a-z0-9\n' - | sed 's/^-//; s/-$//'
SCRIPT
for job in $(jobs -p); do
    wait "$job"
done

echo '== the tests, in each fork'
best='' least=125 # from 125 on it is recant that failed
for attempt in one two three; do
    failed=0
    "$recant" run --session "$attempt" -- sh tests/run || failed=$?
    echo "$attempt: $failed failed"
    if [ "$failed" -lt "$least" ]; then
        best=$attempt least=$failed
    fi
done
[ -n "$best" ]

echo '== what differs between two of them'
"$recant" diff two --with three | cat

echo "== $best is committed, the others are dropped"
"$recant" commit "$best"
for attempt in task one two three; do
    [ "$attempt" = "$best" ] || "$recant" discard -y "$attempt"
done
./slug 'What, now?'
