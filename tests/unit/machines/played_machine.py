"""A machine in a folder: its scripts run as they are but below another root, and on commands that only play."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import time
from dataclasses import dataclass
from pathlib import Path

from stockyard.machines import cloud_config

PLAYED = (
    "apt-get", "apt-mark", "blkid", "cloud-init", "containerd", "crictl", "dpkg", "dpkg-query", "findmnt",
    "kubeadm", "kubectl", "lsblk", "mkfs.ext4", "modprobe", "mount", "mountpoint", "openssl", "python3",
    "sha256sum", "sleep", "swapoff", "sysctl", "systemctl", "timeout", "wipefs",
)  # fmt: skip
STUB = """#!/bin/bash
name="${0##*/}"
[ "$name" = timeout ] && shift && exec "$@"
if [ "$name $1" = "python3 -c" ]; then
    case "$2" in *urlopen*) name=fetch ;; *) name=unpack ;; esac
    shift 2
elif [ "$name" = python3 ]; then
    shift
    if [ "$1" = say ]; then shift; echo "$1 ${2:-begins}" >>"$ROOT/said"; exit 0; fi
fi
case " $name $* " in
    *" $FAILS "*) [ -n "$FAILS" ] && echo "the reason" >&2 && exit 7 ;;
    *" $HANGS "*) [ -n "$HANGS" ] && touch "$ROOT/hung" && exec /bin/sleep 60 ;;
esac
[ "$name" = sleep ] || echo "$name $*" >>"$ROOT/ran"
if [ "$name $1" = "python3 bootstrap" ]; then
    cd "$ROOT/etc/stockyard" && mkdir -p api && touch client.json api/encryption.yaml
    echo nlb.example.test >endpoint
fi
if [ "$name $1" = "kubeadm init" ]; then
    mkdir -p "$ROOT/etc/kubernetes/pki/etcd" && cd "$ROOT/etc/kubernetes" && echo admin >admin.conf
    mkdir -p manifests && touch manifests/etcd.yaml
    touch pki/{ca,front-proxy-ca,etcd/ca}.{crt,key} pki/sa.{key,pub}
fi
[ "$name" = mountpoint ] && [ ! -e "$ROOT/mounted" ] && exit 1
[ "$name" = mount ] && touch "$ROOT/mounted"
[ "$name" = lsblk ] && case "$*" in *PKNAME*) echo nvme0n1 ;; *TYPE*) echo disk ;; *) echo nvme1n1 ;; esac
[ "$name" = blkid ] && echo 0fc63daf-8483-4772-8e79-3d69d8477de4
[ "$name" = wipefs ] && [ -e "$ROOT/var/lib/control-plane/keys" ] && echo ext4
[ "$name" = crictl ] && case "$*" in *"snapshot save"*) mkdir -p "$(dirname "${!#}")" && echo db >"${!#}" ;; esac
[ "$name $1" = "kubeadm reset" ] && rm -rf "$ROOT/etc/kubernetes"/*
case "$name $*" in
    *"configmap kubeadm-config"*) echo "kubernetesVersion: v${CLUSTER:-1.35.4}" ;;
    "python3 ask") echo '{"node_name": "member-1", "workloads": false}' >"$ROOT/etc/stockyard/member.json" ;;
    *"control-plane-prepare kubeconfig"*) echo admin >"$ROOT/etc/kubernetes/admin.conf" ;;
    "kubeadm join --config"*)
        mkdir -p "$ROOT/etc/kubernetes/manifests" && cd "$ROOT/etc/kubernetes"
        echo etcd >manifests/etcd.yaml && echo kubelet >kubelet.conf
        ;;
esac
[ "$name" = openssl ] && [ -e "$ROOT/ending" ] && exit 1
[ "$name $1" = "kubeadm certs" ] && rm -f "$ROOT/ending"
[ "$name" = crictl ] && echo "the id of a container"
[ "$name" = containerd ] && printf 'SystemdCgroup = false\nconfig_path = ""\n'
[ "$name" = unpack ] && printf '%s\n' DE15B14486CD377B9E876E1A234654DA9A296436
[ "$name $1" = "apt-get install" ] && touch "$ROOT/installed"
[ "$name $1" = "kubeadm version" ] && [ -e "$ROOT/installed" ] && echo v1.35.4
[ "$name" = dpkg-query ] && echo 1.7.24
[ "$name $1" = "dpkg --compare-versions" ] && exit 1
exit 0
"""


@dataclass
class Machine:
    """A root folder and what has been played in it."""

    root: Path
    part: str

    def boot(self, *, fails: str = "", hangs: str = "", archive: str = "-", registry: str = "-") -> int | None:
        """The exit code of the start script; None when it hung and was ended."""
        sources = ["https://packages.example.test", archive, registry, "https://example.test"]
        return self.run("start.sh", "1.35", "1.35.4", "1.7", *sources, fails=fails, hangs=hangs)

    def run(self, script: str, *arguments: str, fails: str = "", hangs: str = "") -> int | None:
        environment = {"PATH": f"{self.root}/bin:/usr/bin:/bin", "ROOT": str(self.root), "FAILS": fails, "HANGS": hangs}
        command = ["bash", self.root / script, *arguments]
        process = subprocess.Popen(
            command, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True
        )
        ends_at, hung = time.monotonic() + 60, self.root / "hung"
        while process.poll() is None and not hung.exists():
            assert time.monotonic() < ends_at, "it neither ended nor hung"
            time.sleep(0.01)
        if not hung.exists():
            return process.returncode
        hung.unlink()
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        return None

    def lines(self, name: str) -> list[str]:
        path = self.root / name
        return path.read_text().splitlines() if path.exists() else []


def prepare(root: Path, part: str) -> Machine:
    """A machine in an empty folder that starts by the script ``part``, on commands that only play."""
    for folder in (
        "bin",
        "etc/stockyard",
        "etc/kubernetes",
        "etc/apt/sources.list.d",
        "etc/systemd/system",
        "var/log",
        "var/lib/cloud/instance",
    ):
        (root / folder).mkdir(parents=True)
    ubuntu = root / "etc/apt/sources.list.d/ubuntu.sources"
    ubuntu.write_text("Types: deb\nURIs: http://archive.ubuntu.com/ubuntu/\n")
    manifests = root / "etc/stockyard/manifests"
    (manifests / "flannel-io/flannel/1/Documentation").mkdir(parents=True)
    (manifests / "sums").write_text(f"{'0' * 64}  flannel-io/flannel/1/Documentation/kube-flannel.yml\n")
    (manifests / "kustomization.yaml").touch()
    (root / "etc/stockyard/kubeadm.yaml").write_text("{}")
    for name in ("etc/hosts", "var/lib/cloud/instance/user-data.txt", "etc/systemd/system/stockyard-renew.timer"):
        (root / name).touch()
    for name in PLAYED:
        (root / "bin" / name).write_text(STUB)
        (root / "bin" / name).chmod(0o755)
    scripts = {"start.sh": cloud_config.start_script(part)}
    scripts |= {name: cloud_config.program(name) for name in ("renew.sh", "snapshot.sh")}
    for name, script in scripts.items():
        text = script.text.replace(cloud_config.FOLDER, str(root))
        (root / name).write_text(re.sub(r"(?<=[\s=\"(>])/(?=etc/|var/)", f"{root}/", text))
        (root / name).chmod(0o755)
    return Machine(root, part)
