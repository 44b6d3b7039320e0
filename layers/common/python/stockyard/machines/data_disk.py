"""Way to open a control plane's data disk when that is encrypted: by a key that the tenant's Vault keeps.

What a machine is told holds no key and no secret id, but a token by which a secret id of its own can be fetched once.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field

from stockyard.machines.cloud_config import FOLDER, File, program

CONFIG_PATH = "/etc/stockyard/vault.json"
PROGRAM_PATH = f"{FOLDER}/stockyard_disk.py"
UNIT_PATH = "/etc/systemd/system/stockyard-disk.service"
_UNIT = f"""[Unit]
Description=Open the data disk with its key from the Vault
Wants=network-online.target
After=network-online.target

[Service]
Type=oneshot
RemainAfterExit=yes
TimeoutStartSec=infinity
ExecStart=/usr/bin/python3 {PROGRAM_PATH} open
"""
"""The mount of the disk asks for it, and the kubelet waits for the mount: for as long as the Vault is away."""


@dataclass(frozen=True, slots=True)
class DiskKey:
    """Place of the key of a cluster's data disk, and the credentials that let one machine in.

    ``address``: of the Vault, without a slash at its end. ``role_id``: of its AppRole. ``wrapped_secret_id``: the token
    that unwraps the machine's own secret id, once and within half an hour. ``client_id``: the cluster's, which the key
    is called by.
    """

    address: str
    role_id: str
    wrapped_secret_id: str = field(repr=False)
    client_id: str


def files(key: DiskKey) -> dict[str, File]:
    """The files that the machine needs, by their path. What the first holds is worth nothing once it was used."""
    document = {
        "address": key.address,
        "client_id": key.client_id,
        "role_id": key.role_id,
        "wrapped_secret_id": key.wrapped_secret_id,
    }
    return {
        CONFIG_PATH: File(json.dumps(document, indent=1), "0600"),
        PROGRAM_PATH: program("stockyard_disk.py"),
        UNIT_PATH: File(_UNIT),
    }
