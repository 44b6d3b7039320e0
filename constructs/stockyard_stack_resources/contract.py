"""Fields by kind, written of the contract by ``local.cloudformation.properties``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

FIXED: Mapping[str, Sequence[str]] = {
    "Cluster": ("cloud_account_id", "cluster_type", "driver", "keep_failed", "name", "secret"),
    "NodePool": ("kind", "name", "provider"),
    "NodeProvider": ("kind", "name"),
    "CloudAccount": ("provider",),
    "ClusterProfile": ("cloud", "name"),
}
"""Kind -> the fields of its creation that a change of it does not have."""
