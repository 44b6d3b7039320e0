"""The access phase: what the roles of people may do in the cluster, and that our own role and nodes of a role made anew
come in."""

from __future__ import annotations

from functools import partial

from stockyard.domain.records import Resource
from stockyard.errors import VendorNotFound
from stockyard.ports import Outcome
from stockyard.ports.clusters import ADMIN, OPERATOR, VIEWER
from stockyard.providers.clouds.aws import tags
from stockyard.providers.clouds.aws.kinds import eks as eks_kinds
from stockyard.providers.clouds.aws.kinds import iam as iam_kinds
from stockyard.providers.clouds.aws.sessions import partition
from stockyard.providers.clusters.eks import names
from stockyard.providers.clusters.eks.access import creator, identity
from stockyard.providers.clusters.eks.building import Builder, DesiredResource

POLICIES = {
    VIEWER: "AmazonEKSViewPolicy",
    OPERATOR: "AmazonEKSEditPolicy",
    ADMIN: "AmazonEKSClusterAdminPolicy",
}
"""What EKS calls what each may do, in the whole cluster."""
STANDARD, OF_NODES = "STANDARD", "EC2_LINUX"
"""Types of entries."""
_ROLE_ID = "role_id"
"""In the line's detail: the id that IAM gave the role, which another of the name does not have."""


def ensure(builder: Builder) -> Outcome:
    """An entry for each role of people, with its policy and no other. Entries of roles that were made anew are, too."""
    cluster = names.cluster_name(builder.work.cluster)
    administrators = policy_arn(builder, POLICIES[ADMIN])
    creator.ensure(
        builder,
        lambda principal: _remove_foreign(builder, cluster, principal),
        lambda principal: _associate(builder, cluster, principal, administrators),
    )
    former = [text for role in (*identity.PEOPLE, identity.NODE) if (text := _without_former(builder, cluster, role))]
    if former:
        return Outcome(False, "; ".join(former))
    for role in identity.PEOPLE:
        principal = _entry(builder, cluster, role, STANDARD)
        _associate(builder, cluster, principal, policy_arn(builder, POLICIES[role]))
    if builder.ledger.find(eks_kinds.ACCESS_ENTRY.name, identity.NODE) is not None:
        _entry(builder, cluster, identity.NODE, OF_NODES)
    return Outcome(True, f"viewers, operators and admins of {cluster}")


def _entry(builder: Builder, cluster: str, role: str, entry_type: str) -> str:
    """The entry of a role; the role's ARN."""
    principal = identity.arn(builder, role)
    create = partial(_create, builder, cluster, principal, entry_type)
    detail = {_ROLE_ID: _role_id(builder, role)}
    builder.want(
        DesiredResource(eks_kinds.ACCESS_ENTRY, role, f"{cluster}/{principal}", create, detail=detail, identity=True)
    )
    return principal


def _without_former(builder: Builder, cluster: str, role: str) -> str | None:
    """Remove the entry that was made for a former role of the name: EKS keeps the id that the role had then, and lets
    nobody in by another. What is waited for."""
    line = builder.ledger.find(eks_kinds.ACCESS_ENTRY.name, role)
    role_line = builder.ledger.find(iam_kinds.ROLE.name, role)
    made_at = (role_line.made_at if role_line is not None else None) or ""
    if line is not None and line.state == "made":
        # An entry of an earlier release does not say which role it is of.
        known_id = line.detail.get(_ROLE_ID)
        is_former = known_id != _role_id(builder, role) if known_id else made_at > str(line.made_at)
        waiting = builder.remove(line) if is_former else ""
        if waiting or not is_former:
            return waiting
        line = None
    if role == identity.NODE and (line is not None or _is_younger_than_nodes(builder, made_at)):
        # That of nodes was made by EKS, with the first group.
        builder.ledger.intend(eks_kinds.ACCESS_ENTRY.name, role, {_ROLE_ID: _role_id(builder, role)})
        _remove_foreign(builder, cluster, identity.arn(builder, role))
    return None


def _is_younger_than_nodes(builder: Builder, made_at: str) -> bool:
    groups = [line for line in builder.ledger.lines() if line.kind == eks_kinds.NODE_GROUP.name and line.made_at]
    return any(made_at > str(line.made_at) for line in groups)


def _remove_foreign(builder: Builder, cluster: str, principal: str) -> None:
    """Remove the entry that EKS made. We may remove only what has our tags, so it is given them first."""
    try:
        described = eks_kinds.ACCESS_ENTRY.describe(builder.calls, f"{cluster}/{principal}") or {}
    except VendorNotFound:
        return
    marks = tags.of_owner(builder.owner)
    if tags.KEY in (described.get("tags") or {}):
        return  # ours, of a try that could not say so
    builder.calls.call("eks", "tag_resource", resourceArn=described["accessEntryArn"], tags=marks)
    eks_kinds.ACCESS_ENTRY.delete(builder.calls, f"{cluster}/{principal}")


def _role_id(builder: Builder, role: str) -> str:
    described = iam_kinds.ROLE.describe(builder.calls, identity.role_name(builder, role)) or {}
    return str(described["RoleId"])


def policy_arn(builder: Builder, name: str) -> str:
    """The ARN of one of EKS's access policies."""
    return f"arn:{partition(builder.work.account)}:eks::aws:cluster-access-policy/{name}"


def _create(
    builder: Builder, cluster: str, principal: str, entry_type: str, line: Resource, marks: dict[str, str]
) -> str:
    builder.calls.call(
        "eks",
        "create_access_entry",
        clusterName=cluster,
        principalArn=principal,
        type=entry_type,
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
