#!/bin/bash
# reproducible.sh: the same sources make the same image, whoever builds it, where and when. The image is made of the work tree,
# and of a copy of it at another place, with other times, and with settings of a person that would change the binaries; then
# both archives are compared, and what is in the image with what its bill of materials says.
# ARCHITECTURES="amd64 arm64" (default: amd64). FRESH=1: each with an empty cache of compiled packages, which takes minutes;
# without it what both have in common is compiled once.
set -euo pipefail
cd "$(dirname "$0")/.."
export ARCHITECTURES=${ARCHITECTURES:-amd64}
work=$(mktemp -d)
trap 'chmod -R u+w "$work"; rm -rf "$work"' EXIT
name=registry.invalid/plimsoll:1.2.3

git ls-files --cached --others --exclude-standard -z | tar -c --null -T - | (mkdir "$work/copy" && tar -xm -C "$work/copy")
one=("env")
two=("env" GOFLAGS=-tags=netgo GOAMD64=v3 GOARM64=v8.2 TZ=Pacific/Chatham LC_ALL=C SOURCE_DATE_EPOCH=1)
[ -z "${FRESH:-}" ] || one+=("GOCACHE=$work/cache1") two+=("GOCACHE=$work/cache2")
"${one[@]}" deploy/image.sh $name "$work/one.tar" >"$work/said"
(umask 077 && "${two[@]}" "$work/copy/deploy/image.sh" $name "$work/two.tar" >>"$work/said")
for file in tar cdx.json; do
  cmp "$work/one.$file" "$work/two.$file" || { echo "reproducible.sh: the same sources make two images:" >&2; cat "$work/said" >&2; exit 1; }
done

# Every program of the image is in the bill, with its sum.
mkdir "$work/layout"
tar -x -C "$work/layout" -f "$work/one.tar"
programs=0
for blob in "$work"/layout/blobs/sha256/*; do
  mkdir -p "$work/layer" && tar -xzf "$blob" -C "$work/layer" 2>/dev/null || continue
  for program in "$work"/layer/*; do
    programs=$((programs + 1))
    sum=$(sha256sum "$program" | cut -d' ' -f1)
    grep -q "\"$sum\"" "$work/one.cdx.json" || { echo "reproducible.sh: $(basename "$program") of the image is not in its bill of materials" >&2; exit 1; }
  done
  rm -rf "$work/layer"
done
[ $programs -ge 1 ] || { echo "reproducible.sh: no program is found in the image" >&2; exit 1; }
tail -1 "$work/said" | sed 's|^[^ ]*two.tar: |reproducible: |'
