"""Change what a person may change of a claim."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from stockyard.domain.records import NodeClaim
from stockyard.errors import Conflict, IllegalTransition, PreconditionFailed
from stockyard.lifecycle.nodes.node_claim import MOVES, PENDING
from stockyard.operations.engine.find import find_claim
from stockyard.operations.engine.tell import tell
from stockyard.operations.services import Services
from stockyard.ports import Create, Replace


def change_claim(
    services: Services, id_or_name: str, version: int, fields: dict[str, Any], actor: str, request_id: str
) -> NodeClaim:
    """The changed claim, with its event and audit record. ``PreconditionFailed`` unless it stands at ``version``."""
    claim = find_claim(services, id_or_name)
    if claim.version != version:
        raise PreconditionFailed(f"The claim is at version {claim.version}, not {version}.")
    if "power" in fields and claim.phase != PENDING:
        raise IllegalTransition("The power of a node that is there is switched by POST /power.")
    stamped = {"updated_at": services.now(), "version": version + 1, "sequence": claim.sequence + 1}
    changed: NodeClaim = replace(claim, **{**fields, **stamped})
    message = f"Changed: {', '.join(sorted(fields))}."
    phase = MOVES.shown_status(claim)
    audit = services.audit_record(actor, "ChangeNodeClaim", claim.id, request_id, message)
    events = tell(services, actor, changed, MOVES.transition(phase, phase, "Changed", message))
    try:
        services.store.commit(Replace(changed), Create(audit), *events)
    except Conflict as conflict:
        raise PreconditionFailed("The claim was changed by someone else just now.") from conflict
    return changed
