#!/bin/bash
# kubelet.sh [KERNEL]: containerd and a kubelet with the systemd cgroup driver on cgroup v2, in the virtual machine of systemd.sh,
# and the shipped binary beside them (guest/kubelet.sh). The programs are those of test/kube.
set -eu
. "$(dirname "$0")/env.sh"
built=$("$repo/test/kube/binaries.sh")
export MEM=${MEM:-4096} SECONDS_MAX=${SECONDS_MAX:-1800}
"$vm/systemd.sh" "${1:-6.12}" "$vm/guest/kubelet.sh" "${PLIMSOLL_BIN:-$repo/bin/plimsoll}" "$vm/guest/lib.sh" "$built/images" \
  "$built"/bin/{kubernetes,kubelet,containerd,containerd-shim-runc-v2,ctr} "$(command -v runc)"
