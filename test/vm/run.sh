#!/bin/bash
# run.sh KERNEL v1|v2 SCRIPT [FILE...]: runs SCRIPT (busybox sh, as root, in /p beside the FILEs) in a virtual machine and
# exits with its exit code; 125: the machine gave no result. KERNEL is a series of kernels.sh (6.12) or a vmlinux file.
# The cpu controller is mounted as cgroup v1 or v2. Environment: see boot.sh. The console of a failed run is kept.
set -eu
. "$(dirname "$0")/env.sh"
[ $# -ge 3 ] || { sed -n '2,4s/^# //p' "$0" >&2; exit 2; }
series=$1 version=$2 script=$3
shift 3
case $version in v1 | v2) ;; *) echo "run.sh: $version is neither v1 nor v2" >&2; exit 2 ;; esac
kernel=$(kernel_file "$series")

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir -p "$work/root/bin" "$work/root/p"
cp "$([ -n "${ARCH:-}" ] && echo "$cache/busybox-$ARCH" || echo /bin/busybox)" "$work/root/bin/busybox"
cp "$vm/guest/init" "$work/root/init"
if [ -n "${ARCH:-}" ]; then
  printf '#!/bin/sh\nwhile :; do :; done\n' >"$work/root/bin/plimsoll-spin"
  chmod +x "$work/root/bin/plimsoll-spin"
else
  gcc -nostdlib -static -o "$work/root/bin/plimsoll-spin" "$vm/guest/spin.s"
fi
[ $# -eq 0 ] || cp -a "$@" "$work/root/p/"
cp "$script" "$work/root/p/main.sh"
(cd "$work/root" && find . | cpio -o -H newc --quiet) >"$work/initrd" # not compressed: the emulated CPU is slower than the copy

boot "$(basename "$series")${ARCH:+-$ARCH}-$version-$(basename "$script")" "$kernel" "$work/initrd" "plimsoll.cgroup=$version"
