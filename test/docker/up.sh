#!/bin/bash
# up.sh DIR: starts Debian's Docker engine by hand, all its files below DIR, and imports the image "busybox".
# Prints the socket's address. Needs root, docker.io and busybox-static; nothing of the network is touched.
# When its standard input is a pipe and ends, down.sh is run: a test keeps a pipe open there, so that the engine does not outlive a test that
# is killed.
set -euo pipefail
dir=${1:?usage: up.sh DIR}
mkdir -p "$dir"
dir=$(cd "$dir" && pwd)
# A free pid file would let two engines share one folder.
[ ! -e "$dir/pid" ] || { echo "up.sh: $dir is in use; hint: down.sh $dir" >&2; exit 1; }
down=$(cd "$(dirname "$0")" && pwd)/down.sh
if [ -p /dev/stdin ]; then
  setsid bash -c 'cat >/dev/null; exec "$0" "$1"' "$down" "$dir" <&0 >/dev/null 2>&1 &
fi
export DOCKER_HOST=unix://$dir/docker.sock
setsid /usr/sbin/dockerd --data-root "$dir/root" --exec-root "$dir/exec" --pidfile "$dir/pid" --host "$DOCKER_HOST" \
  --exec-opt native.cgroupdriver=cgroupfs --bridge=none --iptables=false --ip6tables=false >"$dir/log" 2>&1 </dev/null &
for _ in $(seq 150); do /usr/bin/docker info >/dev/null 2>&1 && break; sleep 0.2; done
/usr/bin/docker info >/dev/null 2>&1 || { tail -5 "$dir/log" >&2; exit 1; }
rootfs=$(mktemp -d)
trap 'rm -rf "$rootfs"' EXIT
mkdir "$rootfs/bin"
cp /bin/busybox "$rootfs/bin/"
ln -s busybox "$rootfs/bin/sh"
ln -s busybox "$rootfs/bin/sleep"
tar -C "$rootfs" -c . | /usr/bin/docker import - busybox >/dev/null
echo "$DOCKER_HOST"
