"""What a control plane's machine is told at its first boot: a cloud-config document without any secret.

Values go into ``/etc/stockyard/machine.json``; the two programs beside it are constant.
"""

from __future__ import annotations

import json
import re

from stockyard.machines.cloud_config import LIMIT, MACHINE_PATH, START_PATH, File, machine_program, start_script
from stockyard.machines.cloud_config import render as cloud_config

__all__ = ["LIMIT", "START_PATH", "person", "render"]

POD_CIDR = "10.244.0.0/16"
CNI = "https://github.com/flannel-io/flannel/releases/download/v0.27.4/kube-flannel.yml"
"""Pinned; its default pod range is ``POD_CIDR``."""
CONFIG_PATH = "/etc/stockyard/machine.json"
SCRIPT_PATH = MACHINE_PATH


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
) -> bytes:
    """The compressed document; the same bytes for the same values. Raises ``ValueError`` for more than ``LIMIT``.

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
    files = {
        CONFIG_PATH: File(json.dumps(machine, indent=1, sort_keys=True)),
        SCRIPT_PATH: machine_program(control_plane=True),
        START_PATH: start_script("control_plane.sh"),
    }
    return cloud_config(files, "Make this machine a Kubernetes control plane", f"{kubernetes_version} {CNI}")
