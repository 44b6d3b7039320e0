"""Environments: what a provider sets up once for a cluster, before its first node there."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace

from stockyard.domain.nodes.zone_ids import by_name
from stockyard.domain.records import Cluster, NodeClaim, NodeEnvironment, NodeProvider
from stockyard.domain.values.conditions import Condition, with_condition
from stockyard.domain.values.requirements import NODE_TYPE, ZONE, Requirements
from stockyard.errors import Conflict, InsufficientCapacity, NodeCouldNotBeProvisioned, VendorError
from stockyard.operations.engine.advance import Fence
from stockyard.operations.engine.ledger import lines_of
from stockyard.operations.listing import every
from stockyard.operations.node_claims.environment_outputs import outputs_of, seal, unseal
from stockyard.operations.node_claims.environment_stages import note_stages
from stockyard.operations.node_claims.work import environment_id, environment_work, node_work
from stockyard.operations.node_providers.catalog import node_types_in
from stockyard.operations.node_providers.visible import named
from stockyard.operations.services import Services
from stockyard.ports import Check, Create, Outcome, Remove, Replace
from stockyard.ports.node_work import NodeWork
from stockyard.ports.nodes import NodeSource
from stockyard.scheduling.rules import lacks_image

PROVISIONED = "Provisioned"
LOOK_AGAIN = 15
NAMED = 3
"""Types that a message names."""


def ensure(services: Services, claim: NodeClaim, fence: Fence[NodeClaim]) -> Outcome:
    """The environment of the claim's cluster and provider, made by the first claim that needs it.

    ``InsufficientCapacity`` when it shows that no machine can stand in a zone that the claim asks for, and when the
    provider is on its way out: whoever removes one looks for its claims after having said so, and this comes later.
    """
    try:
        source, work = node_work(services, claim, "environment", fence)
    except NodeCouldNotBeProvisioned as gone:
        raise InsufficientCapacity(gone.detail) from gone
    if work.provider.is_leaving(services.now()):
        raise InsufficientCapacity(f"Node provider {work.provider.name} is being removed.")
    if work.cluster is None:
        return Outcome(True, "A node of no cluster needs no environment.")
    environment = work.environment or _start_environment(services, claim, work.provider.id, work.provider.name)
    if environment.removing:
        return Outcome(False, "Waiting until the environment that nobody needed is gone.", wait_seconds=LOOK_AGAIN)
    if environment.phase == "Available":
        environment = _refreshed(services, source, environment, work, fence)
        _check_zone(claim, source, work.provider, environment)
        _check_image(services, claim, source, work, environment)
        return Outcome(True, facts={"environment": environment.id})
    _, setting_up = environment_work(services, environment, work.cluster, fence.operation_id)
    try:
        outcome = source.prepare(setting_up)
    except VendorError:
        note_stages(services, source, setting_up)
        raise
    if outcome.done:
        environment = _available(services, environment, outcome)
    note_stages(services, source, setting_up)
    if outcome.done:
        _check_zone(claim, source, work.provider, environment)
        _check_image(services, claim, source, work, environment)
    return replace(outcome, facts={"environment": environment.id})


def _refreshed(
    services: Services, source: NodeSource, environment: NodeEnvironment, work: NodeWork, fence: Fence[NodeClaim]
) -> NodeEnvironment:
    """The environment with what was found anew, where that is due. Nodes that are there stay as they are.

    What cannot be found just now may stay old: the claim's machine is worth more, and the next claim looks again.
    """
    is_old = source.is_stale(environment, work.provider, services.clock.now())
    if not (is_old or environment.is_stale) or work.cluster is None:
        return environment
    _, setting_up = environment_work(services, environment, work.cluster, fence.operation_id)
    try:
        outcome = source.prepare(setting_up)
    except VendorError:
        note_stages(services, source, setting_up)
        return environment
    refreshed = _available(services, environment, outcome) if outcome.done else environment
    note_stages(services, source, setting_up)
    return refreshed


def _check_zone(claim: NodeClaim, source: NodeSource, provider: NodeProvider, environment: NodeEnvironment) -> None:
    """Nothing was refused that others could not have: the scheduler, which knows the zones now, looks elsewhere."""
    ids = source.zone_ids(provider, environment)
    zones = by_name(Requirements.of(claim.requirements), ids).get(ZONE)
    if zones is None or not source.has_topology:
        return
    why = source.out_of_zone(provider, environment, zones)
    if why:
        raise InsufficientCapacity(why)


def _check_image(
    services: Services, claim: NodeClaim, source: NodeSource, work: NodeWork, environment: NodeEnvironment
) -> None:
    """As ``_check_zone``: the scheduler knows by now for which architectures there are images. A claim of which nothing
    is left that a plan has narrowed it to fails, so that its pool plans anew."""
    if not source.needs_images or claim.placement is None:
        return
    provider = work.provider
    images = {provider.name: source.architectures(provider, environment)}
    # Of other providers' types nothing is said, so theirs are not looked up.
    known_types = {each.name: each for each in node_types_in(services, provider, work.account)}
    names = dict.fromkeys([claim.placement.type, *(option.type for option in claim.placement.options)])
    lacking = [name for name in names if name in known_types and lacks_image(known_types[name], images)]
    why = f"{provider.name} has no image for {', '.join(lacking[:NAMED])}, only for {', '.join(images[provider.name])}."
    if len(lacking) == len(names) and claim.pool and NODE_TYPE in Requirements.of(claim.requirements):
        raise NodeCouldNotBeProvisioned(why)
    if claim.placement.type in lacking:
        raise InsufficientCapacity(why)


def in_use(environment_id: str) -> Check:
    """Condition for a claim that begins to use an environment: it is there, and is not on its way out.

    Whoever removes one says so first and looks for its claims then: a claim that came before is seen, and one that
    comes later is refused by this.
    """
    return Check(NodeEnvironment, environment_id, {"phase": "Available", "removing": False})


def needed_by(claim: NodeClaim, providers: Mapping[str, str]) -> frozenset[str]:
    """The environments that the claim refers to; ``providers`` are ids by name."""
    if not claim.cluster_id:
        return frozenset()
    named = (providers.get(claim.provider_ref), claim.placement.provider_id if claim.placement else None)
    return frozenset(environment_id(claim.cluster_id, provider_id) for provider_id in named if provider_id) | {
        claim.environment_ref
    }


def remove_unused(services: Services, environment: NodeEnvironment) -> bool:
    """Remove what was set up for a cluster that no claim of it refers to any more. True when it is gone.

    A cluster that is not ready takes its environments along itself. What cannot be removed now is tried again.
    """
    cluster = services.store.get(Cluster, environment.cluster_id)
    if cluster is None or cluster.status != "ready":
        return False
    try:
        if _referred(services, environment):
            if environment.removing:
                services.store.commit(Replace(_moved(services, environment, removing=False)))
            return False
        if not environment.removing:
            environment = _moved(services, environment, removing=True)
            services.store.commit(Replace(environment))
            if _referred(services, environment):
                services.store.commit(Replace(_moved(services, environment, removing=False)))
                return False
    except Conflict:
        return False
    return _cleared(services, environment, cluster)


def _cleared(services: Services, environment: NodeEnvironment, cluster: Cluster) -> bool:
    lines = lines_of(services, environment.id)
    # A worker that had announced a call may still make it.
    intents = [line.intended_at for line in lines if line.state == "intended"]
    if intents and services.seconds_since(max(intents)) < services.settings.in_flight_seconds:
        return False
    if lines:
        source, work = environment_work(services, environment, cluster, environment.id)
        if not source.clear(work).done:
            return False
    services.store.commit(Remove(NodeEnvironment, environment.id, version=environment.version))
    unseal(services, environment.id, environment.sealed_as)
    return True


def _referred(services: Services, environment: NodeEnvironment) -> bool:
    provider = named(services, environment.provider_name)
    providers = {provider.name: provider.id} if provider else {}
    claims = every(services.store, NodeClaim, where={"cluster_id": environment.cluster_id})
    return any(environment.id in needed_by(claim, providers) for claim in claims)


def _moved(services: Services, environment: NodeEnvironment, *, removing: bool) -> NodeEnvironment:
    """On its way out, or back: then it is set up again, because some of it may be gone."""
    now = services.now()
    text = "No claim of the cluster refers to the provider." if removing else "The environment is set up again."
    reason = "Unused" if removing else "InProgress"
    condition = Condition(PROVISIONED, "False" if removing else "Unknown", reason, text, now)
    return replace(
        environment,
        removing=removing,
        phase="Pending",
        reason=reason if removing else "",
        message=text if removing else "",
        conditions=with_condition(environment.conditions, condition),
        updated_at=now,
        version=environment.version + 1,
    )


def look_again(services: Services, cluster: Cluster) -> None:
    """Note on the cluster's environments that the network has changed, so that the next claim looks for the network
    again."""
    for environment in list(every(services.store, NodeEnvironment, where={"cluster_id": cluster.id})):
        current: NodeEnvironment | None = environment
        while current is not None and not current.is_stale:
            stale = replace(current, is_stale=True, updated_at=services.now(), version=current.version + 1)
            with suppress(Conflict):  # Whoever was first may have found it before it changed.
                services.store.commit(Replace(stale))
                break
            current = services.store.get(NodeEnvironment, environment.id)


def clear_all(services: Services, cluster: Cluster, session: str) -> Outcome:
    """Remove every environment of a cluster that is being deleted, what was set up first and then the record."""
    for environment in list(every(services.store, NodeEnvironment, where={"cluster_id": cluster.id})):
        if lines_of(services, environment.id):
            source, work = environment_work(services, environment, cluster, session)
            outcome = source.clear(work)
            if not outcome.done:
                return outcome
        services.store.commit(Remove(NodeEnvironment, environment.id))
        unseal(services, environment.id, environment.sealed_as)
    return Outcome(True)


def _start_environment(services: Services, claim: NodeClaim, provider_id: str, provider_name: str) -> NodeEnvironment:
    now = services.now()
    pending = Condition(PROVISIONED, "Unknown", "InProgress", "The environment is being set up.", now)
    environment = NodeEnvironment(
        id=environment_id(claim.cluster_id, provider_id),
        cluster_id=claim.cluster_id,
        provider_id=provider_id,
        provider_name=provider_name,
        created_at=now,
        updated_at=now,
        properties=claim.properties,
        conditions=(pending,),
    )
    try:
        services.store.commit(Create(environment))
    except Conflict:
        stored = services.store.get(NodeEnvironment, environment.id)
        return stored or environment
    return environment


def _available(services: Services, environment: NodeEnvironment, outcome: Outcome) -> NodeEnvironment:
    now = services.now()
    outputs, secrets = outputs_of(outcome)
    suffix = seal(services, environment.id, secrets)
    done = Condition(PROVISIONED, "True", "Provisioned", outcome.message or "The environment is there.", now)
    changed = replace(
        environment,
        phase="Available",
        conditions=with_condition(environment.conditions, done),
        outputs=outputs,
        secret_outputs=tuple(sorted(secrets)),
        sealed_as=suffix,
        is_stale=False,
        updated_at=now,
        version=environment.version + 1,
    )
    try:
        services.store.commit(Replace(changed))
    except Conflict:  # Another claim's worker said so first.
        unseal(services, environment.id, suffix)
        return services.store.get(NodeEnvironment, environment.id) or environment
    unseal(services, environment.id, environment.sealed_as)
    return changed
