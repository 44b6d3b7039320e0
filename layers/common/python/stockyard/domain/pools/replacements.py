"""Nodes that come in the place of others, and do not come."""

from __future__ import annotations

from collections.abc import Iterable

from stockyard.domain.nodes.records import NodeClaim
from stockyard.domain.pools.disruption_records import REPLACING, ClusterDisruption
from stockyard.domain.values.requirements import IN, NODE_TYPE


def failed_replacements(record: ClusterDisruption, claims: Iterable[NodeClaim]) -> dict[str, dict[str, str]]:
    """Failed claims of the decision that is being carried out, which were to come for it, by id. Where pools make what
    comes by themselves, these are their claims since the decision. See ``failure_of``."""
    if record.state != REPLACING or record.leaving:
        return {}
    listed = list(claims)
    pools = set() if record.replacements else {claim.pool for claim in listed if claim.id in record.nodes}
    return {
        claim.id: failure_of(claim)
        for claim in listed
        if claim.phase == "Failed"
        and (claim.id in record.replacements or (claim.pool in pools and claim.created_at >= record.decided_at))
    }


def failure_of(claim: NodeClaim) -> dict[str, str]:
    """Reason why a claim becomes no node, as ``message``, and the ``types`` that it could not be, with commas between:
    the one that it was placed on, or all that it names where it could be placed on none. The cloud's own words come
    first."""
    types = [claim.type_ref] if claim.type_ref else _named_types(claim)
    refusal = claim.last_refusal or ""
    message = claim.message if refusal in claim.message else f"{refusal} {claim.message}"
    return {"message": message, "types": ",".join(types)}


def _named_types(claim: NodeClaim) -> list[str]:
    lists = [
        entry["values"] for entry in claim.requirements if entry["key"] == NODE_TYPE and entry.get("operator") == IN
    ]
    # What a plan has narrowed the claim to comes last.
    return list(lists[-1]) if lists else []
