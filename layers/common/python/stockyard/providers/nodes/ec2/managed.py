"""Nodes on EC2 of a cluster whose control plane is EKS: where they stand, what they start with, and who admits them.

Such a machine starts from EKS's own image. It is told its cluster and nothing secret, and joins by the role that it
has: no token, no agent. EKS calls its node by the private DNS name of the machine.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from datetime import datetime
from typing import Any

from stockyard.domain import cloud_kinds
from stockyard.domain.records import CloudAccount, Cluster, NodeClaim, NodeProvider, Resource
from stockyard.errors import NotYetVisible, VendorNotFound, VendorRefused
from stockyard.machines.node import watcher
from stockyard.providers.clouds.aws import tags
from stockyard.providers.clouds.aws.calls import Calls
from stockyard.providers.clouds.aws.catalog.images import parameters
from stockyard.providers.clouds.aws.errors import accepting
from stockyard.providers.clouds.aws.kinds import iam as iam_kinds
from stockyard.providers.clouds.aws.kinds.base import borrowed
from stockyard.providers.clouds.aws.resources import roles
from stockyard.providers.clouds.aws.resources.child_names import cluster_name, role_name
from stockyard.providers.clouds.aws.resources.making import DesiredResource, Reconciler
from stockyard.providers.nodes.ec2.configuration import setting
from stockyard.providers.nodes.ec2.node_class import NodeClass, images_of, usable_subnets

ACCESS = borrowed("node_access")
"""That the role of a cluster's nodes may join: an entry of the cluster's, which goes with it."""
PROFILE_KEY = "nodes"
ROOT_DEVICE = "/dev/xvda"
IMAGE_PARAMETER = "/aws/service/eks/optimized-ami/{}/amazon-linux-2023/{}/{}/recommended/image_id"
ARCHITECTURES = {"amd64": "x86_64", "arm64": "arm64"}
_BOUNDARY = "==stockyard=="
_DIGITS = 8


def joins(cluster: Cluster | None) -> bool:
    """Whether the nodes of the cluster are admitted by its cloud."""
    return cluster is not None and cloud_kinds.is_managed(cluster.driver)


def find(calls: Calls, provider: NodeProvider, cluster: Cluster, owner: tags.Owner, now: datetime) -> NodeClass:
    """As ``node_class.find``: the private subnets of the cluster's network, its own security group, EKS's images."""
    try:
        shown_cluster = calls.call("eks", "describe_cluster", name=cluster_name(cluster))["cluster"]
    except VendorNotFound as error:
        raise NotYetVisible(f"The cluster {cluster_name(cluster)} is not shown.", code=error.code) from error
    network: Mapping[str, Any] = shown_cluster["resourcesVpcConfig"]
    usable = usable_subnets(calls, provider, cluster, str(network["vpcId"]))
    named = setting(provider, "image")
    images, device = images_of(calls, provider) if named else (_images(calls, cluster), ROOT_DEVICE)
    return NodeClass(
        zones={subnet.id: subnet.zone for subnet in usable},
        security_groups=tuple(setting(provider, "securityGroups") or (str(network["clusterSecurityGroupId"]),)),
        instance_profile=setting(provider, "instanceProfile") or profile_name(owner),
        images=images,
        root_device=device,
        generation=provider.generation,
        found_on=now.date().isoformat(),
        zone_ids={subnet.zone: subnet.zone_id for subnet in usable if subnet.zone_id},
        service_cidr=str((shown_cluster.get("kubernetesNetworkConfig") or {}).get("serviceIpv4Cidr") or ""),
    )


def _images(calls: Calls, cluster: Cluster) -> dict[str, str]:
    """EKS's images for the cluster's version; a region may have none of one architecture."""
    version = ".".join(cluster.kubernetes_version.removeprefix("v").split(".")[:2])
    names = {
        kind: IMAGE_PARAMETER.format(version, own, variant)
        for architecture, own in ARCHITECTURES.items()
        for kind, variant in ((architecture, "standard"), (f"{architecture}-gpu", "nvidia"))
    }
    images = parameters(calls, names)
    if not images:
        raise VendorRefused(
            f"{calls.region} has no image of EKS for Kubernetes {version}", hint="Name an image in the node provider."
        )
    return images


def profile_name(owner: tags.Owner) -> str:
    """The instance profile with the role of the cluster's nodes. EKS's own groups have others, which EKS makes."""
    return f"{owner.prefix}-{owner.client_id}-nodes-instance-profile"


def admit(reconciler: Reconciler, account: CloudAccount, cluster: Cluster) -> None:
    """The instance profile with the role of the cluster's nodes, and the entry by which the cluster admits that role.
    EKS makes the entry for its own groups, so that it is there as a rule."""
    role, profile = role_name(reconciler.owner.prefix, cluster.client_id, "node-role"), profile_name(reconciler.owner)

    def create(_line: Resource, marks: dict[str, str]) -> str:
        parameters = {"InstanceProfileName": profile, "Path": iam_kinds.PATH, "Tags": tags.pairs(marks)}
        reconciler.calls.call("iam", "create_instance_profile", **parameters)
        return profile

    def carry(name: str) -> None:
        if role in iam_kinds.profile_roles(reconciler.calls, name):
            return
        # A profile holds one role: with that answer it is there, and the listing was not up to date.
        with accepting("LimitExceeded"):
            reconciler.calls.call("iam", "add_role_to_instance_profile", InstanceProfileName=name, RoleName=role)

    reconciler.want(DesiredResource(iam_kinds.INSTANCE_PROFILE, PROFILE_KEY, profile, create, carry, identity=True))
    _enter(reconciler, cluster, node_role(account, cluster, reconciler.owner))


def _enter(reconciler: Reconciler, cluster: Cluster, principal: str) -> None:
    line = reconciler.ledger.intend(ACCESS.name, PROFILE_KEY)
    ensure_entry(reconciler.calls, reconciler.owner, cluster, principal, str(line.intended_at))
    if line.state != "made":
        reconciler.ledger.made(line, principal)


def ensure_entry(calls: Calls, owner: tags.Owner, cluster: Cluster, principal: str, since: str) -> None:
    """The entry by which the cluster admits the role of its nodes. Looked at for each machine: EKS makes it with the
    first group of the role, and may take it away with the last one. ``owner`` is the environment."""
    entry = {"clusterName": cluster_name(cluster), "principalArn": principal}
    try:
        calls.call("eks", "describe_access_entry", **entry)
    except VendorNotFound:
        marks = tags.full(owner, ACCESS.name, PROFILE_KEY, profile_name(owner), since)
        with accepting("ResourceInUseException"):
            calls.call("eks", "create_access_entry", **entry, type="EC2_LINUX", tags=marks)


def node_role(account: CloudAccount, cluster: Cluster, owner: tags.Owner) -> str:
    """The ARN of the role of the cluster's nodes."""
    return roles.arn(account, role_name(owner.prefix, cluster.client_id, "node-role"))


def flags_of(claim: NodeClaim) -> list[str]:
    """Flags for the kubelet of the claim's machine: its taints, from its first moment on, and flags of the claim's own.
    Labels come from the cluster's agent."""
    taints = [
        f"{taint['key']}={taint.get('value') or ''}:{taint['effect']}"
        for taint in (*claim.taints, *claim.startup_taints)
    ]
    own = [f"--{name}={value}" for name, value in sorted(claim.kubelet_args.items())]
    return [*([f"--register-with-taints={','.join(taints)}"] if taints else []), *own]


def suffix_of(claim: NodeClaim) -> str:
    """Suffix that tells apart launch templates of one pool whose machines are told different things; empty for
    nothing."""
    flags = flags_of(claim)
    return f"-{hashlib.sha256(json.dumps(flags).encode()).hexdigest()[:_DIGITS]}" if flags else ""


def user_data(cluster: Cluster, claim: NodeClaim, node_class: NodeClass, api_url: str) -> bytes:
    """User data of EKS's image, which computes how many pods have an address: the configuration of its node, and a
    script by which the machine tells Stockyard at ``api_url`` that EC2 takes it back."""
    if not cluster.endpoint or not cluster.certificate_authority:
        raise NotYetVisible(f"The endpoint of cluster {cluster.name} is not known yet.")
    spec: dict[str, Any] = {
        "cluster": {
            "name": cluster_name(cluster),
            "apiServerEndpoint": cluster.endpoint,
            "certificateAuthority": cluster.certificate_authority,
            "cidr": node_class.service_cidr,
        }
    }
    flags = flags_of(claim)
    if flags:
        spec["kubelet"] = {"flags": flags}
    document = {"apiVersion": "node.eks.aws/v1alpha1", "kind": "NodeConfig", "spec": spec}
    lines = [
        "MIME-Version: 1.0",
        f'Content-Type: multipart/mixed; boundary="{_BOUNDARY}"',
        "",
        f"--{_BOUNDARY}",
        "Content-Type: application/node.eks.aws",
        "",
        # JSON is YAML.
        json.dumps(document, indent=1),
        f"--{_BOUNDARY}",
        'Content-Type: text/x-shellscript; charset="us-ascii"',
        "",
        watcher(api_url, cluster.id),
        f"--{_BOUNDARY}--",
        "",
    ]
    return "\n".join(lines).encode()


def own_tags(cluster: Cluster) -> dict[str, str]:
    """The tag of machines by which EKS's controllers know those of the cluster."""
    return {tags.kubernetes(cluster_name(cluster)): "owned"}
