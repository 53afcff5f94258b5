#!/usr/bin/env bash
# The programs that tests use beside recant: installs their Debian packages where it may, and says what is skipped without
# the others. Ends with 0 in any case: each test checks again for what it needs.
set -euo pipefail

# program, Debian package, what is skipped without it
needs="
git         git          diff against git apply; commit messages
jq          jq           a checkpoint given back by hand, as docs/store-format.md says
strace      strace       the order of system calls
faketime    faketime     a clock that is set during a command
/usr/bin/time time         memory under load
rsync       rsync        an independent copy to compare with
getfacl     acl          access control lists
getfattr    attr         extended attributes from outside
getcap      libcap2-bin  file capabilities
mkfs.ext4   e2fsprogs    ext4 in a loop device
mkfs.xfs    xfsprogs     xfs in a loop device
xfs_io      xfsprogs     power cuts by a shutdown
/usr/include/fuse3/fuse.h libfuse3-dev disks that log their writes
fusermount3 fuse3        disks that log their writes
pkg-config  pkg-config   disks that log their writes
mkfs.btrfs  btrfs-progs  btrfs in a loop device
bindfs      bindfs       a file system without RENAME_EXCHANGE
sshfs       sshfs        a file system of another machine
losetup     mount        loop devices
unshare     util-linux   user namespaces from outside
script      bsdutils     the terminal's shape
sudo        sudo         root's commands in a run; recant as root on other machines
nsenter     util-linux   commits that wait for a word, taken back by a systemd of the test's own
perl        perl         kernels that refuse a call
tmux        tmux         a terminal in the terminal of a run
less        less         a pager in a run
vim         vim          an editor in a run
setpriv     util-linux   tests as another user
newgidmap   uidmap       further groups of a user, mapped in a run
ssh         openssh-client  other machines
/usr/sbin/sshd openssh-server  other machines
ip          iproute2     other machines, and hosts that a run may reach: networks of their own
openssl     openssl      hosts that a run may reach, over https
curl        curl         the same, by what people use
/usr/bin/pip3 python3-pip pip in a run whose hosts are listed
xxd         xxd          npm and apt likewise
tcsh        tcsh         other machines: a login shell that is no sh
fish        fish         other machines: a login shell that is no sh; completion
zsh         zsh          other machines: a login shell; completion
man         man-db       manual pages as they are shown
/usr/share/doc/python3-venv python3-venv Ansible's collection
"

PATH=$PATH:/usr/sbin:/sbin
lacking() { while read -r program package what; do
    [ -z "$program" ] || command -v "$program" >/dev/null || [ -e "$program" ] || echo "$program $package $what"
done <<<"$needs"; }

missing=$(lacking)
if [ -n "$missing" ] && [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
    packages=$(awk '{print $2}' <<<"$missing" | sort -u | tr '\n' ' ')
    echo "installing: $packages"
    export DEBIAN_FRONTEND=noninteractive
    # shellcheck disable=SC2086
    { apt-get update -qq && apt-get install -y -qq --no-install-recommends $packages; } >/dev/null 2>&1 ||
        echo "apt-get could not install all of them"
    missing=$(lacking)
fi
while read -r program package what; do
    [ -z "$program" ] || echo "not here: $program (Debian: $package); without it no test of: $what"
done <<<"$missing"
# The one that Debian does not have, for the long tests.
if [ "${1-}" = --long ] && ! command -v pnpm >/dev/null; then
    [ "$(id -u)" = 0 ] && timeout 120 npm install --silent --global pnpm@9 >/dev/null 2>&1 ||
        echo "not here: pnpm (npm: pnpm); without it no test of: the same in a run whose hosts are listed"
fi
[ "$(id -u)" = 0 ] || echo "not root: no test with loop-mounted file systems, other owners, devices, or capture as root"
