"""Clusters that documents ask for, compared with those that are there: checked before anything is written."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import Any

from stockyard.domain import cloud_kinds
from stockyard.domain.clusters.change import ClusterChange
from stockyard.domain.clusters.manifests import NAME, ClusterDocument, ClusterForm
from stockyard.domain.nodes.manifests import FieldPath
from stockyard.domain.pools.node_groups import follows, name_of, worker_groups
from stockyard.domain.pools.records import Pool
from stockyard.domain.profiles.pack_rights import with_rights
from stockyard.domain.records import UNSEEN, CloudAccount, Cluster, Name
from stockyard.domain.values.field_changes import change_views, field_at, field_changes
from stockyard.domain.values.pointers import pointer
from stockyard.errors import FieldProblem, IllegalTransition, InvalidInput, QuotaExceeded
from stockyard.operations.clusters.changes.change import change_cluster
from stockyard.operations.clusters.changes.reconfigure import operation_kind, plan_change
from stockyard.operations.clusters.creation.create import NewCluster, create_cluster, plan_creation
from stockyard.operations.clusters.creation.expiry import check_expiry
from stockyard.operations.clusters.kept_secrets import changed_secret, kept_secret
from stockyard.operations.fleet.pools.pools import pools_of
from stockyard.operations.listing import every
from stockyard.operations.profiles.clusters import packs_record, profile_change
from stockyard.operations.profiles.resolve import Choice, resolve
from stockyard.operations.services import Services

LONGEST_NAME = 128
"""Characters of a cluster's name."""
_IN_BRACKETS = re.compile(r"\[(.*?)\]")


@dataclass(frozen=True, slots=True)
class DesiredCluster:
    """A cluster to make, or with ``current`` to change by ``fields``, and the plan of that."""

    path: FieldPath
    document: ClusterDocument
    form: ClusterForm
    new_cluster: NewCluster | None
    current: Cluster | None
    fields: Mapping[str, Any] = field(default_factory=dict)
    plan: Mapping[str, Any] = field(default_factory=dict)


def cluster_manifest(services: Services, cluster: Cluster, profiles: Sequence[Choice] = ()) -> dict[str, Any]:
    """The cluster as a manifest of the form that it came in; any other, and one that a manifest of ours has changed, as
    a ``Cluster`` of ours with its pools."""
    if cluster.document:
        return published_manifest(cluster, profiles)
    from stockyard.domain.models.manifests.own_clusters import own_cluster_manifest  # loads pydantic

    return own_cluster_manifest(cluster, profiles, _own_pools(services, cluster), _account_name(services, cluster))


def published_manifest(cluster: Cluster, profiles: Sequence[Choice] = ()) -> dict[str, Any]:
    """The cluster as a manifest of the other product whose form its driver reads. ``InvalidInput`` where there is
    none."""
    kind = cloud_kinds.cluster_kind_of(cluster.driver).manifest
    if kind is None:
        raise InvalidInput.at("/form", f"no other product's manifests are read for the driver {cluster.driver}")
    return cloud_kinds.cluster_form(kind).cluster_manifest(cluster, profiles)


def _own_pools(services: Services, cluster: Cluster) -> list[Pool]:
    """The pools that no group of the cluster's settings makes as they are."""
    mapping = cloud_kinds.group_mapping(cluster.provider, cluster.cluster_type, cluster.driver)
    groups = {} if mapping is None else {name_of(group): group for group in worker_groups(cluster.settings)}

    def is_of_group(pool: Pool) -> bool:
        if mapping is None or pool.name not in groups:
            return False
        return follows(cluster) or mapping.pool_of_group(groups[pool.name], pool.provider_ref).spec() == pool.spec()

    return [pool for pool in pools_of(services, cluster.id) if not pool.deleting and not is_of_group(pool)]


def _account_name(services: Services, cluster: Cluster) -> str:
    """Name of the cluster's account; its number where other accounts are called so too, or a number is its name."""
    accounts = {account.id: account.name for account in every(services.store, CloudAccount)}
    number = str(cluster.cloud_account_id)
    name = accounts.get(number, number)
    return number if name in accounts or list(accounts.values()).count(name) > 1 else name


def _form(document: ClusterDocument) -> ClusterForm:
    from stockyard.domain.models.manifests.own_clusters import KIND, OwnForm  # loads pydantic

    kind = cloud_kinds.cluster_kind_of(document.driver).manifest
    return OwnForm(document.driver) if kind is None or document.kind == KIND else cloud_kinds.cluster_form(kind)


def desired_cluster(services: Services, path: FieldPath, document: ClusterDocument, rights: str) -> DesiredCluster:
    """The cluster of a document, compared with the one of its name, by all checks of a request of somebody who has
    these rights over packs. ``InvalidInput`` has pointers into the document; ``IllegalTransition`` for a cluster that
    cannot be changed now."""
    form = _form(document)
    with _in_document(form, path, document):
        document, current = _identified(services, document)
        if current is None:
            new_cluster = _new_cluster(services, document, form, rights)
            plan = plan_creation(services, new_cluster)
            return DesiredCluster(path, document, form, new_cluster, None, plan=plan)
        _check_same(services, current, document)
        fields = _changes(services, current, document, form, rights)
        return DesiredCluster(
            path, document, form, None, current, fields, _plan(services, current, ClusterChange(**fields))
        )


@contextmanager
def _in_document(form: ClusterForm, path: FieldPath, document: ClusterDocument) -> Iterator[None]:
    """Tell at the places of the document what a request would be refused for."""
    try:
        yield
    except (InvalidInput, QuotaExceeded) as refused:
        account = pointer(*document.account_path)
        faults = [
            FieldProblem(
                account if fault.pointer == "/cloud_account_id" else pointer(*path) + form.path_of(fault.pointer),
                fault.detail,
            )
            for fault in refused.errors
        ]
        raise type(refused)(refused.detail, errors=faults) from refused


def _identified(services: Services, document: ClusterDocument) -> tuple[ClusterDocument, Cluster | None]:
    """The document with what its cluster is called in the tenant, and that cluster; None where it is not there.

    In a form with namespaces a name is one in its namespace. Of a second namespace the cluster is called
    ``<namespace>-<name>`` here, since a name stands for one cluster of a tenant.
    """
    holder = _current(services, document.name)
    if document.default_namespace is None:
        return document, holder
    namespace = document.namespace or document.default_namespace
    second = f"{namespace}-{document.name}"
    named = replace(document, name=second, document={**document.document, NAME: document.name})
    other_holder = _current(services, second)
    if other_holder is not None and _is_of(other_holder, document, namespace):
        return named, other_holder
    of_another = str(holder.settings.get("namespace") or "") if holder is not None else ""
    if holder is None or not of_another or _is_of(holder, document, namespace):
        return document, holder
    if other_holder is not None:
        text = f"There is a cluster called {document.name} in the namespace {of_another}, and one called {second}."
        raise InvalidInput.at("/name", text)
    if len(second) > LONGEST_NAME:
        raise InvalidInput.at("/name", f"with its namespace must have at most {LONGEST_NAME} characters: {second}")
    return named, None


def _is_of(cluster: Cluster, document: ClusterDocument, namespace: str) -> bool:
    """Whether the cluster is the one of that name in that namespace."""
    name = cluster.document.get(NAME) or cluster.name
    return (name, cluster.settings.get("namespace")) == (document.name, namespace)


def _current(services: Services, name: str) -> Cluster | None:
    holder = services.store.get(Name, f"cluster/{name}")
    cluster = services.store.get(Cluster, holder.owner) if holder else None
    return None if cluster is None or cluster.status in UNSEEN else cluster


def _new_cluster(services: Services, document: ClusterDocument, form: ClusterForm, rights: str) -> NewCluster:
    return NewCluster(
        name=document.name,
        description=document.description,
        cloud_account_id=int(_account(services, document).id),
        cluster_type=document.cluster_type,
        settings=form.wanted_settings(document, None),
        kubernetes_version=document.kubernetes_version or None,
        driver=document.driver,
        keep_failed=document.keep_failed or 0,
        expires_at=document.expiry.at if document.expiry is not None else None,
        kubeconfig_secret=document.secret.choice if document.secret is not None else None,
        tags=dict(document.tags or {}),
        limits=dict(document.limits or {}),
        profiles=document.profiles or (),
        rights=rights,
        document=document.document,
        lenient=True,
    )


def _account(services: Services, document: ClusterDocument) -> CloudAccount:
    """The account that the document names by number or name, or the tenant's only one of that cloud."""
    title = cloud_kinds.clouds()[document.cloud].title
    accounts = [account for account in every(services.store, CloudAccount) if account.provider == document.cloud]
    if document.account:
        named = [account for account in accounts if account.id == document.account]
        named = named or [account for account in accounts if account.name == document.account]
        lacking, several = f"There is no cloud account {document.account} on {title}.", "have this name"
    else:
        # One that could not be verified is not meant by who names none.
        usable = [account for account in accounts if account.verification != "failed"]
        named, lacking, several = usable or accounts, f"There is no cloud account on {title}.", f"are on {title}"
    if not named:
        raise InvalidInput.at("/cloud_account_id", lacking)
    if len(named) > 1:
        raise InvalidInput.at("/cloud_account_id", f"is needed, as a number: {len(named)} cloud accounts {several}")
    return named[0]


def _check_same(services: Services, current: Cluster, document: ClusterDocument) -> None:
    """Whether the cluster of that name is the one that the document means."""
    if current.status == "deleting":
        raise IllegalTransition(f"Cluster {current.name} is being deleted.")
    if current.driver != document.driver:
        text = f"There is a cluster called {current.name}, which the driver {current.driver} has made."
        raise InvalidInput.at("/name", text)
    if document.namespace and not current.settings.get("namespace"):
        text = f"There is a cluster called {current.name} without a namespace: name none to change it."
        raise InvalidInput.at("/name", text)
    if document.account and int(_account(services, document).id) != current.cloud_account_id:
        raise InvalidInput.at("/cloud_account_id", "cannot be changed after creation")
    if document.keep_failed not in (None, current.keep_failed):
        raise InvalidInput.at("/keep_failed", "cannot be changed after creation")


def _changes(
    services: Services, current: Cluster, document: ClusterDocument, form: ClusterForm, rights: str
) -> dict[str, Any]:
    """The fields of a ``ClusterChange`` that differ. What the document does not say stays."""
    from stockyard.domain.models.clusters.clusters import (
        changed_settings,  # loads pydantic: only where a cluster is changed
    )

    settings = changed_settings(current, form.wanted_settings(document, current.settings))
    fields: dict[str, Any] = {}
    if settings != current.settings:
        fields["settings"] = settings
    minor = document.kubernetes_version
    if document.profiles is not None:
        current_profiles = packs_record(services, current).profiles
        resolved = resolve(services, with_rights(document.profiles, rights), current.driver, current_profiles)
        if resolved.profiles != current_profiles:
            fields |= {"profiles": document.profiles, "rights": rights}
            # A form that has no field for the minor says it by the layer k8s.
            minor = minor or resolved.kubernetes_version
    if minor not in ("", current.kubernetes_version):
        fields["kubernetes_version"] = minor
    if document.is_described and document.description != current.description:
        fields["description"] = document.description
    if document.tags is not None and document.tags != current.tags:
        fields["tags"] = dict(document.tags)
    if document.expiry is not None and document.expiry.at != current.expires_at:
        check_expiry(services, document.expiry.at)
        fields["expiry"] = document.expiry
    if document.limits is not None and document.limits != current.limits:
        fields["limits"] = dict(document.limits)
    if document.secret is not None:
        secret = kept_secret(services, current, document.secret.choice, rights)
        if secret != current.kubeconfig_secret:
            fields |= {"secret": document.secret, "rights": rights}
    if document.document != current.document:
        fields["document"] = document.document
    return fields


def _plan(services: Services, current: Cluster, change: ClusterChange) -> Mapping[str, Any]:
    """The plan of a change; of one that no operation is needed for what changes of the record."""
    target = change.target(current)
    choices = change.profiles
    of_record = {name: value for name, value in change.fields().items() if name in _OF_RECORD}
    of_record |= changed_secret(services, current, change)
    if not operation_kind(services, current, target, profiles=choices is not None):
        of_record |= {} if target is current else {"settings": target.settings}
        changes = (field_changes(getattr(current, name), value, (name,), name) for name, value in of_record.items())
        return {"changes": change_views(chain.from_iterable(changes), kind="cluster", name=current.name)}
    packs = None if choices is None else profile_change(services, current, target, choices, change.rights)
    return plan_change(services, current, target, of_record, packs)


_OF_RECORD = frozenset({"description", "tags", "expires_at"})
"""What is on the record at once."""


def _metadata_changes(desired: DesiredCluster) -> list[dict[str, Any]]:
    """Changes of the labels and annotations that the record keeps for the manifest."""
    current, document = desired.current, desired.fields.get("document")
    if current is None or document is None:
        return []
    changes = (
        field_changes(
            current.document.get(name) or {}, document.get(name) or {}, ("metadata", name), f"metadata.{name}"
        )
        for name in ("labels", "annotations")
    )
    return change_views(chain.from_iterable(changes), *desired.path, kind="cluster", name=current.name)


def plan_cluster(desired: DesiredCluster) -> dict[str, list[Any]]:
    """The part of a dry run that is about this cluster: ``items`` are lines of the bill, ``items_before`` those of
    now."""
    plan = desired.plan

    def moved(entries: list[Any]) -> list[Any]:
        return [_moved(entry, desired.path, desired.form.path_of(entry["pointer"])) for entry in entries]

    creates = list(plan.get("creates", ()))
    if desired.current is None:
        creates = [{"kind": "cluster", "name": desired.document.name}, *creates]
    return {
        "creates": creates,
        "deletes": list(plan.get("deletes", ())),
        "changes": [*moved(plan.get("changes", [])), *_metadata_changes(desired)],
        "warnings": moved(plan.get("warnings", [])),
        "items": list(plan.get("price", {}).get("items", ())),
        "items_before": list((plan.get("price_before") or {}).get("items", ())),
    }


def _moved(entry: Mapping[str, Any], path: FieldPath, below: str) -> dict[str, Any]:
    """The entry at its place in the document; a field for people keeps the names of what it is in."""
    if "field" not in entry:
        return {**entry, "pointer": pointer(*path) + below}
    names = iter(_IN_BRACKETS.findall(entry["field"]))
    field_text = _IN_BRACKETS.sub(lambda number: f"[{next(names, number[1])}]", field_at(below))
    return {**entry, "pointer": pointer(*path) + below, "field": field_text}


def apply_cluster(
    services: Services, desired: DesiredCluster, actor: str, request_id: str, organization_id: str
) -> dict[str, Any]:
    """Bring the cluster to the document, and tell the result: made, changed by an operation where one is needed, or as
    it was."""
    cluster, operation_id = desired.current, None
    if desired.new_cluster is not None:
        new_cluster = replace(desired.new_cluster, organization_id=organization_id)
        cluster, _ = create_cluster(services, new_cluster, actor)
        operation_id = cluster.operation_id
    elif cluster is not None and desired.fields:
        former = cluster.operation_id
        change = ClusterChange(**desired.fields)
        cluster, _ = change_cluster(services, cluster.id, cluster.version, change, actor=actor, request_id=request_id)
        operation_id = cluster.operation_id if cluster.operation_id != former else None
    if cluster is None:
        raise KeyError(desired.document.name)
    return {
        "kind": desired.document.kind,
        "name": cluster.name,
        "id": cluster.id,
        "action": "created" if desired.current is None else "changed" if desired.fields else "unchanged",
        "warnings": plan_cluster(desired)["warnings"],
        "operation_id": operation_id,
    }
