#!/bin/bash
# pki.sh DIR: a certificate authority, the cluster's certificates and keys, and the kubeconfigs admin and kubelet, in DIR.
set -euo pipefail
. "$(dirname "$0")/env.sh"
mkdir "$1"
cd "$1"
new=(-nodes -newkey ec -pkeyopt ec_paramgen_curve:prime256v1)
openssl req -x509 "${new[@]}" -keyout ca.key -out ca.crt -days 30 -subj /CN=plimsoll-kube \
  -addext basicConstraints=critical,CA:TRUE -addext keyUsage=critical,keyCertSign,digitalSignature 2>/dev/null

# certificate NAME SUBJECT USE [ALTERNATIVE-NAMES]
certificate() {
  openssl req "${new[@]}" -keyout "$1.key" -out "$1.csr" -subj "$2" 2>/dev/null
  openssl x509 -req -in "$1.csr" -CA ca.crt -CAkey ca.key -CAcreateserial -days 30 -out "$1.crt" \
    -extfile <(echo "extendedKeyUsage=$3"; [ -z "${4:-}" ] || echo "subjectAltName=$4") 2>/dev/null
}

kubeconfig() {
  cat >"$1.kubeconfig" <<Y
apiVersion: v1
kind: Config
clusters: [{name: c, cluster: {server: "https://$address:6443", certificate-authority-data: $(base64 -w0 ca.crt)}}]
users: [{name: u, user: {client-certificate-data: $(base64 -w0 "$1.crt"), client-key-data: $(base64 -w0 "$1.key")}}]
contexts: [{name: x, context: {cluster: c, user: u}}]
current-context: x
Y
}

certificate apiserver /CN=kube-apiserver serverAuth \
  "IP:127.0.0.1,IP:$address,IP:10.96.0.1,DNS:localhost,DNS:kubernetes.default.svc"
certificate kubelet-server "/CN=system:node:$node" serverAuth "IP:127.0.0.1,IP:$address,DNS:$node"
certificate kubelet "/O=system:nodes/CN=system:node:$node" clientAuth
certificate admin /O=system:masters/CN=admin clientAuth
openssl genrsa -out sa.key 2048 2>/dev/null
kubeconfig admin
kubeconfig kubelet
