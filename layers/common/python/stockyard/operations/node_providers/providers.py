"""Node providers: add, change, remove."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import fields as fields_of
from dataclasses import replace
from datetime import timedelta
from itertools import islice
from typing import Any

from stockyard.domain.nodes import provider_kinds
from stockyard.domain.nodes.declared_types import declared, provider_state
from stockyard.domain.nodes.manifests import ProviderDocument
from stockyard.domain.platform import is_shared, provider_name, provider_prefix
from stockyard.domain.records import (
    Counter,
    Fact,
    Name,
    NodeClaim,
    NodeEnvironment,
    NodeProvider,
    Operation,
)
from stockyard.domain.values import ids, times
from stockyard.domain.values.notes import remark
from stockyard.domain.values.pointers import pointer
from stockyard.errors import (
    Conflict,
    FieldProblem,
    InUse,
    InvalidInput,
    PreconditionFailed,
    StockyardError,
)
from stockyard.operations.cloud_accounts.of_provider import account_number, account_of, fault, reference_of
from stockyard.operations.listing import every
from stockyard.operations.node_providers import limited_types
from stockyard.operations.node_providers.catalog import source_of
from stockyard.operations.node_providers.template_moves import fact_id
from stockyard.operations.node_providers.trials import trial_faults
from stockyard.operations.node_providers.visible import claims_of, find_own, users, uses
from stockyard.operations.quotas.limits import check_room, limit_of, refusal
from stockyard.operations.services import Services
from stockyard.ports import Add, Create, Remove, Replace
from stockyard.ports.clusters import Finding

QUOTA = "node_providers"
_WRITES = 90
"""Removals in one transaction, which takes a hundred."""
LEAVING_SECONDS = 60
"""How long a removal may take; one that ends in the middle is over by then. The API's functions live half as long."""


def draft(services: Services, document: ProviderDocument, actor: str = "", id: str | None = None) -> NodeProvider:
    """The record that the document asks for, not stored yet."""
    now = services.now()
    phase, reason, message = provider_state(document.kind)
    return NodeProvider(
        **{part.name: getattr(document, part.name) for part in fields_of(document) if part.name != "block"},
        id=id or services.new_id(provider_prefix(services.tenant)),
        spec={document.kind: document.block},
        created_at=now,
        updated_at=now,
        phase=phase,
        reason=reason,
        message=message,
        created_by=actor,
    )


def check_provider(
    services: Services, provider: NodeProvider, at: Sequence[str | int] = ("spec",)
) -> list[FieldProblem]:
    """Faults of the provider beyond its form: its cloud account or the cluster that makes its machines, once its kind
    is built, and what its source finds. The offers of a region that
    nobody has named before are waited for a while; an implicit provider's cluster has named its region."""
    reference = reference_of(provider) if provider_kinds.kind(provider.kind).built else None
    if reference is not None and is_shared(provider):
        text = "cloud accounts belong to tenants, so a shared provider cannot work in one"
        return [FieldProblem(pointer(*at, *reference.field), text)]
    problem = fault(services, provider) if reference is not None else None
    if reference is not None and problem is not None:
        return [FieldProblem(pointer(*at, *reference.field), problem)]
    account = account_of(services, provider) if reference is not None else None
    source = source_of(services, provider)
    sheet = source.sheet(provider) if source is not None and not provider.implicit else None
    if sheet is not None:
        services.price_requests.wait(sheet)
    findings = source.inspect(provider, account) if source else ()
    return [FieldProblem(_path(finding, at), finding.detail) for finding in findings if not finding.warning]


def finding_remarks(
    services: Services, provider: NodeProvider, at: Sequence[str | int] = ("spec",)
) -> list[dict[str, Any]]:
    """Warnings of the provider's source about its document, which refuse nothing. Nothing of one whose account is not
    there."""
    source = source_of(services, provider)
    reference = reference_of(provider) if source is not None else None
    if source is None or (reference is not None and (is_shared(provider) or fault(services, provider) is not None)):
        return []
    account = account_of(services, provider) if reference is not None else None
    warnings = [finding for finding in source.inspect(provider, account) if finding.warning]
    return [remark(_path(finding, at), finding.detail) for finding in warnings]


def plan_remarks(
    services: Services, provider: NodeProvider, at: Sequence[str | int] = ("spec",)
) -> list[dict[str, Any]]:
    """Remarks of a dry run: warnings of the provider's source, and which hosts of the tenant's own may be wiped and
    installed; each once."""
    warnings = finding_remarks(services, provider, at)
    return [*warnings, *(entry for entry in host_remarks(services, provider, at) if entry not in warnings)]


def host_remarks(
    services: Services, provider: NodeProvider, at: Sequence[str | int] = ("spec",)
) -> list[dict[str, Any]]:
    """Remarks of a dry run on which hosts of the tenant's own may be wiped and installed, each by its name; none where
    machines are made."""
    source = source_of(services, provider)
    findings = source.hosts_of_types(provider) if source is not None else ()
    return [remark(_path(finding, at), finding.detail) for finding in findings]


def _path(finding: Finding, at: Sequence[str | int]) -> str:
    """Pointer of a finding where the document's block is at that place; its properties stand beside the block."""
    if finding.pointer.startswith("/properties/"):
        return pointer(*at[:-1]) + finding.pointer
    return pointer(*at) + finding.pointer.removeprefix("/spec")


def refuse_faults(faults: Sequence[FieldProblem]) -> None:
    """``InvalidInput`` with the faults, if there are any."""
    if faults:
        raise InvalidInput("; ".join(fault.detail for fault in faults[:3]), errors=faults)


def plan_creation(services: Services, document: ProviderDocument) -> NodeProvider:
    """Provider that ``create_provider`` would write, by the same checks."""
    provider = draft(services, document)
    refuse_faults(check_provider(services, provider) or trial_faults(services, provider))
    if services.store.get(Name, provider_name(services.tenant, provider.name)) is not None:
        raise InUse(f"There is a node provider called {provider.name}.")
    check_room(services, QUOTA)
    return provider


def create_provider(
    services: Services,
    document: ProviderDocument,
    actor: str,
    id: str | None = None,
    *,
    implicit: bool = False,
    tried: bool = False,
) -> NodeProvider:
    """A new provider; ``implicit`` when it is made for node groups of clusters, ``tried`` when its vendor has been
    asked for faults before. ``id`` is the same in every try of one request: a second try finds what the first one made.

    Raises ``InvalidInput``, ``QuotaExceeded``, and ``InUse`` when another provider has the name.
    """
    if id is not None and (existing := services.store.get(NodeProvider, id)):
        return existing
    provider = replace(draft(services, document, actor, id), implicit=implicit)
    refuse_faults(check_provider(services, provider) or ([] if tried else trial_faults(services, provider)))
    # How many node groups there may be, quotas of their own say.
    limit = None if implicit else limit_of(services, QUOTA)
    name = Name(provider_name(services.tenant, provider.name), provider.id)
    try:
        services.store.commit(Create(name), Add(f"quota/{QUOTA}", 1, limit=limit), Create(provider))
    except Conflict as conflict:
        if conflict.index == 0:
            raise InUse(f"There is a node provider called {provider.name}.") from conflict
        if conflict.index == 1:
            raise refusal(QUOTA, limit) from conflict
        raise
    return provider


def change_provider(
    services: Services,
    id: str,
    version: int,
    fields: dict[str, Any],
    actor: str,
    request_id: str,
    *,
    tried: bool = False,
) -> NodeProvider:
    """The changed provider, with its audit record; ``generation`` rises with it.

    Raises ``PreconditionFailed`` unless it stands at ``version``, ``InvalidInput``, and ``InUse`` for a node type that
    would go while claims have nodes of it, and for another region or account while it has something in this one;
    ``Forbidden`` for a tenant that means a shared one.
    """
    provider = find_own(services, id)
    changed = changed_provider(services, provider, version, fields, tried=tried)
    limits = limited_types.becomes_limited(provider, changed)
    message = f"Changed: {', '.join(sorted(fields)) or 'nothing'}."
    audit = services.audit_record(actor, "ChangeNodeProvider", provider.id, request_id, message)
    if limits:
        # Before anybody can ask the new limit for a slot, it has to know the nodes that are there.
        limited_types.take_over_all(services, changed)
    try:
        services.store.commit(Replace(changed), Create(audit))
    except Conflict as conflict:
        raise PreconditionFailed("The node provider was changed by someone else just now.") from conflict
    if limits:
        # Some may have come in between. The change is made by now: what cannot be counted here, the sweep counts.
        with suppress(StockyardError):
            limited_types.take_over_all(services, changed)
    return changed


def changed_provider(
    services: Services, provider: NodeProvider, version: int, fields: dict[str, Any], *, tried: bool = False
) -> NodeProvider:
    """Provider that ``change_provider`` would write, by the same checks."""
    if provider.version != version:
        raise PreconditionFailed(f"The node provider is at version {provider.version}, not {version}.")
    phase, reason, message = provider_state(provider.kind)
    changed: NodeProvider = replace(
        provider,
        **fields,
        phase=phase,
        reason=reason,
        message=message,
        updated_at=services.now(),
        generation=provider.generation + 1,
        version=version + 1,
    )
    refuse_faults(check_provider(services, changed) or ([] if tried else trial_faults(services, changed)))
    removed = {part.name for part in declared(provider)} - {part.name for part in declared(changed)}
    if removed and not provider_kinds.kind(provider.kind).discovers:
        occupied = [used for used in claims_of(services, provider) if _bare(used[1], provider) in removed]
        if occupied:
            raise InUse(f"Node types that would be removed have nodes: {_names(provider, occupied)}.")
    if _moves_away(services, provider, changed):
        _check_empty(services, provider)
    return changed


def _moves_away(services: Services, provider: NodeProvider, changed: NodeProvider) -> bool:
    """Whether machines of the changed provider would be looked for somewhere else. A source whose nodes are made by
    runs keeps with each where it was made."""
    source = services.node_sources.get(provider.kind)
    if source is not None and source.has_topology:
        return source.location(changed) != source.location(provider)
    if source is None or source.makes_by_runs:
        return False
    return account_number(services, changed) != account_number(services, provider)


def _check_empty(services: Services, provider: NodeProvider) -> None:
    """``InUse`` while the provider has something where it is: what there is, is ended where the document says."""
    refusal = f"Region and cloud account of node provider {provider.name} stay as long as"
    placed = [used for used in claims_of(services, provider) if used[1].placement]
    if placed:
        raise InUse(f"{refusal} it has nodes there: {_names(provider, placed)}.")
    clusters = _set_up_for(services, provider)
    if clusters:
        raise InUse(f"{refusal} it is set up for {clusters}. The sweep ends that when no claim needs it.")


def _bare(claim: NodeClaim, provider: NodeProvider) -> str:
    return claim.placement.type.removeprefix(f"{provider.name}.") if claim.placement else ""


def check_unused(services: Services, provider: NodeProvider) -> None:
    """``InUse`` when claims or what was set up for clusters still need the provider; it names them."""
    used = claims_of(services, provider)
    if used:
        raise InUse(f"Node provider {provider.name} is used by {_names(provider, used)}.")
    clusters = _set_up_for(services, provider)
    if clusters:
        raise InUse(f"Node provider {provider.name} is set up for {clusters}.")


def _set_up_for(services: Services, provider: NodeProvider) -> str:
    clusters = (
        (user.tenant, environment.cluster_id)
        for user in users(services, provider)
        for environment in every(user.store, NodeEnvironment, where={"provider_id": provider.id})
    )
    return ", ".join(_name(provider, *user_and_cluster) for user_and_cluster in islice(clusters, 10))


def _names(provider: NodeProvider, claims: Sequence[tuple[str, NodeClaim]]) -> str:
    more = f" and {len(claims) - 10} more" if len(claims) > 10 else ""
    return ", ".join(_name(provider, tenant, claim.name) for tenant, claim in claims[:10]) + more


def _name(provider: NodeProvider, tenant: str, name: str) -> str:
    """Name of a user of the provider, with the tenant for a shared provider."""
    return f"{tenant}/{name}" if is_shared(provider) else name


def _leaving(services: Services, provider: NodeProvider) -> NodeProvider:
    """The provider, which takes no claims from now on, and which nobody uses: a claim that came meanwhile is seen."""
    until = times.to_text(services.clock.now() + timedelta(seconds=LEAVING_SECONDS))
    leaving = replace(provider, removing_until=until, version=provider.version + 1)
    try:
        services.store.commit(Replace(leaving))
    except Conflict as conflict:
        raise PreconditionFailed("The node provider was changed by someone else just now.") from conflict
    try:
        check_unused(services, leaving)
    except InUse:
        with suppress(Conflict):
            services.store.commit(Replace(replace(leaving, removing_until="", version=leaving.version + 1)))
        raise
    return leaving


def delete_provider(services: Services, id_or_name: str, actor: str) -> Operation:
    """Remove a provider that nobody uses. The operation is over when it is returned. ``InUse`` names the users;
    ``Forbidden`` for a tenant that means a shared one."""
    provider = find_own(services, id_or_name)
    check_unused(services, provider)
    provider = _leaving(services, provider)
    now = services.now()
    operation = Operation(
        services.new_id(ids.OPERATION),
        "delete_node_provider",
        provider.id,
        "succeeded",
        (),
        now,
        now,
        actor,
        provider.name,
    )
    services.store.commit(
        Remove(NodeProvider, provider.id, version=provider.version),
        Remove(Name, provider_name(services.tenant, provider.name)),
        Add(f"quota/{QUOTA}", -1),
        Create(operation),
    )
    removals = [Remove(Counter, counter) for counter in limited_types.counters_of(services, [provider]).values()]
    removals += [Remove(Fact, use.id) for use in uses(services, provider)]
    looks = services.store.get(Fact, fact_id(provider))
    removals += [Remove(Fact, looks.id)] if looks is not None else []
    for start in range(0, len(removals), _WRITES):
        services.store.commit(*removals[start : start + _WRITES])
    return operation
