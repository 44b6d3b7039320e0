"""The node_groups phase: a managed node group for each group of the settings.

What EKS can change of a group (limits, labels, taints, version) is changed. For what it cannot (type, disk, zones,
reservation) a new generation of the group is made beside the former one, which goes when it is empty.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from stockyard.domain.records import Cluster, Resource
from stockyard.errors import InsufficientCapacity, VendorError, VendorNotFound, VendorRefused
from stockyard.ports import Outcome
from stockyard.providers.clouds.aws.catalog import offerings
from stockyard.providers.clouds.aws.kinds import ec2 as ec2_kinds
from stockyard.providers.clouds.aws.kinds import eks as eks_kinds
from stockyard.providers.clusters.eks import addons, control_plane, names, network
from stockyard.providers.clusters.eks.access import identity
from stockyard.providers.clusters.eks.building import Builder, DesiredResource
from stockyard.providers.clusters.eks.configuration import EFA, is_by_template, node_groups
from stockyard.providers.clusters.eks.groups import node_labels, shape
from stockyard.providers.clusters.eks.nodes import launch_templates, scaling

PHASE = "node_groups"
WAIT_SECONDS = 20
AMI_TYPES = {"system": "AL2023_x86_64_STANDARD", "gpu": "AL2023_x86_64_NVIDIA"}
_EFA_DESCRIPTION = "EFA OS-bypass traffic between gang nodes"
"""As Modelplane has it."""
_SHAPE, _LIMITS, _ZONES = "shape", "limits", "places"
"""In the line's detail: what EKS cannot change, and how many machines in which zones the group has at first."""
_FAILED_IN, _FAILURE = "failed_in", "failure"
"""In the detail of a group that could not be made: the try that met it, and why in EKS's words."""


@dataclass(frozen=True, slots=True)
class Generation:
    """One managed group of a group of the settings. ``number`` counts from 1."""

    pool: str
    number: int

    @classmethod
    def of(cls, line: Resource) -> Generation:
        """Read the generation of a line of the ledger."""
        pool, _, number = line.key.partition("/")
        return cls(pool, int(number or 1))

    @property
    def key(self) -> str:
        """Key on the ledger: the group's name, and from the second on the number."""
        return self.pool if self.number == 1 else f"{self.pool}/{self.number}"

    def name(self, cluster: Cluster) -> str:
        """Name of the group in EKS."""
        return names.node_group_name(cluster, self.pool, self.number)

    def template(self, cluster: Cluster) -> str:
        """Name of the group's launch template."""
        suffix = "" if self.number == 1 else f".{self.number}"
        return names.part(cluster, f"lt-{self.pool}{suffix}")


def ensure(builder: Builder) -> Outcome:
    """Make the groups and bring them to the settings; remove those that these do not name."""
    addons_awaited = addons.before_nodes(builder)
    if addons_awaited:
        return Outcome(False, addons_awaited, WAIT_SECONDS)
    groups = node_groups(builder.work.cluster)
    described = control_plane.describe(builder.calls, names.cluster_name(builder.work.cluster))
    security = _security_groups(builder, described, groups)
    waiting = [text for group in groups if (text := _group(builder, group, security))]
    waiting += _former(builder, {str(group["name"]) for group in groups})
    if waiting:
        return Outcome(False, "; ".join(waiting), WAIT_SECONDS)
    return Outcome(True, f"node groups {', '.join(str(group['name']) for group in groups)}")


def generations(builder: Builder, pool: str) -> list[Resource]:
    """The lines of a group's generations, the first one first."""
    lines = [line for line in builder.ledger.lines() if line.kind == eks_kinds.NODE_GROUP.name]
    own = [line for line in lines if Generation.of(line).pool == pool]
    return sorted(own, key=lambda line: Generation.of(line).number)


def managed_group(
    builder: Builder, group: Mapping[str, Any], generation: Generation, first: Mapping[str, Any]
) -> dict[str, Any]:
    """The parameters of the call that makes the group. Its launch template has the disk, and the type where EKS alone
    could not ask for the machines.
    ``first`` is what was decided when the group was first wanted."""
    cluster = builder.work.cluster
    subnets = network.subnets_of(builder, network.PRIVATE, [str(zone) for zone in first[_ZONES]])
    own: dict[str, Any] = {"launchTemplate": {"name": generation.template(cluster), "version": "$Latest"}}
    if not is_by_template(group):
        own["instanceTypes"] = [group["instance_type"]]
    if group.get("capacity_reservation_id"):
        own["capacityType"] = "CAPACITY_BLOCK"
        # EKS else makes a machine more before it ends one, and a block that is in use has none.
        own["updateConfig"] = {"maxUnavailable": 1, "updateStrategy": "MINIMAL"}
    return {
        "clusterName": names.cluster_name(cluster),
        "nodegroupName": generation.name(cluster),
        "amiType": AMI_TYPES[str(group["role"])],
        "nodeRole": identity.arn(builder, identity.NODE),
        "subnets": [subnet.id for subnet in subnets],
        "labels": node_labels(group),
        "taints": scaling.eks_taints(group),
        "scalingConfig": dict(first[_LIMITS]),
        **own,
    }


def _security_groups(
    builder: Builder, described: Mapping[str, Any], groups: Sequence[Mapping[str, Any]]
) -> tuple[str, ...]:
    """Security groups of interfaces with EFA: a group of their own, and the cluster's, without which no node reaches
    the API."""
    if not any(group.get("fabric") == EFA for group in groups):
        return ()
    name = f"{names.stem(builder.work.cluster)}-efa"
    own = network.security_group(builder, "efa", name, _EFA_DESCRIPTION)
    return own, control_plane.own_security_group(described)


def _group(builder: Builder, group: Mapping[str, Any], security: tuple[str, ...]) -> str | None:
    """Bring one group about. What is waited for; None when it is as the settings have it."""
    generation = _current(builder, group)
    line = builder.ledger.find(eks_kinds.NODE_GROUP.name, generation.key)
    described = _described(builder, generation) if line is not None and line.state == "made" else None
    if line is not None and described is not None:
        if described.get("status") == "CREATE_FAILED":
            # EKS never brings a group out of it. A resume makes it anew.
            return _without_failed(builder, line, described)
        failure = _failure(described)
        if failure is not None:
            raise failure
        lack = _lack(builder, generation, described, security)
        if not lack or scaling.size_of(builder, described):
            _check_version(builder, described, lack)
            return scaling.converge(builder, line, group, described) or scaling.mark(builder, line, described)
        # EKS gives a group nothing else to stand on. Where it has no machines, a second one takes its place at once.
        generation = Generation(generation.pool, generation.number + 1)
    own_groups = security if group.get("fabric") == EFA else ()
    launch_templates.ensure(builder, generation.key, generation.template(builder.work.cluster), group, own_groups)
    _make(builder, group, generation)
    return f"node group {generation.name(builder.work.cluster)} is new"


def _lack(
    builder: Builder,
    generation: Generation,
    described: Mapping[str, Any],
    security: tuple[str, ...],
) -> str | None:
    """Things that the group was made with and that are no more; None for nothing."""
    gone_subnets = sorted(set(described.get("subnets") or ()) - {subnet.id for subnet in network.subnets_of(builder)})
    if gone_subnets:
        return f"subnet {', '.join(gone_subnets)}"
    return launch_templates.lack(builder, generation.key, security)


def _check_version(builder: Builder, described: Mapping[str, Any], lack: str | None) -> None:
    """Raises ``VendorRefused`` where the machines of a group cannot get the cluster's version for want of its template.
    For want of a subnet they come up in the others."""
    version = builder.work.cluster.kubernetes_version
    if lack and lack.startswith(launch_templates.NAME) and described.get("version", version) != version:
        name = described["nodegroupName"]
        raise VendorRefused(
            f"{lack} of node group {name} is gone, and EKS gives a group with machines no other",
            hint="Give the group another type, disk or zones, or remove it and add one of another name: then its"
            " machines are made anew.",
        )


def _without_failed(builder: Builder, line: Resource, described: Mapping[str, Any]) -> str:
    """Remove a group that an earlier try could not make. What is waited for; raises why, in the try that met it.

    EKS forgets its reasons after a while, so that the first ones are kept.
    """
    failure = _failure(described)
    this_try = f"{builder.work.session}/{builder.work.cluster.attempt}"
    failed_in = line.detail.get(_FAILED_IN)
    if failure is not None and failed_in in (None, this_try):
        text = str(line.detail.get(_FAILURE) or failure.detail)
        builder.ledger.made(line, line.vendor_id, {**line.detail, _FAILED_IN: this_try, _FAILURE: text})
        raise _refusal(text, failure.code)
    return builder.remove(line) or f"node group {described['nodegroupName']} is made anew"


def _current(builder: Builder, group: Mapping[str, Any]) -> Generation:
    """The generation that has the group's shape: the newest one, or one more."""
    lines = generations(builder, str(group["name"]))
    if not lines:
        return Generation(str(group["name"]), 1)
    newest = Generation.of(lines[-1])
    return (
        newest
        if shape(lines[-1].detail.get(_SHAPE) or {}) == shape(group)
        else Generation(newest.pool, newest.number + 1)
    )


def _make(builder: Builder, group: Mapping[str, Any], generation: Generation) -> None:
    def create(line: Resource, marks: dict[str, str]) -> str:
        parameters = managed_group(builder, group, generation, line.detail)
        # The same whatever the settings say meanwhile: a repeated call must not differ.
        builder.calls.call("eks", "create_nodegroup", **parameters, tags=marks, clientRequestToken=line.token)
        return name

    group_name = generation.name(builder.work.cluster)
    name = f"{names.cluster_name(builder.work.cluster)}/{group_name}"
    detail = {_SHAPE: shape(group), _LIMITS: scaling.first(builder, group), _ZONES: _zones(builder, group)}
    builder.want(DesiredResource(eks_kinds.NODE_GROUP, generation.key, name, create, detail=detail, identity=True))


def _zones(builder: Builder, group: Mapping[str, Any]) -> list[str]:
    """The zones of the group: those that it names, else those of the cluster that have its type. EKS refuses a group
    with a subnet in another one. A type that no zone has is left to EKS, which says so."""
    if group.get("zones"):
        return [str(zone) for zone in group["zones"]]
    name = str(group["instance_type"])
    offers = offerings.offered_locations(builder.calls, [name], zones=True)
    zones = [subnet.zone for subnet in network.subnets_of(builder, network.PRIVATE)]
    return [zone for zone in zones if (name, zone) in offers] or zones


def _described(builder: Builder, generation: Generation) -> dict[str, Any] | None:
    """The group as EKS has it; None when it is not there."""
    cluster = builder.work.cluster
    group_names = {"clusterName": names.cluster_name(cluster), "nodegroupName": generation.name(cluster)}
    try:
        answer = builder.calls.call("eks", "describe_nodegroup", **group_names)
    except VendorNotFound:
        return None
    described: dict[str, Any] = answer["nodegroup"]
    return described


def _failure(described: Mapping[str, Any]) -> VendorError | None:
    """Error of a group that could not be made, in EKS's words."""
    if described.get("status") not in ("CREATE_FAILED", "DELETE_FAILED"):
        return None
    text = addons.issues_of_group(described) or str(described["status"])
    return _refusal(f"node group {described['nodegroupName']}: {text}", str(described["status"]))


def _refusal(text: str, status: str) -> VendorError:
    leaf = InsufficientCapacity if "capacity" in text.lower() else VendorRefused
    return leaf(text, code=status)


def _former(builder: Builder, pools: set[str]) -> list[str]:
    """Former generations and groups that the settings do not name: what is waited for until they are gone."""
    lines = [line for line in builder.ledger.lines() if line.kind == eks_kinds.NODE_GROUP.name]
    newest = {
        pool: Generation.of(generations(builder, pool)[-1]).key for pool in {Generation.of(x).pool for x in lines}
    }
    waiting = []
    for line in lines:
        generation = Generation.of(line)
        if generation.pool in pools and newest[generation.pool] == line.key:
            continue
        waiting.append(_retire(builder, line, generation, empty_first=generation.pool in pools))
    return [text for text in waiting if text]


def _retire(builder: Builder, line: Resource, generation: Generation, *, empty_first: bool) -> str | None:
    """Remove a group with its template. A former generation goes when its nodes have gone, by name and one by one."""
    if empty_first and line.state == "made":
        described = _described(builder, generation) or {}
        if described.get("status") in ("ACTIVE", "DEGRADED", "UPDATING") and scaling.lower(builder, line, described):
            name = generation.name(builder.work.cluster)
            return f"node group {name} still has nodes; it goes when they have gone"
    return builder.remove(line) or _remove_template(builder, generation)


def _remove_template(builder: Builder, generation: Generation) -> str | None:
    """With the placement group that it names."""
    for kind in (ec2_kinds.LAUNCH_TEMPLATE, ec2_kinds.PLACEMENT_GROUP):
        line = builder.ledger.find(kind.name, generation.key)
        waiting = builder.remove(line) if line is not None else None
        if waiting:
            return waiting
    return None


def begin_removal(builder: Builder) -> str:
    """Delete all groups at a time: each takes minutes. What is waited for."""
    lines = [line for line in builder.ledger.lines() if line.kind == eks_kinds.NODE_GROUP.name]
    return "; ".join(text for line in lines if (text := builder.remove(line)))
