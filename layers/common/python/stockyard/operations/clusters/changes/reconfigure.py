"""Settings and version of a ready cluster that are to change: which operation does it, what speaks against it, and what
it would make, change, remove and cost."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain
from typing import Any

from stockyard.domain.clusters.kubernetes_minors import skew_fault
from stockyard.domain.clusters.kubernetes_removals import removals
from stockyard.domain.pools.node_groups import followed_entries, followed_setting, follows, name_of, worker_groups
from stockyard.domain.pools.records import GROUP
from stockyard.domain.records import CloudAccount, Cluster, Operation
from stockyard.domain.values.field_changes import change_views, field_changes, with_subject
from stockyard.domain.values.notes import Note, remark
from stockyard.domain.values.pointers import pointer
from stockyard.errors import FieldProblem, IllegalTransition, InvalidInput
from stockyard.lifecycle.change_phases import CHANGE_CLUSTER, PROFILE, UPGRADE_CLUSTER
from stockyard.lifecycle.clusters.change_steps import steps
from stockyard.lifecycle.clusters.cluster_changes import (
    PROFILES,
    VERSION,
    Difference,
    differences,
    is_unfinished,
    kind_of,
)
from stockyard.lifecycle.clusters.repave import PHASE as APPROVAL
from stockyard.lifecycle.clusters.repave import REQUIRED, SETTING, Reason, reasons
from stockyard.lifecycle.pools.pool import living
from stockyard.operations.clusters.changes.prices import budget_remarks, items_after, items_now
from stockyard.operations.clusters.creation.check import check
from stockyard.operations.clusters.creation.minors import needed_upgrade
from stockyard.operations.clusters.members.replaced_members import replaced_members
from stockyard.operations.fleet.pools.groups import group_pools
from stockyard.operations.fleet.pools.leaving import LeavingNodes, leaving_nodes
from stockyard.operations.fleet.pools.pools import claims_of, pools_of
from stockyard.operations.pricing import plan_of, price
from stockyard.operations.profiles.clusters import NO_DIFFERENCE, ProfileChange, difference
from stockyard.operations.quotas.limits import check_groups, check_pools
from stockyard.operations.services import Services
from stockyard.ports import Finding

_FIXED = "cannot be changed after creation"


def current_operation(services: Services, cluster: Cluster) -> Operation | None:
    """The cluster's last operation."""
    return services.store.get(Operation, cluster.operation_id) if cluster.operation_id else None


def operation_kind(services: Services, cluster: Cluster, target: Cluster, *, profiles: bool = False) -> str | None:
    """The kind of operation that the change needs; None when the record alone changes. ``target`` is the ``cluster``
    itself where neither settings nor version are asked for; ``profiles`` are asked for too.

    ``IllegalTransition`` unless the cluster is ready and nothing works on it, naming what does; ``InvalidInput`` for a
    version that it cannot have next, or that its driver does not change.
    """
    current = current_operation(services, cluster)
    if profiles and target is cluster and awaits_profiles(cluster, current):
        return None
    again = target is not cluster and cluster.status == "ready"
    kind = kind_of(cluster, target, current, again=again) or (CHANGE_CLUSTER if profiles else None)
    if not kind:
        return None
    try:
        services.procedure(kind, cluster.driver)
    except KeyError:
        paths = sorted({_field(difference) for difference in differences(cluster, target)})
        paths += [PROFILES] if profiles else []
        raise InvalidInput(_FIXED, errors=[FieldProblem(path, _FIXED) for path in paths]) from None
    if cluster.status != "ready":
        raise IllegalTransition(f"The cluster is {cluster.status}; only a ready one can be changed.{_advice(cluster)}")
    if current is not None and current.status == "running":
        raise IllegalTransition(f"Operation {current.id} ({current.kind}) is still at work on the cluster.")
    return kind


def awaits_profiles(cluster: Cluster, current: Operation | None) -> bool:
    """Whether its creation has failed at its packs: then others are the record's alone, and a resume applies them."""
    error = current.error if current is not None else None
    return cluster.status == "failed" and error is not None and error.phase == PROFILE.name


def _advice(cluster: Cluster) -> str:
    """Advice for a cluster that is not ready."""
    if cluster.status == "failed":
        return (
            " Resume its creation with other settings (a body of POST /v1/clusters/{id}/resume, or"
            " `stockyard cluster resume --with`), or change it when it is ready."
        )
    return " Change it when it is ready." if cluster.status == "preparing" else ""


def _field(difference: Difference) -> str:
    return "/".join(str(difference["pointer"]).split("/")[:3])


def check_target(services: Services, cluster: Cluster, target: Cluster) -> Sequence[Finding]:
    """Warnings. ``InvalidInput`` with every fault of what is wanted, ``QuotaExceeded`` for too many pools or nodes."""
    account = services.store.get(CloudAccount, str(cluster.cloud_account_id))
    if account is None:
        raise IllegalTransition(f"Cloud account {cluster.cloud_account_id} is not registered any more.")
    if follows(target):
        _check_pools(services, target)
    if target.kubernetes_version != cluster.kubernetes_version:
        _check_skew(services, target)
    changes: Sequence[Difference] = differences(cluster, target)
    current = current_operation(services, cluster)
    if not changes and current is not None and is_unfinished(current):
        changes = current.changes  # what has failed is begun anew
    return check(services, replace(target, updated_at=services.now()), account, changes)


def _check_skew(services: Services, target: Cluster) -> None:
    """Whether the nodes that are there may stay while the control plane is newer: those of no pool are not replaced."""
    nodes = [claim for claim in living(claims_of(services, target.id)) if claim.kubernetes_version]
    faults = [
        FieldProblem(VERSION, f"node {claim.name} {fault}; replace it first")
        for claim in nodes
        if (fault := skew_fault(target.kubernetes_version, claim.kubernetes_version))
    ]
    if faults:
        raise InvalidInput(f"{len(faults)} nodes are too old for {target.kubernetes_version}.", errors=faults)


def _check_pools(services: Services, target: Cluster) -> None:
    check_groups(services, target.driver, target.settings)
    pools = {pool.name: pool for pool in group_pools(services, target, "")}
    own_pools = [pool for pool in pools_of(services, target.id) if pool.form != GROUP]
    foreign_names = {pool.name for pool in own_pools} & pools.keys()
    faults = [
        FieldProblem(
            pointer("settings", followed_setting(target), index, "name"),
            "the cluster has a pool of this name that is no group",
        )
        for index, group in enumerate(followed_entries(target))
        if name_of(group) in foreign_names
    ]
    if faults:
        raise InvalidInput.of(faults)
    check_pools(services, target.driver, [*own_pools, *pools.values()])


def plan_change(
    services: Services,
    cluster: Cluster,
    target: Cluster,
    fields: Mapping[str, Any],
    profiles: ProfileChange | None = None,
) -> dict[str, Any]:
    """The dry run of a change by an operation: every check, what it does, and the price before and after. ``fields``
    change on the record with it, and so do ``profiles``."""
    findings = check_target(services, cluster, target) if target is not cluster else ()
    packs = difference(profiles.before, profiles.after) if profiles is not None else NO_DIFFERENCE
    kind_of_change, why = _reasons(services, cluster, target)
    if profiles is not None:
        check_alone(cluster, why)
    members = replaced_members(services, cluster, why)
    creates, deletes = _made_and_removed(services, cluster, target, members, packs)
    changes = [*_changes(cluster, target, fields, profiles), *packs["changes"]]
    settings = {**cluster.settings, **target.settings}
    return {
        **plan_of(
            items_after(services, cluster, target),
            creates=creates,
            changes=with_subject(changes, "cluster", cluster.name, {**fields, "settings": settings}),
            deletes=deletes,
            warnings=[
                *warnings_of(services, cluster, target, findings),
                *budget_remarks(services, cluster, target),
            ],
        ),
        "price_before": price(items_now(services, cluster)),
        "steps": steps(
            services.procedure(kind_of_change, cluster.driver),
            cluster,
            target,
            why,
            packs=profiles.step() if profiles is not None else "",
            members=members,
        ),
    }


def _changes(
    cluster: Cluster, target: Cluster, fields: Mapping[str, Any], profiles: ProfileChange | None
) -> list[dict[str, Any]]:
    """Values that are different afterwards: fields of the record, settings, and the choice of profiles."""
    of_record = (
        change_views(field_changes(getattr(cluster, name), value, (name,), name), kind="cluster", name=cluster.name)
        for name, value in fields.items()
    )
    return [
        *chain.from_iterable(of_record),
        *differences(cluster, target),
        *([profiles.entry] if profiles is not None and profiles.is_needed else ()),
    ]


def _made_and_removed(
    services: Services, cluster: Cluster, target: Cluster, members: Sequence[str], packs: Mapping[str, list[Any]]
) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Things that are made, and things that are removed: each member and node that is replaced stands in both.
    ``packs`` is what the profiles add to both."""
    creates, deletes = _things(services, cluster, target)
    leaving = leaving_nodes(services, cluster, target)
    nodes = [("node", name) for each in leaving for name in each.replaced]
    replaced_nodes = [*(("member", name) for name in members), *nodes]
    given_back = [("node", name) for each in leaving for name in each.given_back]
    replacements = ({"kind": kind, "name": f"in the place of {name}"} for kind, name in replaced_nodes)
    leavers = ({"kind": kind, "name": name} for kind, name in (*replaced_nodes, *given_back))
    return [*creates, *replacements, *packs["creates"]], [*deletes, *leavers, *packs["deletes"]]


def _reasons(services: Services, cluster: Cluster, target: Cluster) -> tuple[str, list[Reason]]:
    """The kind of the operation, and why it replaces nodes."""
    kind = UPGRADE_CLUSTER if target.kubernetes_version != cluster.kubernetes_version else CHANGE_CLUSTER
    asks = APPROVAL in services.procedure(kind, cluster.driver).names
    return kind, reasons(cluster, target, replaced_pools(services, cluster, target)) if asks else []


def check_alone(cluster: Cluster, why: Sequence[Reason]) -> None:
    """``InvalidInput`` where profiles would change together with what somebody has to approve of: settings that are not
    approved of come back, and packs could not."""
    if why and cluster.settings.get(SETTING) == REQUIRED:
        raise InvalidInput.at(PROFILES, "cannot change together with what waits for approval: one after the other")


def _things(services: Services, before: Cluster, after: Cluster) -> tuple[list[dict[str, str]], list[dict[str, str]]]:
    """Settings of the second that the first does not have, and the reverse, with the driver's names and the pools. What
    both have and differs in what stands in brackets is neither made nor removed: the changes say it."""
    driver = services.cluster_drivers[before.driver]
    plans = driver.things_of_change(before, after)
    if plans is None:
        plans = tuple(driver.plan(cluster, services.prices).creates for cluster in (before, after))
    former, later = ([*things, *_pool_names(cluster)] for things, cluster in zip(plans, (before, after), strict=True))
    return _beyond(later, former), _beyond(former, later)


def _beyond(things: Sequence[tuple[str, str]], other_things: Sequence[tuple[str, str]]) -> list[dict[str, str]]:
    there = {_without_details(*thing) for thing in other_things}
    return [{"kind": kind, "name": name} for kind, name in things if _without_details(kind, name) not in there]


def _without_details(kind: str, name: str) -> tuple[str, str]:
    return kind, name.partition(" (")[0]


def _pool_names(cluster: Cluster) -> list[tuple[str, str]]:
    return [("pool", name_of(group)) for group in worker_groups(cluster.settings)]


def warnings_of(
    services: Services, cluster: Cluster, target: Cluster, findings: Sequence[Finding]
) -> list[dict[str, str]]:
    """Warnings of the plan of a change: the answer to the change says the same. ``findings`` are of ``check_target``.
    Profiles that change alone leave the nodes as they are."""
    if target is cluster:
        return []
    of_checks = (remark(finding.pointer, finding.detail) for finding in findings if finding.warning)
    return [*of_checks, *needed_upgrade(target), *_remarks_of_nodes(services, cluster, target)]


def _remarks_of_nodes(services: Services, cluster: Cluster, target: Cluster) -> Iterator[dict[str, str]]:
    """Remarks on what becomes of the nodes that are there."""
    if target.kubernetes_version != cluster.kubernetes_version:
        order = Note("The control plane is upgraded first, then add-ons, then the nodes of each group, one by one.")
        yield remark(VERSION, order)
        yield from (remark(VERSION, text) for text in removals(target.kubernetes_version))
        alone = [claim.name for claim in living(claims_of(services, cluster.id)) if not claim.pool]
        if alone:
            text = f"{', '.join(sorted(alone))} stay as they are: nodes of no pool are replaced by those who made them."
            yield {"pointer": VERSION, "detail": text}
    if worker_groups(cluster.settings) and not worker_groups(target.settings):
        text = "No group of workers is left: pods that may not run on the control plane wait for nodes of other pools."
        yield _remark(followed_setting(target), text=text)
    indexes = {name_of(group): index for index, group in enumerate(followed_entries(target))}
    for each in _leaving_by_group(services, cluster, target):
        setting = followed_setting(target)
        if each.removed:
            yield _remark(setting, text=f"{_nodes(each.total)} of {each.pool} are drained and given back.")
            continue
        if each.given_back:
            count = _nodes(len(each.given_back))
            text = f"{count} of {each.pool} are drained and given back: more than its new most."
            yield _remark(setting, indexes[each.pool], "max_size", text=text)
        if each.replaced:
            text = f"{_share(each)} of {each.pool} are replaced one by one."
            yield _remark(setting, indexes[each.pool], text=text)


def _share(each: LeavingNodes) -> str:
    count, staying = len(each.replaced), each.total - len(each.given_back)
    return f"The {_nodes(count)}" if count == staying else f"{count} of the {_nodes(staying)}"


def replaced_pools(services: Services, cluster: Cluster, target: Cluster) -> list[str]:
    """The pools of groups of whose nodes some are not what they would be made as in the target."""
    return [each.pool for each in _leaving_by_group(services, cluster, target) if each.replaced]


def _leaving_by_group(services: Services, cluster: Cluster, target: Cluster) -> list[LeavingNodes]:
    """Nodes that leave groups because the groups change; none where every node leaves for another reason."""
    if (target.kubernetes_version, target.nodes_since) != (cluster.kubernetes_version, cluster.nodes_since):
        return []
    return [each for each in leaving_nodes(services, cluster, target) if each.is_group]


def _remark(*path: str | int, text: str = "") -> dict[str, str]:
    return {"pointer": pointer("settings", *path), "detail": text}


def _nodes(count: int) -> str:
    return "1 node" if count == 1 else f"{count} nodes"
