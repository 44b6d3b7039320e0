"""Nodes of sources whose vendor has to be asked whether a machine is still as it would be made: asked once a day, and
when the template of the provider has moved."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import replace
from datetime import datetime, timedelta

from stockyard.domain.records import NodeClaim, NodeProvider
from stockyard.domain.values import times
from stockyard.errors import Conflict
from stockyard.lifecycle.nodes.drift import ASKED_REASONS, MACHINE, MOVED, note_drift
from stockyard.lifecycle.nodes.node_phases import MACHINE_PHASE
from stockyard.operations.engine.advance import Fence
from stockyard.operations.node_claims.drift import note
from stockyard.operations.node_claims.lost_machines import has_machine
from stockyard.operations.node_claims.work import node_work
from stockyard.operations.node_providers.catalog import source_of
from stockyard.operations.services import Services
from stockyard.ports import Replace

MOST = 20
"""Machines that one sweep of a place compares: a comparison may take its vendor a while. The others are next."""
EVERY = timedelta(days=1)
MOST_WORDS = 500
"""Characters of what a vendor says that differs."""


def to_compare(
    services: Services, claims: Iterable[NodeClaim], providers: Mapping[str, NodeProvider]
) -> list[tuple[NodeClaim, str]]:
    """Claims of ``providers`` (by id) to compare now, the one first that has waited longest, with the fingerprint of
    the template that each is compared with; at most ``MOST``."""
    fingerprints: dict[str, str] = {}
    for provider in providers.values():
        kind_source = services.node_sources.get(provider.kind)
        source = source_of(services, provider) if kind_source is not None and kind_source.compares else None
        if source is not None and (fingerprint := source.template_fingerprint(provider)) is not None:
            fingerprints[provider.id] = fingerprint
    if not fingerprints:
        return []
    now = services.clock.now()
    due = [
        (claim, fingerprints[claim.placement.provider_id])
        for claim in claims
        if claim.placement is not None and claim.placement.provider_id in fingerprints and has_machine(claim)
    ]
    due = [(claim, fingerprint) for claim, fingerprint in due if _is_due(claim, fingerprint, now)]
    return sorted(due, key=lambda entry: (entry[0].compared_at or "", entry[0].id))[:MOST]


def compare_machine(services: Services, claim_id: str, fingerprint: str) -> str | None:
    """Ask whether the claim's machine is as its provider would make it, and say so on the claim as ``NotDrifted``.
    What changed on the claim since it was last said; None for nothing. Raises ``VendorError``: then nothing is noted,
    and the next sweep asks again."""
    claim = services.store.get(NodeClaim, claim_id)
    if claim is None or not has_machine(claim):
        return None
    source, work = node_work(services, claim, MACHINE_PHASE, Fence.of(claim))
    if not source.compares:
        return None
    words = source.drift(work)
    move = source.moved(work) if words else None
    words = " ".join(filter(None, (move, words)))[:MOST_WORDS] or None
    compared = replace(claim, compared_at=services.now(), compared_as=fingerprint, machine_drift=words)
    reasons = (() if words is None else (MACHINE,)) if move is None else (MOVED,)
    noted = note_drift(compared, reasons, services.now(), ASKED_REASONS)
    if noted is not None:
        return note(services, *noted)
    # Neither news for anybody nor work on the claim: ``updated_at`` stays. Who has changed it meanwhile was first.
    with suppress(Conflict):
        services.store.commit(Replace(replace(compared, version=claim.version + 1)))
    return None


def _is_due(claim: NodeClaim, fingerprint: str, now: datetime) -> bool:
    if claim.compared_at is None or claim.compared_as != fingerprint:
        return True
    return now - times.from_text(claim.compared_at) >= EVERY
