#!/usr/bin/env bash
# Every commit message since the root follows Conventional Commits; merges are left out.
set -euo pipefail
cd "$(dirname "$0")/.."

if ! git rev-parse --is-inside-work-tree >/dev/null 2>&1; then
    echo "skipped: commit messages: this is no git work tree"
    exit 0
fi
form='^(feat|fix|perf|refactor|docs|test|build|ci|chore|style|revert)(\([a-z0-9,/ -]+\))?!?: [^ ].*[^.]$'
bad=$(git log --no-merges --format='%h %s' | grep -Ev "^[0-9a-f]+ ${form#^}" || true)
if [ -n "$bad" ]; then
    echo "these commits do not follow Conventional Commits (CONTRIBUTING.md):" >&2
    echo "$bad" >&2
    exit 1
fi
echo "$(git rev-list --no-merges --count HEAD) commit messages follow Conventional Commits"
