#!/bin/bash
# tiers.sh [--beside 'TIER...']... TIER...: runs tiers of the tests, one after another, whatever becomes of the others, and prints what
# came of each and how long it took. The closing lines of go test come last. A tier that cannot run here says why and fails.
# --beside: tiers that run, one after another, while the others do; what they say is printed when they have ended. The others need the
# host's control groups, where one agent runs at a time.
# Kernel tests are those of the *_kernel_test.go files. They run in the tier kernel, where a skip is a failure but for those that
# cgrouptest's Need and Elsewhere explain.
set -uo pipefail
cd "$(dirname "$0")/.."

# All is compiled with the flags of `make build`, so that the compiler's cache holds one of each package and not three, and
# vetted by tier lint. The race detector needs cgo. FRESH=1: no result comes from the cache (flaky.sh).
export CGO_ENABLED=0 GOFLAGS="-trimpath -gcflags=all=-dwarf=false${FRESH:+ -count=1}"
go_test() { go test -vet=off "$@"; }

kernel_files() { git ls-files --cached --others --exclude-standard '*_kernel_test.go'; }
kernel_packages() { kernel_files | xargs -r -n1 dirname | sort -u | sed 's|^|./|'; }
kernel_tests() { kernel_files | xargs -r grep -ho '^func Test[A-Za-z0-9_]*' | cut -c6- | sort -u | paste -sd'|' | sed 's/.*/^(&)$/'; }

# listed TIER: the tests of moved.list that this tier leaves out, as a regular expression. A name that is no test fails the tier.
listed() {
  local package test from _
  while read -r package test from _; do
    [[ $package != "" && $package != \#* && $from = "$1" ]] || continue
    grep -qs "^func $test(" "$package"/*_kernel_test.go || { echo "test/moved.list: $package has no $test" >&2; return 1; }
    echo "$test"
  done <test/moved.list | paste -sd'|' | sed 's/.*/^(&)$/'
}
simulated() { go list ./internal/sim/... ./internal/trial/... ./internal/loadline/... ./internal/receipt/... ./internal/replay/...; }
# In one thread: the race detector would find nothing, and take ten times as long.
one_thread() { go list ./internal/arch ./internal/figure; }
# So do these tests, which simulate for long.
long_in_one_thread='^Test(Replay(|Draws|OfARestart)|Simulate(Golden|Data)|RecordAsRecording|KilledTwice|AdviseIsDocumented)$'

cannot() { echo "this tier cannot run here: $1; hint: $2"; return 1; }
need_root() { [ "$(id -u)" -eq 0 ] || cannot "not root" "sudo make ..."; }
need_groups() {
  need_root || return
  [ -e /sys/fs/cgroup/cpu/cpu.shares ] || grep -qw cpu /sys/fs/cgroup/cgroup.controllers 2>/dev/null ||
    cannot "no cpu controller below /sys/fs/cgroup" "plimsoll doctor"
}

tier_lint() { bash test/lint.sh; }
# Many of these wait: more than two at a time keep two CPUs busy. The compiler does not collect its garbage; what is tested does.
tier_unit() {
  CGO_ENABLED=1 GOGC=off GOMEMLIMIT=2GiB go build -race ./internal/... || return
  CGO_ENABLED=1 go_test -race -p 4 -timeout 5m -skip "$(kernel_tests)|$long_in_one_thread" $(go list ./... | grep -vxF "$(simulated; one_thread)") &&
    go_test -timeout 5m -skip "$(kernel_tests)" $(one_thread)
}
tier_sim() {
  go_test -timeout 8m -skip "$(kernel_tests)" $(simulated) &&
    go_test -run "$long_in_one_thread" ./cmd/plimsoll ./internal/apply &&
    CGO_ENABLED=1 go_test -race -run '^TestSimulateIsDeterministic$' ./internal/loadline # what runs in parallel there
}
# A host has one agent, and one container engine of a kind: tests that start them run in the line of the tiers, the others beside it.
agents='^\./(cmd|lab|internal/discover)/'
no_agents='^Test(Runtimes|KernelDiagnose|DoctorKernel$|KernelRecord)' # of cmd/plimsoll
tier_kernel() { tier_kernel_parts && tier_kernel_agents; }
tier_kernel_agents() { kernel_tests_of "$(kernel_tests)" "$no_agents" $(kernel_packages | grep -E "$agents"); }
tier_kernel_parts() {
  kernel_tests_of "$(kernel_tests)" '^$' $(kernel_packages | grep -vE "$agents") &&
    kernel_tests_of "$no_agents" '^$' ./cmd/plimsoll
}
# kernel_tests_of RUN SKIP PACKAGE...: one package at a time, also of the other tier, for their groups have the greatest weights and keep
# each other's programs from the CPUs for seconds. The next packages are linked meanwhile. Their time counts while they wait.
kernel_tests_of() {
  need_groups || return
  local moved
  moved=$(listed kernel) || return
  PLIMSOLL_REQUIRE_KERNEL=1 go_test -count=1 -timeout 30m -p 4 -exec "flock $work/turn" -run "$1" -skip "$2|$moved" "${@:3}"
}
tier_kernel_long() { # what tier kernel leaves out
  need_groups || return
  local moved
  moved=$(listed kernel) || return
  PLIMSOLL_REQUIRE_KERNEL=1 go_test -count=1 -p 1 -run "$moved" $(kernel_packages)
}
tier_vm() { bash test/vm/matrix.sh; }
tier_vm_all() { # all tests on all kernels
  ALL=1 CELLS="5.10:v1 5.10:v2 6.1:v2 6.12:v2 6.18:v2 7.0:v2 7.1:v2 7.2:v2 7.3:v2 6.12:apparmor 7.3:apparmor 6.12:systemd" bash test/vm/matrix.sh
}
tier_vm_scx() { bash test/vm/scx.sh; }
tier_vm_arm64() {
  bash test/setup.sh arm64 || cannot "no QEMU for arm64" "apt-get install qemu-system-arm" || return
  bash test/vm/arm64.sh
}
tier_vm_core() { bash test/vm/core.sh; }
tier_kube_systemd() { bash test/vm/kubelet.sh; }
# Kubernetes is built first, so that the tests' 20 minutes are theirs.
kube_tests() { bash test/kube/binaries.sh >/dev/null && go_test -tags kube -count=1 -timeout 20m -v "$@" ./test/kube; }
# What tier kube leaves to kube-long, and what only an older version has the programs for: test/kube/README.md says why.
kube_long='TestReaction|TestPublishedTables|TestBoundsOfTheAdministrator|TestApacheDemo|TestFullNode|TestIdleStopsTheKubelet'
kube_controllers='TestDaemonSetOfTheController|TestHelm'
kube_bench=TestPeers # a measurement, not a test
tier_kube() {
  need_groups || return
  kube_tests -skip "^($kube_controllers|$kube_long|$kube_bench)\$"
}
tier_kube_long() {
  need_groups || return
  PLIMSOLL_KUBELET=5m PLIMSOLL_OUTAGE=30s kube_tests -run "^(TestPriorityAndTheKubelet|TestAPIServerAway|$kube_long)\$"
}
# 1.34 has no resize in place of a whole pod. 1.28 is the oldest that the chart takes: what the agent needs of its API server and
# kubelet, and no resize in place at all.
tier_kube_old() {
  need_groups || return
  KUBE_VERSION=1.34 kube_tests -skip "^($kube_controllers|$kube_long|$kube_bench|TestPodLevelResize.*)\$" || return
  KUBE_VERSION=1.28 kube_tests -run "^(TestInitContainer|TestStaticPod|TestKilledAgent|TestReaction|TestConfigMapOfTheCluster|$kube_controllers)\$"
}
# The page in a real browser: what takes no agent, so that it runs beside those that do. Chromium is installed here and not by make
# setup: a machine that cannot have it runs all other tiers.
tier_page() {
  bash test/setup.sh page || cannot "no Chromium" "apt-get install chromium fonts-dejavu-core" || return
  go_test -tags browser -count=1 -run '^(TestServed|TestFake)$/^(HostileNames|Rows)$' ./test/browser
}
# All of it. Chromium, and npm for axe-core, are installed where they are absent.
tier_browser() { browser_tests -smooth 20s; }
tier_browser_long() { browser_tests -smooth 10m; } # memory over ten minutes
browser_tests() {
  need_groups || return
  bash test/setup.sh browser || cannot "no Chromium or npm" "apt-get install chromium npm" || return
  bash internal/page/vendor.sh -check || cannot "npm does not bring uPlot and axe-core" "npm needs its registry" || return
  go_test -tags browser -count=1 -timeout 20m -v ./test/browser -args "$@"
}
tier_demo() { need_groups && bin/plimsoll demo --seconds 1; } # that each mode works: so few requests show no more
tier_labs() { # that each lab works, at a few seconds a mode
  need_groups || return
  go run ./lab/apache --seconds 4 && go run ./lab/density --seconds 3 --use 0.3 &&
    go run ./lab/colocation --seconds 4 && go run ./lab/reservation --seconds 1 --rounds 1 --only capped --sweep=false --search=false &&
    go run ./lab/reservation --table --seconds 1 && go run ./lab/start -rounds 1 && go run ./lab/burst -rounds 2 &&
    go run ./lab/receipts -seconds 10 -beside 8 && go run ./lab/replay -seconds 10 &&
    go run ./lab/requests -seconds 1 -rounds 1 && go run ./lab/job -rounds 1 &&
    go run ./lab/page -idle 50 -active 10 -seconds 2 && go run ./lab/readers -pods 50 -seconds 2 -rounds 1
}
tier_labs_long() {
  need_groups || return
  bin/plimsoll demo && go run ./lab/apache && go run ./lab/density && go run ./lab/colocation && go run ./lab/reservation &&
    go run ./lab/reservation --three && go run ./lab/reservation -vm 4 -only 'burstable cpu x' -seconds 2 -rounds 1 -diagnose=false &&
    go run ./lab/burst && go run ./lab/receipts && go run ./lab/replay && go run ./lab/replay -vm 6.18 && go run ./lab/requests &&
    go run ./lab/requests -vm 6.18 -seconds 5 -rounds 1 && go run ./lab/job && go run ./lab/page && go run ./lab/readers
}
tier_bench() { need_groups && go run ./lab/cost; }
tier_bench_reaction() { need_groups && go run ./lab/reaction && go run ./lab/reaction -quota 20ms -groups 60 -seconds 60; }
tier_bench_hostile() { need_groups && go run ./lab/hostile -strict; }
tier_bench_start() {
  need_groups && go run ./lab/start -java -XX:TieredStopAtLevel=1 && go run ./lab/start && go run ./lab/start -limit 1
}
tier_bench_model() {
  local python
  python=$(bash bench/setup.sh) && go run ./lab/model -python "$python" speed cells claims
}
tier_bench_record() {
  local python
  python=$(bash bench/setup.sh record) && PLIMSOLL_PYTHON=$python PLIMSOLL_REQUIRE_KERNEL=1 go_test -count=1 -v \
    -run '^TestOtherReaders$|^TestSize$' -bench '^Benchmark(Record|Build)$' -benchmem ./internal/flight
}
tier_bench_demo() {
  need_groups || return
  bin/plimsoll demo --requests 3000 --figures && bin/plimsoll demo --requests 3000 --figures --loaded
}
tier_bench_kube() {
  need_groups || return
  PLIMSOLL_APACHE_SECONDS=${APACHE_SECONDS:-120} kube_tests -run '^TestApacheDemo$'
}
tier_bench_peers() {
  need_groups || return
  bash test/setup.sh peers || return
  PLIMSOLL_PEERS=${PEERS:-full} PLIMSOLL_BINARY=$PWD/bin/plimsoll kube_tests -run "^$kube_bench\$"
}
tier_image() { FRESH=1 ARCHITECTURES="amd64 arm64" bash test/reproducible.sh; } # tier lint has one architecture
tier_starts() {
  need_groups || return
  PLIMSOLL_REQUIRE_KERNEL=1 PLIMSOLL_STARTS=10000 go_test -count=1 -timeout 120m -v -run '^TestStartOfAContainer$|^TestRuncStarts$' ./cmd/plimsoll
}
tier_trial_long() {
  go_test -timeout 60m -count=1 -run TestManySeeds ./internal/trial -seeds 10000 &&
    go_test -timeout 30m -count=1 -run TestCoverage ./internal/receipt -weeks 100000
}
# The soak judges what grows. On a machine that is full nothing is raised, and the noise may hide a leak: run the hour on a quiet one.
tier_soak() { need_groups && go run ./lab/soak -strict -seconds "${SOAK_SECONDS:-3600}"; }
tier_soak_short() { need_groups && go run ./lab/soak -strict -seconds 180 -kill 8s -churn 20 -flap 60s -every 1s -last 0.35; }
tier_fuzz() {
  local package name
  while IFS=: read -r package name; do
    go_test -run '^$' -fuzz "^$name\$" -fuzztime "${FUZZTIME:-30s}" -fuzzminimizetime 10x -parallel 2 "./$package" || return
  done < <(git ls-files --cached --others --exclude-standard '*_test.go' | xargs grep -o '^func Fuzz[A-Za-z0-9_]*' |
    sed 's|/[^/]*:func |:|')
}

work=$(mktemp -d) groups=()
trap 'for group in "${groups[@]}"; do kill -- "-$group" 2>/dev/null; done; wait; rm -rf "$work"' EXIT
trap 'exit 130' INT TERM

# How nice a tier is. Those that compute leave the CPUs to those that wait for a kubelet or for the kernel. Less so the tier vm: the
# time of two of its machines is the host's.
declare -A nice=([lint]=10 [unit]=10 [sim]=10 [page]=5 [vm]=5)

# run TIER: with what it says in a file, and a row of the table: also the CPU time of its processes, but for daemons.
run() {
  local begin=$SECONDS word=ok cpu
  echo "== $1"
  {
    renice -n "${nice[$1]:-0}" -p $BASHPID >/dev/null
    "tier_${1//-/_}"
    code=$?
    times >"$work/$1.cpu"
    exit $code
  } 2>&1 | tee "$work/$1"
  [ "${PIPESTATUS[0]}" -eq 0 ] || { word=FAIL && touch "$work/failed"; }
  cpu=$(awk -F'[ms ]+' 'NR == 2 { printf "%d", $1 * 60 + $2 + $3 * 60 + $4 }' "$work/$1.cpu") # of its children
  printf '%-13s %-6s %7d %5s%s\n' "$1" $word $((SECONDS - begin)) "$cpu" "${2:+  beside the others}" >>"$work/table"
}

# last_failures NAME...: what failed for good inside of something: a part of a test, or what a machine of the tier vm ran, behind
# four spaces.
last_failures() {
  local name
  for name in "$@"; do sed -nE 's/^    (--- FAIL:|FAIL)[[:space:]]+([^[:space:]]+).*/failed: \2/p' "$work/$name"; done
}

# A new machine builds Kubernetes first, alone: beside the other tiers that takes longer than the tier kube has. What it cannot
# build, the tier says.
case " $* " in *" kube "*)
  begin=$SECONDS
  bash test/kube/binaries.sh >/dev/null
  [ $((SECONDS - begin)) -lt 5 ] || printf '%-13s %-6s %7d\n' "(programs)" "" $((SECONDS - begin)) >>"$work/table" ;;
esac

beside=() groups=()
while [ "${1:-}" = --beside ]; do
  set -m # a process group of its own, which is ended with this script
  for tier in $2; do run "$tier" beside; done >"$work/said-${#groups[@]}" 2>&1 &
  groups+=($!)
  set +m
  beside+=($2)
  shift 2
done
for tier in "$@"; do run "$tier"; done
if [ ${#beside[@]} -gt 0 ]; then
  wait
  groups=()
  cat "$work"/said-*
  set -- "$@" "${beside[@]}"
fi

(
  cd "$work"
  for tier in "$@"; do
    grep -E $'^(ok  |FAIL)\t|^--- FAIL:|^FAIL$|^panic:' "$tier"
  done | grep -v '\[no tests to run\]' >closing
)
printf '\n%-13s %-6s %7s %5s\n' tier result seconds CPU
cat "$work/table"
last_failures "$@"
echo
cat "$work/closing"
[ ! -e "$work/failed" ]
