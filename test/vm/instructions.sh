#!/bin/bash
# instructions.sh [KERNEL]: what a run of each eBPF program takes, in instructions of the emulated CPU, with 2, 64 and 255 possible CPUs of which two
# are online and one is busy. The time of these machines is counted in instructions, 4 ns each. A program must not take more than 1.5 times as many
# with 255 possible CPUs as with 2: then the last column says so, and the exit code is 1. The CPUs that are not online are not plugged in: emulated ones
# would have their turn. Each has a package of its own: the kernel takes none for hot-pluggable that is in a package which is present.
#
# Where they go (6.18, counted function by function with a plugin of QEMU): a look-up in a hash table takes 115 instructions, a
# bpf_probe_read_kernel 85, the clock 80, and of that nothing is ours to save. 20 groups share the CPU here:
# waits-sched_switch: 1,300 for the two threads and the wait that ends, and 280 for each turn of another group in that wait, to lay
# it on that group (half of it is the look-up of the pair of groups). In the mean there are 11.5 turns; with 6 groups a run takes 2,050.
# throttle-sched_stat_runtime: 450 for two levels of groups; 1,240 more where a group is not among the recent ones (queue.h),
# which is so once a period, and where more than 32 groups take turns.
set -eu
. "$(dirname "$0")/env.sh"
cd "$repo"
kernel=${1:-6.18}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
CGO_ENABLED=0 go test -c -ldflags '-s -w' -o "$work/waits.test" ./internal/probe/runq
"$vm/kernels.sh" "$kernel" >/dev/null
for cpus in 2 64 255; do
  cat >"$work/main" <<END
grep -qx 0-$((cpus - 1)) /sys/devices/system/cpu/possible || { echo "possible are \$(cat /sys/devices/system/cpu/possible)"; exit 1; }
./waits.test -test.run '^$' -test.bench Instructions -test.benchtime 1x
END
  ICOUNT=2 SMP=2,maxcpus=$cpus,sockets=$cpus,cores=1,threads=1 MEM=2048 SECONDS_MAX=${SECONDS_MAX:-300} \
    "$vm/run.sh" "$kernel" v2 "$work/main" "$work/waits.test" >"$work/$cpus" || { cat "$work/$cpus" >&2; exit 1; }
done
awk -v kernel="$kernel" '
  FNR == 1 { column = FILENAME; sub(".*/", "", column) }
  /^BenchmarkInstructions/ { for (i = 3; i < NF; i += 2) { name = $(i + 1); if (sub("^ns/", "", name) && name != "op") { took[name, column] = $i / 4; names[name] = 1 } } }
  END {
    printf "Linux %s, instructions a run      2 CPUs     64    255   64/2  255/2\n", kernel
    for (name in names) {
      a = took[name, 2]; b = took[name, 64]; c = took[name, 255]
      bad = name != "measuring" && (a <= 0 || b > 1.5 * a || c > 1.5 * a)
      printf "%-36s %6.0f %6.0f %6.0f %6.2f %6.2f  %s\n", name, a, b, c, b / a, c / a, bad ? "MISSED" : "" | "sort"
      n++; missed += bad
    }
    close("sort")
    if (n < 5) { print "instructions.sh: only " n " programs were measured"; exit 1 }
    exit missed > 0
  }' "$work/2" "$work/64" "$work/255"
