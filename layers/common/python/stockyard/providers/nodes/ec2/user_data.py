"""What a node's machine is told at its first boot: a cloud-config document without any secret.

It is the same for all machines of a cluster: which claim it is for, a machine reads from its own tags.
"""

from __future__ import annotations

import json
from pathlib import Path

from stockyard.providers.aws.cloud_config import (
    FOLDER,
    LIMIT,
    MACHINE_PATH,
    START_PATH,
    File,
    machine_program,
    start_script,
)
from stockyard.providers.aws.cloud_config import render as cloud_config

__all__ = ["LIMIT", "MACHINE_PATH", "START_PATH", "render"]

CONFIG_PATH = "/etc/stockyard/node.json"
SCRIPT_PATH = f"{FOLDER}/stockyard_node.py"
_FILES = Path(__file__).parent / "on_machine"


def render(*, api_url: str, cluster_id: str, kubernetes_version: str) -> str:
    """The document, at most ``LIMIT`` bytes; the same text for the same values. Raises ``ValueError`` over it."""
    node = {"api_url": api_url.rstrip("/"), "cluster_id": cluster_id}
    files = {
        CONFIG_PATH: File(json.dumps(node, indent=1, sort_keys=True)),
        MACHINE_PATH: machine_program(control_plane=False),
        SCRIPT_PATH: File((_FILES / "stockyard_node.py").read_text(encoding="utf-8"), "0755"),
        START_PATH: start_script(_FILES / "start.sh"),
    }
    return cloud_config(files, "Make this machine a Kubernetes node", kubernetes_version)
