#!/bin/bash
# up.sh: starts etcd, kube-apiserver, containerd with NRI and a kubelet in a network namespace of their own, with images
# for pods, and prints the kubeconfig's path. There is no scheduler and no controller manager: pods name their node. Needs
# root and the packages of test/setup.sh.
# When its standard input is a pipe and ends, down.sh is run: a test keeps a pipe open there, so that the cluster does not
# outlive a test that is killed.
set -euo pipefail
. "$(dirname "$0")/env.sh"
fail() { echo "up.sh: $*" >&2; exit 1; }

[ "$(id -u)" -eq 0 ] || fail "not root"
for program in runc ip openssl nsenter /usr/lib/cni/bridge /usr/lib/cni/host-local /usr/lib/cni/loopback /bin/busybox; do
  command -v $program >/dev/null || fail "no $program; hint: make setup"
done
mkdir -m 700 $dir 2>/dev/null || fail "$dir exists: a cluster is up, or one was not taken down; hint: $kube/down.sh"
# down.sh removes what is below kubepods, and what runc keeps for Kubernetes: it must be this kubelet's. kubepods.slice is
# another one's.
other=$(ls -d /sys/fs/cgroup/{,*/}kubepods{,.slice} /run/containerd/runc/k8s.io 2>/dev/null | head -1 || true)
if [ -n "$other" ]; then
  rmdir $dir
  fail "another kubelet or containerd is here: $other"
fi
run=$(cat /proc/sys/kernel/random/uuid)
echo "$run" >$dir/run
if [ -p /dev/stdin ]; then
  setsid bash -c 'cat >/dev/null; exec "$0" "$1"' "$kube/down.sh" "$run" <&0 >/dev/null 2>&1 &
fi
trap '[ $? -eq 0 ] || "$kube/down.sh"' EXIT
"$kube/binaries.sh" >/dev/null
mkdir $dir/{log,pid,containerd,containerd/cni,kubelet}

# What the kubelet and containerd change beyond their folders, for down.sh: sysctls (kubelet, pkg/kubelet/cm,
# setupKernelTunables), and folders with fixed names.
for name in vm/{overcommit_memory,panic_on_oom} kernel/{panic,panic_on_oops} kernel/keys/root_{maxkeys,maxbytes}; do
  echo "$name $(cat /proc/sys/$name)"
done >$dir/sysctls
for name in /var/lib/{kubelet,cni,containerd} /var/log/{containers,pods} /run/{containerd,netns}; do
  [ -e $name ] || echo $name
done >$dir/absent

ip netns add $namespace
ip -n $namespace link set lo up
ip -n $namespace link add node0 type bridge
ip -n $namespace addr add $address/24 dev node0
ip -n $namespace link set node0 up
ip -n $namespace route add default via 10.99.0.254 dev node0
"${inside[@]}" sysctl -qw net.ipv4.ip_forward=1

"$kube/pki.sh" $dir/pki
cat >$dir/containerd/cni/10-pods.conflist <<Y
{"cniVersion": "0.4.0", "name": "pods", "plugins": [
  {"type": "bridge", "bridge": "pods0", "isGateway": true, "ipMasq": false, "ipam": {"type": "host-local",
   "dataDir": "$dir/containerd/ipam", "ranges": [[{"subnet": "10.98.0.0/24"}]], "routes": [{"dst": "0.0.0.0/0"}]}}]}
Y
cat >$dir/containerd/config.toml <<Y
version = 3
root = "$dir/containerd/root"
state = "$dir/containerd/state"
disabled_plugins = ["io.containerd.snapshotter.v1.btrfs", "io.containerd.snapshotter.v1.zfs",
  "io.containerd.snapshotter.v1.devmapper", "io.containerd.snapshotter.v1.blockfile", "io.containerd.snapshotter.v1.erofs"]
[grpc]
  address = "$socket"
[plugins."io.containerd.cri.v1.images".pinned_images]
  sandbox = "plimsoll.test/pause:1"
[plugins."io.containerd.cri.v1.runtime"]
  restrict_oom_score_adj = true
  netns_mounts_under_state_dir = true
  [plugins."io.containerd.cri.v1.runtime".cni]
    bin_dirs = ["/usr/lib/cni"]
    conf_dir = "$dir/containerd/cni"
  [plugins."io.containerd.cri.v1.runtime".containerd.runtimes.runc]
    runtime_type = "io.containerd.runc.v2"
    [plugins."io.containerd.cri.v1.runtime".containerd.runtimes.runc.options]
      SystemdCgroup = false
[plugins."io.containerd.grpc.v1.cri"]
  disable_tcp_service = true
[plugins."io.containerd.nri.v1.nri"]
  disable = false
  socket_path = "$dir/containerd/nri.sock"
  plugin_path = "$dir/containerd/nri-plugins"
  plugin_config_path = "$dir/containerd/nri-conf"
Y
cat >$dir/kubelet/config.yaml <<Y
apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
failCgroupV1: false
failSwapOn: false
cgroupDriver: cgroupfs
containerRuntimeEndpoint: unix://$socket
address: $address
healthzBindAddress: 127.0.0.1
tlsCertFile: $dir/pki/kubelet-server.crt
tlsPrivateKeyFile: $dir/pki/kubelet-server.key
authentication: {anonymous: {enabled: false}, webhook: {enabled: true}, x509: {clientCAFile: $dir/pki/ca.crt}}
authorization: {mode: Webhook}
makeIPTablesUtilChains: false
oomScoreAdj: 0
resolvConf: ""
podLogsDir: $dir/kubelet/podlogs
volumePluginDir: $dir/kubelet/volplugins
imageGCHighThresholdPercent: 100
evictionHard: {memory.available: 50Mi, nodefs.available: "1%", imagefs.available: "1%", nodefs.inodesFree: "1%"}
nodeStatusUpdateFrequency: 5s
Y
# A container that ends twice is started again at once (in place of 10 s later), where the kubelet can be told so (from 1.35).
[ "$(printf '%s\n' v1.35 "$kubernetes_version" | sort -V | head -1)" != v1.35 ] ||
  echo 'crashLoopBackOff: {maxContainerRestartPeriod: 1s}' >>$dir/kubelet/config.yaml

# Who asks the API server for what: a test counts the agent's requests.
cat >$dir/audit.yaml <<Y
apiVersion: audit.k8s.io/v1
kind: Policy
rules: [{level: Metadata, users: [admin, "system:serviceaccount:plimsoll:plimsoll"]}, {level: None}]
Y
for part in etcd apiserver containerd; do "$kube/part.sh" start $part; done
# What a controller manager would make and a pod needs.
for name in default kube-system; do
  await 20 kubectl get namespace $name
  kubectl create serviceaccount default --namespace $name >/dev/null
  kubectl create configmap kube-root-ca.crt --namespace $name --from-file=ca.crt=$dir/pki/ca.crt >/dev/null
done
for name in pause busybox; do ctr images import "$images/$name.tar" >/dev/null; done
"$kube/part.sh" start kubelet
echo $dir/pki/admin.kubeconfig
