#!/bin/bash
# down.sh [RUN]: ends what up.sh started, whatever state it is in, and removes its containers, mounts, control groups,
# network namespace and files. Says what it could not remove, and fails then. With RUN, only that run of up.sh.
set -uo pipefail
. "$(dirname "$0")/env.sh"
[ -d $dir ] || exit 0
# Who else may make it chooses what is written below /proc/sys and removed here. /tmp is sticky: once it is up.sh's, it stays so.
[ "$(stat -c '%u %a %F' $dir)" = '0 700 directory' ] || { echo "down.sh: $dir was not made by up.sh; hint: rm -r $dir" >&2; exit 1; }
exec 8<$dir
flock 8 # a test's end and the end of its pipe may both call
[ -d $dir ] || exit 0
[ $# -eq 0 ] || [ "$1" = "$(cat $dir/run 2>/dev/null)" ] || exit 0

# ours NAME...: the processes that run programs of the cache under these names; the numbers in files may be others' by now.
ours() {
  local exe name wanted
  while read -r exe; do
    name=$(tr '\0' '\n' 2>/dev/null <"${exe%/exe}/cmdline" | head -1)
    exe=${exe#/proc/}
    for wanted in "$@"; do [ "${name##*/}" != "$wanted" ] || echo "${exe%/exe}"; done
  done < <(find /proc -maxdepth 2 -path '/proc/[0-9]*/exe' -lname "$cache/*" 2>/dev/null) # one process, however many there are
}
# end NAME...: kill them and see them gone.
end() {
  local pids
  for _ in $(seq 50); do
    pids=$(ours "$@")
    [ -n "$pids" ] || return 0
    kill -KILL $pids 2>/dev/null
    sleep 0.1
  done
  echo "down.sh: still running: $pids" >&2
}
groups() { find /sys/fs/cgroup -maxdepth 2 \( -name kubepods -o -name plimsoll-kubelet \) -type d -exec find {} -depth -type d \; 2>/dev/null; }

end kubelet kube-apiserver kube-scheduler kube-controller-manager etcd
if [ -d $dir/kubelet ]; then # up.sh has seen that there was no other kubelet
  for _ in $(seq 50); do
    pids=$(groups | sed 's|$|/cgroup.procs|' | xargs -r cat 2>/dev/null | sort -u)
    [ -n "$pids" ] || break
    kill -KILL $pids 2>/dev/null
    sleep 0.1
  done
fi
# The shims' sockets lie in a folder that other engines use too.
sockets=$(cat $dir/containerd/state/io.containerd.runtime.v2.task/*/*/{address,bootstrap.json} 2>/dev/null |
  grep -o '/run/containerd/s/[0-9a-f]*' | sort -u)
end containerd containerd-shim-runc-v2
[ -z "$sockets" ] || rm -f $sockets
if [ -d $dir/kubelet ]; then
  rm -rf /run/containerd/runc/k8s.io
  rmdir /run/containerd/runc 2>/dev/null
fi
awk -v d="$dir/" 'index($2, d) == 1 {print $2}' /proc/mounts | sort -r | xargs -r umount -l
[ ! -d $dir/kubelet ] || groups | xargs -r rmdir
[ ! -e /run/netns/$namespace ] || ip netns del $namespace
while read -r name value; do echo "$value" >/proc/sys/"$name"; done < <(cat $dir/sysctls 2>/dev/null)
while read -r name; do
  case $name in
    /run/netns) umount $name 2>/dev/null && rmdir $name ;; # ip-netns(8) mounts it on itself
    *) rm -rf "$name" ;;
  esac
done < <(cat $dir/absent 2>/dev/null)
rm -rf $dir

left=$(grep " $dir/" /proc/mounts; compgen -G "$dir"; ls -d /run/netns/$namespace 2>/dev/null
  ours kubelet kube-apiserver kube-scheduler kube-controller-manager etcd containerd containerd-shim-runc-v2; groups)
[ -z "$left" ] || { echo "down.sh: left behind: $left" >&2; exit 1; }
