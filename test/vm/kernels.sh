#!/bin/bash
# kernels.sh [SERIES...]: puts stock Debian cloud kernels (default 5.10 6.1 6.12 6.18 7.0 7.3) into the cache, as
# kernels/SERIES/{vmlinux,release}. The newest package of each series is taken; one that is cached is not asked for again.
# From 6.19 on linux-image-RELEASE is empty, and linux-binary-RELEASE holds the kernel (below /usr/lib/modules in 7.3).
set -eu
. "$(dirname "$0")/env.sh"
[ $# -gt 0 ] || set -- 5.10 6.1 6.12 6.18 7.0 7.3

# extract VMLINUZ OUT: the ELF kernel inside a bzImage. QEMU boots it over PVH, without the decompression that takes
# long under TCG. The compressed part begins with the magic number of its format.
extract() {
  local magic tool offset
  while read -r magic tool; do
    for offset in $(LC_ALL=C grep -obUaP "$magic" "$1" | cut -d: -f1); do
      tail -c +$((offset + 1)) "$1" | $tool -dcq >"$2" 2>/dev/null || true # trailing bytes are no error
      [ "$(head -c 4 "$2" | tail -c 3)" = ELF ] && return 0
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
  package=$(apt-cache "${apt_opts[@]}" pkgnames "linux-image-$1." | grep -E "^linux-image-$1\.[0-9.]+[0-9a-z.+-]*-cloud-amd64$" | sort -V | tail -1)
  [ -n "$package" ] || { echo "kernels.sh: the Debian mirror has no cloud kernel $1" >&2; return 1; }
  release=${package#linux-image-}
  [ -z "$(apt-cache "${apt_opts[@]}" pkgnames "linux-binary-$release")" ] || package=linux-binary-$release
  work=$(mktemp -d "$cache/fetch.XXXXXX")
  (cd "$work" && apt-get "${apt_opts[@]}" download "$package")
  dpkg -x "$work"/*.deb "$work/root"
  mkdir "$work/out"
  extract "$(find "$work/root" -name 'vmlinuz*' -type f)" "$work/out/vmlinux"
  echo "$release" >"$work/out/release"
  mkdir -p "$cache/kernels"
  mv -T "$work/out" "$cache/kernels/$1"
  rm -rf "$work"
}

missing=()
for series in "$@"; do [ -s "$cache/kernels/$series/vmlinux" ] || missing+=("$series"); done
if [ ${#missing[@]} -gt 0 ]; then
  exec 9>"$cache/lock"
  flock 9 # one download at a time
  rm -rf "$cache"/fetch.*
  private_apt bullseye-security bookworm-security trixie-backports
  for series in "${missing[@]}"; do fetch "$series"; done
fi
for series in "$@"; do echo "$series $(cat "$cache/kernels/$series/release")"; done
