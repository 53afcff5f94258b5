# What is done with recant's source. `make help` lists it; CONTRIBUTING.md says more.
SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := help
.PHONY: help demo test test-all torture lint lint-commits bench install changelog clean

CARGO  ?= cargo
PREFIX ?= $(HOME)/.local
DESTDIR ?=
BENCH  ?=
target := $(if $(CARGO_TARGET_DIR),$(CARGO_TARGET_DIR),target)
to     := $(DESTDIR)$(PREFIX)

help: ## list what can be made
	@sed -n 's/^\([a-z-]*\):[^#]*## /  make \1\t/p' $(MAKEFILE_LIST) | expand -t 20

demo: ## a real job on a real source tree: held, committed, rolled back, compared by diff and find
	@$(CARGO) build --release --locked
	@demo/run.sh $(target)/release/recant

test: ## build and test everything, in minutes; installs Debian packages where it may
	@tests/needs.sh
	$(CARGO) build --release --locked
	@tests/run.sh --features crash-points
	@tests/torture/torture.py $(target)/release/recant calls snaps --every 12

test-all: test ## test, and what takes longer: the ignored tests, and everything as an ordinary user
	@tests/run.sh --release --features crash-points -- --include-ignored
	@tests/as-user.sh

torture: ## every system call fails once, and the power goes: on ext4, xfs, btrfs as root; one table at the end
	@tests/needs.sh
	$(CARGO) build --release --locked
	RECANT_STATES=24 $(CARGO) test --locked --features crash-points --test replay -- --show-output
	@tests/torture/torture.py $(target)/release/recant --self-test
	@tests/torture/torture.py $(target)/release/recant

lint: lint-commits ## rustfmt, clippy, rustdoc, cargo-deny, commit messages
	$(CARGO) fmt --all --check
	$(CARGO) clippy --locked --all-targets --all-features -- -D warnings
	RUSTDOCFLAGS="-D warnings -A rustdoc::private-intra-doc-links" $(CARGO) doc --locked --no-deps --document-private-items
	@tests/deny.sh

lint-commits:
	@tests/commits.sh

bench: ## times against cp, git and rsync, on loop-mounted file systems; BENCH=--quick for a first look
	@$(CARGO) build --release --locked
	@benches/bench.py --recant $(target)/release/recant $(BENCH)

install: ## binary, manual pages and completions, below PREFIX (~/.local) and DESTDIR
	$(CARGO) build --release --locked
	install -D -m 0755 $(target)/release/recant $(to)/bin/recant
	install -d $(to)/share/man/man1 $(to)/share/bash-completion/completions \
	    $(to)/share/zsh/site-functions $(to)/share/fish/vendor_completions.d
	$(target)/release/recant man --dir $(to)/share/man/man1
	$(target)/release/recant completions bash > $(to)/share/bash-completion/completions/recant
	$(target)/release/recant completions zsh > $(to)/share/zsh/site-functions/_recant
	$(target)/release/recant completions fish > $(to)/share/fish/vendor_completions.d/recant.fish

changelog: ## CHANGELOG.md from the commits, by git-cliff (from its Python wheel)
	@test -x $(target)/cliff/bin/git-cliff || { python3 -m venv $(target)/cliff && $(target)/cliff/bin/pip install --quiet git-cliff; }
	$(target)/cliff/bin/git-cliff --config cliff.toml --output CHANGELOG.md

clean: ## remove what was built
	$(CARGO) clean
