#!/usr/bin/env bash
# Makes this machine one of a Kubernetes cluster. Safe to run again: every step looks first.
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

# Installs containerd and these packages of Kubernetes.
install_packages() {
    swapoff -a
    modprobe overlay
    modprobe br_netfilter
    sysctl --system >/dev/null
    install -d -m 0755 /etc/apt/keyrings /etc/containerd
    again curl -fsSL -o "$keyring" "${packages}Release.key"
    echo "deb [signed-by=${keyring}] ${packages} /" >/etc/apt/sources.list.d/kubernetes.list
    again apt-get update -q
    again apt-get install -q -y --no-install-recommends containerd "$@"
    apt-mark hold "$@"
    containerd config default | sed 's/SystemdCgroup = false/SystemdCgroup = true/' >/etc/containerd/config.toml
    systemctl restart containerd
    systemctl enable kubelet
}
