#!/bin/bash
# flaky.sh N TIER: runs a tier of tiers.sh N times beside a CPU load and names each test that failed, with the number of runs in
# which it did. The exit code is 1 if any run failed. The logs of failed runs are kept in .cache/flaky/TIER.
# Environment: LOAD (busy loops; default one a CPU), NICENESS (theirs; default 5: a quarter of a CPU that another task wants).
set -uo pipefail
cd "$(dirname "$0")/.."
runs=${1:-} tier=${2:-}
if ! [[ $runs =~ ^[1-9][0-9]*$ ]]; then
  echo "flaky.sh: N=$runs is not a number of runs; hint: make test-flaky N=10 TIER=kernel" >&2
  exit 2
fi
case $tier in unit | sim | kernel | vm | kube | demo) ;; *)
  echo "flaky.sh: TIER=$tier is none of unit, sim, kernel, vm, kube, demo; hint: make test-flaky N=10 TIER=kernel" >&2
  exit 2
  ;;
esac
logs=${PLIMSOLL_CACHE:-.cache}/flaky/$tier
rm -rf "$logs"
mkdir -p "$logs"

# busy spins in pieces of ten seconds and ends with this script, also when the script was killed.
busy() {
  while kill -0 $$ 2>/dev/null; do
    nice -n "${NICENESS:-5}" timeout 10 bash -c 'while :; do :; done' &
    wait $!
  done
}
load=() tested=
trap 'for pid in "${load[@]}"; do pkill -P "$pid"; kill "$pid"; done 2>/dev/null; [ -z "$tested" ] || kill -- "-$tested" 2>/dev/null' EXIT
trap 'exit 130' INT TERM
for _ in $(seq "${LOAD:-$(nproc)}"); do
  busy &
  load+=($!)
done

# failures LOG: the tests that failed there, each once: what go test says, and what a machine says below its line in the tier vm. A
# package that failed without a test's name (a crash, a timeout) is named itself.
failures() {
  awk '/^[0-9.]+ +(v[12]|systemd|[a-z]+) +[a-zA-Z]+ +[0-9]+/ { cell = " on " $1 ":" $2 }
    /^== / { cell = "" }
    $1 == "---" && $2 == "FAIL:" { print $3 (/^    / ? cell : ""); named = 1 }
    /^    FAIL [a-z]/ { print $2 cell }
    /^panic: / { named = 0 }
    /^FAIL\t/ { if (!named) print $2; named = 0 }
    /^ok  \t/ { named = 0 }' "$1" | sort -u
}

failed=0
for run in $(seq "$runs"); do
  begin=$SECONDS word=ok log=$logs/$run.log
  FRESH=1 setsid bash test/tiers.sh "$tier" >"$log" 2>&1 & # a group of its own, which is ended with this script
  tested=$!
  wait "$tested" || word=FAIL
  tested=
  failures "$log" >"$logs/names"
  [ "$word" = ok ] || [ -s "$logs/names" ] || echo "$tier: no test is named, see the log" >"$logs/names"
  if [ -s "$logs/names" ]; then
    word=FAIL failed=$((failed + 1))
    cat "$logs/names" >>"$logs/all"
  else
    rm "$log"
  fi
  printf 'run %d of %d of tier %s: %s, %d s\n' "$run" "$runs" "$tier" $word $((SECONDS - begin))
done
rm -f "$logs/names"
if [ $failed -eq 0 ]; then
  echo "tier $tier: $runs of $runs runs passed"
  exit 0
fi
echo "tier $tier: $failed of $runs runs failed; their logs are in $logs"
sort "$logs/all" | uniq -c | sort -rn | awk -v runs="$runs" '{ n = $1; sub(/^ *[0-9]+ /, ""); printf "  %d of %d: %s\n", n, runs, $0 }'
exit 1
