"""Fields by kind, written of the contract by ``local.cloudformation.properties``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

FIXED: Mapping[str, Sequence[str]] = {
    "Cluster": ("cloud_account_id", "cluster_type", "driver", "keep_failed", "name", "secret"),
    "NodePool": ("kind", "name", "provider"),
    "NodeProvider": ("kind", "name"),
    "CloudAccount": ("provider",),
    "ClusterProfile": ("cloud", "name"),
}
"""Kind -> the fields of its creation that a change of it does not have."""
UNSET: Mapping[str, Mapping[str, Any]] = {
    "Cluster": {
        "settings": {
            "block_storage": False,
            "cloud_controllers": True,
            "control_plane_workloads": False,
            "deletion_protection": False,
            "dev_mode": False,
            "endpoint": "public",
            "etcd_snapshots": 7,
            "etcd_volume_gib": 20,
            "mirror": True,
            "namespace": "",
            "no_vault": False,
            "public_control_plane": False,
            "repave_approval": "automatic",
            "shared_storage": True,
            "support": "standard",
        },
        "profiles": [],
    },
    "NodePool": {"requirements": [], "taints": [], "startup_taints": [], "floor": 0, "zones": []},
    "NodeProvider": {"display_name": ""},
    "CloudAccount": {"description": ""},
    "ClusterProfile": {"variables": [], "packs": []},
}
"""Kind -> what a change says in place of null, for fields that cannot be taken away: their defaults."""
