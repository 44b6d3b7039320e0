"""User data for the first boot of a node's machine: a cloud-config document.

A machine whose cloud gives it keys has one without any secret, the same for all machines of a cluster: it reads from
its own tags which claim it is for. Any other is told its claim, and the token by which it proves itself.
"""

from __future__ import annotations

import json
from typing import Protocol

from stockyard.domain.clusters.overlay import range_of
from stockyard.domain.records import Cluster
from stockyard.machines.cloud_config import (
    FOLDER,
    LIMIT,
    MACHINE_PATH,
    NODE,
    START_PATH,
    File,
    FirstBoot,
    machine_program,
    overlay_files,
    program,
    start_script,
    unpacking,
)
from stockyard.machines.sources import PUBLIC, Sources

__all__ = [
    "CONFIG_PATH",
    "LIMIT",
    "MACHINE_PATH",
    "NEAR_PATH",
    "SCRIPT_PATH",
    "START_PATH",
    "first_boot",
    "first_boot_by_token",
    "watcher",
]

CONFIG_PATH = "/etc/stockyard/node.json"
SCRIPT_PATH = f"{FOLDER}/stockyard_node.py"
NEAR_PATH = f"{FOLDER}/stockyard_near.py"
NEAR_UNIT, NEAR_TIMER = "stockyard-near.service", "stockyard-near.timer"
WATCH_UNIT = "stockyard-watch.service"
_WATCH = f"""[Unit]
Description=Tell Stockyard when this machine is taken back by its cloud
Wants=network-online.target
After=network-online.target

[Service]
ExecStart=/usr/bin/python3 {SCRIPT_PATH} watch
Restart=on-failure
RestartSec=5

[Install]
WantedBy=multi-user.target
"""

_NEAR = f"""[Unit]
Description=Let the name of the API endpoint lead to the control plane itself where that is near

[Service]
Type=oneshot
ExecStart=/usr/bin/python3 {NEAR_PATH}
"""
_EACH_MINUTE = """[Unit]
Description=Look each minute whether the control plane is near

[Timer]
OnActiveSec=5
OnUnitActiveSec=60
RandomizedDelaySec=10

[Install]
WantedBy=timers.target
"""


def watcher(api_url: str, cluster_id: str) -> str:
    """A script for a machine that joins its cluster by itself: it installs what tells Stockyard that the machine is
    taken back by its cloud, and nothing else. It holds no secret, and is the same for all machines of a cluster."""
    config = {"api_url": api_url.rstrip("/"), "cluster_id": cluster_id}
    files = {
        CONFIG_PATH: File(json.dumps(config, indent=1, sort_keys=True)),
        MACHINE_PATH: machine_program(NODE),
        SCRIPT_PATH: program("stockyard_node.py"),
        NEAR_PATH: program("stockyard_near.py"),
        f"/etc/systemd/system/{WATCH_UNIT}": File(_WATCH),
    }
    return unpacking(files, ("systemctl daemon-reload", f"systemctl enable --now --no-block {WATCH_UNIT}"))


class BootConfig(Protocol):
    """Addresses that every machine of a stage is told: of the API, and where packages and images come from."""

    @property
    def api_url(self) -> str: ...
    @property
    def sources(self) -> Sources: ...


def first_boot(
    *,
    api_url: str,
    cluster_id: str,
    kubernetes_version: str,
    claim_id: str = "",
    token: str = "",
    cloud_provider: str = "",
    overlay: bool = False,
    sources: Sources = PUBLIC,
) -> FirstBoot:
    """Make the user data of the machine.

    ``cloud_provider``: ``external`` for a node of the cloud whose controller the cluster has. ``token`` and
    ``claim_id`` for a machine that proves itself by a token: see ``ports.nodes.Attests``. ``overlay``: whether the
    cluster has one.
    """
    node = {"api_url": api_url.rstrip("/"), "cluster_id": cluster_id}
    if cloud_provider:
        node["cloud_provider"] = cloud_provider
    if token:
        node |= {"claim_id": claim_id, "token": token}
    files = {
        CONFIG_PATH: File(json.dumps(node, indent=1, sort_keys=True), "0600" if token else "0644"),
        MACHINE_PATH: machine_program(NODE),
        SCRIPT_PATH: program("stockyard_node.py"),
        START_PATH: start_script("node.sh"),
        NEAR_PATH: program("stockyard_near.py"),
        f"/etc/systemd/system/{NEAR_UNIT}": File(_NEAR),
        f"/etc/systemd/system/{NEAR_TIMER}": File(_EACH_MINUTE),
        f"/etc/systemd/system/{WATCH_UNIT}": File(_WATCH),
        **(overlay_files() if overlay else {}),
    }
    return FirstBoot(files, "Make this machine a Kubernetes node", sources.arguments(kubernetes_version))


def first_boot_by_token(config: BootConfig, cluster: Cluster, claim_id: str, token: str) -> FirstBoot:
    """Make the user data of a node of the cluster that proves itself by a token."""
    return first_boot(
        api_url=config.api_url,
        cluster_id=cluster.id,
        kubernetes_version=cluster.node_minor,
        claim_id=claim_id,
        token=token,
        overlay=range_of(cluster.settings) is not None,
        sources=config.sources,
    )
