#!/usr/bin/env bash
# Turns this machine into a node. Safe to run again: every step looks first.
set -euo pipefail

version="$1"
export DEBIAN_FRONTEND=noninteractive
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
    again apt-get install -q -y --no-install-recommends containerd kubeadm kubelet
    apt-mark hold kubeadm kubelet
    containerd config default | sed 's/SystemdCgroup = false/SystemdCgroup = true/' >/etc/containerd/config.toml
    systemctl restart containerd
    systemctl enable kubelet
}

command -v kubeadm >/dev/null && test -s /etc/containerd/config.toml || install_packages
if ! systemctl is-active --quiet kubelet || ! test -s /etc/kubernetes/kubelet.conf; then
    # What an earlier try left would stop kubeadm.
    kubeadm reset --force
    # The token is young here: it is asked for when all else is done.
    python3 /usr/local/lib/stockyard/stockyard_node.py
    kubeadm join --config /etc/stockyard/join.yaml
    rm -f /etc/stockyard/join.yaml
fi
