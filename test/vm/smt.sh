#!/bin/bash
# smt.sh: the scheduler's tests on a machine whose two cores have two threads each, on the kernel that has sched_ext.
set -eu
. "$(dirname "$0")/env.sh"
cd "$repo"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
trap 'kill $(jobs -p) 2>/dev/null; wait; exit 130' INT TERM
CGO_ENABLED=0 go test -c -ldflags '-s -w' -o "$work/internal-scx.test" ./internal/scx
echo '^TestExpel$' >"$work/internal-scx.run"
echo '^$' >"$work/skip"
export SMP=4,cores=2,threads=2
begin=$SECONDS result=0
"$vm/run.sh" 6.18 v2 "$vm/guest/cell.sh" "$work"/* >"$work/out" 2>&1 &
wait $! || result=$?
if [ "$result" -ne 0 ]; then cat "$work/out"; fi
printf '6.18   smt      %-6s %8d\n' "$([ "$result" -eq 0 ] && echo ok || echo FAIL)" $((SECONDS - begin))
exit "$result"
