#!/usr/bin/env bash
# cargo-deny where it is installed: licences, sources and bans always; advisories where their list can be fetched.
set -euo pipefail
cd "$(dirname "$0")/.."

if ! cargo deny --version >/dev/null 2>&1; then
    echo "skipped: cargo deny: it is not installed (cargo install --locked cargo-deny)"
    exit 0
fi
cargo deny check bans licenses sources
if cargo deny fetch db >/dev/null 2>&1; then
    cargo deny check advisories
else
    echo "skipped: cargo deny check advisories: the list of advisories cannot be fetched from here"
fi
