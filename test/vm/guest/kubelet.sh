#!/bin/sh
# kubelet.sh: the shipped binary beside a real kubelet whose cgroup driver is systemd, on cgroup v2, in a guest of
# ../kubelet.sh. The kubelet has systemd make a slice for a pod, and runc has it make a scope for a container; both write
# their limits through it. There is no API server, which takes this emulated machine minutes to start: the kubelet reads its
# pod from a file, and the agent knows pods by the names of their groups.
cd "$(dirname "$0")" || exit 1
CGROUP_VERSION=v2
PATH=$PWD:$PATH
. ./lib.sh
pods=/etc/k/pods

say() { echo "  $(now) s: $*"; }

# service NAME COMMAND...: a program as a service of systemd's.
service() {
  unit=$1
  shift
  systemd-run --quiet --unit="$unit" -p Delegate=yes -p KillMode=process --setenv="PATH=$PATH" "$@"
}

configure() {
  mkdir -p $pods /var/lib/kubelet
  mount -t tmpfs tmpfs /var/lib/kubelet # the kubelet does not start on the rootfs of an initrd, whose size cAdvisor cannot tell
  cat >/etc/k/containerd.toml <<Y
version = 3
[plugins."io.containerd.cri.v1.images"]
  snapshotter = "native"
[plugins."io.containerd.cri.v1.images".pinned_images]
  sandbox = "plimsoll.test/pause:1"
[plugins."io.containerd.cri.v1.runtime".containerd.runtimes.runc]
  runtime_type = "io.containerd.runc.v2"
  snapshotter = "native"
[plugins."io.containerd.cri.v1.runtime".containerd.runtimes.runc.options]
  SystemdCgroup = true
Y
  cat >/etc/k/kubelet.yaml <<Y
apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
failSwapOn: false
cgroupDriver: systemd
staticPodPath: $pods
containerRuntimeEndpoint: unix:///run/containerd/containerd.sock
runtimeRequestTimeout: 10m
authentication: {anonymous: {enabled: true}, webhook: {enabled: false}}
authorization: {mode: AlwaysAllow}
makeIPTablesUtilChains: false
resolvConf: ""
imageGCHighThresholdPercent: 100
evictionHard: {memory.available: 10Mi}
Y
}

# place LIMIT: the pod under test. In the network of the machine: there is no CNI.
place() {
  cat >$pods/web.json <<Y
{"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "web", "namespace": "default"},
 "spec": {"hostNetwork": true, "terminationGracePeriodSeconds": 1, "containers": [
  {"name": "a", "image": "plimsoll.test/busybox:1", "imagePullPolicy": "Never", "command": ["sh", "-c", "trap 'exit 0' TERM; sleep 100000 & wait"],
   "resources": {"requests": {"cpu": "50m", "memory": "32Mi"}, "limits": {"cpu": "$1", "memory": "32Mi"}}}]}}
Y
}

# found QUOTA: the scope of a container with that quota, and the slice of its pod.
found() {
  scope=$(grep -lx "$1 100000" /sys/fs/cgroup/kubepods.slice/kubepods-burstable.slice/*.slice/cri-containerd-*.scope/cpu.max 2>/dev/null | head -1)
  [ -n "$scope" ] || return 1
  scope=${scope%/cpu.max} slice=${scope%/*}
}

up() {
  mount --make-rshared /
  echo 127.0.0.1 localhost >/etc/hosts # containerd copies both into a pod
  : >/etc/resolv.conf
  configure
  service containerd "$PWD/containerd" -c /etc/k/containerd.toml
  within 400 ctr version >/dev/null 2>&1 || fail "containerd does not answer: $(journalctl -u containerd --no-pager -q -o cat -n 20)" || return 1
  for image in pause busybox; do
    ctr --namespace k8s.io images import --local --snapshotter native images/$image.tar >/tmp/out 2>&1 || fail "import: $(cat /tmp/out)" || return 1
  done
  say "containerd has the images"
  place 500m
  service kubelet "$PWD/kubelet" --config /etc/k/kubelet.yaml --hostname-override node1
  within 600 found 50000 || fail "no pod: $(journalctl -u kubelet --no-pager -q -o cat -n 40 | cut -c1-300)" || return 1
  say "the pod runs"
}

# all_files of both levels that are the CPU's: a daemon-reload also puts memory.oom.group back, which the kubelet had set.
all_files() { for group in "$slice" "$scope"; do files | grep '/cpu\.'; done; }

# both QUOTA BURST: at both levels.
both() {
  for group in "$slice" "$scope"; do
    quota_is "$1" && [ "$(burst)" = "$2" ] || return 1
  done
}
levels() { for group in "$slice" "$scope"; do echo "$(cat "$group/cpu.max") burst $(burst);"; done; }

agent() {
  start --policy cpuBurstOnly
  within 90 both 50000 50000 || fail "no burst at both levels: $(levels)"
}

same_levels() {
  all_files >/tmp/levels.after
  cmp -s /tmp/levels /tmp/levels.after || { diff /tmp/levels /tmp/levels.after; fail "files differ"; }
}

# What systemd and the kubelet write at a reload and a restart is the declared limit: the bursts stay.
bursts_of_both_levels() {
  agent || return 1
  systemctl daemon-reload
  sleep 2
  both 50000 50000 || fail "after a daemon-reload: $(levels)" || return 1
  systemctl restart kubelet
  sleep 20
  both 50000 50000 || fail "after a restart of the kubelet: $(levels)" || return 1
  stop TERM && same_levels
}

# Another limit in the pod's file is another pod: its groups are made anew, the old ones go, and nothing of ours is left.
another_pod() {
  agent || return 1
  was=$slice
  place 200m
  within 120 found 20000 || fail "no pod with the other limit" || return 1
  within 90 both 20000 20000 || fail "no burst at the new pod's levels: $(levels)" || return 1
  within 120 test ! -e "$was" || fail "the old pod's slice is still there" || return 1
  stop TERM || return 1
  both 20000 0 || fail "at the end: $(levels)" || return 1
  place 500m
  within 120 found 50000 || fail "no pod with the first limit"
}

killed_and_restored() {
  agent || return 1
  stop KILL
  both 50000 50000 || fail "nothing was left behind: the scenario proves nothing" || return 1
  ./plimsoll restore >/dev/null || return 1
  same_levels
}

setup() { group=$scope && all_files >/tmp/levels; }
teardown() { :; }
up || exit 1
for name in bursts_of_both_levels another_pod killed_and_restored; do scenario "$name"; done
exit $failed
