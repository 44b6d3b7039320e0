"""The record of a cluster's disruption as it is written, and decisions in words."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

from stockyard.domain.pools.disruption_records import ClusterDisruption
from stockyard.lifecycle.change import Transition
from stockyard.operations.engine.advance import WORKFLOW_ACTOR
from stockyard.operations.engine.tell import tell
from stockyard.operations.fleet.disruption.fleet import View
from stockyard.operations.services import Services
from stockyard.ports import Check, Replace
from stockyard.scheduling.consolidation.model import Decision

ABOUT = "ClusterDisruption"
"""What events of decisions are about."""
DECIDED, STARTED, DISRUPTED, ABANDONED = "DisruptionDecided", "Replacing", "Disrupted", "DisruptionAbandoned"
REMOVING = "Removing"
"""As ``STARTED``, of nodes that only leave: nothing comes in their place."""
REPAIRED, NOT_READY = "Repaired", "NotReady"


def write(
    services: Services,
    record: ClusterDisruption,
    event: tuple[str, str] | None = None,
    checks: Sequence[Check] = (),
    /,
    **fields: Any,
) -> ClusterDisruption:
    """The record with these fields, written at its version; ``event`` is the reason and the message of what is told of
    it. Raises ``Conflict`` when somebody else was first, or one of the ``checks`` does not hold."""
    stamp: dict[str, Any] = {
        "version": record.version + 1,
        "updated_at": services.now(),
        "sequence": record.sequence + (event is not None),
    }
    changed: ClusterDisruption = replace(record, **{**fields, **stamp})
    events = []
    if event is not None:
        moved = Transition(ABOUT, record.state, changed.state, *event)
        # The cluster counts its own events.
        events = tell(services, WORKFLOW_ACTOR, changed, moved, subject_of(record.id))
    services.store.commit(Replace(changed), *checks, *events)
    return changed


def subject_of(cluster_id: str) -> str:
    """Subject of the events of a cluster's decisions."""
    return f"disruption/{cluster_id}"


def few(names: Iterable[str]) -> str:
    """The first of the names, in words."""
    listed = list(names)
    return ", ".join(listed[:3]) + (" and others" if len(listed) > 3 else "")


def words(decision: Decision) -> str:
    """Words for what a decision does."""
    names = few(node.name for node in decision.nodes)
    if decision.by_pools:
        return f"{decision.reason}: {len(decision.nodes)} nodes go ({names}); their pools make others in their place."
    types = dict.fromkeys(replacement.claim.row.node_type.name for replacement in decision.replacements)
    coming = f"{len(decision.replacements)} come" + (f" ({few(types)})" if types else "")
    return (
        f"{decision.reason}: {len(decision.nodes)} nodes go ({names}), {coming}; "
        f"{decision.price_before:.4f} becomes {decision.price_after:.4f} USD an hour."
    )


def claim_ids(view: View, decision: Decision) -> tuple[str, ...]:
    """The ids of the claims that go."""
    return tuple(view.claims[node.name].id for node in decision.nodes)
