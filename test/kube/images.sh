#!/bin/bash
# images.sh PAUSE OUT: packs the images that the pods need, without a registry: pause.tar of the program PAUSE, and busybox.tar of the host's
# busybox-static, as archives of one layer for `ctr images import`.
set -euo pipefail
pause=$1 out=$2
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir -p "$out"

sum() { sha256sum "$1" | cut -d' ' -f1; }

# pack NAME COMMAND...: the folder $work/NAME as the image plimsoll.test/NAME:1.
pack() {
  local name=$1 layer config command
  shift
  command=$(printf '"%s",' "$@")
  mkdir "$work/$name.image"
  tar -C "$work/$name" --sort=name --owner=0 --group=0 --numeric-owner --mtime=@0 -cf "$work/$name.image/layer.tar" .
  layer=$(sum "$work/$name.image/layer.tar")
  cat >"$work/$name.image/config.json" <<J
{"architecture": "$(go env GOARCH)", "os": "linux", "created": "1970-01-01T00:00:00Z",
 "config": {"Cmd": [${command%,}], "Env": ["PATH=/bin"]}, "rootfs": {"type": "layers", "diff_ids": ["sha256:$layer"]}}
J
  config=$(sum "$work/$name.image/config.json").json
  mv "$work/$name.image/config.json" "$work/$name.image/$config"
  echo "[{\"Config\": \"$config\", \"RepoTags\": [\"plimsoll.test/$name:1\"], \"Layers\": [\"layer.tar\"]}]" >"$work/$name.image/manifest.json"
  tar -C "$work/$name.image" -cf "$out/$name.tar" "$config" layer.tar manifest.json
}

mkdir -p "$work/pause" "$work/busybox"/{bin,tmp,etc}
cp "$pause" "$work/pause/pause"
pack pause /pause
cp /bin/busybox "$work/busybox/bin/"
for name in sh sleep cat; do ln -s busybox "$work/busybox/bin/$name"; done
pack busybox sleep 3600
