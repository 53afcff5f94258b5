#!/bin/sh
# recant inside a container that needs no root: user, mount, process and IPC namespaces of its own, and an overlay as its disk.
#
#     examples/in-container.sh [DIR]            made by unshare(1). DIR keeps its disk; default: a temporary directory, which goes
#     examples/in-container.sh --podman [DIR]   made by podman, without an image from anywhere
#     RECANT=PROGRAM                            default: the recant in PATH
#
# Exits with 1 where recant does something else than the comments below say, with 77 where no such container can be made here.
set -eu

outside() {
    by=unshare
    if [ "${1-}" = --podman ]; then by=podman && shift; fi
    recant=$(command -v "${RECANT:-recant}")
    if [ $# -gt 0 ]; then
        mkdir "$1"
        work=$(cd "$1" && pwd)
    else
        work=$(mktemp -d "${TMPDIR:-/tmp}/recant-container.XXXXXX")
        # overlayfs leaves a directory of mode 000 in its working directory.
        trap 'chmod -R u+rwX "$work"; rm -rf "$work"' EXIT
    fi
    case $by in
        unshare) unshare --user --map-root-user --mount --pid --ipc --fork true || exit 77 ;;
        podman) podman version >/dev/null || exit 77 ;;
    esac

    # The image: a directory of an application, and the machine's own programs.
    image=$work/image
    for directory in dev etc proc root run srv/app sys tmp usr var/lib/recant var/tmp; do
        mkdir -p "$image/$directory"
    done
    for name in bin sbin lib lib64; do
        if [ -L "/$name" ]; then cp -P "/$name" "$image/"; elif [ -d "/$name" ]; then mkdir "$image/$name"; fi
    done
    echo 'root:x:0:0:root:/root:/bin/sh' >"$image/etc/passwd"
    echo 'port = 80' >"$image/srv/app/app.conf"
    cp "$recant" "$image/srv/recant"
    cp "$0" "$image/srv/in-container.sh"
    if [ "$by" = podman ]; then
        set --
        for name in usr bin sbin lib lib64; do
            [ -L "/$name" ] || ! [ -d "/$name" ] || set -- "$@" -v "/$name:/$name:ro"
        done
        podman run --rm --network none "$@" --tmpfs /var/lib/recant:mode=0700 -w /srv/app \
            -e PATH=/srv:/usr/sbin:/usr/bin:/sbin:/bin --rootfs "$image:O" sh /srv/in-container.sh --inside
    else
        mkdir "$work/upper" "$work/work" "$work/disk"
        unshare --user --map-root-user --mount --pid --ipc --fork sh "$0" --start "$work"
    fi
}

# The container's first process: its disk becomes the root, and all else goes out of reach.
start() {
    work=$1
    mount -t overlay -o "userxattr,lowerdir=$work/image,upperdir=$work/upper,workdir=$work/work" overlay "$work/disk" || exit 77
    cd "$work/disk"
    for name in usr bin sbin lib lib64; do
        [ -L "$name" ] || ! [ -d "$name" ] || mount --rbind "/$name" "$name"
    done
    mount --rbind /dev dev
    mount -t proc proc proc
    mount -t tmpfs -o mode=0755 tmpfs run
    # What `podman run --tmpfs /var/lib/recant:mode=0700` mounts. A volume (`-v recant:/var/lib/recant`) would outlive the container.
    mount -t tmpfs -o mode=0700 tmpfs var/lib/recant
    pivot_root . .
    umount -l .
    cd /srv/app
    exec env -i PATH=/srv:/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LANG=C.UTF-8 sh /srv/in-container.sh --inside
}

inside() {
    say() { printf '== %s\n' "$*"; }
    is() { [ "$1" = "$2" ] || { echo "expected '$2', found '$1'" >&2 && exit 1; }; }
    status() { code=0 && "$@" || code=$?; }
    say "root of a user namespace, on an overlay: $(id -u), $(stat -f -c %T /)"

    say 'a store on the disk of the container cannot hold a run: overlayfs takes no upper on overlayfs'
    status recant --store /var/lib/on-overlay run -- sh -c 'echo port = 8080 > app.conf'
    is "$code" 125
    is "$(cat app.conf)" 'port = 80'

    say 'it can hold a run on the real files, between two snapshots, and snapshots by hand'
    recant --store /var/lib/on-overlay run --in . -- sh -c 'echo port = 8080 > app.conf'
    is "$(cat app.conf)" 'port = 8080'
    recant --store /var/lib/on-overlay rollback last
    is "$(cat app.conf)" 'port = 80'
    recant --store /var/lib/on-overlay snapshot create
    rm app.conf
    recant --store /var/lib/on-overlay -y snapshot restore last
    is "$(cat app.conf)" 'port = 80'

    say 'with the store on a tmpfs or a volume everything is as elsewhere'
    export RECANT_STORE=/var/lib/recant
    recant doctor | grep '^run  '
    recant run -n upgrade -- sh -c 'echo port = 8080 > app.conf; mkdir logs'
    is "$(cat app.conf)" 'port = 80'
    recant diff upgrade
    recant commit upgrade
    is "$(cat app.conf)" 'port = 8080'
    is "$(echo *)" 'app.conf logs'
    recant rollback upgrade
    is "$(cat app.conf)" 'port = 80'
    is "$(echo *)" app.conf

    say 'an edit meanwhile is a conflict, as elsewhere'
    recant redo upgrade
    echo 'port = 81' >app.conf
    status recant rollback upgrade
    is "$code" 3
    is "$(cat app.conf)" 'port = 81'
}

case ${1-} in
    --start) start "$2" ;;
    --inside) inside ;;
    *) outside "$@" ;;
esac
