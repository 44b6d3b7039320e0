#!/usr/bin/env bash
# Turns this machine into a control plane. Safe to run again: every step looks first.
set -euo pipefail

version="$1"
cni="$2"
export DEBIAN_FRONTEND=noninteractive KUBECONFIG=/etc/kubernetes/admin.conf
keyring=/etc/apt/keyrings/kubernetes.asc
packages="https://pkgs.k8s.io/core:/stable:/v${version}/deb/"

again() {
    local attempt
    for attempt in 1 2 3 4 5 6 7 8; do
        if "$@"; then return 0; fi
        sleep $((attempt * 5))
    done
    return 1
}

install_packages() {
    swapoff -a
    modprobe overlay
    modprobe br_netfilter
    sysctl --system >/dev/null
    install -d -m 0755 /etc/apt/keyrings /etc/containerd
    again curl -fsSL -o "$keyring" "${packages}Release.key"
    echo "deb [signed-by=${keyring}] ${packages} /" >/etc/apt/sources.list.d/kubernetes.list
    again apt-get update -q
    again apt-get install -q -y --no-install-recommends containerd kubeadm kubelet kubectl
    apt-mark hold kubeadm kubelet kubectl
    containerd config default | sed 's/SystemdCgroup = false/SystemdCgroup = true/' >/etc/containerd/config.toml
    systemctl restart containerd
    systemctl enable --now kubelet
}

# A load balancer does not send a machine's own connections back to it, so its name means this machine here.
name_endpoint() {
    local endpoint
    endpoint="$(cat /etc/stockyard/endpoint)"
    grep -qF " ${endpoint}" /etc/hosts || echo "127.0.0.1 ${endpoint}" >>/etc/hosts
}

command -v kubeadm >/dev/null && test -s /etc/containerd/config.toml || install_packages
python3 /usr/local/lib/stockyard/stockyard_machine.py bootstrap
name_endpoint
if ! kubectl get --raw /readyz >/dev/null 2>&1; then
    test -s /etc/kubernetes/admin.conf && kubeadm reset --force
    kubeadm init --config /etc/stockyard/kubeadm.yaml
fi
again kubectl get --raw /readyz
again kubectl apply -f "$cni"
if test -s /etc/stockyard/administrator.json; then
    again kubectl apply -f /etc/stockyard/administrator.json
fi
again kubectl wait --for=condition=Ready nodes --all --timeout=120s
python3 /usr/local/lib/stockyard/stockyard_machine.py agent
again kubectl apply --server-side --force-conflicts -f /etc/stockyard/agent.json
rm -f /etc/stockyard/agent.json
python3 /usr/local/lib/stockyard/stockyard_machine.py ready
