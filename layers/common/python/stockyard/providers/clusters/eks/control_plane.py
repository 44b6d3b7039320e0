"""The control_plane phase: the cluster itself, and its version, support and endpoint as the settings have them."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from stockyard.domain.records import Cluster, Resource
from stockyard.errors import NotYetVisible, VendorNotFound, VendorRefused
from stockyard.ports import Outcome
from stockyard.providers.clouds.aws import tags
from stockyard.providers.clouds.aws.calls import Calls
from stockyard.providers.clouds.aws.kinds import ec2 as ec2_kinds
from stockyard.providers.clouds.aws.kinds import eks as eks_kinds
from stockyard.providers.clouds.aws.kinds.base import State
from stockyard.providers.clusters.eks import layout, names, network
from stockyard.providers.clusters.eks.access import creator, endpoint, identity
from stockyard.providers.clusters.eks.building import Builder, DesiredResource

KEY = "main"
LOG_TYPES = ("api", "audit", "authenticator", "controllerManager", "scheduler")
"""Logs of a control plane that EKS can write to CloudWatch."""
WAIT_SECONDS = 30
FEWEST_ZONES = 2
"""Zones that EKS wants for a control plane at least."""
_NO_CONTROL_PLANES = "UnsupportedAvailabilityZoneException"
"""The code of EKS's refusal of a zone. The text ends with those that may be chosen."""
_UPDATE, _UPDATES = "update", "updates"
"""In the line's detail: the update that goes on, and how many there were."""


@dataclass(frozen=True, slots=True)
class _Change:
    """One thing that differs, and the call that changes it. EKS takes one at a time."""

    text: str
    operation: str
    parameters: Mapping[str, Any]


def ensure(builder: Builder) -> Outcome:
    """Make the cluster and wait until it answers; then change what differs from the settings, one thing after another.

    The facts are its endpoint and the authority of its certificate.
    """
    name = names.cluster_name(builder.work.cluster)
    create = partial(_create, builder, name)
    detail = creator.detail(builder)
    cluster = builder.want(DesiredResource(eks_kinds.CLUSTER, KEY, name, create, detail=detail, identity=True))
    described = describe(builder.calls, name)
    if cluster.pending or described.get("status") != "ACTIVE":
        return Outcome(False, f"EKS cluster {name} is {described.get('status', 'new')}", WAIT_SECONDS)
    group = _own_group(builder, described)
    if group:
        endpoint.let_in(builder.calls, builder.work.cluster, group)
    waiting = _converged(builder, described)
    if waiting:
        return Outcome(False, waiting, WAIT_SECONDS)
    facts = {
        "endpoint": str(described["endpoint"]),
        "certificate_authority": str(described["certificateAuthority"]["data"]),
    }
    return Outcome(True, f"EKS cluster {name}, Kubernetes {described['version']}", facts=facts)


def describe(calls: Calls, name: str) -> dict[str, Any]:
    """The cluster as EKS has it."""
    described: dict[str, Any] = calls.call("eks", "describe_cluster", name=name)["cluster"]
    return described


def own_security_group(described: Mapping[str, Any]) -> str:
    """The group that EKS has made for the cluster; nodes need it to reach the API."""
    return str(described["resourcesVpcConfig"].get("clusterSecurityGroupId") or "")


def token(line: Resource, *parts: str) -> str:
    """A client token of one change of the line's thing: the same whenever it is tried again."""
    return hashlib.sha256("/".join((line.token, *parts)).encode()).hexdigest()[:32]


def _create(builder: Builder, name: str, line: Resource, marks: dict[str, str]) -> str:
    try:
        _ask(builder, name, line.token, marks, network.subnets_of(builder))
    except VendorRefused as refusal:
        # Which zones have control planes is EKS's to say, whatever we know: nodes may stand in the others.
        if refusal.code != _NO_CONTROL_PLANES:
            raise
        subnets = zones_with_control_planes(refusal.detail, network.subnets_of(builder))
        if len({subnet.zone for subnet in subnets}) < FEWEST_ZONES:
            hint = "Name zones of the cluster that EKS names here."
            raise VendorRefused(refusal.detail, code=refusal.code, hint=hint) from refusal
        _ask(builder, name, token(line, *(subnet.id for subnet in subnets)), marks, subnets)
    return name


def zones_with_control_planes(refusal: str, subnets: Sequence[network.Subnet]) -> list[network.Subnet]:
    """The subnets in the zones that EKS names in its refusal of others."""
    _, _, choice = refusal.partition("choose from these availability zones:")
    named = {zone.strip(" .") for zone in choice.split(",")}
    return [subnet for subnet in subnets if subnet.zone in named]


def _ask(
    builder: Builder, name: str, client_token: str, marks: dict[str, str], subnets: Sequence[network.Subnet]
) -> None:
    cluster = builder.work.cluster
    builder.calls.call(
        "eks",
        "create_cluster",
        name=name,
        version=cluster.kubernetes_version,
        roleArn=identity.arn(builder, identity.CONTROL_PLANE),
        resourcesVpcConfig={"subnetIds": [subnet.id for subnet in subnets], **endpoint.access(cluster)},
        # The range that EKS would choose too, said by us: machines outside of node groups have to be told it.
        kubernetesNetworkConfig={"serviceIpv4Cidr": layout.service_cidr(network.vpc_cidr(cluster))},
        accessConfig={"authenticationMode": "API_AND_CONFIG_MAP", "bootstrapClusterCreatorAdminPermissions": True},
        upgradePolicy={"supportType": _support(cluster)},
        **({"logging": _logging(_logs(cluster))} if _logs(cluster) else {}),
        **({"deletionProtection": True} if _is_protected(cluster) else {}),
        # The add-ons are ours to make, each with a version and tags.
        bootstrapSelfManagedAddons=False,
        tags=marks,
        clientRequestToken=client_token,
    )


def _support(cluster: Cluster) -> str:
    return str(cluster.settings.get("support") or "standard").upper()


def _logs(cluster: Cluster) -> list[str]:
    return sorted(str(kind) for kind in cluster.settings.get("control_plane_logs") or ())


def _logging(kinds: Sequence[str]) -> dict[str, Any]:
    """Settings of EKS with these logs on, and all others off."""
    entries = ((True, [*kinds]), (False, [kind for kind in LOG_TYPES if kind not in kinds]))
    return {"clusterLogging": [{"types": types, "enabled": enabled} for enabled, types in entries if types]}


def _present_logs(described: Mapping[str, Any]) -> list[str]:
    entries = (described.get("logging") or {}).get("clusterLogging") or ()
    return sorted(str(kind) for entry in entries if entry.get("enabled") for kind in entry.get("types") or ())


def _is_protected(cluster: Cluster) -> bool:
    return bool(cluster.settings.get("deletion_protection"))


def without_protection(builder: Builder) -> str | None:
    """Take the protection away before the cluster is deleted. What is waited for."""
    name = names.cluster_name(builder.work.cluster)
    line = builder.ledger.find(eks_kinds.CLUSTER.name, KEY)
    try:
        described = describe(builder.calls, name)
    except VendorNotFound:
        return None
    if line is None or not described.get("deletionProtection"):
        return None
    if described.get("status") != "ACTIVE":
        return f"EKS cluster {name} is {described.get('status')}"
    builder.calls.call(
        "eks",
        "update_cluster_config",
        name=name,
        deletionProtection=False,
        clientRequestToken=token(line, str(builder.work.now), "deletion"),
    )
    return f"EKS cluster {name} is protected no more"


def _own_group(builder: Builder, described: Mapping[str, Any]) -> str:
    """The group of the cluster's own is EKS's, which may leave it behind: it gets a line and our tags."""
    group = own_security_group(described)
    if not group:
        return ""

    def mark(_line: Resource, marks: dict[str, str]) -> str:
        # Its name stays the one that EKS gave it.
        own = {key: value for key, value in marks.items() if key != "Name"}
        builder.calls.call("ec2", "create_tags", Resources=[group], Tags=tags.pairs(own))
        return group

    builder.want(DesiredResource(ec2_kinds.SECURITY_GROUP, "cluster", f"{described['name']}-cluster", mark))
    return group


def _converged(builder: Builder, described: Mapping[str, Any]) -> str | None:
    """Bring the cluster to its settings, and tell what is waited for; None when nothing differs any more."""
    line = builder.ledger.find(eks_kinds.CLUSTER.name, KEY)
    if line is None:
        raise NotYetVisible(f"{described['name']} is not on the ledger")
    if line.detail.get(_UPDATE):
        return _followed(builder, line, str(described["name"]))
    change = _other_subnets(builder, described) or _next_change(builder.work.cluster, described)
    if change is None:
        return None
    number = int(line.detail.get(_UPDATES) or 0)
    answer = builder.calls.call(
        "eks",
        change.operation,
        name=described["name"],
        clientRequestToken=token(line, str(number), change.text),
        **change.parameters,
    )
    builder.ledger.made(line, line.vendor_id, {**line.detail, _UPDATE: str(answer["update"]["id"])})
    return change.text


def _followed(builder: Builder, line: Resource, name: str) -> str:
    """Follow an update. One that has failed is written down as over, so that a later try makes another."""
    update_id = str(line.detail[_UPDATE])
    update = builder.calls.call("eks", "describe_update", name=name, updateId=update_id)["update"]
    if update["status"] == "InProgress":
        return f"EKS works on {update['type']} of {name}"
    number = int(line.detail.get(_UPDATES) or 0) + 1
    builder.ledger.made(line, line.vendor_id, {**line.detail, _UPDATE: "", _UPDATES: number})
    if update["status"] != "Successful":
        reasons = "; ".join(str(error.get("errorMessage")) for error in update.get("errors", ()))
        raise VendorRefused(
            f"EKS did not carry out {update['type']} of {name}: {reasons or update['status']}",
            code=str(update["status"]),
            hint="Mend what EKS names, and change the cluster again.",
        )
    return f"{update['type']} of {name} is done"


def _other_subnets(builder: Builder, described: Mapping[str, Any]) -> _Change | None:
    """The change to the subnets that there are, where one that EKS was told of is gone and was made again."""
    present = set(described["resourcesVpcConfig"].get("subnetIds") or ())
    ids = [subnet.id for subnet in network.subnets_of(builder)]
    gone_subnets = sorted(present - set(ids))
    if not gone_subnets:
        return None
    parameters = {"resourcesVpcConfig": {"subnetIds": ids}}
    return _Change(f"others take the place of subnet {', '.join(gone_subnets)}", "update_cluster_config", parameters)


def _next_change(cluster: Cluster, described: Mapping[str, Any]) -> _Change | None:
    reach = endpoint.change(cluster, described["resourcesVpcConfig"])
    if reach:
        return _Change(reach, "update_cluster_config", {"resourcesVpcConfig": endpoint.access(cluster)})
    support = _support(cluster)
    if described.get("upgradePolicy", {}).get("supportType", support) != support:
        parameters = {"upgradePolicy": {"supportType": support}}
        return _Change(f"support becomes {support.lower()}", "update_cluster_config", parameters)
    logs = _logs(cluster)
    if _present_logs(described) != logs:
        text = f"EKS logs {', '.join(logs) or 'nothing'} of the control plane"
        return _Change(text, "update_cluster_config", {"logging": _logging(logs)})
    is_protected = _is_protected(cluster)
    if bool(described.get("deletionProtection")) != is_protected:
        text = f"the cluster is protected from deletion: {is_protected}"
        return _Change(text, "update_cluster_config", {"deletionProtection": is_protected})
    following = next_version(str(described["version"]), cluster.kubernetes_version)
    if following:
        text = f"Kubernetes {described['version']} becomes {following}"
        return _Change(text, "update_cluster_version", {"version": following})
    return None


def next_version(present: str, target: str) -> str:
    """The next minor on the way; empty when it is there. Raises ``VendorRefused`` for a way back."""
    (major, minor), (target_major, target_minor) = (
        tuple(int(number) for number in version.split(".")[:2]) for version in (present, target)
    )
    if (major, minor) == (target_major, target_minor):
        return ""
    if (target_major, target_minor) < (major, minor) or target_major != major:
        raise VendorRefused(
            f"Kubernetes {present} cannot become {target}", hint="A cluster's version only goes up, minor by minor."
        )
    return f"{major}.{minor + 1}"


def is_gone(builder: Builder) -> bool:
    """Whether EKS knows the cluster no more."""
    return eks_kinds.CLUSTER.state(builder.calls, names.cluster_name(builder.work.cluster)) is State.ABSENT
