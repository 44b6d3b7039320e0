#!/usr/bin/env bash
# Makes this machine one of a Kubernetes cluster. Safe to run again: every step looks first.
set -euo pipefail

version="$1" release="$2" oldest_containerd="$3" packages="$4" archive="$5" registry="$6"
export DEBIAN_FRONTEND=noninteractive
keyring=/etc/apt/keyrings/kubernetes.gpg
repository="${packages}/core:/stable:/v${version}/deb/"
# Of the key that signs Kubernetes' packages.
fingerprint=DE15B14486CD377B9E876E1A234654DA9A296436

log=/var/log/stockyard-start.log
step=start
exec > >(tee -a "$log") 2>&1
log_writer=$!

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
    if ((code == 0)); then return; fi
    # The last lines are in the log once its writer has ended. Something that still runs may keep it from ending.
    exec >>"$log" 2>&1
    local attempt
    for attempt in 1 2 3 4 5 6 7 8 9 10; do
        kill -0 "$log_writer" 2>/dev/null || break
        sleep 0.1
    done
    say "$step" "$code" "$log"
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

# Fetches a URL into a file. Every image has Python, which cloud-init needs; some have neither curl nor gpg.
fetch() {
    python3 -c '
import sys, urllib.request
with urllib.request.urlopen(sys.argv[1], timeout=60) as answer, open(sys.argv[2], "wb") as file:
    file.write(answer.read())
' "$1" "$2"
}

# Writes the keys of a file as apt reads them, and prints their fingerprints: RFC 4880, sections 4.2, 6.2 and 12.2.
unpack_keys() {
    python3 -c '
import base64, hashlib, sys
data, at = b"", 0
for block in open(sys.argv[1]).read().split("-----BEGIN")[1:]:
    data += base64.b64decode(block.split("\n\n")[1].split("\n=")[0].split("\n-")[0])
while at < len(data):
    head, size, start = data[at], data[at + 1], at + 2
    if head < 192:
        start = at + 1 + (1 << (head & 3))
        size = int.from_bytes(data[at + 1 : start], "big")
        head >>= 2
    elif size > 191:
        size, start = (size - 192 << 8) + data[start] + 192, start + 1
    at = start + size
    if head & 15 == 6:
        print(hashlib.sha1(b"\x99" + size.to_bytes(2, "big") + data[start:at]).hexdigest().upper())
with open(sys.argv[2], "wb") as file:
    file.write(data)
' "$1" "$2"
}

# One key, and that one: whoever serves the packages could sign them with another.
fetch_key() {
    local keys
    fetch "${repository}Release.key" "${keyring}.asc" || return 1
    keys="$(unpack_keys "${keyring}.asc" "$keyring")" || return 1
    if test "$keys" != "$fingerprint"; then
        rm -f "$keyring"
        echo "the key of Kubernetes' packages is not the one that was pinned" >&2
        return 1
    fi
}

# Installs containerd and these packages of Kubernetes, unless an image of this release has brought them.
install_packages() {
    local found runtime=containerd
    # AWS's image with NVIDIA's driver has containerd from Docker, whose package and Ubuntu's exclude each other.
    if test "$(dpkg-query --showformat '${db:Status-Status}' --show containerd.io 2>/dev/null)" = installed; then
        runtime=containerd.io
    fi
    if test "$(kubeadm version --output short 2>/dev/null)" != "v${release}"; then
        install -d -m 0755 /etc/apt/keyrings
        if test "$archive" != -; then
            sed -i "s|^URIs: .*|URIs: ${archive}|" /etc/apt/sources.list.d/ubuntu.sources
        fi
        again fetch_key
        echo "deb [signed-by=${keyring}] ${repository} /" >/etc/apt/sources.list.d/kubernetes.list
        again apt-get update -q
        # Ubuntu's own upgrades may hold the lock for minutes after the boot. They leave alone what is held.
        again apt-get install -q -y --no-install-recommends -o DPkg::Lock::Timeout=300 "$runtime" "${@/%/=${release}-*}"
        apt-mark hold "$runtime" "$@"
    fi
    found="$(dpkg-query --showformat '${Version}' --show "$runtime")"
    if dpkg --compare-versions "$found" lt "$oldest_containerd"; then
        echo "containerd ${found} is older than ${oldest_containerd}, which Kubernetes ${release} needs" >&2
        return 1
    fi
}

# Lets containerd ask the mirror first for what it would fetch from other registries.
configure_containerd() {
    local name
    install -d -m 0755 /etc/containerd
    containerd config default |
        sed -e 's/SystemdCgroup = false/SystemdCgroup = true/' \
            -e "s|config_path = ['\"]['\"]|config_path = '/etc/containerd/certs.d'|" >/etc/containerd/config.toml
    if test "$registry" != -; then
        for name in docker.io ghcr.io nvcr.io public.ecr.aws registry.k8s.io; do
            install -d -m 0755 "/etc/containerd/certs.d/${name}"
            printf 'server = "https://%s"\n[host."https://%s/v2/%s"]\ncapabilities = ["pull", "resolve"]\noverride_path = true\n' \
                "$name" "$registry" "$name" >"/etc/containerd/certs.d/${name}/hosts.toml"
        done
    fi
    # An image with NVIDIA's driver has its tools too: then pods that are given a GPU see it.
    if command -v nvidia-ctk >/dev/null; then
        nvidia-ctk runtime configure --runtime=containerd --set-as-default
    fi
    systemctl restart containerd
}

# Makes this machine ready for Kubernetes, once.
prepare_machine() {
    if test -e /etc/containerd/prepared; then return 0; fi
    swapoff -a
    modprobe overlay
    modprobe br_netfilter
    sysctl --system >/dev/null
    install_packages "$@"
    configure_containerd
    if test -e /usr/local/lib/stockyard/overlay.sh; then again /usr/local/lib/stockyard/overlay.sh; fi
    systemctl enable kubelet
    touch /etc/containerd/prepared
}
