#!/bin/bash
# arm64.sh: the contract with the kernel on arm64: matrix.sh with Debian's arm64 kernels, with tests and a binary that are built
# for them. Each kernel has to have the features that docs/KERNELS.md says of it on amd64. On 7.3 also a few tests of the
# scheduler (internal/scx): that it loads, limits, reports and ends. Environment: that of matrix.sh.
set -eu
. "$(dirname "$0")/env.sh"
cd "$repo"
export ARCH=arm64 CELLS="${CELLS:-6.12:v2 7.3:v2}" SECONDS_MAX=${SECONDS_MAX:-1500}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
trap 'kill $(jobs -p) 2>/dev/null; wait; exit 130' INT TERM
GOARCH=arm64 CGO_ENABLED=0 go build -ldflags '-s -w' -o "$work/plimsoll" ./cmd/plimsoll
failed=0
PLIMSOLL_BIN=$work/plimsoll "$vm/matrix.sh" &
wait $! || failed=1

case " $CELLS " in *" 7.3:v2 "*) ;; *) exit $failed ;; esac
mkdir "$work/p"
GOARCH=arm64 CGO_ENABLED=0 go test -c -vet=off -ldflags '-s -w' -o "$work/p/scx.test" ./internal/scx
echo '^$' >"$work/p/skip"
echo '^(TestSecondScheduler|TestLoaderKilled|TestThrottlesAreReported|TestLimitsOfFiles)$' >"$work/p/scx.run"
begin=$SECONDS word=ok
ICOUNT=2 "$vm/run.sh" 7.3 v2 "$vm/guest/cell.sh" "$work"/p/* >"$work/out" 2>&1 &
wait $! && grep -q '^ok scx .*(4 tests, 0 skipped)' "$work/out" || { word=FAIL failed=1; sed 's/^/    /' "$work/out"; }
printf '%-6s %-8s %-6s %8d\n' 7.3 scx $word $((SECONDS - begin))
exit $failed
