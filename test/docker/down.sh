#!/bin/bash
# down.sh DIR: ends what up.sh DIR started, with its containers, mounts and control groups.
set -uo pipefail
dir=$(cd "${1:?usage: down.sh DIR}" 2>/dev/null && pwd) || exit 0
export DOCKER_HOST=unix://$dir/docker.sock
ids=$(/usr/bin/docker ps -aq 2>/dev/null)
[ -z "$ids" ] || /usr/bin/docker rm -f $ids >/dev/null
if pid=$(cat "$dir/pid" 2>/dev/null); then
  kill "$pid"
  for _ in $(seq 100); do kill -0 "$pid" 2>/dev/null || break; sleep 0.1; done
fi
# The engine leaves the folder of its containers in each hierarchy; rmdir takes it only when it is empty.
find /sys/fs/cgroup -maxdepth 2 -name docker -type d -exec rmdir {} + 2>/dev/null
awk -v d="$dir/" 'index($2, d) == 1 {print $2}' /proc/mounts | sort -r | xargs -r umount
rm -rf "$dir"
