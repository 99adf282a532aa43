#!/bin/bash
# apparmor.sh [KERNEL]: runs guest/apparmor.sh with the shipped AppArmor profiles as root in a virtual machine, whose kernel (default
# 6.12) enforces them, and exits with its exit code. Environment: see boot.sh; PLIMSOLL_BIN. The console of a failed run is kept.
set -eu
. "$(dirname "$0")/env.sh"
cd "$repo"
export ICOUNT=${ICOUNT-3}
command -v apparmor_parser >/dev/null || PATH=$PATH:/usr/sbin:/sbin
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
apparmor_parser --kernel-features=/etc/apparmor.d/abi/3.0 --skip-kernel-load --skip-cache --stdout deploy/apparmor/plimsoll >"$work/profiles"
cp "${PLIMSOLL_BIN:-bin/plimsoll}" "$work/plimsoll"
CGO_ENABLED=0 go build -ldflags '-s -w' -o "$work/plimsoll-lease" ./cmd/plimsoll-lease
"$vm/run.sh" "${1:-6.12}" v2 "$vm/guest/apparmor.sh" "$work"/* "$vm/guest/lib.sh"
