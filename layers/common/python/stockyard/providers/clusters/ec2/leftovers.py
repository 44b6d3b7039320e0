"""What a cluster's own controllers made: load balancers, their security groups, volumes, known by the kubernetes tag.

Our own things may carry that tag too; they carry ours besides and are left to their phases.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from typing import Any

from stockyard.errors import VendorConflict, VendorNotFound
from stockyard.ports import Outcome
from stockyard.providers.clusters.ec2 import elb_kinds, tags
from stockyard.providers.clusters.ec2.building import Builder
from stockyard.providers.clusters.ec2.calls import Calls
from stockyard.providers.clusters.ec2.elb_kinds import with_tags


def remove(builder: Builder) -> Outcome:
    """Delete load balancers, then target groups and security groups, then volumes that nothing uses any more."""
    calls, key = builder.calls, tags.kubernetes(builder.work.cluster.client_id)
    balancers = _balancers(calls, key)
    if balancers:
        return Outcome(False, "load balancers of the cluster are being deleted", 10, remaining=tuple(balancers))
    waiting = [*_target_groups(calls, key), *_security_groups(calls, key), *_volumes(calls, key, attached=False)]
    if waiting:
        return Outcome(False, "what the cluster made is still in use", remaining=tuple(waiting))
    return Outcome(True)


def remove_volumes(builder: Builder) -> Outcome:
    """The volumes that were attached to the control plane, once it is gone."""
    waiting = _volumes(builder.calls, tags.kubernetes(builder.work.cluster.client_id), attached=True)
    if waiting:
        return Outcome(False, "volumes of the cluster are still in use", remaining=tuple(waiting))
    return Outcome(True)


def _theirs(carried: dict[str, str], key: str) -> bool:
    return carried.get(key) == "owned" and tags.RESOURCE not in carried


def _balancers(calls: Calls, key: str) -> list[str]:
    arns = [str(b["LoadBalancerArn"]) for b in calls.pages("elbv2", "describe_load_balancers", "LoadBalancers")]
    found = []
    for item in with_tags(calls, arns):
        if _theirs(dict(item.tags), key):
            elb_kinds.LOAD_BALANCER.delete(calls, item.vendor_id)
            found.append(f"load_balancer {item.vendor_id}")
    for name in _classic(calls, key):
        calls.call("elb", "delete_load_balancer", LoadBalancerName=name)
        found.append(f"classic_load_balancer {name}")
    return found


def _classic(calls: Calls, key: str) -> Iterator[str]:
    listing = calls.pages("elb", "describe_load_balancers", "LoadBalancerDescriptions")
    names = [str(b["LoadBalancerName"]) for b in listing]
    for start in range(0, len(names), 20):
        answer = calls.call("elb", "describe_tags", LoadBalancerNames=names[start : start + 20])
        for item in answer["TagDescriptions"]:
            if _theirs(tags.mapping(item["Tags"]), key):
                yield str(item["LoadBalancerName"])


def _target_groups(calls: Calls, key: str) -> list[str]:
    arns = [str(g["TargetGroupArn"]) for g in calls.pages("elbv2", "describe_target_groups", "TargetGroups")]
    busy = []
    for item in with_tags(calls, arns):
        if _theirs(dict(item.tags), key):
            try:
                elb_kinds.TARGET_GROUP.delete(calls, item.vendor_id)
            except VendorConflict:
                busy.append(f"target_group {item.vendor_id}")
    return busy


def _security_groups(calls: Calls, key: str) -> list[str]:
    listing = calls.pages("ec2", "describe_security_groups", "SecurityGroups", Filters=tags.filters({key: "owned"}))
    busy = []
    for group in [g for g in listing if _theirs(tags.mapping(g.get("Tags")), key)]:
        group_id = str(group["GroupId"])
        _forget_references(calls, str(group["VpcId"]), group_id)
        try:
            with suppress(VendorNotFound):
                calls.call("ec2", "delete_security_group", GroupId=group_id)
        except VendorConflict:
            busy.append(f"security_group {group_id}")
    return busy


def _forget_references(calls: Calls, vpc: str, group_id: str) -> None:
    """A controller lets its load balancer's group into the node group; such a rule would keep the group for ever."""
    here = [{"Name": "vpc-id", "Values": [vpc]}]
    for group in calls.pages("ec2", "describe_security_groups", "SecurityGroups", Filters=here):
        if group["GroupId"] == group_id or tags.RESOURCE not in tags.mapping(group.get("Tags")):
            continue
        for permission in group.get("IpPermissions", ()):
            pairs = [p for p in permission.get("UserIdGroupPairs", ()) if p.get("GroupId") == group_id]
            if pairs:
                calls.call(
                    "ec2",
                    "revoke_security_group_ingress",
                    GroupId=group["GroupId"],
                    IpPermissions=[_only(permission, group_id)],
                )


def _only(permission: dict[str, Any], group_id: str) -> dict[str, Any]:
    ports: dict[str, Any] = {n: permission[n] for n in ("IpProtocol", "FromPort", "ToPort") if n in permission}
    return {**ports, "UserIdGroupPairs": [{"GroupId": group_id}]}


def _volumes(calls: Calls, key: str, *, attached: bool) -> list[str]:
    """Delete volumes that are free; with ``attached`` those in use are waited for, else left to a later phase."""
    listing = calls.pages("ec2", "describe_volumes", "Volumes", Filters=tags.filters({key: "owned"}))
    busy = []
    for volume in [v for v in listing if _theirs(tags.mapping(v.get("Tags")), key)]:
        volume_id = str(volume["VolumeId"])
        if volume.get("State") != "available":
            if attached and volume.get("State") not in ("deleting", "deleted"):
                busy.append(f"volume {volume_id}")
            continue
        try:
            with suppress(VendorNotFound):
                calls.call("ec2", "delete_volume", VolumeId=volume_id)
        except VendorConflict:
            busy.append(f"volume {volume_id}")
    return busy
