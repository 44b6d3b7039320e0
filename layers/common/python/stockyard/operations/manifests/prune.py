"""Pools that came by a vcluster.yaml and that a later one does not name: they stay with a warning, or go where the
request says that its documents name all."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TypeVar

from stockyard.domain.manifest_sets import SetMember, member_id
from stockyard.domain.pools.records import Pool
from stockyard.errors import InvalidInput
from stockyard.operations.manifests.pools import DesiredPools
from stockyard.operations.services import Services

D = TypeVar("D")
VCLUSTER = "autoNodes"
"""The form of pools that came by a vcluster.yaml."""


def settled(services: Services, desired: Sequence[D], *, prune: bool, set_name: str | None = None) -> list[D]:
    """The manifests, in which pools also state the fate of pools that no manifest names. With ``prune`` they are the
    ``unnamed`` ones of the first document of their cluster, but for those of a set; else a warning says that each of
    them stays, but for those of the set that applies.

    ``InvalidInput`` at the parameter where it is given and no document is the pools of a vcluster.yaml.
    """
    documents = [manifest for manifest in desired if isinstance(manifest, DesiredPools)]
    if prune and not any(pool.pool.form == VCLUSTER for document in documents for pool in document.pools):
        text = "needs a vcluster.yaml with pools: no other document says that its pools are all"
        raise InvalidInput.of_parameter("prune", text)
    told_ids = {f"{pool.cluster.id}/{pool.pool.name}" for document in documents for pool in document.pools}
    result: list[D] = []
    for manifest in desired:
        if not isinstance(manifest, DesiredPools):
            result.append(manifest)
            continue
        unnamed = tuple(pool for pool in manifest.unnamed if pool.id not in told_ids)
        told_ids |= {pool.id for pool in unnamed}
        sets = {pool.id: _set_of(services, pool) for pool in unnamed}
        doomed = tuple(pool for pool in unnamed if prune and sets[pool.id] is None)
        stays = [
            _stays(manifest, pool, sets[pool.id])
            for pool in unnamed
            if pool not in doomed and (set_name is None or sets[pool.id] != set_name)
        ]
        changed = replace(manifest, unnamed=doomed, warnings=[*manifest.warnings, *stays])
        result.append(changed)
    return result


def _set_of(services: Services, pool: Pool) -> str | None:
    member = services.store.get(SetMember, member_id("pool", pool.id))
    return member.set_name if member is not None and member.made_at == pool.created_at else None


def _stays(document: DesiredPools, pool: Pool, set_name: str | None) -> tuple[tuple[str | int, ...], str]:
    text = f"Pool {pool.name} is not in it and stays: remove it by its name, or apply with prune."
    if set_name is not None:
        text = f"Pool {pool.name} is not in it and stays: it belongs to the set {set_name}."
    return (*document.path, "privateNodes"), text
