"""The claims that a pool makes."""

from __future__ import annotations

import base64
import re

from stockyard.domain import ids
from stockyard.domain.pool_records import Pool
from stockyard.domain.records import NodeClaim
from stockyard.operations.services import Services

POOL_LABEL = "stockyard.dev/pool"
"""The label of a pool's nodes; the name of their launch template follows from it."""
_NAME_LENGTH = 57


def draft_claim(services: Services, cluster_id: str, pool: Pool) -> NodeClaim:
    """A new claim of the pool, as nobody has written it yet; its name is the pool's and five characters."""
    now = services.now()
    stem = re.sub(r"[^a-z0-9]+", "-", pool.name.lower()).strip("-")[:_NAME_LENGTH]
    letters = base64.b32encode(services.clock.randomness(5)).decode().lower()[:5]
    return NodeClaim(
        id=services.new_id(ids.NODE_CLAIM),
        name=f"{stem}-{letters}",
        created_at=now,
        updated_at=now,
        cluster_ref=cluster_id,
        cluster_id=cluster_id,
        provider_ref=pool.provider_ref,
        requirements=pool.requirements,
        properties=pool.properties,
        taints=pool.taints,
        startup_taints=pool.startup_taints,
        kubelet_args=pool.kubelet_args,
        labels={**pool.labels, POOL_LABEL: pool.name},
        annotations=pool.annotations,
        created_by=pool.created_by,
        pool=pool.name,
        pool_generation=pool.generation,
    )
