#!/bin/bash
# boot.sh VMLINUX INITRD [APPEND]: boots a guest without KVM, prints its console and exits with the code that the guest
# reports as "VM-RESULT:n"; 125: no report (the emulator crashed, or the guest hung).
# Environment: APPEND (kernel arguments) SMP=2 MEM=1024 (MiB) SECONDS_MAX=180 TCG=single, ICOUNT=2: the guest's
# time is counted in its instructions, 4 ns (2^2) each, or 8 (ICOUNT=3), and stands still while the host does other work: the emulator
# runs at nice 19.
# ARCH=arm64: a guest of that architecture; VMLINUX is an Image.
#
# TCG=single: the CPUs take turns of 100 ms (QEMU, TCG_KICK_PERIOD), in which no timer of another one fires. With multi
# each has a thread of its own, and the kernel's live code patching crashes about one boot in six.
# no_timer_check: the kernel gives up where the emulated timer is late, as on a busy host.
# la57=off: 5-level page tables double the cost of an emulated page walk and some of these kernels fail with them.
# erms=off: with it the kernel clears and copies memory by single bytes, each of which is an instruction of the emulator.
# quick: no self-tests of cryptography (until 10 s after boot), no certificates, no cleared memory: no test asks for any of it.
# pauth-impdef=on: the architecture's own algorithm for pointer authentication takes half of the emulator's time.
set -u
kernel=$1 initrd=$2 append=${3:-}
smp=${SMP:-2} mem=${MEM:-1024} seconds=${SECONDS_MAX:-180} tcg=${TCG:-single}
[ -z "${ICOUNT:-}" ] || patience=5 niceness=19 # it is as slow as the host is busy
quick="cryptomgr.notests initcall_blacklist=load_system_certificate_list,jent_mod_init init_on_alloc=0"
case ${ARCH:-amd64} in
  amd64) machine=(qemu-system-x86_64 -machine q35 -cpu max,la57=off,erms=off) tty=ttyS0 ;;
  arm64) machine=(qemu-system-aarch64 -machine virt -cpu max,pauth-impdef=on) tty=ttyAMA0 ;;
  *) echo "boot.sh: ARCH=$ARCH is neither amd64 nor arm64" >&2; exit 2 ;;
esac
command -v "${machine[0]}" >/dev/null || { echo "boot.sh: there is no ${machine[0]}; hint: test/setup.sh ${ARCH:-}" >&2; exit 2; }
console=$(mktemp)
trap 'kill $(jobs -p) 2>/dev/null; wait; rm -f "$console"' EXIT
trap 'exit 130' INT TERM

boot() {
  nice -n ${niceness:-0} timeout -k 5 $((seconds * ${patience:-1} + 30)) "${machine[@]}" ${ICOUNT:+-icount shift=$ICOUNT,sleep=off} \
    -accel tcg,thread=$tcg -smp "$smp" -m "$mem" -nodefaults -no-user-config -display none -no-reboot -serial "file:$console" \
    -kernel "$kernel" -initrd "$initrd" \
    -append "console=$tty panic=-1 oops=panic quiet mitigations=off nokaslr no_timer_check $quick plimsoll.seconds=$seconds $append ${APPEND:-}" </dev/null &
  wait $! # not a plain run: a signal is handled while bash waits, but not while it runs a command
}
boot

# With counted time the emulated CPU once lost its flags while the kernel patched its code (QEMU 7.2, EFLAGS 0560d096, a
# general protection fault at the iret of do_sync_core). A kernel that panics before guest/init has run no test: it is
# booted once more. A machine that hangs, or has reached init, is not.
if [ -n "${ICOUNT:-}" ] && grep -aq 'Kernel panic' "$console" && ! grep -aq '^VM-INIT' "$console"; then
  echo "boot.sh: booted once more after a panic before init: $(grep -aom1 'Oops: .*\|Kernel panic.*' "$console")"
  boot
fi
result=$(grep -ao '^VM-RESULT:[0-9]*' "$console" | tail -1 | cut -d: -f2)
tr -d '\r' <"$console"
exit "${result:-125}"
