#!/bin/bash
# arm64.sh: the contract with the kernel on arm64: matrix.sh with Debian's arm64 kernels, with tests and a binary that are built
# for them. Each kernel has to have the features that docs/KERNELS.md says of it on amd64. Environment: that of matrix.sh.
set -eu
. "$(dirname "$0")/env.sh"
cd "$repo"
export ARCH=arm64 CELLS="${CELLS:-6.12:v2 7.3:v2}" SECONDS_MAX=${SECONDS_MAX:-1500}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
trap 'kill $(jobs -p) 2>/dev/null; wait; exit 130' INT TERM
GOARCH=arm64 CGO_ENABLED=0 go build -trimpath -ldflags '-s -w' -o "$work/plimsoll" ./cmd/plimsoll
PLIMSOLL_BIN=$work/plimsoll "$vm/matrix.sh" &
wait $!
