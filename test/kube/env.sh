# Shared by the scripts here, sourced: what is pinned, and where things are kept.
kube=$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")
helm_version=$(awk '$1 == "helm.sh/helm/v3" {print $2; exit}' "$kube/../../deploy/tools/go.mod")
# KUBE_VERSION is a folder below kubernetes. It names its containerd, too: each version has one of its time.
kubernetes=$kube/kubernetes/${KUBE_VERSION:-1.37}
[ -d "$kubernetes" ] || { echo "env.sh: no $kubernetes; hint: KUBE_VERSION is one of $(ls "$kube/kubernetes" | xargs)" >&2; exit 2; }
containerd_version=$(cat "$kubernetes/containerd")
kubernetes_version=$(awk '$1 == "k8s.io/kubernetes" {print $2; exit}' "$kubernetes/go.mod")
# The cache's key holds the versions, and a sum over the little of our own that goes into it.
cache=$(readlink -m "${PLIMSOLL_CACHE:-$kube/../../.cache}/kube") # as /proc/PID/exe names it
pinned=$(cat "$kubernetes"/{go.mod,go.sum,main.go} "$kube/pause/main.go" "$kube"/{binaries,images}.sh | sha256sum | cut -c1-8)
built=$cache/$kubernetes_version-containerd-$containerd_version-$pinned
bin=$built/bin
images=$built/images

# One cluster at a time: its files and its network namespace have fixed names, so that down.sh finds them after a crash.
dir=/tmp/plimsoll-kube
namespace=plimsoll-kube
node=node1
address=10.99.0.1
# Not "ip netns exec": that mounts a /sys in which the control groups are missing.
inside=(nsenter "--net=/run/netns/$namespace")
socket=$dir/containerd/containerd.sock

kubectl() { "${inside[@]}" "$bin/kubectl" --kubeconfig "$dir/pki/admin.kubeconfig" "$@"; }
ctr() { "$bin/ctr" --address "$socket" --namespace k8s.io "$@"; }

# await SECONDS COMMAND...: until the command succeeds.
await() {
  local end=$((SECONDS + $1))
  shift
  until "$@" >/dev/null 2>&1; do
    [ "$SECONDS" -lt "$end" ] || return 1
    sleep 0.1
  done
}
