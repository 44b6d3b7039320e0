#!/usr/bin/env bash
# Makes this machine one of a Kubernetes cluster. Safe to run again: every step looks first.
set -euo pipefail

version="$1" release="$2" oldest_containerd="$3"
export DEBIAN_FRONTEND=noninteractive
keyring=/etc/apt/keyrings/kubernetes.asc
packages="https://pkgs.k8s.io/core:/stable:/v${version}/deb/"

log=/var/log/stockyard-start.log
step=start
exec > >(tee -a "$log") 2>&1

# Tells Stockyard which step begins, or how it has failed. Nothing depends on whether it is heard.
say() {
    timeout 60 python3 "$program" say "$@" || true
}

begin() {
    step="$1"
    say "$step"
}

ended() {
    local code="$?"
    if ((code)); then say "$step" "$code" "$log"; fi
}
trap ended EXIT

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
    local found
    swapoff -a
    modprobe overlay
    modprobe br_netfilter
    sysctl --system >/dev/null
    install -d -m 0755 /etc/apt/keyrings /etc/containerd
    again curl -fsSL -o "$keyring" "${packages}Release.key"
    echo "deb [signed-by=${keyring}] ${packages} /" >/etc/apt/sources.list.d/kubernetes.list
    again apt-get update -q
    # Ubuntu's own upgrades may hold the lock for minutes after the boot.
    again apt-get install -q -y --no-install-recommends -o DPkg::Lock::Timeout=300 containerd "${@/%/=${release}-*}"
    apt-mark hold containerd "$@"
    found="$(dpkg-query --showformat '${Version}' --show containerd)"
    if dpkg --compare-versions "$found" lt "$oldest_containerd"; then
        echo "containerd ${found} is older than ${oldest_containerd}, which Kubernetes ${release} needs" >&2
        return 1
    fi
    containerd config default | sed 's/SystemdCgroup = false/SystemdCgroup = true/' >/etc/containerd/config.toml
    systemctl restart containerd
    systemctl enable kubelet
}
