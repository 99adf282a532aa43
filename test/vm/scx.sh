#!/bin/bash
# scx.sh: the tests of the scheduler (internal/scx), those that need two hardware threads a core, and those of the systemd
# units that load a scheduler, all on the kernel that has sched_ext. Where time is shared out, the guest's is counted in its
# instructions (ICOUNT in boot.sh): a host that does other work changes nothing of what is measured.
# SHORT=1: one machine with the tests that tell whether a scheduler loads, shares, limits, reports and ends on this kernel.
set -eu
. "$(dirname "$0")/env.sh"
cd "$repo"
export SECONDS_MAX=${SECONDS_MAX:-900} ICOUNT=${ICOUNT:-2}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
trap 'kill $(jobs -p) 2>/dev/null; wait; exit 130' INT TERM
echo '^$' >"$work/skip"
packages=internal/scx
[ -n "${SHORT:-}" ] || packages+=" cmd/plimsoll"
for package in $packages; do
  CGO_ENABLED=0 go test -c -ldflags '-s -w' -o "$work/${package//\//-}.test" "./$package"
done
"$vm/kernels.sh" 6.18 >/dev/null

# machine NAME SMP PACKAGE:TESTS...: runs tests, and prints what came of them. What a machine is for must run.
machine() {
  local begin=$SECONDS result=0 name=$1 smp=$2 package
  shift 2
  rm -rf "$work/p" && mkdir "$work/p" && cp "$work/skip" "$work/p/"
  for package in "$@"; do
    ln "$work/${package%%:*}.test" "$work/p/"
    echo "^(${package#*:})\$" >"$work/p/${package%%:*}.run"
  done
  SMP=$smp "$vm/run.sh" 6.18 v2 "$vm/guest/cell.sh" "$work"/p/* >"$work/out" 2>&1 &
  wait $! && ! grep ' [1-9][0-9]* skipped)' "$work/out" || result=1
  said "$name" $begin $result
}

# units: the systemd units that load a scheduler.
units() {
  local begin=$SECONDS result=0
  "$vm/systemd.sh" 6.18 "$vm/guest/systemd-scx.sh" "${PLIMSOLL_BIN:-bin/plimsoll}" "$vm/guest/lib.sh" deploy/systemd/plimsoll*.{service,sysusers} \
    internal/scx/scxtest/*_bpfel.o >"$work/out" 2>&1 &
  wait $! || result=1
  said units $begin $result
}

# said NAME BEGIN RESULT: one line, and the console of what failed.
said() {
  local word=ok
  [ "$3" -eq 0 ] || { word=FAIL failed=1; sed 's/^/    /' "$work/out"; }
  printf '6.18   %-8s %-6s %8d\n' "$1" $word $((SECONDS - $2))
}
failed=0
tests=$(grep -ho '^func Test[A-Za-z0-9_]*' internal/scx/*_kernel_test.go | cut -c6- | grep -v -e '^TestMain$' -e '^TestExpel' | paste -sd'|')
if [ -n "${SHORT:-}" ]; then
  machine scx 2 'internal-scx:TestSecondScheduler|TestLoaderKilled|TestShares|TestThrottlesAreReported|TestLimitsOfFiles'
  exit $failed
fi
machine scx 2 "internal-scx:$tests"
machine threads 4,cores=2,threads=2 'internal-scx:TestExpel|TestExpels|TestExpelledAndBound'
ICOUNT='' machine diagnose 4,cores=2,threads=2 cmd-plimsoll:TestDiagnoseBesideASibling
units
exit $failed
