"""What a control plane's machine is told at its first boot: a cloud-config document without any secret.

Values go into ``/etc/stockyard/machine.json``; the two programs beside it are constant. A systemd unit runs
``start.sh`` until it has succeeded once, so that a reboot or an outage in the middle is no end.
"""

from __future__ import annotations

import json
import re
from pathlib import Path

LIMIT = 16 * 1024
"""Bytes EC2 accepts."""
POD_CIDR = "10.244.0.0/16"
CNI = "https://github.com/flannel-io/flannel/releases/download/v0.27.4/kube-flannel.yml"
"""Pinned; its default pod range is ``POD_CIDR``."""
CONFIG_PATH = "/etc/stockyard/machine.json"
SCRIPT_PATH = "/usr/local/lib/stockyard/stockyard_machine.py"
START_PATH = "/usr/local/lib/stockyard/start.sh"
_FILES = Path(__file__).parent / "on_machine"

_UNIT = """[Unit]
Description=Make this machine a Kubernetes control plane
Wants=network-online.target
After=network-online.target cloud-init.service
ConditionPathExists=!/var/lib/stockyard/reported

[Service]
Type=oneshot
ExecStart={start} {version} {cni}
ExecStartPost=/usr/bin/install -D -m 0600 /dev/null /var/lib/stockyard/reported
Restart=on-failure
RestartSec=30

[Install]
WantedBy=multi-user.target
"""
_SYSCTL = "net.ipv4.ip_forward = 1\nnet.bridge.bridge-nf-call-iptables = 1\nnet.bridge.bridge-nf-call-ip6tables = 1\n"


def _file(path: str, text: str, mode: str) -> str:
    body = "".join(f"      {line}\n" if line else "\n" for line in text.splitlines())
    return f"  - path: {path}\n    owner: root:root\n    permissions: '{mode}'\n    content: |\n{body}"


def person(actor: str) -> str:
    """The realm's user name of an actor; empty for machines, events and names that were not kept letter by letter."""
    kind, _, name = actor.partition(":")
    return name if kind == "user" and re.fullmatch(r"[A-Za-z0-9._@+-]{1,128}", name) else ""


def render(
    *,
    api_url: str,
    cluster_id: str,
    client_id: str,
    kubernetes_version: str,
    issuer: str,
    audience: str,
    creator: str = "",
) -> str:
    """The document, at most ``LIMIT`` bytes; the same text for the same values. Raises ``ValueError`` over it.

    ``creator``: the user name that becomes the cluster's first administrator; empty for none.
    """
    machine = {
        "api_url": api_url.rstrip("/"),
        "audience": audience,
        "client_id": client_id,
        "cluster_id": cluster_id,
        "creator": creator,
        "issuer": issuer,
        "kubernetes_version": kubernetes_version,
        "pod_cidr": POD_CIDR,
    }
    unit = _UNIT.format(start=START_PATH, version=kubernetes_version, cni=CNI)
    files = [
        _file(CONFIG_PATH, json.dumps(machine, indent=1, sort_keys=True), "0644"),
        _file(SCRIPT_PATH, (_FILES / "stockyard_machine.py").read_text(encoding="utf-8"), "0755"),
        _file(START_PATH, (_FILES / "start.sh").read_text(encoding="utf-8"), "0755"),
        _file("/etc/systemd/system/stockyard-start.service", unit, "0644"),
        _file("/etc/modules-load.d/stockyard.conf", "overlay\nbr_netfilter\n", "0644"),
        _file("/etc/sysctl.d/90-stockyard.conf", _SYSCTL, "0644"),
    ]
    commands = ["systemctl daemon-reload", "systemctl enable stockyard-start.service"]
    commands.append("systemctl start --no-block stockyard-start.service")
    run = "".join(f"  - [{', '.join(command.split())}]\n" for command in commands)
    text = f"#cloud-config\npackage_update: false\nwrite_files:\n{''.join(files)}runcmd:\n{run}"
    if len(text.encode()) > LIMIT:
        raise ValueError(f"user data is {len(text.encode())} bytes, more than {LIMIT}")
    return text
