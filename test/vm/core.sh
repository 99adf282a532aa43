#!/bin/bash
# core.sh: the tests of core-scheduling cookies, and of the capability for them, on a machine of two cores with two threads
# each. Debian's kernels are built without CONFIG_SCHED_CORE: so one is built from Debian's source, with as little as the
# tests need (guest/core.config; five minutes on two CPUs), and kept in the cache.
set -eu
. "$(dirname "$0")/env.sh"
cd "$repo"
series=6.12
kernel=$cache/kernels/$series-core/vmlinux

build() {
  work=$(mktemp -d "$cache/build.XXXXXX")
  private_apt bookworm-security
  (cd "$work" && apt-get "${apt_opts[@]}" download "linux-source-$series")
  dpkg -x "$work"/*.deb "$work/root"
  mkdir "$work/linux"
  tar -xf "$work/root/usr/src/linux-source-$series.tar.xz" -C "$work/linux" --strip-components=1
  make -s -C "$work/linux" KCONFIG_ALLCONFIG="$vm/guest/core.config" allnoconfig
  while read -r line; do
    grep -qxF "$line" "$work/linux/.config" || { echo "core.sh: $line is not available" >&2; return 1; }
  done < <(grep ^CONFIG "$vm/guest/core.config")
  make -s -C "$work/linux" -j"$(nproc)" vmlinux
  mkdir -p "${kernel%/*}"
  make -s -C "$work/linux" kernelrelease >"${kernel%/*}/release"
  mv "$work/linux/vmlinux" "$kernel"
  rm -rf "$work"
}
work=''
trap 'rm -rf "$work"' EXIT # also of a build that is interrupted
[ -s "$kernel" ] || build

work=$(mktemp -d)
for package in internal/task internal/agent cmd/plimsoll; do
  CGO_ENABLED=0 go test -c -ldflags '-s -w' -o "$work/${package#*/}.test" "./$package"
done
CGO_ENABLED=0 go build -ldflags '-s -w' -o "$work/plimsoll" ./cmd/plimsoll
cat >"$work/main" <<'M'
export PLIMSOLL_REQUIRE_KERNEL=1 PLIMSOLL_EMULATED=1 PLIMSOLL_BINARY=$PWD/plimsoll
./task.test -test.v -test.run '^TestKernelCookie$' >/tmp/out || { cat /tmp/out; exit 1; } # a pipe would hide a failure
cat /tmp/out
grep -q 'true: core scheduling' /tmp/out && ./agent.test -test.v -test.run '^TestKernelCores$' &&
  exec ./plimsoll.test -test.v -test.run '^TestCapabilities$'
M
SMP=4,cores=2,threads=2 "$vm/run.sh" "$kernel" v2 "$work/main" "$work"/*.test "$work/plimsoll"
