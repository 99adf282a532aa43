#!/bin/bash
# systemd.sh [KERNEL [SCRIPT [FILE...]]]: runs SCRIPT (default guest/systemd.sh with bin/plimsoll and the unit file) as root in a
# virtual machine whose PID 1 is systemd, on cgroup v2, and exits with its exit code. KERNEL is a series of kernels.sh
# (default 6.12) or a vmlinux file. Environment: see boot.sh; PLIMSOLL_BIN. The console of a failed run is kept.
set -eu
. "$(dirname "$0")/env.sh"
series=${1:-6.12} script=${2:-$vm/guest/systemd.sh}
if [ $# -gt 2 ]; then
  shift 2
else
  binary=${PLIMSOLL_BIN:-$repo/bin/plimsoll}
  [ -x "$binary" ] || { echo "systemd.sh: $binary is not there; hint: make build" >&2; exit 2; }
  set -- "$binary" "$vm/guest/lib.sh"
  for unit in plimsoll.service plimsoll-serve.service plimsoll.sysusers; do set -- "$@" "$repo/deploy/systemd/$unit"; done
fi
kernel=$(kernel_file "$series")
"$vm/image.sh"

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir -p "$work/root/p"
cp -a "$@" "$work/root/p/"
cp "$script" "$work/root/p/main.sh"
cp "$cache/systemd/root.cpio" "$work/initrd"
(cd "$work/root" && find . | cpio -o -H newc --quiet) >>"$work/initrd" # the kernel unpacks one archive after the other

# Four CPUs: an agent is expensive where it is emulated, and of two there would be no headroom left to raise a quota by.
export SMP=${SMP:-4} MEM=${MEM:-1536} SECONDS_MAX=${SECONDS_MAX:-420}
boot "$(basename "$series")-systemd-$(basename "$script")" "$kernel" "$work/initrd" systemd.show_status=0
