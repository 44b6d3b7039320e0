"""Create a node claim: validate, then the record, its name, its quota and its operation in one transaction."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from stockyard.domain.nodes.node_types import NodeType
from stockyard.domain.nodes.records import NewClaim
from stockyard.domain.platform import is_shared
from stockyard.domain.pools.records import cluster_claim
from stockyard.domain.records import Cluster, Name, NodeClaim
from stockyard.domain.values import ids
from stockyard.domain.values.requirements import NODE_TYPE
from stockyard.errors import Conflict, InUse, InvalidInput, NotFound
from stockyard.lifecycle.nodes.node_claim import MOVES
from stockyard.lifecycle.nodes.node_phases import CREATE_NODE
from stockyard.lifecycle.operation import new_operation
from stockyard.operations.engine.advance import change_writes
from stockyard.operations.engine.find import find_cluster
from stockyard.operations.node_providers.allowed_types import allowed_types
from stockyard.operations.node_providers.catalog import Catalog, load
from stockyard.operations.node_providers.type_names import check_type_names
from stockyard.operations.quotas.network_room import check_network_room
from stockyard.operations.quotas.node_claims import check_claims_room, claim_quota_writes, quota_refusal
from stockyard.operations.services import Services
from stockyard.ports import Create, Write
from stockyard.scheduling.reading import Reader

MOST_BYTES = 64 * 1024
"""Of a claim's specification as JSON. Every pass of the scheduler reads the claims that wait."""


def create_claim(services: Services, request: NewClaim, actor: str, id: str | None = None) -> NodeClaim:
    """The claim, waiting for the scheduler.

    ``id`` is given by a request with an ``Idempotency-Key``: the same in every try, so that a second try finds the
    first one's claim. Raises ``InvalidInput``, ``InUse`` for a name that is taken, ``QuotaExceeded``.
    """
    if id is not None and (existing := services.store.get(NodeClaim, id)) is not None:
        return existing
    draft = draft_of(services, request, actor, id)
    _check_network(services, draft.cluster_id)
    claim, writes = acceptance(services, draft, actor)
    quotas = claim_quota_writes(services, request.provider_ref, actor, 1)
    try:
        services.store.commit(*quotas, *writes)
    except Conflict as conflict:
        if conflict.index is not None and conflict.index < len(quotas):
            raise quota_refusal(quotas, conflict.index) from conflict
        if conflict.index == len(quotas):
            existing = services.store.get(NodeClaim, claim.id) if id is not None else None
            if existing is not None:
                return existing
            raise InUse(f"There is a node claim called {claim.name}.") from conflict
        raise
    return claim


def check_creation(services: Services, request: NewClaim, actor: str) -> None:
    """Refuse what ``create_claim`` would refuse when it writes: ``QuotaExceeded``, ``InUse``."""
    check_claims_room(services, [request.provider_ref], actor)
    _check_network(services, _cluster_id(services, request))
    if request.name and services.store.get(Name, f"node-claim/{request.name}") is not None:
        raise InUse(f"There is a node claim called {request.name}.")


def _check_network(services: Services, cluster_id: str) -> None:
    """``QuotaExceeded`` where the network of the cluster takes no further node."""
    cluster = services.store.get(Cluster, cluster_id) if cluster_id else None
    if cluster is not None:
        check_network_room(services, cluster, 1)


def acceptance(
    services: Services, draft: NodeClaim, actor: str, *, adopting: bool = False
) -> tuple[NodeClaim, list[Write]]:
    """A new claim and the writes that make it, its name first; the quotas that it counts for are not among them.
    ``adopting``: its machine is there already."""
    procedure, now = services.procedure(CREATE_NODE), draft.created_at
    operation = new_operation(services.new_id(ids.OPERATION), procedure, draft, actor, now)
    claim, operation, messages = change_writes(services, actor, MOVES.accept(draft, operation, now, adopting=adopting))
    name = Name(f"node-claim/{claim.name}", claim.id)
    entries = [Create(cluster_claim(claim.cluster_id, claim.pool, claim.id, now))] if claim.cluster_id else []
    return claim, [Create(name), Create(claim), Create(operation), *entries, *messages]


def draft_of(services: Services, request: NewClaim, actor: str, id: str | None) -> NodeClaim:
    """The record of a new claim before anything is written. Raises ``InvalidInput``."""
    size = len(json.dumps(request.spec(), ensure_ascii=False).encode())
    if size > MOST_BYTES:
        raise InvalidInput.at("", f"A node claim has at most {MOST_BYTES} bytes as JSON; this one has {size}.")
    claim_id = id or services.new_id(ids.NODE_CLAIM)
    now = services.now()
    catalog = load(services)
    cluster_id = _cluster_id(services, request)
    if request.strict and request.provider_ref and request.provider_ref not in catalog.providers:
        raise InvalidInput.at("/provider", f"There is no node provider {request.provider_ref}.")
    check_type_names(catalog, request.provider_ref, request.requirements)
    requirements = (*request.requirements, *_type_requirement(services, catalog, request))
    draft = NodeClaim(
        id=claim_id,
        name=request.name or f"claim-{claim_id.rpartition('_')[2].lower()}",
        created_at=now,
        updated_at=now,
        **{**request.spec(), "requirements": requirements},
        cluster_id=cluster_id,
        created_by=actor,
    )
    try:
        # The scheduler must be able to read it. Forms are checked before; this holds for every way in.
        Reader().request(draft.requirements, draft.resources)
    except ValueError as error:
        raise InvalidInput.at("/requirements", str(error)) from None
    return draft


def _cluster_id(services: Services, request: NewClaim) -> str:
    if not request.cluster_ref:
        return ""
    try:
        cluster = find_cluster(services, request.cluster_ref)
    except NotFound:
        if request.strict:
            raise InvalidInput.at("/cluster", f"There is no cluster {request.cluster_ref}.") from None
        return ""
    if cluster.status == "deleting":
        raise InvalidInput.at("/cluster", f"Cluster {cluster.name} is being deleted.")
    return cluster.id


def _type_requirement(services: Services, catalog: Catalog, request: NewClaim) -> tuple[dict[str, Any], ...]:
    """The requirement that a named type becomes."""
    if not request.type_ref:
        return ()
    types = _types_named(catalog, request)
    if not types and request.strict:
        raise InvalidInput.at("/type", f"There is no node type {request.type_ref}.")
    if types and request.strict and request.provider_ref not in ("", types[0].provider):
        raise InvalidInput.at("/type", f"Node type {types[0].name} is not one of provider {request.provider_ref}.")
    if len(types) > 1:
        candidates = ", ".join(sorted(node_type.name for node_type in types))
        raise InvalidInput.at("/type", f"{request.type_ref} may be any of {candidates}.")
    if types and request.strict and types[0].unserved is not None:
        raise InvalidInput.at("/type", f"No node of {types[0].name} can be made yet: {types[0].unserved}.")
    name = types[0].name if types else request.type_ref
    allowed = allowed_types(services)
    if types and allowed is not None and not {name, f"{types[0].provider}.*"} & set(allowed):
        raise InvalidInput.at("/type", f"Node type {name} is not allowed here.")
    return ({"key": NODE_TYPE, "operator": "In", "values": [name]},)


def _types_named(catalog: Catalog, request: NewClaim) -> Sequence[NodeType]:
    exact = catalog.node_types.get(request.type_ref)
    if exact is not None:
        return [exact]
    bare = [
        node_type
        for node_type in catalog.node_types.values()
        if node_type.bare == request.type_ref and request.provider_ref in ("", node_type.provider)
    ]
    # What the platform shares does not make a tenant's own names ambiguous.
    return [node_type for node_type in bare if not is_shared(catalog.providers[node_type.provider])] or bare
