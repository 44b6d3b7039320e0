"""Create a node claim: validate, then the record, its name, its quota and its operation in one transaction."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from stockyard.domain import ids
from stockyard.domain.node_types import NodeKind
from stockyard.domain.platform import is_shared
from stockyard.domain.records import Name, NodeClaim
from stockyard.domain.requirements import NODE_TYPE
from stockyard.errors import Conflict, FieldProblem, InUse, InvalidInput, NotFound
from stockyard.lifecycle import claim as lifecycle
from stockyard.lifecycle import node_phases
from stockyard.lifecycle.change import Happening
from stockyard.lifecycle.claim import ClaimChange
from stockyard.lifecycle.operation import new_operation
from stockyard.operations.advance import find
from stockyard.operations.allowed_types import allowed_types
from stockyard.operations.claim_quotas import claim_quota_writes, quota_refusal
from stockyard.operations.claims import change_writes
from stockyard.operations.node_catalog import Catalog, load
from stockyard.operations.services import Services
from stockyard.ports import Create
from stockyard.scheduling.reading import Reader


@dataclass(frozen=True, slots=True)
class NewClaim:
    """A claim whose form was checked. ``strict``: what it refers to must exist; otherwise it waits until it does."""

    cluster_ref: str = ""
    name: str = ""
    """Empty: one is made."""
    provider_ref: str = ""
    type_ref: str = ""
    """The one node type it wants; empty: any that fits."""
    requirements: tuple[dict[str, Any], ...] = ()
    resources: dict[str, str] = field(default_factory=dict)
    properties: dict[str, str] = field(default_factory=dict)
    taints: tuple[dict[str, Any], ...] = ()
    startup_taints: tuple[dict[str, Any], ...] = ()
    kubelet_args: dict[str, str] = field(default_factory=dict)
    control_plane: bool = False
    power: str = "On"
    priority: int = 0
    display_name: str = ""
    form: str = "stockyard"
    document: dict[str, Any] = field(default_factory=dict)
    labels: dict[str, str] = field(default_factory=dict)
    annotations: dict[str, str] = field(default_factory=dict)
    strict: bool = True


def create_claim(services: Services, wanted: NewClaim, actor: str, id: str | None = None) -> NodeClaim:
    """The claim, waiting for the scheduler.

    ``id`` is given by a request with an ``Idempotency-Key``: the same in every try, so that a second try finds the
    first one's claim. Raises ``InvalidInput``, ``InUse`` for a name that is taken, ``QuotaExceeded``.
    """
    if id is not None and (begun := services.store.get(NodeClaim, id)) is not None:
        return begun
    change = _accepted(services, wanted, actor, id)
    claim, operation, told = change_writes(services, actor, change)
    quotas = claim_quota_writes(services, wanted.provider_ref, actor, 1)
    name = Name(f"node-claim/{claim.name}", claim.id)
    try:
        services.store.commit(*quotas, Create(name), Create(claim), Create(operation), *told)
    except Conflict as conflict:
        if conflict.index is not None and conflict.index < len(quotas):
            raise quota_refusal(quotas, conflict.index) from conflict
        if conflict.index == len(quotas):
            begun = services.store.get(NodeClaim, claim.id) if id is not None else None
            if begun is not None:
                return begun
            raise InUse(f"There is a node claim called {claim.name}.") from conflict
        raise
    return claim


def draft_of(services: Services, wanted: NewClaim, actor: str, id: str | None) -> NodeClaim:
    """The record of a new claim before anything is written. Raises ``InvalidInput``."""
    claim_id = id or services.new_id(ids.NODE_CLAIM)
    now = services.now()
    catalog = load(services)
    draft = NodeClaim(
        id=claim_id,
        name=wanted.name or f"claim-{claim_id.rpartition('_')[2].lower()}",
        created_at=now,
        updated_at=now,
        cluster_ref=wanted.cluster_ref,
        cluster_id=_cluster_id(services, wanted),
        provider_ref=_provider(catalog, wanted),
        display_name=wanted.display_name,
        requirements=(*wanted.requirements, *_type_wish(services, catalog, wanted)),
        resources=wanted.resources,
        properties=wanted.properties,
        taints=wanted.taints,
        startup_taints=wanted.startup_taints,
        kubelet_args=wanted.kubelet_args,
        control_plane=wanted.control_plane,
        power=wanted.power,
        priority=wanted.priority,
        form=wanted.form,
        document=wanted.document,
        labels=wanted.labels,
        annotations=wanted.annotations,
        created_by=actor,
    )
    _readable(draft)
    return draft


def _accepted(services: Services, wanted: NewClaim, actor: str, id: str | None) -> ClaimChange:
    draft = draft_of(services, wanted, actor, id)
    now = draft.created_at
    operation = new_operation(services.new_id(ids.OPERATION), node_phases.CREATE_NODE, draft.id, actor, now)
    change = lifecycle.accept(draft, operation, now)
    started = Happening("Operation", None, "running", "Started", operation.kind)
    return ClaimChange(change.claim, change.operation, (*change.happenings, started))


def _refused(pointer: str, detail: str) -> InvalidInput:
    return InvalidInput(detail, errors=[FieldProblem(pointer, detail)])


def _readable(draft: NodeClaim) -> None:
    """The scheduler must be able to read it. Forms are checked before; this holds for every way in."""
    try:
        Reader().wanted(draft.requirements, draft.resources)
    except ValueError as error:
        raise _refused("/requirements", str(error)) from None


def _cluster_id(services: Services, wanted: NewClaim) -> str:
    if not wanted.cluster_ref:
        return ""
    try:
        cluster = find(services, wanted.cluster_ref)
    except NotFound:
        if wanted.strict:
            raise _refused("/cluster", f"There is no cluster {wanted.cluster_ref}.") from None
        return ""
    if cluster.status == "deleting":
        raise _refused("/cluster", f"Cluster {cluster.name} is being deleted.")
    return cluster.id


def _provider(catalog: Catalog, wanted: NewClaim) -> str:
    if wanted.strict and wanted.provider_ref and wanted.provider_ref not in catalog.providers:
        raise _refused("/provider", f"There is no node provider {wanted.provider_ref}.")
    return wanted.provider_ref


def _type_wish(services: Services, catalog: Catalog, wanted: NewClaim) -> tuple[dict[str, Any], ...]:
    """The requirement that a named type is."""
    if not wanted.type_ref:
        return ()
    named = _named(catalog, wanted)
    if not named and wanted.strict:
        raise _refused("/type", f"There is no node type {wanted.type_ref}.")
    if named and wanted.strict and wanted.provider_ref not in ("", named[0].provider):
        raise _refused("/type", f"Node type {named[0].name} is not one of provider {wanted.provider_ref}.")
    if len(named) > 1:
        others = ", ".join(sorted(kind.name for kind in named))
        raise _refused("/type", f"{wanted.type_ref} may be any of {others}.")
    name = named[0].name if named else wanted.type_ref
    allowed = allowed_types(services)
    if named and allowed is not None and not {name, f"{named[0].provider}.*"} & set(allowed):
        raise _refused("/type", f"Node type {name} is not allowed here.")
    return ({"key": NODE_TYPE, "operator": "In", "values": [name]},)


def _named(catalog: Catalog, wanted: NewClaim) -> Sequence[NodeKind]:
    exact = catalog.kinds.get(wanted.type_ref)
    if exact is not None:
        return [exact]
    bare = [
        kind
        for kind in catalog.kinds.values()
        if kind.bare == wanted.type_ref and wanted.provider_ref in ("", kind.provider)
    ]
    # What the platform shares does not make a tenant's own names ambiguous.
    return [kind for kind in bare if not is_shared(catalog.providers[kind.provider])] or bare
