#!/bin/bash
# image.sh: makes a Debian with systemd as PID 1 by debootstrap and keeps it in the cache as systemd/root.cpio, not compressed:
# the guest's memory is its disk. Nothing is done when it is there and made by this version of the script.
set -eu
. "$(dirname "$0")/env.sh"
dir=$cache/systemd
stamp=$(sha256sum <"$vm/image.sh")
[ "$(cat "$dir/stamp" 2>/dev/null)" = "$stamp" ] && [ -s "$dir/root.cpio" ] && exit 0
exec 9>"$cache/lock"
flock 9
rm -rf "$dir"
mkdir -p "$dir"
mirror=$(apt-get indextargets --format '$(REPO_URI) $(RELEASE)' 'Identifier: Packages' | awk '$2 == "bookworm" {print $1; exit}')

# debootstrap mounts proc and sys in the new root: in a mount namespace of its own nothing of it can stay behind.
unshare --mount debootstrap --variant=minbase --include=systemd,systemd-sysv,dbus,crun,libnss-systemd \
  bookworm "$dir/root" "${mirror:-http://deb.debian.org/debian}" >"$dir/log" 2>&1 || { tail -20 "$dir/log" >&2; exit 1; }

cd "$dir/root"
rm -rf usr/share/{doc,man,locale,i18n,info,zoneinfo,lintian} usr/lib/x86_64-linux-gnu/gconv var/cache/apt var/lib/apt var/log/* boot/*
rm -rf usr/lib/x86_64-linux-gnu/perl-base usr/bin/perl* # dpkg's scripts; nothing is installed in the guest
rm -rf usr/lib/systemd/system-generators # twenty programs at each daemon-reload, for disks and consoles that are not there
for unit in getty.target console-getty.service serial-getty@ttyS0.service systemd-logind.service apt-daily.timer apt-daily-upgrade.timer \
  dpkg-db-backup.timer e2scrub_all.timer e2scrub_reap.service fstrim.timer systemd-update-utmp.service systemd-remount-fs.service; do
  ln -sf /dev/null "etc/systemd/system/$unit"
done
rm -f etc/resolv.conf etc/hostname
echo vm >etc/hostname
: >etc/machine-id
mkdir -p p

# The initial root cannot be pivoted, which systemd does for a service with a file system of its own
# (ProtectSystem=): a bind mount moved over it can.
cat >init <<'I'
#!/bin/sh
mkdir -p /sysroot
mount --bind / /sysroot
cd /sysroot
mount --move . /
exec chroot . /lib/systemd/systemd
I
chmod +x init

cat >etc/systemd/system/vm-main.service <<'U'
[Unit]
Description=the test script
After=multi-user.target dbus.service
Wants=dbus.service
[Service]
Type=oneshot
Environment=HOME=/root
WorkingDirectory=/p
ExecStart=/bin/sh /vm-main
StandardOutput=tty
StandardError=tty
TTYPath=/dev/ttyS0
TimeoutStartSec=infinity
U
cat >vm-main <<'M'
#!/bin/sh
# Runs /p/main.sh, says its exit code on the console and powers off, as the busybox guest does.
ip link set lo up 2>/dev/null
seconds=$(sed -n 's/.*plimsoll.seconds=\([0-9]*\).*/\1/p' /proc/cmdline)
echo "up after $(cut -d' ' -f1 /proc/uptime) s: $(uname -r), $(systemctl --version | head -1)"
timeout -s KILL "$seconds" sh ./main.sh
printf '\nVM-RESULT:%d\n' $?
echo o >/proc/sysrq-trigger
sleep 60
M
ln -sf ../vm-main.service etc/systemd/system/multi-user.target.wants/vm-main.service 2>/dev/null ||
  { mkdir -p etc/systemd/system/multi-user.target.wants; ln -sf ../vm-main.service etc/systemd/system/multi-user.target.wants/vm-main.service; }
find . | cpio -o -H newc --quiet >"$dir/root.cpio.new"
mv "$dir/root.cpio.new" "$dir/root.cpio"
cd "$cache"
rm -rf "$dir/root"
echo "$stamp" >"$dir/stamp"
