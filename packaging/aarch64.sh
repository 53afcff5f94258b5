# Sourced: a compiler and a linker for aarch64, on another processor. A toolchain without that target's library is lent Debian's
# compiler and library, unpacked below target/, where root may fetch them. Sets triple and room, and exports what cargo needs; where
# it cannot, calls skip with the reason, which has to end the script or subshell.
# shellcheck shell=bash

triple=aarch64-unknown-linux-gnu
room=$(realpath -m "${CARGO_TARGET_DIR:-target}")/processor
apt=no
[ "$(id -u)" != 0 ] || ! command -v apt-get >/dev/null || apt=yes

if ! command -v aarch64-linux-gnu-gcc >/dev/null || ! command -v qemu-aarch64-static >/dev/null; then
    [ $apt = yes ] || skip "no aarch64-linux-gnu-gcc or qemu-aarch64-static (Debian: gcc-aarch64-linux-gnu, qemu-user-static)"
    { apt-get update -qq && apt-get install -y -qq --no-install-recommends \
        gcc-aarch64-linux-gnu libc6-dev-arm64-cross qemu-user-static; } >/dev/null 2>&1 || skip "apt-get could not install its compiler"
fi

# Debian's compiler with the library for both processors, as of one version: nothing is installed, only unpacked.
lend() {
    local foreign=no packages
    dpkg --print-foreign-architectures | grep -qx arm64 || { foreign=yes; dpkg --add-architecture arm64; }
    apt-get update -qq >/dev/null 2>&1 || true
    packages=$(apt-cache depends rustc-web libstd-rust-web-dev 2>/dev/null | sed -n 's/^ *Depends: \(libstd-rust-web[-.0-9a-z]*\)$/\1/p' | sort -u)
    packages="$packages $(for package in $packages; do apt-cache depends "$package"; done | sed -n 's/^ *Depends: \(libllvm[0-9]*\)$/\1/p' | sort -u)"
    mkdir -p "$room/fetched"
    # shellcheck disable=SC2086
    (cd "$room/fetched" && apt-get download -qq rustc-web libstd-rust-web-dev:arm64 $packages) >/dev/null 2>&1 || packages=
    [ $foreign = no ] || { dpkg --remove-architecture arm64; apt-get update -qq >/dev/null 2>&1 || true; }
    [ -n "$packages" ] || return 1
    for package in "$room"/fetched/*.deb; do dpkg-deb -x "$package" "$room/lent"; done
    rm -r "$room/fetched"
    printf '#!/bin/sh\nlent=%q\nLD_LIBRARY_PATH=$lent/usr/lib/%s-linux-gnu:$(echo $lent/usr/lib/llvm-*/lib) exec $lent/usr/bin/rustc "$@"\n' \
        "$room/lent" "$(uname -m)" >"$room/rustc"
    chmod +x "$room/rustc"
}
if [ ! -d "$(rustc --print sysroot)/lib/rustlib/$triple/lib" ]; then
    if [ ! -x "$room/rustc" ]; then
        [ $apt = yes ] || skip "the toolchain has no library for $triple (rustup target add $triple)"
        lend || skip "the toolchain has no library for $triple, and Debian's rustc-web could not be fetched"
    fi
    export RUSTC=$room/rustc
fi
export CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_LINKER=aarch64-linux-gnu-gcc
