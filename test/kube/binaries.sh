#!/bin/bash
# binaries.sh: builds kube-apiserver, kubelet, kubectl, etcd, containerd and the images into the cache, once for each set of
# versions, and prints the folder. It takes about 6 minutes of 2 cores the first time. Needs Go and the Go module proxy.
# KUBE_VERSION chooses the version of Kubernetes.
set -euo pipefail
. "$(dirname "$0")/env.sh"
mkdir -p "$cache"
if [ ! -e "$built" ]; then
  exec 9>"$cache/lock"
  flock 9 # one build at a time
fi
if [ ! -e "$built" ]; then
  echo "binaries.sh: build Kubernetes $kubernetes_version and containerd $containerd_version, some minutes" >&2
  rm -rf "$cache"/making.*
  making=$(mktemp -d "$cache/making.XXXXXX")
  mkdir "$making/bin"
  # The toolchain and flags of the Makefile, for what the agent imports too. What it does not import is not inlined, which
  # saves a quarter of the time.
  GOTOOLCHAIN=$(go -C "$kube" env GOVERSION)
  export GOTOOLCHAIN CGO_ENABLED=0 GOFLAGS="-trimpath -gcflags=all=-dwarf=false" GOGC=off GOMEMLIMIT=2GiB
  plain=()
  for of in k8s.io/{kubernetes,apiserver,apiextensions-apiserver,kubectl} go.etcd.io github.com/containerd; do
    plain+=("-gcflags=$of/...=-dwarf=false -l")
  done
  v=k8s.io/component-base/version
  IFS=. read -r major minor _ <<<"${kubernetes_version#v}"
  # providerless: before 1.31, without what clouds would add
  (cd "$kubernetes" && go build "${plain[@]}" -tags providerless -o "$making/bin/kubernetes" -ldflags "-s -w
    -X $v.gitVersion=$kubernetes_version -X $v.gitMajor=$major -X $v.gitMinor=$minor" .)
  for name in kube-{apiserver,controller-manager,scheduler} kubelet kubectl etcd; do ln -s kubernetes "$making/bin/$name"; done
  GOBIN=$making/bin go install "${plain[@]}" -ldflags '-s -w' \
    github.com/containerd/containerd/v2/cmd/{containerd,containerd-shim-runc-v2,ctr}@$containerd_version
  if grep -q kube-controller-manager "$kubernetes/main.go"; then # what helm makes needs controllers
    GOBIN=$making/bin go install -ldflags '-s -w' helm.sh/helm/v3/cmd/helm@$helm_version
  fi
  go build -ldflags '-s -w' -o "$making/bin/pause" "$kube/pause/main.go"
  "$kube/images.sh" "$making/bin/pause" "$making/images"
  mv -T "$making" "$built" # the last step: a half-made folder is never taken for whole
fi
echo "$built"
