#!/bin/sh
# A machine: a root on a tmpfs, with the programs of this one, and an sshd. Becomes the sshd, in a mount namespace that the caller has made.
#
#     host.sh DIRECTORY PORT RECANT NAME      DIRECTORY has user.pub and host, a key of sshd's
set -eu
keys=$1 port=$2 recant=$3 name=$4
mkdir -p "$keys/$name"
mount -t tmpfs tmpfs "$keys/$name"
cd "$keys/$name"
mkdir -p usr dev proc sys run/sshd tmp var/tmp var/lib var/log root home srv opt mnt old
chmod 1777 tmp var/tmp
for link in bin sbin lib lib64; do [ ! -L "/$link" ] || cp -a "/$link" .; done
cp -a /etc .
mount --bind /usr usr
mount -o remount,bind,ro usr
mount -t tmpfs tmpfs usr/local
mkdir usr/local/bin
[ ! -e "$recant" ] || cp "$recant" usr/local/bin/recant
for kernels in proc sys dev; do mount --rbind "/$kernels" $kernels; done
cp "$keys/user.pub" authorized
cp "$keys/host" hostkey
touch var/log/lastlog var/log/wtmp
pivot_root . old
cd /
umount -l old
rmdir old
# One who is root without a word, and one who has to give a password.
for user in op:NOPASSWD:ALL opp:ALL; do
    useradd -m -s /bin/sh "${user%%:*}"
    echo "${user%%:*}:secret" | chpasswd
    echo "${user%%:*} ALL=(ALL:ALL) ${user#*:}" >"/etc/sudoers.d/${user%%:*}"
done
exec /usr/sbin/sshd -D -e -f /dev/null -p "$port" -h /hostkey -o ListenAddress=127.0.0.1 -o PidFile=none \
    -o AuthorizedKeysFile=/authorized -o StrictModes=no -o UsePAM=no -o PermitRootLogin=yes
