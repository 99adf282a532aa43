#!/bin/bash
# parity.sh: what wake-ups and round trips take under Plimsoll's scheduler, by what they take under the kernel's own, in one
# virtual machine whose time is counted in its instructions. The times are an emulated CPU's: the ratios are of interest.
set -eu
. "$(dirname "$0")/env.sh"
cd "$repo"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
CGO_ENABLED=0 go test -c -ldflags '-s -w' -o "$work/scx.test" ./internal/scx
echo './scx.test -test.run "^$" -test.bench Parity -test.benchtime 1x' >"$work/main"
ICOUNT=${ICOUNT:-2} SECONDS_MAX=${SECONDS_MAX:-600} "$vm/run.sh" "${1:-6.18}" v2 "$work/main" "$work/scx.test"
