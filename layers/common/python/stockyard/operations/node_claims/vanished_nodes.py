"""Notes on claims whose Node object is gone or there again."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from dataclasses import replace

from stockyard.domain.records import NodeClaim
from stockyard.errors import Conflict
from stockyard.lifecycle.change import Transition
from stockyard.operations.engine.advance import WORKFLOW_ACTOR
from stockyard.operations.engine.tell import tell
from stockyard.operations.services import Services
from stockyard.ports import Replace


def note_nodes(services: Services, notes: Iterable[tuple[NodeClaim, Transition | None]]) -> None:
    """Write changed claims, and tell of each that has a transition. Of one that was changed meanwhile it is said
    later."""
    for claim, transition in notes:
        changed = replace(claim, sequence=claim.sequence + 1) if transition is not None else claim
        events = tell(services, WORKFLOW_ACTOR, changed, transition) if transition is not None else []
        with suppress(Conflict):
            services.store.commit(Replace(changed), *events)
