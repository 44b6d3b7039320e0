"""Things that a cluster's own controllers made: load balancers, their security groups, volumes, known by their tags.

Our own things may carry such a tag too; they carry ours besides and are left to their phases. What our role may not
delete holds nothing up at first: the machine, which costs and makes more, goes before a person is asked for help.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from stockyard.errors import PermissionDenied, VendorConflict, VendorNotFound
from stockyard.ports import Outcome
from stockyard.providers.clouds.aws import tags
from stockyard.providers.clouds.aws.calls import Calls
from stockyard.providers.clouds.aws.kinds import elb as elb_kinds
from stockyard.providers.clouds.aws.kinds.elb import with_tags

_BATCH = 20
"""Names that one DescribeTags of classic balancers takes."""


_OF_THE_CLOUD = frozenset({"aws:eks:cluster-name", "eks:cluster-name"})
"""Tags of what the cloud's own service made for the cluster and removes with it: a control plane's security group, and
the machines of node groups with their disks. They carry a controller's tag too."""


@dataclass(frozen=True, slots=True)
class _Look:
    """One look at what is there. ``busy`` is waited for; ``denied`` is what our role may not delete, and why."""

    calls: Calls
    marks: Sequence[Mapping[str, str]]
    busy: list[str] = field(default_factory=list)
    denied: dict[str, str] = field(default_factory=dict)

    def made_by_controllers(self, carried: Mapping[str, str]) -> bool:
        other = tags.RESOURCE in carried or _OF_THE_CLOUD.intersection(carried)
        return not other and any(tags.carries(carried, mark) for mark in self.marks)

    def delete(self, name: str, call: Callable[[], object]) -> bool:
        """Whether the deletion was taken. What has just gone is."""
        try:
            with suppress(VendorNotFound):
                call()
        except VendorConflict:
            self.busy.append(name)
            return False
        except PermissionDenied as error:
            self.denied[name] = error.detail
            return False
        return True

    def tagged(self, operation: str, plural: str, identity: str) -> list[dict[str, Any]]:
        """Things that ``operation`` of EC2 lists with one of the tags, each once."""
        things: dict[str, dict[str, Any]] = {}
        for mark in self.marks:
            for item in self.calls.pages("ec2", operation, plural, Filters=tags.filters(mark)):
                if self.made_by_controllers(tags.mapping(item.get("Tags"))):
                    things[str(item[identity])] = item
        return list(things.values())


def remove(calls: Calls, name: str) -> Outcome:
    """Delete load balancers, then target groups and security groups, then volumes that nothing uses any more.

    ``name`` is what the controllers call the cluster.
    """
    look = _look(calls, name, attached=False)
    if look.busy:
        return _waiting(look)
    if look.denied:
        return Outcome(True, f"our role may not delete {', '.join(look.denied)}")
    return Outcome(True)


def remove_rest(calls: Calls, name: str) -> Outcome:
    """The same once the control plane is gone: the volumes it used, and what its controllers made to the last.

    Raises ``PermissionDenied`` for what our role may not delete: nothing else will remove it.
    """
    look = _look(calls, name, attached=True)
    if look.busy:
        return _waiting(look)
    if look.denied:
        raise PermissionDenied(
            f"left of the cluster's controllers: {', '.join(look.denied)}. {next(iter(look.denied.values()))}",
            hint="Delete it in the AWS account; the deletion then goes on.",
        )
    return Outcome(True)


def _waiting(look: _Look) -> Outcome:
    return Outcome(False, f"of the cluster's controllers is left: {', '.join(look.busy)}", 10, remaining=(*look.busy,))


def _look(calls: Calls, name: str, *, attached: bool) -> _Look:
    look = _Look(calls, tags.controllers(name))
    _balancers(look)
    if not look.busy:
        # A balancer that is being deleted still uses its groups.
        _target_groups(look)
        _security_groups(look)
        _volumes(look, attached=attached)
    return look


def _balancers(look: _Look) -> None:
    calls = look.calls
    arns = [str(b["LoadBalancerArn"]) for b in calls.pages("elbv2", "describe_load_balancers", "LoadBalancers")]
    for item in with_tags(calls, arns):
        name = f"load_balancer {item.vendor_id}"
        if look.made_by_controllers(item.tags) and look.delete(
            name, partial(elb_kinds.LOAD_BALANCER.delete, calls, item.vendor_id)
        ):
            look.busy.append(name)
    for classic in _classic(look):
        name = f"classic_load_balancer {classic}"
        if look.delete(name, partial(calls.call, "elb", "delete_load_balancer", LoadBalancerName=classic)):
            look.busy.append(name)


def _classic(look: _Look) -> Iterator[str]:
    listing = look.calls.pages("elb", "describe_load_balancers", "LoadBalancerDescriptions")
    names = [str(b["LoadBalancerName"]) for b in listing]
    for start in range(0, len(names), _BATCH):
        answer = look.calls.call("elb", "describe_tags", LoadBalancerNames=names[start : start + _BATCH])
        for item in answer["TagDescriptions"]:
            if look.made_by_controllers(tags.mapping(item["Tags"])):
                yield str(item["LoadBalancerName"])


def _target_groups(look: _Look) -> None:
    calls = look.calls
    arns = [str(g["TargetGroupArn"]) for g in calls.pages("elbv2", "describe_target_groups", "TargetGroups")]
    for item in with_tags(calls, arns):
        if look.made_by_controllers(item.tags):
            look.delete(f"target_group {item.vendor_id}", partial(elb_kinds.TARGET_GROUP.delete, calls, item.vendor_id))


def _security_groups(look: _Look) -> None:
    calls = look.calls
    for group in look.tagged("describe_security_groups", "SecurityGroups", "GroupId"):
        group_id = str(group["GroupId"])
        _forget_references(calls, str(group["VpcId"]), group_id)
        look.delete(f"security_group {group_id}", partial(calls.call, "ec2", "delete_security_group", GroupId=group_id))


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


def _volumes(look: _Look, *, attached: bool) -> None:
    """Delete volumes that are free; with ``attached`` those in use are waited for, else left to a later phase."""
    for volume in look.tagged("describe_volumes", "Volumes", "VolumeId"):
        name = f"volume {volume['VolumeId']}"
        if volume.get("State") == "available":
            look.delete(name, partial(look.calls.call, "ec2", "delete_volume", VolumeId=str(volume["VolumeId"])))
        elif attached and volume.get("State") not in ("deleting", "deleted"):
            look.busy.append(name)
