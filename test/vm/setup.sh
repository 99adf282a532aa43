#!/bin/bash
# setup.sh: installs what the VM tests need on a Debian host. Does nothing when all of it is there.
set -eu
packages=(qemu-system-x86 busybox-static cpio zstd lz4 xz-utils debootstrap)
missing=()
for p in "${packages[@]}"; do
  dpkg-query -W -f '${db:Status-Status}\n' "$p" 2>/dev/null | grep -qx installed || missing+=("$p")
done
[ ${#missing[@]} -eq 0 ] && exit 0
apt-get update -qq
DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "${missing[@]}"
