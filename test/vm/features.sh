#!/bin/bash
# features.sh [KERNEL:CGROUP...]: writes docs/KERNELS.md, of what `plimsoll doctor` says on these machines (default: all that are tested).
set -eu
. "$(dirname "$0")/env.sh"
cd "$repo"
[ $# -gt 0 ] || set -- 5.10:v1 5.10:v2 6.1:v2 6.12:v2 6.18:v2 7.0:v2 7.1:v2 7.2:v2 7.3:v2
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir "$work/said"
echo './plimsoll doctor --json >/tmp/out && echo "DOCTOR $(tr -d "\n" </tmp/out)"' >"$work/main"
for cell in "$@"; do
  "$vm/run.sh" "${cell%:*}" "${cell#*:}" "$work/main" bin/plimsoll >"$work/out" || { cat "$work/out" >&2; exit 1; }
  sed -n 's/^DOCTOR //p' "$work/out" >"$work/said/$cell.json"
done
go run ./test/vm/table docs/KERNELS.md "$work/said"
