"""The control_plane phase: the cluster itself, and its version, support and endpoint as the settings have them."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

from stockyard.domain.records import Cluster, Resource
from stockyard.errors import NotYetVisible, VendorRefused
from stockyard.ports import Outcome
from stockyard.providers.clouds.aws import tags
from stockyard.providers.clouds.aws.calls import Calls
from stockyard.providers.clouds.aws.kinds import ec2 as ec2_kinds
from stockyard.providers.clouds.aws.kinds import eks as eks_kinds
from stockyard.providers.clouds.aws.kinds.base import State
from stockyard.providers.clusters.eks import layout, names, network
from stockyard.providers.clusters.eks.access import creator, identity
from stockyard.providers.clusters.eks.building import Builder, Wish

KEY = "main"
EVERYWHERE = "0.0.0.0/0"
WAIT_SECONDS = 30
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
    cluster = builder.want(Wish(eks_kinds.CLUSTER, KEY, name, create, detail=detail, identity=True))
    described = describe(builder.calls, name)
    if cluster.pending or described.get("status") != "ACTIVE":
        return Outcome(False, f"EKS cluster {name} is {described.get('status', 'new')}", WAIT_SECONDS)
    _own_group(builder, described)
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


def endpoint_access(cluster: Cluster) -> dict[str, Any]:
    """Access to the API: machines inside the VPC, and from outside who is in the list."""
    cidrs = list(cluster.settings.get("public_access_cidrs") or [EVERYWHERE])
    return {"endpointPublicAccess": True, "endpointPrivateAccess": True, "publicAccessCidrs": cidrs}


def token(line: Resource, *parts: str) -> str:
    """A client token of one change of the line's thing: the same whenever it is tried again."""
    return hashlib.sha256("/".join((line.token, *parts)).encode()).hexdigest()[:32]


def _create(builder: Builder, name: str, line: Resource, marks: dict[str, str]) -> str:
    cluster = builder.work.cluster
    subnets = [subnet.id for subnet in network.subnets_of(builder)]
    builder.calls.call(
        "eks",
        "create_cluster",
        name=name,
        version=cluster.kubernetes_version,
        roleArn=identity.arn(builder, identity.CONTROL_PLANE),
        resourcesVpcConfig={"subnetIds": subnets, **endpoint_access(cluster)},
        # The range that EKS would choose too, said by us: machines outside of node groups have to be told it.
        kubernetesNetworkConfig={"serviceIpv4Cidr": layout.service_cidr(network.vpc_cidr(cluster))},
        accessConfig={"authenticationMode": "API_AND_CONFIG_MAP", "bootstrapClusterCreatorAdminPermissions": True},
        upgradePolicy={"supportType": _support(cluster)},
        # The add-ons are ours to make, each with a version and tags.
        bootstrapSelfManagedAddons=False,
        tags=marks,
        clientRequestToken=line.token,
    )
    return name


def _support(cluster: Cluster) -> str:
    return str(cluster.settings.get("support") or "standard").upper()


def _own_group(builder: Builder, described: Mapping[str, Any]) -> None:
    """The group of the cluster's own is EKS's, which may leave it behind: it gets a line and our tags."""
    group = own_security_group(described)
    if not group:
        return

    def mark(_line: Resource, marks: dict[str, str]) -> str:
        # Its name stays the one that EKS gave it.
        own = {key: value for key, value in marks.items() if key != "Name"}
        builder.calls.call("ec2", "create_tags", Resources=[group], Tags=tags.pairs(own))
        return group

    builder.want(Wish(ec2_kinds.SECURITY_GROUP, "cluster", f"{described['name']}-cluster", mark))


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
    access, present = endpoint_access(cluster), described["resourcesVpcConfig"]
    if sorted(present.get("publicAccessCidrs") or [EVERYWHERE]) != sorted(access["publicAccessCidrs"]):
        text = f"the API is opened to {', '.join(access['publicAccessCidrs'])} alone"
        return _Change(text, "update_cluster_config", {"resourcesVpcConfig": access})
    support = _support(cluster)
    if described.get("upgradePolicy", {}).get("supportType", support) != support:
        parameters = {"upgradePolicy": {"supportType": support}}
        return _Change(f"support becomes {support.lower()}", "update_cluster_config", parameters)
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
