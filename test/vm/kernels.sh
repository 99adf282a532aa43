#!/bin/bash
# kernels.sh [SERIES...]: puts stock Debian cloud kernels (default 5.10 6.1 6.12 6.18 7.0 7.3) into the cache, as
# kernels/SERIES/{vmlinux,release}. The newest package of each series is taken; one that is cached is not asked for again.
# ARCH=arm64: those of arm64, as kernels/SERIES-arm64, with the kernel as Image, and Debian's busybox for it as busybox-arm64.
# From 6.19 on linux-image-RELEASE is empty, and linux-binary-RELEASE holds the kernel (below /usr/lib/modules in 7.3).
set -eu
. "$(dirname "$0")/env.sh"
[ $# -gt 0 ] || set -- 5.10 6.1 6.12 6.18 7.0 7.3

suffix=${ARCH:+-$ARCH} image=vmlinux
[ -z "${ARCH:-}" ] || image=Image

# kernel FILE: whether QEMU can boot it: an ELF kernel over PVH, without the decompression that takes long under TCG, or an
# Image of arm64 (Documentation/arch/arm64/booting.rst).
kernel() {
  if [ "$image" = Image ]; then [ "$(head -c 60 "$1" | tail -c 4 | tr -d '\0')" = ARMd ]; else [ "$(head -c 4 "$1" | tail -c 3 | tr -d '\0')" = ELF ]; fi
}

# extract VMLINUZ OUT: the kernel inside a bzImage, or inside an EFI program. The compressed part begins with the magic number of
# its format.
extract() {
  local magic tool offset
  if kernel "$1"; then cp "$1" "$2" && return; fi
  while read -r magic tool; do
    for offset in $(LC_ALL=C grep -obUaP "$magic" "$1" | cut -d: -f1); do
      tail -c +$((offset + 1)) "$1" | $tool -dcq >"$2" 2>/dev/null || true # trailing bytes are no error
      kernel "$2" && return 0
    done
  done <<'M'
\x28\xb5\x2f\xfd zstd
\xfd7zXZ\x00 xz
\x02\x21\x4c\x18 lz4
\x1f\x8b\x08 gzip
M
  echo "kernels.sh: no kernel found in $1" >&2
  return 1
}

# fetch SERIES: download, unpack, extract; the last step is the rename, so a half-made folder is never taken for whole.
fetch() {
  local package release work
  package=$(apt-cache "${apt_opts[@]}" pkgnames "linux-image-$1." | grep -E "^linux-image-$1\.[0-9.]+[0-9a-z.+-]*-cloud-${ARCH:-amd64}$" | sort -V | tail -1)
  [ -n "$package" ] || { echo "kernels.sh: the Debian mirror has no cloud kernel $1" >&2; return 1; }
  release=${package#linux-image-}
  [ -z "$(apt-cache "${apt_opts[@]}" pkgnames "linux-binary-$release")" ] || package=linux-binary-$release
  work=$(mktemp -d "$cache/fetch.XXXXXX")
  (cd "$work" && apt-get "${apt_opts[@]}" download "$package")
  dpkg -x "$work"/*.deb "$work/root"
  mkdir "$work/out"
  extract "$(find "$work/root" -name 'vmlinuz*' -type f)" "$work/out/$image"
  echo "$release" >"$work/out/release"
  mkdir -p "$cache/kernels"
  mv -T "$work/out" "$cache/kernels/$1$suffix"
  rm -rf "$work"
}

# fetch_busybox: the static busybox of another architecture than the host's.
fetch_busybox() {
  local work
  work=$(mktemp -d "$cache/fetch.XXXXXX")
  (cd "$work" && apt-get "${apt_opts[@]}" download busybox-static)
  dpkg -x "$work"/*.deb "$work/root"
  mv "$(find "$work/root" -path "*bin/busybox" -type f)" "$cache/busybox$suffix"
  rm -rf "$work"
}

missing=()
for series in "$@"; do [ -s "$cache/kernels/$series$suffix/$image" ] || missing+=("$series"); done
if [ ${#missing[@]} -gt 0 ] || [ -n "$suffix" -a ! -s "$cache/busybox$suffix" ]; then
  exec 9>"$cache/lock"
  flock 9 # one download at a time
  rm -rf "$cache"/fetch.*
  private_apt bullseye-security bookworm-security trixie-backports ${ARCH:+bookworm}
  for series in "${missing[@]}"; do fetch "$series"; done
  [ -z "$suffix" ] || fetch_busybox
fi
for series in "$@"; do echo "$series $(cat "$cache/kernels/$series$suffix/release")"; done
