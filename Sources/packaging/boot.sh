#!/bin/bash
# Boots the system below a directory with systemd as its first process. Called by test-service.sh in separate namespaces, so
# that no mounts, processes or names remain.
set -euo pipefail
root=$1

mount --make-rprivate /
mount --bind "$root" "$root"
mount -t proc proc "$root/proc"
mount -t sysfs -o ro sysfs "$root/sys"
mount --rbind /sys/fs/cgroup "$root/sys/fs/cgroup"
mount -t tmpfs -o mode=755 tmpfs "$root/run"
mount -t tmpfs -o mode=1777 tmpfs "$root/tmp"
mount -t tmpfs -o mode=755 tmpfs "$root/dev"
for device in null zero full random urandom tty; do cp -a "/dev/$device" "$root/dev/"; done
mkdir "$root/dev/pts" "$root/dev/shm"
ln -s pts/ptmx "$root/dev/ptmx"
mount -t devpts -o newinstance,ptmxmode=666 devpts "$root/dev/pts"
mount -t tmpfs -o mode=1777 tmpfs "$root/dev/shm"
exec chroot "$root" env -i container=larder-test PATH=/usr/sbin:/usr/bin:/sbin:/bin TERM=dumb \
    /lib/systemd/systemd --system --unit=multi-user.target
