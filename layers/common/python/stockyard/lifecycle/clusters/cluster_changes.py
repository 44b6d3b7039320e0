"""Changes of a ready cluster: pure functions of the record as it is and as it is wanted."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from stockyard.domain.clusters.kubernetes_minors import upgrade_fault
from stockyard.domain.pools.group_mapping import Group
from stockyard.domain.pools.node_groups import GROUP_SETTINGS, name_of
from stockyard.domain.records import Cluster, Operation
from stockyard.domain.values.pointers import pointer
from stockyard.errors import IllegalTransition, InvalidInput
from stockyard.lifecycle.change_phases import CHANGE_CLUSTER, CHANGES, UPGRADE_CLUSTER
from stockyard.lifecycle.operation import RESUMABLE

VERSION = "/kubernetes_version"
PROFILES = "/profiles"
READ_ONLY_PHASES = frozenset({"checks", "approval"})
"""Phases that change nothing."""
AT_ONCE = frozenset({"mirror", "repave_approval"})
"""Settings that are the record's alone: nothing in a cloud is changed with them."""

SIZE, TYPE, TYPES = "control_plane_size", "control_plane_instance_type", "control_plane_instance_types"
CONTROL = "control"
"""The role of the group that says the same of a control plane as these settings."""

SETS = frozenset({"zones", "taints", "subnets", "api_cidrs", "ssh_cidrs"})
"""Lists of settings and of node groups whose order says nothing: another order is no change. That of instance types
says which is tried first."""

Difference = dict[str, Any]
"""``pointer``, ``before`` and ``after``."""


def is_unfinished(operation: Operation | None) -> bool:
    """Whether it is a change that has failed or was stopped: what stands may be neither as it was nor as wanted."""
    return operation is not None and operation.kind in CHANGES and operation.status in RESUMABLE


def kind_of(cluster: Cluster, target: Cluster, current: Operation | None, *, again: bool) -> str | None:
    """The kind of operation that makes the cluster what is wanted; None when the record alone changes.

    ``again``: what is asked for once more after it has failed is begun anew. ``current`` is the cluster's last
    operation. Raises ``InvalidInput`` or ``IllegalTransition`` for an upgrade that cannot be.
    """
    if target.kubernetes_version != cluster.kubernetes_version:
        return _kind_of_version_change(cluster, target, current)
    if _lasting(target.settings) != _lasting(cluster.settings):
        return CHANGE_CLUSTER
    if again and is_unfinished(current) and current is not None and target.settings == cluster.settings:
        return current.kind
    return None


def _kind_of_version_change(cluster: Cluster, target: Cluster, current: Operation | None) -> str:
    if is_unfinished(current) and current is not None:
        if _can_go_back(current, target.kubernetes_version):
            return CHANGE_CLUSTER
        raise IllegalTransition(f"Operation {current.id} has failed. Resume it before the next upgrade.")
    fault = upgrade_fault(cluster.kubernetes_version, target.kubernetes_version)
    if fault:
        raise InvalidInput.at(VERSION, fault)
    for name in sorted(GROUP_SETTINGS):
        if target.settings.get(name) != cluster.settings.get(name):
            text = "cannot change together with the version: one after the other"
            raise InvalidInput.at(pointer("settings", name), text)
    return UPGRADE_CLUSTER


def _can_go_back(failed: Operation, version: str) -> bool:
    """Whether the failed operation was an upgrade from that version that has touched nothing yet."""
    before = {change["pointer"]: change["before"] for change in failed.changes}.get(VERSION)
    work = [record for record in failed.phases if record.name not in READ_ONLY_PHASES]
    return before == version and all((record.state, record.attempt) == ("pending", 0) for record in work)


def _lasting(settings: Mapping[str, Any]) -> dict[str, Any]:
    return {name: _in_order(name, value) for name, value in settings.items() if name not in AT_ONCE}


def _in_order(name: str, value: Any) -> Any:
    """The value of a setting, with what is a set in one order, so that equal ones are equal."""
    if name in GROUP_SETTINGS:
        by_name = sorted(value or (), key=name_of)
        return [{key: _in_order(key, part) for key, part in group.items()} for group in by_name]
    if name in SETS and isinstance(value, list | tuple):
        return sorted(value, key=lambda entry: json.dumps(entry, sort_keys=True))
    return value


def differences(cluster: Cluster, target: Cluster) -> list[Difference]:
    """Changes field by field: of node groups each field of each group. Pointers are into the body of a patch; one of a
    group that goes has its place among those of before."""
    changes = []
    if target.kubernetes_version != cluster.kubernetes_version:
        changes.append(_difference((VERSION[1:],), cluster.kubernetes_version, target.kubernetes_version))
    for name, value in target.settings.items():
        before = cluster.settings.get(name)
        if name == TYPES and _says_the_same(cluster, target):
            continue
        if name in GROUP_SETTINGS:
            changes += _of_groups(
                name, before or (), _without_repeated(cluster.settings, target.settings, before, value)
            )
        elif _in_order(name, before) != _in_order(name, value):
            changes.append(_difference(("settings", name), before, value))
    return changes


def _says_the_same(cluster: Cluster, target: Cluster) -> bool:
    """Whether the list of a control plane's types says no more than the setting of its one type."""
    types = target.settings.get(TYPES) or ()
    return cluster.settings.get(TYPE) != target.settings.get(TYPE) and list(types) == [target.settings.get(TYPE)]


def _without_repeated(
    before: Mapping[str, Any], after: Mapping[str, Any], former: Sequence[Group] | None, groups: Sequence[Group] | None
) -> Sequence[Group]:
    """The groups in which the control group keeps its earlier values of the settings that other fields state too: a
    record keeps both, and a person changes one."""
    earlier = {name_of(group): group for group in former or ()}
    repeated_values = {
        **({"min_size": after.get(SIZE), "max_size": after.get(SIZE)} if before.get(SIZE) != after.get(SIZE) else {}),
        **({"instance_types": after.get(TYPES)} if before.get(TYPES) != after.get(TYPES) else {}),
    }
    return [
        {
            **group,
            **{
                name: earlier[name_of(group)].get(name)
                for name in repeated_values
                if group.get(name) == repeated_values[name]
            },
        }
        if group.get("role") == CONTROL and name_of(group) in earlier
        else group
        for group in groups or ()
    ]


def _of_groups(setting: str, before: Sequence[Group], after: Sequence[Group]) -> Iterator[Difference]:
    earlier, later = ({name_of(group): group for group in groups} for groups in (before, after))
    for index, group in enumerate(after):
        path, former = ("settings", setting, index), earlier.get(name_of(group))
        if former is None:
            yield _difference(path, None, dict(group))
            continue
        for name in sorted(former.keys() | group.keys()):
            if _in_order(name, former.get(name)) != _in_order(name, group.get(name)):
                yield _difference((*path, name), former.get(name), group.get(name))
    for index, group in enumerate(before):
        if name_of(group) not in later:
            yield _difference(("settings", setting, index), dict(group), None)


def changed_groups(operation: Operation, cluster: Cluster) -> frozenset[str]:
    """The names of the node groups that a change makes or alters in the cluster, which has its settings."""
    names = set()
    for change in operation.changes:
        _, head, setting, *deeper = [*str(change["pointer"]).split("/"), ""]
        groups = cluster.settings.get(setting) if head == "settings" and setting in GROUP_SETTINGS else None
        if groups and deeper[0].isdigit() and int(deeper[0]) < len(groups) and change["after"] is not None:
            names.add(name_of(groups[int(deeper[0])]))
    return frozenset(names)


def _difference(path: Sequence[str | int], before: Any, after: Any) -> Difference:
    return {"pointer": pointer(*path), "before": before, "after": after}
