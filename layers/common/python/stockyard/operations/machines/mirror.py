"""The pools and claims that a cluster's agent mirrors, and the mark by which the agent notices changes.

Passes over the pools keep a digest of what they saw. The version that the agent is answered with is made of it and of
the claims in hand, so that both come from what each post reads anyway. A version may change without news, but never
stays when there are some.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Sequence
from contextlib import suppress
from typing import Any

from stockyard.domain.pools.mirror import mirrored_claim, mirrored_pool
from stockyard.domain.pools.records import ClusterClaim, Pool
from stockyard.domain.records import Cluster, Fact, NodeClaim
from stockyard.domain.values.frozen import dataclass
from stockyard.errors import Conflict
from stockyard.operations.listing import every
from stockyard.operations.services import Services
from stockyard.ports import Check, Put

MIRROR = "observed-mirror"
"""The cluster's fact of what passes over its pools saw last. The name begins as that of the agent's last post does: one
query reads both."""
SETTING = "mirror"
"""The setting of a cluster by which nothing is mirrored."""
OFF = ""
"""The version of a mirror that is turned off: what there is of it goes."""
PAGE_CLAIMS = 500


@dataclass(frozen=True, slots=True)
class MirrorPage:
    """A part of the mirror. ``after`` leads to the next one; empty for the last."""

    objects: Sequence[dict[str, Any]]
    after: str = ""


def note(
    services: Services, cluster: Cluster, pools: Iterable[Pool], claims: Iterable[NodeClaim], changes: int
) -> None:
    """Keep that the mirror is to change, if it is. ``changes`` are what the pass did since it read the claims."""
    entries = [
        *([pool.name, pool.generation, mirrored_pool(pool, ())] for pool in pools),
        *(sorted([claim.id, claim.version] for claim in claims if claim.pool)),
        changes,
    ]
    digest = _digest(entries)
    fact_id = f"{cluster.id}/{MIRROR}"
    fact = services.store.get(Fact, fact_id)
    if fact is not None and fact.value == digest:
        return
    with suppress(Conflict):  # a cluster on its way out needs no mirror
        services.store.commit(
            Put(Fact(fact_id, digest, services.now())), Check(Cluster, cluster.id, {"status": cluster.status})
        )


def version_of(cluster: Cluster, fact: Fact | None, in_hand: Iterable[NodeClaim]) -> str | None:
    """The version of the cluster's mirror; ``OFF``; None while no pass has looked at its pools.

    A pass that was slow may write an old digest again. Its moment is part of the version, so that this counts as news.
    """
    if not cluster.settings.get(SETTING, True):
        return OFF
    if fact is None:
        return None
    moving = sorted([claim.id, claim.version] for claim in in_hand if claim.pool)
    return _digest([fact.value, fact.time, moving])


def page_of(services: Services, cluster: Cluster, after: str = "") -> MirrorPage:
    """A page of the mirror behind ``after``, the id of a claim's entry without the cluster's; the pools are on the
    first."""
    prefix = f"{cluster.id}/"
    if not cluster.settings.get(SETTING, True):
        return MirrorPage(())
    entries = [entry.id for entry in every(services.store, ClusterClaim, prefix=prefix)]
    objects: list[dict[str, Any]] = []
    ids = [entry.removeprefix(prefix) for entry in entries if entry > prefix + after]
    page = ids[:PAGE_CLAIMS]
    wanted_ids = ids if not after else page
    claims = services.store.get_all(NodeClaim, [entry.rpartition("/")[2] for entry in wanted_ids])
    by_pool: dict[str, list[NodeClaim]] = {}
    for claim in claims:
        by_pool.setdefault(claim.pool, []).append(claim)
    if not after:
        pools = every(services.store, Pool, prefix=prefix)
        objects += [mirrored_pool(pool, by_pool.get(pool.name, ())) for pool in pools]
    on_page = {entry.rpartition("/")[2] for entry in page}
    objects += [mirrored_claim(claim) for claim in claims if claim.pool and claim.id in on_page]
    return MirrorPage(objects, page[-1] if len(ids) > len(page) else "")


def _digest(value: Any) -> str:
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()[:32]
