#!/bin/bash
# part.sh start|stop|kill etcd|apiserver|containerd|kubelet|scheduler|controllers: one part of the cluster that up.sh made. start comes back when
# the part answers, and does nothing to one that runs; stop asks it to end, kill does not ask.
set -euo pipefail
. "$(dirname "$0")/env.sh"
pki=$dir/pki

command_of() {
  case $1 in
    etcd)
      local client=http://127.0.0.1:2379 peer=http://127.0.0.1:2380
      command=("$bin/etcd" --name e --data-dir "$dir/etcd" --listen-client-urls $client --advertise-client-urls $client
        --listen-peer-urls $peer --initial-advertise-peer-urls $peer --initial-cluster e=$peer --unsafe-no-fsync --log-level warn)
      ready=(true) # the API server waits for it
      ;;
    apiserver)
      command=("$bin/kube-apiserver" --etcd-servers http://127.0.0.1:2379 --bind-address $address --advertise-address $address
        --secure-port 6443 --tls-cert-file "$pki/apiserver.crt" --tls-private-key-file "$pki/apiserver.key"
        --client-ca-file "$pki/ca.crt" --service-account-key-file "$pki/sa.key" --service-account-signing-key-file "$pki/sa.key"
        --service-account-issuer https://kubernetes.default.svc --service-cluster-ip-range 10.96.0.0/24
        --authorization-mode Node,RBAC --enable-admission-plugins NodeRestriction --allow-privileged
        --kubelet-client-certificate "$pki/admin.crt" --kubelet-client-key "$pki/admin.key"
        --kubelet-certificate-authority "$pki/ca.crt" --kubelet-preferred-address-types InternalIP
        --audit-policy-file "$dir/audit.yaml" --audit-log-path "$dir/log/audit" --audit-log-mode blocking
        --endpoint-reconciler-type none --enable-priority-and-fairness=false --profiling=false)
      ready=(kubectl get --raw /readyz)
      ;;
    containerd)
      command=("$bin/containerd" -c "$dir/containerd/config.toml")
      ready=(ctr version)
      ;;
    kubelet)
      command=("$bin/kubelet" --config "$dir/kubelet/config.yaml" --kubeconfig "$pki/kubelet.kubeconfig"
        -v "${KUBELET_V:-0}" --root-dir "$dir/kubelet/root" --cert-dir "$dir/kubelet/certs" --hostname-override $node --node-ip $address)
      ready=(kubelet_ready)
      ;;
    scheduler)
      command=("$bin/kube-scheduler" --kubeconfig "$pki/admin.kubeconfig" --leader-elect=false --secure-port 0)
      ready=(true)
      ;;
    controllers) # no others than these: up.sh makes what the tests need of their work
      command=("$bin/kube-controller-manager" --kubeconfig "$pki/admin.kubeconfig" --leader-elect=false --secure-port 0
        --controllers daemonset-controller,job-controller,garbage-collector-controller)
      ready=(true)
      ;;
    *) echo "part.sh: no part $1" >&2; exit 2 ;;
  esac
}

# What the node last said of itself may be an earlier kubelet's word.
kubelet_ready() {
  "${inside[@]}" curl -sf --max-time 1 http://127.0.0.1:10248/healthz && kubectl wait --for=condition=Ready "node/$node" --timeout=1s
}

# alive PID NAME: the number may be another process's by now.
alive() { [ "$(readlink "/proc/$1/exe" 2>/dev/null)" = "$(readlink -f "$bin/$2")" ]; }

start() {
  local command ready pid
  command_of "$1"
  pid=$(cat "$dir/pid/$1" 2>/dev/null) || pid=none
  if ! alive "$pid" "$(basename "${command[0]}")"; then
    PATH=$bin:$PATH setsid "${inside[@]}" "${command[@]}" >>"$dir/log/$1" 2>&1 </dev/null 3>&- 4>&- 5>&- 6>&- 7>&- 8>&- 9>&- & # no lock of whoever runs the tests
    pid=$!
    echo $pid >"$dir/pid/$1"
  fi
  await 60 up_or_gone && ! gone $pid || { echo "part.sh: $1 is not ready; the end of its log:" >&2; tail -20 "$dir/log/$1" >&2; exit 1; }
}

# up_or_gone: what start waits for; one that has ended will not answer.
up_or_gone() { gone "$pid" || "${ready[@]}"; }

stop() {
  local command ready pid name
  command_of "$1"
  name=$(basename "${command[0]}")
  pid=$(cat "$dir/pid/$1" 2>/dev/null) || return 0
  if alive "$pid" "$name"; then
    kill "$2" "$pid"
    await 10 gone "$pid" || kill -KILL "$pid"
    await 10 gone "$pid"
  fi
  rm -f "$dir/pid/$1"
}

# gone PID: all its threads have ended. A process has no program any more while they still hold its sockets: 18 ms long beside
# busy loops. The next kubelet would end, for its port is in use.
gone() { ! grep -qs '^State:.[^XZ]' /proc/"$1"/task/*/status; }

case $1 in
  start) start "$2" ;;
  stop) stop "$2" -TERM ;;
  kill) stop "$2" -KILL ;;
  *) echo "usage: part.sh start|stop|kill PART" >&2; exit 2 ;;
esac
