#!/bin/bash
# scx.sh: tests of the scheduler that matrix.sh leaves out, on the kernel that has sched_ext: those that take long, and
# the one that needs two hardware threads a core.
set -eu
. "$(dirname "$0")/env.sh"
cd "$repo"
export SECONDS_MAX=${SECONDS_MAX:-600}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
trap 'kill $(jobs -p) 2>/dev/null; wait; exit 130' INT TERM
mkdir "$work/p"
CGO_ENABLED=0 go test -c -ldflags '-s -w' -o "$work/p/internal-scx.test" ./internal/scx
echo '^$' >"$work/p/skip"
"$vm/kernels.sh" 6.18 >/dev/null

boot() {
  SMP=$1 "$vm/run.sh" 6.18 v2 "$vm/guest/cell.sh" "$work"/p/* >"$work/out" 2>&1 &
  wait $!
}

# machine NAME SMP TESTS: runs tests, and prints what came of them; once more where they fail, as in matrix.sh.
machine() {
  local begin=$SECONDS result=0 word=ok
  echo "^($3)\$" >"$work/p/internal-scx.run"
  boot "$2" || { sed 's/^/    /' "$work/out"; word=again; boot "$2"; } || result=$?
  [ "$result" -eq 0 ] || { word=FAIL failed=1; sed 's/^/    /' "$work/out"; }
  printf '6.18   %-8s %-6s %8d\n' "$1" "$word" $((SECONDS - begin))
}
failed=0
machine threads 4,cores=2,threads=2 TestExpel
machine scx 2 'TestStress|TestCycles|TestSwap|TestStall'
exit $failed
