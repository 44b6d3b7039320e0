"""Number of machines that a managed node group may have, and what else EKS changes of one that is there.

The desired size is given once. From then on the claims of the group's pool decide it, by the auto scaling group; what
EKS tells of it is minutes old at times, so that it is never sent back: machines of claims would go.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import datetime
from typing import Any

from stockyard.domain.records import Resource
from stockyard.errors import VendorRefused
from stockyard.providers.clouds.aws import tags
from stockyard.providers.clusters.eks import names
from stockyard.providers.clusters.eks.building import Builder
from stockyard.providers.clusters.eks.control_plane import token
from stockyard.providers.clusters.eks.groups import node_labels, node_taints

REBALANCE = "AZRebalance"
"""The process of EC2 Auto Scaling that makes a machine in one zone and ends one in another when they differ by two."""
LEAST_MAXIMUM = 1
"""EKS takes no smaller one."""
_EFFECTS = {"NoSchedule": "NO_SCHEDULE", "PreferNoSchedule": "PREFER_NO_SCHEDULE", "NoExecute": "NO_EXECUTE"}
_UPDATE, _UPDATES = "update", "updates"
"""In the line's detail: the update that goes on, and how many there were."""
_MARKED = "marked"


def first(builder: Builder, group: Mapping[str, Any]) -> dict[str, int]:
    """The limits and the number of machines that a new group has at first. A capacity block has none before it
    begins: EKS would try for its time-out, and fail."""
    least, most = int(group["min_size"]), max(LEAST_MAXIMUM, int(group["max_size"]))
    if group.get("capacity_reservation_id") and not has_begun(builder, str(group["capacity_reservation_id"])):
        return {"minSize": 0, "maxSize": most, "desiredSize": 0}
    return {"minSize": least, "maxSize": most, "desiredSize": min(max(int(group["count"]), least), most)}


def has_begun(builder: Builder, reservation: str) -> bool:
    """Whether machines can be had of the reservation now."""
    listing = builder.calls.described_items(
        "describe_capacity_reservations", "CapacityReservations", CapacityReservationIds=[reservation]
    )
    if not listing:
        raise VendorRefused(
            f"there is no capacity reservation {reservation} in {builder.calls.region}",
            hint="Name one of this account and region in the group.",
        )
    start = listing[0].get("StartDate")
    is_open = not isinstance(start, datetime) or start <= builder.now
    return is_open and listing[0].get("State") == "active"


def limits(builder: Builder, group: Mapping[str, Any], present: Mapping[str, int], size: int) -> dict[str, int]:
    """The limits for a group with these settings in EKS and really ``size`` machines. No machine goes because a limit
    is lowered: the claims see to that.

    The desired size is among them only where EKS would refuse the others for want of it."""
    desired = int(present.get("desiredSize") or 0)
    least, most = int(group["min_size"]), max(LEAST_MAXIMUM, int(group["max_size"]))
    if group.get("capacity_reservation_id") and not has_begun(builder, str(group["capacity_reservation_id"])):
        least = 0
    bounds = {"minSize": least, "maxSize": max(most, size, desired)}
    return bounds if min(size, desired) >= least else {**bounds, "desiredSize": max(size, least)}


def size_of(builder: Builder, described: Mapping[str, Any]) -> int:
    """Number of machines that the group shall have, as EC2 Auto Scaling has it now."""
    resources = described.get("resources") or {}
    names_of_groups = [str(entry["name"]) for entry in resources.get("autoScalingGroups") or ()]
    if not names_of_groups:
        return int(described["scalingConfig"].get("desiredSize") or 0)
    answer = builder.calls.call("autoscaling", "describe_auto_scaling_groups", AutoScalingGroupNames=names_of_groups)
    return sum(int(item["DesiredCapacity"]) for item in answer["AutoScalingGroups"])


def converge(builder: Builder, line: Resource, group: Mapping[str, Any], described: Mapping[str, Any]) -> str | None:
    """Bring limits, labels, taints and version to the settings, one call a time. What is waited for."""
    name = str(described["nodegroupName"])
    if described["status"] not in ("ACTIVE", "DEGRADED"):
        return f"node group {name} is {described['status']}"
    try:
        waiting = _update_in_progress(builder, line, name)
    except VendorRefused:
        _processes(builder, described, "suspend_processes")
        raise
    if waiting:
        return waiting
    change = _changes(builder, group, described)
    if change:
        _call(builder, line, "update_nodegroup_config", name, change)
        return f"node group {name} is changed"
    version = builder.work.cluster.kubernetes_version
    if described.get("version", version) != version and not _keeps_version(builder, group, described):
        # EKS has new machines in the zones of the old ones by this process alone; they are replaced anyway.
        _processes(builder, described, "resume_processes")
        line = builder.ledger.made(line, line.vendor_id, {**line.detail, _MARKED: False})
        _call(builder, line, "update_nodegroup_version", name, {"version": version})
        return f"the nodes of {name} get Kubernetes {version}"
    return None


def _keeps_version(builder: Builder, group: Mapping[str, Any], described: Mapping[str, Any]) -> bool:
    """Whether a group stays as it is while the cluster gets another version: one of a capacity block that has machines.
    EKS's guide wants its size to be 0 for an upgrade, and machines of a block are paid until its end. Nodes may be some
    minors older than their cluster; ``upgrade_findings`` refuses more."""
    return bool(group.get("capacity_reservation_id")) and size_of(builder, described) > 0


def lower(builder: Builder, line: Resource, described: Mapping[str, Any]) -> bool:
    """Let a group that is to go make no more machines. Whether it still has any."""
    present, size = described["scalingConfig"], size_of(builder, described)
    target = {"minSize": 0, "maxSize": max(LEAST_MAXIMUM, size, int(present.get("desiredSize") or 0))}
    if described["status"] != "UPDATING" and not target.items() <= dict(present).items():
        _call(builder, line, "update_nodegroup_config", str(described["nodegroupName"]), {"scalingConfig": target})
    return size > 0


def mark(builder: Builder, line: Resource, described: Mapping[str, Any]) -> str | None:
    """Give the scaling groups behind the group our tags, once and after each new version: by these our role may change
    them. And let them end no machine of a claim for the sake of an even spread over zones. What is waited for."""
    if line.detail.get(_MARKED):
        return None
    own = {**tags.of_owner(builder.owner), tags.GENERATION: builder.owner.generation}
    for scaling_group in described.get("resources", {}).get("autoScalingGroups", ()):
        pairs = [
            {
                "ResourceId": scaling_group["name"],
                "ResourceType": "auto-scaling-group",
                "Key": key,
                "Value": value,
                "PropagateAtLaunch": False,
            }
            for key, value in own.items()
        ]
        builder.calls.call("autoscaling", "create_or_update_tags", Tags=pairs)
    _processes(builder, described, "suspend_processes")
    builder.ledger.made(line, line.vendor_id, {**line.detail, _MARKED: True})
    return None


def _processes(builder: Builder, described: Mapping[str, Any], operation: str) -> None:
    """Suspend or resume the spreading over zones, of each scaling group behind the group."""
    for scaling_group in described.get("resources", {}).get("autoScalingGroups", ()):
        name = str(scaling_group["name"])
        builder.calls.call("autoscaling", operation, AutoScalingGroupName=name, ScalingProcesses=[REBALANCE])


def _changes(builder: Builder, group: Mapping[str, Any], described: Mapping[str, Any]) -> dict[str, Any]:
    """Differences of a group, as EKS takes them."""
    change: dict[str, Any] = {}
    present = {name: int(size) for name, size in described["scalingConfig"].items()}
    target = limits(builder, group, present, size_of(builder, described))
    if not target.items() <= present.items():
        change["scalingConfig"] = target
    labels, former = node_labels(group), dict(described.get("labels") or {})
    if labels != former:
        surplus = sorted(former.keys() - labels.keys())
        added = {key: value for key, value in labels.items() if former.get(key) != value}
        change["labels"] = _without_empty({"addOrUpdateLabels": added, "removeLabels": surplus})
    taints = {_as_key(taint): taint for taint in eks_taints(group)}
    present_taints = {_as_key(taint): _whole(taint) for taint in described.get("taints") or ()}
    if taints != present_taints:
        added_taints = [taint for key, taint in taints.items() if present_taints.get(key) != taint]
        gone_taints = [taint for key, taint in present_taints.items() if key not in taints]
        change["taints"] = _without_empty({"addOrUpdateTaints": added_taints, "removeTaints": gone_taints})
    return change


def eks_taints(group: Mapping[str, Any]) -> list[dict[str, str]]:
    """The group's taints as EKS spells them."""
    return [_whole({**taint, "effect": _EFFECTS[taint["effect"]]}) for taint in node_taints(group)]


def _whole(taint: Mapping[str, str]) -> dict[str, str]:
    return {"key": taint["key"], "value": taint.get("value", ""), "effect": taint["effect"]}


def _as_key(taint: Mapping[str, str]) -> tuple[str, str]:
    return taint["key"], taint["effect"]


def _without_empty(parts: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in parts.items() if value}


def _call(builder: Builder, line: Resource, operation: str, name: str, parameters: Mapping[str, Any]) -> None:
    number = int(line.detail.get(_UPDATES) or 0)
    answer = builder.calls.call(
        "eks",
        operation,
        clusterName=names.cluster_name(builder.work.cluster),
        nodegroupName=name,
        clientRequestToken=token(line, str(number), operation, json.dumps(parameters, sort_keys=True)),
        **parameters,
    )
    builder.ledger.made(line, line.vendor_id, {**line.detail, _UPDATE: str(answer["update"]["id"])})


def _update_in_progress(builder: Builder, line: Resource, name: str) -> str | None:
    """Look at an update, and tell what is waited for while it goes on. One that is over is written down as such, so
    that a later one is another. Raises ``VendorRefused`` for one that failed."""
    update_id = line.detail.get(_UPDATE)
    if not update_id:
        return None
    cluster = names.cluster_name(builder.work.cluster)
    answer = builder.calls.call("eks", "describe_update", name=cluster, nodegroupName=name, updateId=update_id)
    update = answer["update"]
    if update["status"] == "InProgress":
        return f"EKS works on {update['type']} of node group {name}"
    number = int(line.detail.get(_UPDATES) or 0) + 1
    builder.ledger.made(line, line.vendor_id, {**line.detail, _UPDATE: "", _UPDATES: number})
    if update["status"] != "Successful":
        reasons = "; ".join(str(error.get("errorMessage")) for error in update.get("errors", ()))
        raise VendorRefused(
            f"EKS did not carry out {update['type']} of node group {name}: {reasons or update['status']}",
            code=str(update["status"]),
            hint="Mend what EKS names, and change the cluster again.",
        )
    return f"{update['type']} of node group {name} is done"
