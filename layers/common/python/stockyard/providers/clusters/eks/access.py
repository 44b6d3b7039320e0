"""The access phase: what the roles of people may do in the cluster."""

from __future__ import annotations

from functools import partial

from stockyard.domain.records import Resource
from stockyard.ports import Outcome
from stockyard.ports.clusters import ADMIN, OPERATOR, VIEWER
from stockyard.providers.clouds.aws import eks_kinds
from stockyard.providers.clouds.aws.sessions import partition
from stockyard.providers.clusters.eks import identity, names
from stockyard.providers.clusters.eks.building import Builder, Wish

POLICIES = {
    VIEWER: "AmazonEKSViewPolicy",
    OPERATOR: "AmazonEKSEditPolicy",
    ADMIN: "AmazonEKSClusterAdminPolicy",
}
"""What EKS calls what each may do, in the whole cluster."""


def ensure(builder: Builder) -> Outcome:
    """An entry for each role of people, with its policy and no other."""
    cluster = names.cluster_name(builder.work.cluster)
    for role in identity.PEOPLE:
        principal = identity.arn(builder, role)
        create = partial(_create, builder, cluster, principal)
        name = f"{cluster}/{principal}"
        builder.want(Wish(eks_kinds.ACCESS_ENTRY, role, name, create, identity=True))
        _associate(builder, cluster, principal, policy_arn(builder, POLICIES[role]))
    return Outcome(True, f"viewers, operators and admins of {cluster}")


def policy_arn(builder: Builder, name: str) -> str:
    """The ARN of one of EKS's access policies."""
    return f"arn:{partition(builder.work.account)}:eks::aws:cluster-access-policy/{name}"


def _create(builder: Builder, cluster: str, principal: str, line: Resource, marks: dict[str, str]) -> str:
    builder.calls.call(
        "eks",
        "create_access_entry",
        clusterName=cluster,
        principalArn=principal,
        type="STANDARD",
        tags=marks,
        clientRequestToken=line.token,
    )
    return f"{cluster}/{principal}"


def _associate(builder: Builder, cluster: str, principal: str, target: str) -> None:
    entry = {"clusterName": cluster, "principalArn": principal}
    listing = builder.calls.pages("eks", "list_associated_access_policies", "associatedAccessPolicies", **entry)
    present = {str(item["policyArn"]): item.get("accessScope", {}).get("type") for item in listing}
    for surplus in sorted(present.keys() - {target}):
        builder.calls.call("eks", "disassociate_access_policy", **entry, policyArn=surplus)
    if present.get(target) != "cluster":
        scope = {"type": "cluster"}
        builder.calls.call("eks", "associate_access_policy", **entry, policyArn=target, accessScope=scope)
