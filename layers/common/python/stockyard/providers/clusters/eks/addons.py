"""The addons phase: what EKS itself installs in the cluster, each in a version that fits the cluster's.

Some come before the first node: without a network for pods no node is ready, and EKS gives up a group of such nodes.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any

from stockyard.domain.records import Cluster, Resource
from stockyard.errors import VendorNotFound, VendorRefused
from stockyard.ports import Outcome
from stockyard.providers.clouds.aws import tags
from stockyard.providers.clouds.aws.calls import Calls
from stockyard.providers.clouds.aws.kinds import eks as eks_kinds
from stockyard.providers.clusters.eks import addresses, names
from stockyard.providers.clusters.eks.access import identity
from stockyard.providers.clusters.eks.building import Builder, DesiredResource
from stockyard.providers.clusters.eks.configuration import has_block_storage, has_storage
from stockyard.providers.clusters.eks.control_plane import token

NETWORK, FILES, VOLUMES = "vpc-cni", "aws-efs-csi-driver", "aws-ebs-csi-driver"
BEFORE_NODES = (NETWORK, "kube-proxy", "eks-pod-identity-agent")
"""What has a pod on each node, and so needs none to be well."""
ALWAYS = (*BEFORE_NODES, "coredns")
NAMESPACE, ACCOUNT = "kube-system", "efs-csi-controller-sa"
"""The service account that has the role of EFS's driver."""
ACCOUNT_OF_VOLUMES = "ebs-csi-controller-sa"
"""The same of EBS's driver."""
WAIT_SECONDS = 20


def addons(cluster: Cluster) -> tuple[str, ...]:
    """The add-ons of a cluster."""
    drivers = ((VOLUMES, has_block_storage(cluster)), (FILES, has_storage(cluster)))
    return (*ALWAYS, *(name for name, is_there in drivers if is_there))


def ensure(builder: Builder) -> Outcome:
    """The add-ons and the EFS driver's identity. Not done until all work: some need a node to run on."""
    cluster = builder.work.cluster
    if has_block_storage(cluster):
        _pod_identity(builder, VOLUMES, ACCOUNT_OF_VOLUMES, identity.VOLUMES)
    if has_storage(cluster):
        _pod_identity(builder, FILES, ACCOUNT, identity.FILES)
    waiting = [text for name in addons(cluster) if (text := _addon(builder, name))]
    if waiting:
        # An add-on without a node says that its pods are missing, and the group why it has no machine.
        return Outcome(False, "; ".join([*_lacking_machines(builder), *waiting]), WAIT_SECONDS)
    return Outcome(True, f"{len(addons(cluster))} add-ons of {names.cluster_name(cluster)}")


def _lacking_machines(builder: Builder) -> Iterator[str]:
    """Words of EKS about node groups that are not well."""
    cluster = names.cluster_name(builder.work.cluster)
    for line in builder.ledger.lines():
        if line.kind != eks_kinds.NODE_GROUP.name or line.state != "made":
            continue
        name = line.vendor_id.rpartition("/")[2]
        try:
            answer = builder.calls.call("eks", "describe_nodegroup", clusterName=cluster, nodegroupName=name)
        except VendorNotFound:
            continue
        if text := issues_of_group(answer["nodegroup"]):
            yield f"node group {name}: {text}"


def issues_of_group(described: Mapping[str, Any]) -> str | None:
    """Faults that EKS finds in a node group, with its codes; None without any."""
    issues = described.get("health", {}).get("issues", ())
    return "; ".join(f"{issue.get('code')}: {issue.get('message')}" for issue in issues)


def before_nodes(builder: Builder) -> str:
    """Make what nodes need to become ready. What is waited for; a version that differs is left to the addons phase."""
    return "; ".join(text for name in BEFORE_NODES if (text := _first(builder, name)))


def _first(builder: Builder, name: str) -> str | None:
    line = builder.ledger.find(eks_kinds.ADDON.name, name)
    if line is None or line.state != "made":
        return _addon(builder, name)
    status = str(_described(builder, name)["status"])
    return _addon(builder, name) if status in ("CREATING", "CREATE_FAILED") else None


def _addon(builder: Builder, name: str) -> str | None:
    """Make it, or give it the version that is wanted. What is waited for; None when it works."""
    cluster = names.cluster_name(builder.work.cluster)
    line = builder.ledger.find(eks_kinds.ADDON.name, name)
    if line is None or line.state != "made":
        version = wanted_version(builder, name, "")
        create = partial(_create, builder, cluster, name, version)
        builder.want(DesiredResource(eks_kinds.ADDON, name, f"{cluster}/{name}", create, identity=True))
        return f"{name} {version} is new"
    described = _described(builder, name)
    status = str(described["status"])
    if status in ("CREATE_FAILED", "DELETE_FAILED"):
        raise VendorRefused(f"add-on {name} is {status}: {_issues(described)}", code=status)
    if status not in ("ACTIVE", "DEGRADED", "UPDATE_FAILED"):
        return f"{name} is {status}"
    version = wanted_version(builder, name, str(described["addonVersion"]))
    if version != described["addonVersion"] or _lacks_reserve(builder, described):
        _update(builder, line, described, version)
        return f"{name} {described['addonVersion']} becomes {version}"
    return None if status == "ACTIVE" else f"{name} is {status}: {_issues(described)}"


def _described(builder: Builder, name: str) -> dict[str, Any]:
    cluster = names.cluster_name(builder.work.cluster)
    described: dict[str, Any] = builder.calls.call("eks", "describe_addon", clusterName=cluster, addonName=name)[
        "addon"
    ]
    return described


def wanted_version(builder: Builder, name: str, present: str) -> str:
    """The version that the settings name, else the one that is there if it fits the cluster, else EKS's default."""
    cluster = builder.work.cluster
    own_version = dict(cluster.settings.get("addon_versions") or {}).get(name)
    if own_version:
        return str(own_version)
    fitting = versions(builder.calls, name, cluster.kubernetes_version)
    if not fitting:
        raise VendorRefused(
            f"EKS has no {name} for Kubernetes {cluster.kubernetes_version}",
            hint="Name a version in addon_versions, or another Kubernetes version.",
        )
    return (
        present if present in fitting else next((v for v, default in fitting.items() if default), next(iter(fitting)))
    )


def versions(calls: Calls, name: str, kubernetes_version: str) -> dict[str, bool]:
    """The versions of an add-on that fit, the newest first, and whether each is the default one."""
    listing = calls.pages(
        "eks", "describe_addon_versions", "addons", addonName=name, kubernetesVersion=kubernetes_version
    )
    return {
        str(item["addonVersion"]): any(
            fit.get("defaultVersion") and fit.get("clusterVersion") == kubernetes_version
            for fit in item.get("compatibilities", ())
        )
        for addon in listing
        for item in addon.get("addonVersions", ())
    }


def _create(builder: Builder, cluster: str, name: str, version: str, line: Resource, marks: dict[str, str]) -> str:
    builder.calls.call(
        "eks",
        "create_addon",
        clusterName=cluster,
        addonName=name,
        addonVersion=version,
        resolveConflicts="OVERWRITE",
        tags=marks,
        clientRequestToken=line.token,
        **_configuration(builder, name),
    )
    return f"{cluster}/{name}"


def _update(builder: Builder, line: Resource, described: Mapping[str, Any], version: str) -> None:
    builder.calls.call(
        "eks",
        "update_addon",
        clusterName=described["clusterName"],
        addonName=described["addonName"],
        addonVersion=version,
        # What a person has changed of it stays.
        resolveConflicts="PRESERVE",
        clientRequestToken=token(line, str(described["addonVersion"]), version, str(described.get("modifiedAt"))),
        # An update that says nothing of it may take it away.
        **_configuration(builder, str(described["addonName"])),
    )


def _configuration(builder: Builder, name: str) -> dict[str, str]:
    """Tags of ours for what an add-on makes: interfaces of the network outlive their machines now and then, and the
    driver of volumes may change none without them."""
    if name == VOLUMES:
        of_volumes = tags.of_tenant(builder.owner.installation, builder.owner.tenant)
        controller = {"k8sTagClusterId": names.cluster_name(builder.work.cluster), "extraVolumeTags": of_volumes}
        return {"configurationValues": json.dumps({"controller": controller}, sort_keys=True)}
    if name != NETWORK:
        return {}
    marks = json.dumps(tags.of_owner(builder.owner) | {tags.GENERATION: builder.owner.generation}, sort_keys=True)
    variables = {"ADDITIONAL_ENI_TAGS": marks, **addresses.reserve(builder.work.cluster)}
    return {"configurationValues": json.dumps({"env": variables})}


def _lacks_reserve(builder: Builder, described: Mapping[str, Any]) -> bool:
    """Whether the network keeps its usual reserve, which the groups have outgrown since it was made."""
    if described["addonName"] != NETWORK:
        return False
    present = json.loads(described.get("configurationValues") or "{}").get("env") or {}
    return not addresses.reserve(builder.work.cluster).keys() <= present.keys()


def _issues(described: Mapping[str, Any]) -> str:
    issues = described.get("health", {}).get("issues", ())
    return "; ".join(str(issue.get("message") or issue.get("code")) for issue in issues) or "EKS gives no reason"


def _pod_identity(builder: Builder, driver: str, service_account: str, role: str) -> None:
    cluster = names.cluster_name(builder.work.cluster)

    def create(line: Resource, marks: dict[str, str]) -> str:
        answer = builder.calls.call(
            "eks",
            "create_pod_identity_association",
            clusterName=cluster,
            namespace=NAMESPACE,
            serviceAccount=service_account,
            roleArn=identity.arn(builder, role),
            tags=marks,
            clientRequestToken=line.token,
        )
        return f"{cluster}/{answer['association']['associationId']}"

    name = f"{cluster}/{NAMESPACE}/{service_account}"
    builder.want(DesiredResource(eks_kinds.POD_IDENTITY, driver, name, create, identity=True))
