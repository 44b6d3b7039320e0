"""Create a cluster: validate, accept with a lease, make the Keycloak client, hand over to the background."""

from __future__ import annotations

import base64
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import Any

from stockyard.domain import cloud_kinds
from stockyard.domain.clusters.change import SecretChoice
from stockyard.domain.profiles.pack_rights import with_rights
from stockyard.domain.records import UNSEEN, CloudAccount, Cluster, Name
from stockyard.domain.values import ids, times
from stockyard.domain.values.notes import remark
from stockyard.domain.values.rights import OPERATOR
from stockyard.errors import (
    ClusterNameInUse,
    Conflict,
    InvalidInput,
    RequestInProgress,
    UnexpectedBehavior,
    VendorError,
)
from stockyard.lifecycle.clusters.cluster import MOVES
from stockyard.lifecycle.operation import new_operation
from stockyard.lifecycle.phases import CREATE_CLUSTER
from stockyard.operations.clusters.creation import existing
from stockyard.operations.clusters.creation.check import account_of, check
from stockyard.operations.clusters.creation.deployment import remember_organization
from stockyard.operations.clusters.creation.expiry import check_expiry
from stockyard.operations.clusters.creation.minors import check_new_minor
from stockyard.operations.clusters.creation.plan import billed_items, plan
from stockyard.operations.clusters.creation.undo_acceptance import undo
from stockyard.operations.clusters.kept_secrets import kept_secret, secret_writes
from stockyard.operations.costs.plan_notes import check_budgets
from stockyard.operations.engine.advance import change_writes
from stockyard.operations.fleet.pools.groups import group_pools
from stockyard.operations.fleet.pools.pools import creation
from stockyard.operations.pricing import plan_of
from stockyard.operations.profiles.clusters import check_driver, creation_writes, difference
from stockyard.operations.profiles.resolve import Resolved, check_rights, resolve
from stockyard.operations.quotas.budget_notes import budget_writes
from stockyard.operations.quotas.limits import CLUSTERS, check_groups, check_room, limit_of, refusal
from stockyard.operations.services import Services
from stockyard.ports import Add, Create, Finding, Replace, Write

SECRET_BYTES = 24
"""192 bits, 32 characters of base64: the reference's longest secret."""


@dataclass(frozen=True, slots=True)
class NewCluster:
    """A request of valid form. ``settings`` are as they were sent; ``secret`` goes to Keycloak and nowhere else."""

    name: str
    description: str
    cloud_account_id: int
    cluster_type: str
    settings: dict[str, Any]
    kubernetes_version: str | None = None
    driver: str | None = None
    """None: the first driver of the account's cloud."""
    keep_failed: int = 0
    expires_at: str | None = None
    """See ``Cluster.expires_at``."""
    kubeconfig_secret: SecretChoice | None = None
    secret: str | None = field(default=None, repr=False)
    organization_id: str = ""
    """Of the caller's organization in the realm; empty where no token says it."""
    tags: dict[str, str] = field(default_factory=dict)
    limits: dict[str, str] = field(default_factory=dict)
    document: dict[str, Any] = field(default_factory=dict)
    """See ``Cluster.document``."""
    profiles: tuple[Mapping[str, Any], ...] = ()
    """The cluster profiles that it is to have, as they were chosen."""
    lenient: bool = False
    """Whether the settings may leave out what only those of a request have to give, as manifests may."""
    rights: str = OPERATOR
    """Of who chooses them, see ``pack_rights``."""
    accepts_existing: bool = False
    """Whether a cluster of the name that is already as it is asked for is the answer."""


def _draft(services: Services, new_cluster: NewCluster, provider: str, id: str | None = None) -> Cluster:
    from stockyard.domain.models.clusters.clusters import settings_for  # loads pydantic: only where a cluster is made

    cluster_id = id or services.new_id(ids.CLUSTER)
    now = services.clock.now()
    cluster_type = new_cluster.cluster_type
    driver = new_cluster.driver or services.driver_names[provider, cluster_type][0]
    name, settings, is_request = new_cluster.name, new_cluster.settings, not new_cluster.lenient
    cluster = Cluster(
        id=cluster_id,
        name=name,
        description=new_cluster.description,
        cluster_type=cluster_type,
        kubernetes_version=new_cluster.kubernetes_version
        or _profiles(services, new_cluster, driver).kubernetes_version
        or cloud_kinds.default_version(driver)
        or services.settings.kubernetes_version,
        keep_failed=new_cluster.keep_failed,
        expires_at=new_cluster.expires_at,
        provider=provider,
        driver=driver,
        cloud_account_id=new_cluster.cloud_account_id,
        client_id=ids.client_id(services.tenant, cluster_id, name),
        status="accepting",
        settings=settings_for(provider, cluster_type, driver, name, settings, creation=is_request),
        tags=new_cluster.tags,
        limits=new_cluster.limits,
        document=new_cluster.document,
        pools_follow=cloud_kinds.followed_groups(driver) is not None,
        cloud_prefix=services.settings.name_prefix,
        group_prefix=name,
        created_at=times.to_text(now),
        updated_at=times.to_text(now),
        lease_expires_at=times.to_text(now + timedelta(seconds=services.settings.lease_seconds)),
    )
    secret = kept_secret(services, cluster, new_cluster.kubeconfig_secret, new_cluster.rights)
    return replace(cluster, kubeconfig_secret=secret)


def _profiles(services: Services, new_cluster: NewCluster, driver: str) -> Resolved:
    """Resolve the chosen profiles. ``InvalidInput`` with every fault, and where they want another minor."""
    if not new_cluster.profiles:
        return Resolved((), (), "")
    check_driver(services, driver, new_cluster.profiles)
    resolved = resolve(services, with_rights(new_cluster.profiles, new_cluster.rights), driver)
    check_rights(resolved)
    if new_cluster.kubernetes_version and resolved.kubernetes_version not in ("", new_cluster.kubernetes_version):
        text = f"the profile's layer k8s is {resolved.kubernetes_version}"
        raise InvalidInput.at("/kubernetes_version", text)
    return resolved


def _checked(services: Services, draft: Cluster, account: CloudAccount) -> Sequence[Finding]:
    check_new_minor(services, draft)
    check_groups(services, draft.driver, draft.settings)
    check_expiry(services, draft.expires_at)
    return check(services, draft, account)


def draft_cluster(services: Services, new_cluster: NewCluster) -> Cluster:
    """The cluster as it would be accepted, with an id of its own; nothing is written."""
    account = account_of(services, new_cluster.cloud_account_id, new_cluster.cluster_type, new_cluster.driver)
    return _draft(services, new_cluster, account.provider)


def plan_creation(services: Services, new_cluster: NewCluster) -> dict[str, Any]:
    """The dry run: every check of a creation, and what it would make and cost. Writes nothing."""
    if (present := _existing(services, new_cluster)) is not None:
        return plan_of((), warnings=[remark("/name", existing.present(present).detail)])
    account = account_of(services, new_cluster.cloud_account_id, new_cluster.cluster_type, new_cluster.driver)
    cluster = _draft(services, new_cluster, account.provider)
    findings = _checked(services, cluster, account)
    if existing.holder_of(services, new_cluster.name) is not None:
        raise ClusterNameInUse(f"There is a cluster called {new_cluster.name}.")
    check_room(services, CLUSTERS)
    planned = plan(services, cluster, findings)
    resolved = _profiles(services, new_cluster, cluster.driver)
    if resolved.profiles:
        diff = difference(Resolved((), (), ""), resolved)
        planned = {**planned, **{name: [*planned[name], *diff[name]] for name in ("creates", "changes")}}
    return planned


def create_cluster(
    services: Services, new_cluster: NewCluster, actor: str, id: str | None = None
) -> tuple[Cluster, Sequence[Finding]]:
    """The cluster in status ``preparing``, and warnings.

    ``id`` is given by a request with an ``Idempotency-Key``: the same in every try, so that a try that takes over
    from a crashed one goes on with its half-made cluster, under a new lease. Raises ``InvalidInput``,
    ``ClusterNameInUse``, ``QuotaExceeded``; ``RequestInProgress`` when another try has the cluster;
    ``UnexpectedBehavior`` when the Keycloak client cannot be made, and then nothing is left.
    """
    accepted_cluster = _taken_over(services, id) if id else None
    if accepted_cluster is not None and accepted_cluster.status != "accepting":
        return accepted_cluster, ()
    if accepted_cluster is None and (present := _existing(services, new_cluster)) is not None:
        return present, [existing.present(present)]
    findings: Sequence[Finding] = ()
    if accepted_cluster is None:
        account = account_of(services, new_cluster.cloud_account_id, new_cluster.cluster_type, new_cluster.driver)
        draft = _draft(services, new_cluster, account.provider, id)
        findings = _checked(services, draft, account)
        remember_organization(services, new_cluster.organization_id)
        resolved = _profiles(services, new_cluster, draft.driver)
        profiles = creation_writes(services, draft.id, resolved)
        guards = check_budgets(services, draft, billed_items(services, draft))
        try:
            accepted_cluster = _accept(services, replace(draft, created_by=actor), [*profiles, *guards])
        except ClusterNameInUse as refused:
            if not new_cluster.accepts_existing:
                raise
            text = f"Another request makes a cluster called {draft.name} now. Send the request again."
            raise RequestInProgress(text, retry_after=1) from refused
    secret = new_cluster.secret or base64.urlsafe_b64encode(services.clock.randomness(SECRET_BYTES)).decode()
    try:
        services.identity.create_client(
            client_id=accepted_cluster.client_id, owner=accepted_cluster.id, tenant=services.tenant, secret=secret
        )
    except VendorError as error:
        undo(services, accepted_cluster)
        raise UnexpectedBehavior(f"The Keycloak client could not be made ({error.error_type}).") from error
    return _hand_over(services, accepted_cluster, actor), findings


def _taken_over(services: Services, id: str) -> Cluster | None:
    """Cluster that an earlier try of the request has left, with the lease renewed if it is not handed over; None if
    there is none."""
    accepted_cluster = services.store.get(Cluster, id)
    if accepted_cluster is None or accepted_cluster.status not in UNSEEN:
        return accepted_cluster
    if accepted_cluster.status == "undoing":
        if undo(services, accepted_cluster):
            return None
        raise RequestInProgress("An unfinished try is being undone. Send the request again.", retry_after=1)
    lease = times.to_text(services.clock.now() + timedelta(seconds=services.settings.lease_seconds))
    renewed: Cluster = replace(accepted_cluster, lease_expires_at=lease, version=accepted_cluster.version + 1)
    try:
        # The sweep and the earlier try, if it lives, hold the old version: neither can undo or hand over any more.
        services.store.commit(Replace(renewed, fence={"status": "accepting"}))
    except Conflict as conflict:
        raise RequestInProgress("Another try of this request is at work.", retry_after=1) from conflict
    return renewed


def _existing(services: Services, new_cluster: NewCluster) -> Cluster | None:
    """The cluster that is there already, where that is an answer. ``ClusterNameInUse`` where it differs."""
    cluster = existing.cluster_in_use(services, new_cluster.name) if new_cluster.accepts_existing else None
    if cluster is None:
        return None
    if (new_cluster.cloud_account_id, new_cluster.cluster_type) != (cluster.cloud_account_id, cluster.cluster_type):
        raise existing.refusal(cluster, ["/cloud_account_id"])
    existing.check_no_difference(
        services,
        cluster,
        _draft(services, replace(new_cluster, kubeconfig_secret=None), cluster.provider, cluster.id),
        minor=new_cluster.kubernetes_version,
        choices=new_cluster.profiles,
        secret=new_cluster.kubeconfig_secret,
        rights=new_cluster.rights,
    )
    return cluster


def _accept(services: Services, draft: Cluster, profiles: Sequence[Write]) -> Cluster:
    limit = limit_of(services, CLUSTERS)
    name = Name(f"cluster/{draft.name}", draft.id)
    noted = budget_writes(services.now(), {}, draft.limits)
    try:
        services.store.commit(Create(name), Add(f"quota/{CLUSTERS}", 1, limit=limit), Create(draft), *profiles, *noted)
    except Conflict as conflict:
        if conflict.index == 1:
            raise refusal(CLUSTERS, limit) from conflict
        if conflict.index != 0:
            raise
        holder = existing.holder_of(services, draft.name)
        if holder is None or not _given_up(services, holder):
            raise ClusterNameInUse(f"There is a cluster called {draft.name}.") from conflict
        undo(services, holder)
        raise RequestInProgress(
            f"An unfinished creation of {draft.name} is undone now. Send the request again.", retry_after=1
        ) from conflict
    return draft


def _given_up(services: Services, holder: Cluster) -> bool:
    lease = holder.lease_expires_at
    expired = lease is None or services.seconds_since(lease) > 0
    return holder.status == "undoing" or (holder.status == "accepting" and expired)


def _hand_over(services: Services, accepted: Cluster, actor: str) -> Cluster:
    now = services.now()
    operation_id = services.new_id(ids.OPERATION)
    procedure = services.procedure(CREATE_CLUSTER, accepted.driver)
    operation = new_operation(operation_id, procedure, accepted, actor, now)
    change = MOVES.prepare(accepted, operation, procedure, now)
    cluster, operation_record, writes = change_writes(services, actor, change)
    pools = [write for pool in group_pools(services, cluster, actor) for write in creation(services, pool, actor)]
    pools += secret_writes(services, cluster)
    try:
        services.store.commit(
            Replace(cluster, fence={"status": "accepting"}), Create(operation_record), *writes, *pools
        )
    except Conflict as conflict:
        stored = services.store.get(Cluster, accepted.id)
        if stored is not None and stored.status not in UNSEEN:
            # Another try of the same request was faster: its cluster is the answer.
            return stored
        undo(services, accepted)
        raise UnexpectedBehavior("The creation took too long and was undone. Send the request again.") from conflict
    return cluster
