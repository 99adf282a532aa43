#!/bin/bash
# matrix.sh: the contract with each kernel (what is read, written, reported, refilled, restored): real-kernel tests and the end-to-end
# script, on each kernel and cgroup version; one line a cell. As many cells run at a time as there are CPUs: an emulated machine
# takes one. What doctor says there has to be in docs/KERNELS.md. The cell 6.18:scx is one short machine of scx.sh; 6.12:apparmor and
# 6.12:systemd are apparmor.sh and systemd.sh.
# What ../moved.list moves to tier vm-all is left out, and in e2e.sh what it does not run beside the file brief; ALL=1 runs all.
# The guests' time is counted in instructions (ICOUNT in boot.sh), so that a busy host changes nothing of what they measure. Not on
# 5.10 and 6.1, which do not boot so: they keep the host's time, and come last, beside the tiers that leave most of the CPUs. Even
# with ALL=1 they do without what tier kernel leaves out, most of which measures time.
# Environment: CELLS="5.10:v1 6.12:v2 ...", PACKAGES="./internal/x ..." (default: those with a *_kernel_test.go),
# SKIP="./internal/x ..." (packages to leave out; default: those that measure the host, and that of scx.sh),
# SKIP_TESTS (names to leave out, a regular expression; default: those that need programs of the host and those that start many
# agents), PLIMSOLL_BIN (default bin/plimsoll), ARCH=arm64 (machines of it; PLIMSOLL_BIN is built for it), VERBOSE=1 (each package, and its tests of 5 s and more), JOBS (cells at a time).
set -eu
. "$(dirname "$0")/env.sh"
cd "$repo"
cells=${CELLS:-6.18:v2 7.3:v2 6.12:v2 7.0:v2 6.18:scx 6.12:apparmor 5.10:v1 6.1:v2}
binary=${PLIMSOLL_BIN:-bin/plimsoll}
export SECONDS_MAX=${SECONDS_MAX:-$([ -n "${ALL:-}" ] && echo 3600 || echo 1500)} ICOUNT=${ICOUNT-3}
[ -x "$binary" ] || { echo "matrix.sh: $binary is not there; hint: make build" >&2; exit 2; }
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
trap 'kill $(jobs -p) 2>/dev/null; wait; exit 130' INT TERM

# As the Makefile does, for the machines: what there runs has settings of its own.
compile() { GOARCH=${ARCH:-} CGO_ENABLED=0 GOGC=off GOMEMLIMIT=2GiB go "$@"; }

# A package's kernel tests are those of its *_kernel_test.go files: the rest needs no kernel and was run on the host.
packages=${PACKAGES:-$(find . -name '*_kernel_test.go' -printf '%h\n' | sort -u)}
mkdir "$work/p" "$work/doctor"
echo "${SKIP_TESTS:-^TestDocker|^TestRunc|^TestRuntimes|^TestJVM|^TestEndOf|^TestRetired|^Test(RunWaits|ThousandContainers|Phantom|ForcedSharing)$}" >"$work/p/skip"
for package in $packages; do
  case " ${SKIP:-./internal/loadline ./internal/scx ./lab/cost ./lab/hostile ./lab/reaction} " in *" $package "*) continue ;; esac
  name=$(tr / - <<<"${package#./}")
  compile test -c -vet=off -ldflags '-s -w' -o "$work/p/$name.test" "$package"
  grep -ho '^func Test[A-Za-z0-9_]*' "$package"/*_kernel_test.go | cut -c6- | paste -sd'|' | sed 's/.*/^(&)$/' >"$work/p/$name.run"
done
cp "$vm/guest/e2e.sh" "$vm/guest/lib.sh" deploy/seccomp/*.json "$work/p/"
cp "$binary" "$work/p/plimsoll"
compile build -ldflags '-s -w' -o "$work/p/plimsoll-lease" ./cmd/plimsoll-lease
[ -n "${ALL:-}" ] || touch "$work/p/brief"

series=$(tr ' ' '\n' <<<"$cells" | cut -d: -f1 | sort -u)
"$vm/kernels.sh" $series >/dev/null

# keeps_time KERNEL:CGROUP: whether that machine has the host's time.
keeps_time() { case $1 in 5.10:* | 6.1:*) ;; *) return 1 ;; esac; }

# boot KERNEL:CGROUP FILE...: runs the tests that are among the files.
boot() {
  local cell=$1 icount=$ICOUNT
  shift
  ! keeps_time "$cell" || icount=
  ICOUNT=$icount "$vm/run.sh" "${cell%:*}" "${cell#*:}" "$vm/guest/cell.sh" "$@" >"$work/out-$cell" 2>&1
}

# left_out KERNEL:CGROUP PACKAGE: the tests of moved.list that do not run in a cell, one a line.
left_out() {
  if [ -n "${ALL:-}" ]; then
    ! keeps_time "$1" || awk -v package="$2" '$1 == package && $3 == "kernel" { print $2 }' test/moved.list
    return
  fi
  awk -v cell="$1" -v package="$2" '$1 == package && $3 ~ /^vm/ && !($3 ~ /^vm!/ && index("," substr($3, 4) ",", "," cell ",")) && ($3 !~ /^vm@/ || index("," substr($3, 4) ",", "," cell ",")) { print $2 }' test/moved.list
}

# files KERNEL:CGROUP: those of a cell. A package's tests are NAME.run; one of which none is left does not run.
files() {
  local name package tests dir=$work/p-$1
  mkdir -p "$dir"
  cp -l "$work"/p/* "$dir/" 2>/dev/null || true
  for package in $packages; do
    name=$(tr / - <<<"${package#./}")
    [ -e "$dir/$name.run" ] || continue
    tests=$(tr -d '^()$' <"$work/p/$name.run" | tr '|' '\n' | grep -vxF -e "$(left_out "$1" "${package#./}")" -e TestMain |
      grep -vE "$(cat "$work/p/skip")" | paste -sd'|')
    rm -f "$dir/$name.run"
    if [ -n "$tests" ]; then echo "^($tests)\$" >"$dir/$name.run"; else rm "$dir/$name.test"; fi
  done
  ls "$dir"/*
}

# unpassed OUTPUT: what it says but for doctor's answer and the tests that passed, which would bury the others.
unpassed() {
  awk '/^DOCTOR / { next }
    /^=== RUN +[^\/]+$/ { held = ""; holding = 1 }
    /^--- (PASS|SKIP): / { holding = 0; within = 1; held = ""; next }
    within && /^    --- (PASS|SKIP): / { next }
    { within = 0 }
    holding && !/^(--- FAIL: |FAIL|panic:|ok )/ { held = held $0 "\n"; next }
    { printf "%s", held; held = ""; holding = 0; print }' "$1"
}

# passed OUTPUT: what passed, a line each; of packages with the number of their tests, as cell.sh counts them.
passed() { grep '^ok ' "$1"; }
counted() {
  awk 'match($0, /\([0-9]+ tests, [0-9]+ skipped\)/) { split(substr($0, RSTART + 1), n, / tests, | skipped/); passed += n[1]; skipped += n[2]; packages++; next }
    { scenarios++ }
    END { printf "%d passed, %d skipped in %d packages; %d scenarios\n", passed, skipped, packages, scenarios }'
}

# cell KERNEL:CGROUP: prints what came of a cell; a failed one leaves a file.
cell() {
  local begin=$SECONDS result=0 out=$work/out-$1 word=ok
  boot "$1" $(files "$1") || result=$?
  case $result in 0) ;; 125) word=NOBOOT ;; *) word=FAIL ;; esac
  [ "$result" -eq 0 ] || touch "$work/failed"
  {
    printf '%-6s %-8s %-6s %8d  %s\n' "${1%:*}" "${1#*:}" "$word" $((SECONDS - begin)) "$(passed "$out" | counted)"
    [ "$result" -ne 0 ] || sed -n 's/^boot.sh: /    /p' "$out"
    if [ "$result" -ne 0 ]; then unpassed "$out" | sed 's/^/    /'; elif [ -n "${VERBOSE:-}" ]; then grep -E '^(ok|slow) ' "$out" | sed 's/^/    /'; fi
  } >"$out.said"
  cat "$out.said"
  sed -n 's/^DOCTOR //p' "$out" | tail -1 >"$work/doctor/$1.json"
}

# script KERNEL NAME: prints what came of guest/NAME.sh.
script() {
  local begin=$SECONDS out=$work/out-$1-$2 word=ok icount=$ICOUNT
  [ "$2" != systemd ] || icount=
  ICOUNT=$icount "$vm/$2.sh" "$1" >"$out" 2>&1 || { word=FAIL && touch "$work/failed" && sed 's/^/    /' "$out"; }
  printf '%-6s %-8s %-6s %8d  %d scenarios\n' "$1" "$2" $word $((SECONDS - begin)) "$(grep -c '^ok ' "$out")"
}

printf '%-6s %-8s %-6s %8s  %s\n' kernel cgroup result seconds tests
for cell in $cells; do
  while [ "$(jobs -rp | wc -l)" -ge "${JOBS:-$(nproc)}" ]; do wait -n || true; done
  case $cell in
    *:scx) SHORT=1 "$vm/scx.sh" || touch "$work/failed" ;;
    *:apparmor | *:systemd) script "${cell%:*}" "${cell#*:}" ;;
    *) cell "$cell" ;;
  esac &
done
wait
find "$work/doctor" -empty -name '*.json' -delete
if [ -n "$(ls "$work/doctor")" ]; then
  go run ./test/vm/table -check docs/KERNELS.md "$work/doctor" || touch "$work/failed"
fi
[ ! -e "$work/failed" ]
