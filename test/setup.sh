#!/bin/bash
# setup.sh [arm64|page|browser|peers]: installs what the tests need on a Debian host beside Go, and downloads the Go modules. It says
# what it does, and does nothing when all of it is there. arm64: also what test/vm/arm64.sh needs (make test-long). page: what the
# tier page needs, and nothing else. browser: the same for all of test/browser. peers: for lab/peers.
set -euo pipefail
cd "$(dirname "$0")/.."

declare -A why=(
  [gcc]="go test -race, VMs" [libc6-dev]="go test -race"
  [qemu-system-x86]="VMs" [busybox-static]="VMs" [cpio]="VMs" [zstd]="VMs" [lz4]="VMs" [xz-utils]="VMs"
  [flex]="test/vm/core.sh" [bison]="test/vm/core.sh" [bc]="test/vm/core.sh" [libelf-dev]="test/vm/core.sh"
  [debootstrap]="the VM with systemd" [docker.io]="test/docker"
  [openjdk-17-jdk-headless]="the start of a JVM" [nodejs]="the parallelism of Node"
  [runc]="test/kube" [containernetworking-plugins]="test/kube" [iproute2]="test/kube" [openssl]="test/kube"
  [apache2-bin]="lab/apache" [nginx]="lab/colocation" [ffmpeg]="lab/colocation"
  [memcached]="lab/reservation" [stress-ng]="lab/reservation"
  [systemd]="systemd-analyze verify" [apparmor]="apparmor_parser"
  [prometheus]="promtool: the rules of the chart" [prometheus-alertmanager]="what is inhibited, and amtool"
  [curl]="govulncheck" [tmux]="plimsoll top"
  [clang-19]="make generate" [llvm-19]="make generate"
)
[ "${1:-}" != arm64 ] || why[qemu-system-arm]="test/vm/arm64.sh"
if [ "${1:-}" = page ] || [ "${1:-}" = browser ]; then
  why=([chromium]="test/browser" [fonts-dejavu-core]="test/browser")
  [ "$1" = page ] || command -v npm >/dev/null || why[npm]="test/browser" # Node's own packages bring one, too
fi
if [ "${1:-}" = peers ]; then
  why=([gcc]="koordlet" [libc6-dev]="koordlet" [libpfm4-dev]="koordlet" [busybox-static]="test/kube" [runc]="test/kube"
    [containernetworking-plugins]="test/kube" [iproute2]="test/kube" [openssl]="test/kube" [apache2-bin]="test/kube")
fi

missing=()
for package in "${!why[@]}"; do
  dpkg-query -W -f '${db:Status-Status}\n' "$package" 2>/dev/null | grep -qx installed || missing+=("$package")
done
if [ ${#missing[@]} -gt 0 ]; then
  for package in "${missing[@]}"; do echo "setup: install $package, for ${why[$package]}"; done
  if [ "$(id -u)" -ne 0 ]; then
    echo "setup: not root; hint: sudo apt-get install ${missing[*]}" >&2
    exit 1
  fi
  # Nothing of it is to run as a service, now or after a boot: the tests start what they need. policy-rc.d keeps packages from
  # starting their services, not from enabling them.
  root=${SETUP_ROOT:-} policy='' # test/setup-boot.sh has a root of its own
  enabled() {
    { find "$root/etc/systemd/system" -path '*.wants/*' \( -name '*.service' -o -name '*.socket' \) -printf '%f\n' || true; } 2>/dev/null | sort -u
  }
  before=$(enabled)
  leave() {
    local new
    [ -z "$policy" ] || rm -f "$policy"
    new=$(comm -13 <(echo "$before") <(enabled))
    [ -z "$new" ] || ! command -v systemctl >/dev/null || systemctl --quiet ${root:+--root="$root"} disable $new
  }
  trap leave EXIT
  if [ ! -e "$root/usr/sbin/policy-rc.d" ]; then
    policy=$root/usr/sbin/policy-rc.d
    printf '#!/bin/sh\nexit 101\n' >"$policy"
    chmod 755 "$policy"
  fi
  apt-get update -qq
  DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "${missing[@]}" >/dev/null
fi
go mod download
echo "setup: all there"
