#!/bin/bash
# image.sh NAME OUT: packs static binaries for amd64 and arm64 into the OCI archive OUT, as the image NAME. Neither a
# registry nor an engine is asked. The same sources make the same archive, byte for byte: no path, no time and no state of
# the work tree goes in. Put it where nodes find it with `skopeo copy --all oci-archive:OUT docker://...`, or
# on a node alone with `ctr -n k8s.io images import OUT`.
set -euo pipefail
cd "$(dirname "$0")/.."
name=$1 out=$(realpath -m "$2")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir -p "$(dirname "$out")"
tag=${name##*/}
binaries=()
for arch in ${ARCHITECTURES:-amd64 arm64}; do
  CGO_ENABLED=0 GOOS=linux GOARCH=$arch go build -trimpath -buildvcs=false -ldflags "-s -w -buildid= -X main.version=${tag#*:}" \
    -o "$work/$arch" ./cmd/plimsoll
  binaries+=("$arch=$work/$arch")
done
(cd deploy/tools && go run ./image -name "$name" -o "$out" "${binaries[@]}")
echo "$out: $name for ${ARCHITECTURES:-amd64 arm64}, $(stat -c %s "$out") bytes, sha256 $(sha256sum "$out" | cut -d' ' -f1)"
