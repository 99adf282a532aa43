#!/bin/bash
# scx.sh: tests that matrix.sh leaves out, on the kernel that has sched_ext: those of the scheduler that take long, and
# those that need two hardware threads a core.
set -eu
. "$(dirname "$0")/env.sh"
cd "$repo"
export SECONDS_MAX=${SECONDS_MAX:-600}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
trap 'kill $(jobs -p) 2>/dev/null; wait; exit 130' INT TERM
echo '^$' >"$work/skip"
for package in internal/scx cmd/plimsoll; do
  CGO_ENABLED=0 go test -c -ldflags '-s -w' -o "$work/${package//\//-}.test" "./$package"
done
"$vm/kernels.sh" 6.18 >/dev/null

boot() {
  SMP=$1 "$vm/run.sh" 6.18 v2 "$vm/guest/cell.sh" "$work"/p/* >"$work/out" 2>&1 &
  wait $! && ! grep ' [1-9][0-9]* skipped)' "$work/out" # what this machine is for must run
}

# machine NAME SMP PACKAGE:TESTS...: runs tests, and prints what came of them; once more where they fail, as in matrix.sh.
machine() {
  local begin=$SECONDS result=0 word=ok name=$1 smp=$2 package
  shift 2
  rm -rf "$work/p" && mkdir "$work/p" && cp "$work/skip" "$work/p/"
  for package in "$@"; do
    ln "$work/${package%%:*}.test" "$work/p/"
    echo "^(${package#*:})\$" >"$work/p/${package%%:*}.run"
  done
  boot "$smp" || { sed 's/^/    /' "$work/out"; word=again; boot "$smp"; } || result=$?
  [ "$result" -eq 0 ] || { word=FAIL failed=1; sed 's/^/    /' "$work/out"; }
  printf '6.18   %-8s %-6s %8d\n' "$name" "$word" $((SECONDS - begin))
}
failed=0
machine threads 4,cores=2,threads=2 internal-scx:TestExpel cmd-plimsoll:TestDiagnoseBesideASibling
machine scx 2 'internal-scx:TestStress|TestCycles|TestSwap|TestStall'
exit $failed
