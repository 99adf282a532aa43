#!/bin/bash
# image.sh NAME OUT.tar: packs static binaries for amd64 and arm64 into the OCI archive OUT.tar, as the image NAME, and writes
# what is in it to OUT.cdx.json (CycloneDX). Neither a registry nor an engine is asked. The same sources make the same
# files, byte for byte: no path, no time, no state of the work tree and nothing of the environment goes in. Put the image
# where nodes find it with `skopeo copy --all oci-archive:OUT.tar docker://...`, or on a node alone with
# `ctr -n k8s.io images import OUT.tar`. Environment: ARCHITECTURES="amd64 arm64".
set -euo pipefail
cd "$(dirname "$0")/.."
name=$1 out=$(realpath -m "$2")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir -p "$(dirname "$out")"
tag=${name##*/}

# What would make other binaries of the same sources: another toolchain than that of go.mod, and a person's settings, but for
# those that say where modules come from and where they are kept.
for setting in GOPROXY GOSUMDB GOPRIVATE GONOPROXY GONOSUMDB GOINSECURE GOMODCACHE GOCACHE; do
  export "$setting=$(go env $setting)"
done
GOTOOLCHAIN=$(awk '$1 == "toolchain" {print $2}' go.mod)
export GOTOOLCHAIN GOENV=off GOWORK=off GOFLAGS=-gcflags=all=-dwarf=false GOEXPERIMENT= GOFIPS140=off GOAMD64=v1 GOARM64=v8.0 CGO_ENABLED=0

folders=()
for arch in ${ARCHITECTURES:-amd64 arm64}; do
  mkdir "$work/$arch"
  GOOS=linux GOARCH=$arch go build -trimpath -buildvcs=false -ldflags "-s -w -buildid= -X main.version=${tag#*:}" -o "$work/$arch/" ./cmd/...
  folders+=("$arch=$work/$arch")
done
digest=$(cd deploy/tools && go run ./image -name "$name" -o "$out" "${folders[@]}")
(cd deploy/tools && go run ./sbom -image "$name" -digest "$digest" -version "${tag#*:}" -o "${out%.tar}.cdx.json" "$work"/*/*)
echo "$out: $name for ${ARCHITECTURES:-amd64 arm64}, $(stat -c %s "$out") bytes, $digest; what is in it: ${out%.tar}.cdx.json"
