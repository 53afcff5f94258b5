#!/usr/bin/env bash
# The files of a release, in target/dist: for each processor an archive, a .deb and a .rpm, then Ansible's collection, the list of crates
# (SBOM) and the sums. The same commit gives the same bytes, wherever it is built with the same compiler.
#
#     dist.sh [PROCESSOR…]      x86_64 and aarch64 if none is named
#
# RECANT_MAINTAINER: name and address in the packages, else those of the last commit. The tools are built below target/ once.
set -euo pipefail
cd "$(dirname "$0")/.."

tools_used="cargo-auditable@0.7.7 cargo-bundle-licenses@5.0.0 cargo-cyclonedx@0.5.9 cargo-deb@3.8.0 cargo-generate-rpm@0.21.1"
target=$(realpath -m "${CARGO_TARGET_DIR:-target}")
out=$target/dist build=$target/dist-build tools=$target/dist-tools
processors=${*:-x86_64 aarch64}
version=$(sed -n 's/^version = "\(.*\)"/\1/p' Cargo.toml | head -n 1)
maintainer=${RECANT_MAINTAINER:-$(git log -1 --format='%an <%ae>')}
SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct)}
export SOURCE_DATE_EPOCH LC_ALL=C TZ=UTC
umask 022

# From crates.io, as of these versions: built for use once, so not for speed.
missing=
for tool in $tools_used; do
    grep -qsF "\"${tool%@*} ${tool#*@} " "$tools/.crates.toml" || missing="$missing $tool"
done
if [ -n "$missing" ]; then
    echo "building$missing" >&2
    # shellcheck disable=SC2086
    env -u RUSTFLAGS CARGO_TARGET_DIR="$tools/build" CARGO_PROFILE_RELEASE_OPT_LEVEL=1 CARGO_PROFILE_RELEASE_LTO=off \
        CARGO_PROFILE_RELEASE_CODEGEN_UNITS=16 cargo install --quiet --locked --root "$tools" $missing
    rm -rf "$tools/build"
fi
export PATH=$tools/bin:$PATH

rm -rf "$out"
mkdir -p "$out"
remapped="--remap-path-prefix=$build=/build --remap-path-prefix=$PWD=/recant --remap-path-prefix=${CARGO_HOME:-$HOME/.cargo}/registry/src=/crates"

# The files that are the same for each processor, except that the program prints some of them.
common=$build/common
rm -rf "$common"
mkdir -p "$common"
# It finds the texts in the sources of the crates, here.
RUST_LOG=error cargo bundle-licenses --format json --output "$common/licences.json"
packaging/texts.py third-party "$common/licences.json" >"$common/THIRD-PARTY"
packaging/texts.py changelog "$version-1" "$maintainer" "$SOURCE_DATE_EPOCH" | gzip -9n >"$common/changelog.Debian.gz"
gzip -9nc CHANGELOG.md >"$common/changelog.gz"
packaging/texts.py copyright >"$common/copyright"
gzip -9nc "$common/THIRD-PARTY" >"$common/THIRD-PARTY.gz"

pack() { # processor, triple, what runs its programs
    local processor=$1 triple=$2 runner=$3 release name tree
    release=$build/$triple/release name=recant-$version-$processor-linux
    echo "building for $processor" >&2
    RUSTFLAGS=$remapped CARGO_TARGET_DIR=$build make --no-print-directory static TARGET="$triple" CARGO="cargo auditable" >&2
    rm -rf "$release/dist"
    mkdir -p "$release/dist/completions" "$release/dist/man1"
    cp "$common"/{THIRD-PARTY.gz,changelog.gz,changelog.Debian.gz,copyright} "$release/dist"
    cp -r LICENSE README.md CHANGELOG.md packaging/apparmor packaging/deb/lintian-overrides "$release/dist"
    $runner "$release/recant" man --dir "$release/dist/man1"
    $runner "$release/recant" completions bash >"$release/dist/completions/recant.bash"
    $runner "$release/recant" completions zsh >"$release/dist/completions/_recant"
    $runner "$release/recant" completions fish >"$release/dist/completions/recant.fish"

    tree=$build/tree/$name
    rm -rf "$build/tree"
    install -D -m 0755 "$release/recant" "$tree/recant"
    install -D -m 0644 packaging/apparmor/recant "$tree/apparmor/recant"
    install -m 0644 LICENSE README.md CHANGELOG.md packaging/INSTALL "$common/THIRD-PARTY" "$tree"
    cp -r "$release/dist/man1" "$release/dist/completions" docs examples "$tree"
    tar -C "$build/tree" --sort=name --owner=0 --group=0 --numeric-owner --mode=u=rwX,go=rX --mtime="@$SOURCE_DATE_EPOCH" \
        --format=ustar -cf - "$name" | gzip -9n >"$out/$name.tar.gz"

    gzip -9n "$release"/dist/man1/*
    # A copy of the program: for cargo it would be older than its source.
    cp "$release/recant" "$release/dist"
    find "$release/dist" -exec touch -h -d "@$SOURCE_DATE_EPOCH" {} +
    # Nothing is built or stripped by them.
    CARGO_TARGET_DIR=$build cargo deb --quiet --no-build --no-strip --target "$triple" --maintainer "$maintainer" \
        --output "$out/recant_$version-1_$(debian "$processor").deb"
    CARGO_TARGET_DIR=$build cargo generate-rpm --target "$triple" --source-date "$SOURCE_DATE_EPOCH" --payload-compress xz \
        --output "$out/recant-$version-1.$processor.rpm"
}
debian() { case $1 in x86_64) echo amd64 ;; aarch64) echo arm64 ;; *) echo "$1" ;; esac; }

here=$(uname -m)
for processor in $processors; do
    if [ "$processor" = "$here" ]; then
        pack "$processor" "$(make -s triple)" ""
    elif [ "$processor" = aarch64 ]; then
        (
            skip() { echo "skipped: packages for aarch64: $*"; exit 0; }
            # shellcheck source=packaging/aarch64.sh
            . packaging/aarch64.sh
            pack aarch64 "$triple" qemu-aarch64-static
        )
    else
        echo "skipped: packages for $processor: they are built on such a machine"
    fi
done

# Ansible's collection, which has its version and its address from here. ansible-galaxy puts the time of the build into it: packed anew.
galaxy=$tools/ansible/bin/ansible-galaxy collection=$build/collection
[ -x "$galaxy" ] || { python3 -m venv "$tools/ansible" && "$tools/ansible/bin/pip" install --quiet "ansible-core>=2.16"; }
rm -rf "$collection"
mkdir -p "$collection/packed"
cp -r ansible/recant/hold "$collection/source"
find "$collection/source" -name __pycache__ -prune -exec rm -r {} +
sed -i "s/^version: .*/version: $version/" "$collection/source/galaxy.yml"
sed -n 's/^repository = "\(.*\)"/repository: \1/p' Cargo.toml >>"$collection/source/galaxy.yml"
# It takes no other encoding.
LC_ALL=C.UTF-8 "$galaxy" collection build "$collection/source" --output-path "$collection" >&2
tar -C "$collection/packed" -xzf "$collection/recant-hold-$version.tar.gz"
(cd "$collection/packed" && tar --sort=name --owner=0 --group=0 --numeric-owner --mode=u=rwX,go=rX --mtime="@$SOURCE_DATE_EPOCH" \
    --format=ustar -cf - -- *) | gzip -9n >"$out/recant-hold-$version.tar.gz"

# It writes beside Cargo.toml, and names the directory.
trap 'rm -f recant-sbom.json' EXIT
cargo cyclonedx --quiet --format json --spec-version 1.5 --target all --override-filename recant-sbom
sed "s|path+file://$PWD|path+file:///recant|g" recant-sbom.json >"$out/recant-$version.cdx.json"

(cd "$out" && sha256sum -- * >"$build/SHA256SUMS" && mv "$build/SHA256SUMS" .)
ls -l "$out"
