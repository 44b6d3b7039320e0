"""Create a cluster: validate, accept with a lease, make the Keycloak client, hand over to the background."""

from __future__ import annotations

import base64
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import Any

from stockyard.domain import ids, times
from stockyard.domain.records import UNSEEN, Cluster, Name, Operation, Quota
from stockyard.errors import (
    ClusterNameInUse,
    Conflict,
    QuotaExceeded,
    RequestInProgress,
    UnexpectedBehavior,
    VendorError,
)
from stockyard.lifecycle import cluster as lifecycle
from stockyard.lifecycle import phases
from stockyard.lifecycle.operation import new_operation
from stockyard.operations.check_cluster import account_of, check, expired
from stockyard.operations.plan_cluster import plan
from stockyard.operations.services import Services
from stockyard.operations.tell import change_writes
from stockyard.operations.undo_acceptance import undo
from stockyard.ports import Add, Create, Finding, Replace, Write

SECRET_BYTES = 24
"""192 bits, 32 characters of base64: the reference's longest secret."""


@dataclass(frozen=True, slots=True)
class NewCluster:
    """A validated request. ``secret`` goes to Keycloak and nowhere else."""

    name: str
    description: str
    cloud_account_id: int
    cluster_type: str
    settings: dict[str, Any]
    secret: str | None = field(default=None, repr=False)
    tags: dict[str, str] = field(default_factory=dict)


def _draft(services: Services, wanted: NewCluster, provider: str, id: str | None = None) -> Cluster:
    cluster_id = id or services.new_id(ids.CLUSTER)
    now = services.clock.now()
    return Cluster(
        id=cluster_id,
        name=wanted.name,
        description=wanted.description,
        cluster_type=wanted.cluster_type,
        provider=provider,
        cloud_account_id=wanted.cloud_account_id,
        client_id=ids.client_id(services.tenant, cluster_id, wanted.name),
        status="accepting",
        settings=wanted.settings,
        tags=wanted.tags,
        created_at=times.to_text(now),
        updated_at=times.to_text(now),
        lease_expires_at=times.to_text(now + timedelta(seconds=services.rules.lease_seconds)),
    )


def plan_creation(services: Services, wanted: NewCluster) -> dict[str, Any]:
    """The dry run: every check of a creation, and what it would make and cost. Writes nothing."""
    account = account_of(services, wanted.cloud_account_id)
    cluster = _draft(services, wanted, account.provider)
    findings = check(services, cluster, account)
    if _holder(services, wanted.name) is not None:
        raise ClusterNameInUse(f"There is a cluster called {wanted.name}.")
    return plan(cluster.client_id, cluster.settings, services.prices, services.rules.name_prefix, findings)


def create_cluster(
    services: Services, wanted: NewCluster, actor: str, id: str | None = None
) -> tuple[Cluster, Sequence[Finding]]:
    """The cluster in status ``preparing``, and warnings.

    ``id`` is given by a request with an ``Idempotency-Key``: the same in every try, so that a try that takes over
    from a crashed one goes on with its half-made cluster, under a new lease. Raises ``InvalidInput``,
    ``ClusterNameInUse``, ``QuotaExceeded``; ``RequestInProgress`` when another try has the cluster;
    ``UnexpectedBehavior`` when the Keycloak client cannot be made, and then nothing is left.
    """
    begun = _taken_over(services, id) if id else None
    if begun is not None and begun.status != "accepting":
        return begun, ()
    findings: Sequence[Finding] = ()
    if begun is None:
        account = account_of(services, wanted.cloud_account_id)
        draft = _draft(services, wanted, account.provider, id)
        findings = check(services, draft, account)
        begun = _accept(services, replace(draft, created_by=actor))
    secret = wanted.secret or base64.urlsafe_b64encode(services.clock.randomness(SECRET_BYTES)).decode()
    try:
        services.identity.create_client(
            client_id=begun.client_id, owner=begun.id, tenant=services.tenant, secret=secret
        )
    except VendorError as error:
        undo(services, begun)
        raise UnexpectedBehavior(f"The Keycloak client could not be made ({error.error_type}).") from error
    return _hand_over(services, begun, actor), findings


def _taken_over(services: Services, id: str) -> Cluster | None:
    """What an earlier try of the request has left, with the lease renewed if it is not handed over; None if nothing."""
    begun = services.store.get(Cluster, id)
    if begun is None or begun.status not in UNSEEN:
        return begun
    if begun.status == "undoing":
        if undo(services, begun):
            return None
        raise RequestInProgress("An unfinished try is being undone. Send the request again.", retry_after=1)
    lease = times.to_text(services.clock.now() + timedelta(seconds=services.rules.lease_seconds))
    renewed: Cluster = replace(begun, lease_expires_at=lease, version=begun.version + 1)
    try:
        # The sweep and the earlier try, if it lives, hold the old version: neither can undo or hand over any more.
        services.store.commit(Replace(renewed, fence={"status": "accepting"}))
    except Conflict as conflict:
        raise RequestInProgress("Another try of this request is at work.", retry_after=1) from conflict
    return renewed


def _holder(services: Services, name: str) -> Cluster | None:
    held = services.store.get(Name, f"cluster/{name}")
    return services.store.get(Cluster, held.owner) if held else None


def quota(services: Services, name: str) -> int:
    """The tenant's limit: its own, else the default."""
    own = services.store.get(Quota, name)
    return own.limit if own else services.rules.quotas[name]


def _accept(services: Services, draft: Cluster) -> Cluster:
    limit = quota(services, "clusters")
    writes: list[Write] = [
        Create(Name(f"cluster/{draft.name}", draft.id)),
        Add("quota/clusters", 1, limit=limit),
        Create(draft),
    ]
    try:
        services.store.commit(*writes)
    except Conflict as conflict:
        if conflict.index == 1:
            raise QuotaExceeded(f"The quota 'clusters' allows {limit} clusters.") from conflict
        if conflict.index != 0:
            raise
        holder = _holder(services, draft.name)
        if holder is None or not _given_up(services, holder):
            raise ClusterNameInUse(f"There is a cluster called {draft.name}.") from conflict
        undo(services, holder)
        raise RequestInProgress(
            f"An unfinished creation of {draft.name} is undone now. Send the request again.", retry_after=1
        ) from conflict
    return draft


def _given_up(services: Services, holder: Cluster) -> bool:
    return holder.status == "undoing" or (holder.status == "accepting" and expired(services, holder.lease_expires_at))


def _hand_over(services: Services, accepted: Cluster, actor: str) -> Cluster:
    now = services.now()
    operation_id = services.new_id(ids.OPERATION)
    operation: Operation = new_operation(operation_id, phases.CREATE_CLUSTER, accepted.id, actor, now)
    change = lifecycle.prepare(accepted, operation, now)
    cluster, told, writes = change_writes(services, actor, change)
    try:
        services.store.commit(Replace(cluster, fence={"status": "accepting"}), Create(told), *writes)
    except Conflict as conflict:
        stored = services.store.get(Cluster, accepted.id)
        if stored is not None and stored.status not in UNSEEN:
            # Another try of the same request was faster: its cluster is the answer.
            return stored
        undo(services, accepted)
        raise UnexpectedBehavior("The creation took too long and was undone. Send the request again.") from conflict
    return cluster
