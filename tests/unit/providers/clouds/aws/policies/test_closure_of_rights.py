"""Chains of calls from one session of ours, roles that we make or hand on included, can change nothing that is not
ours. Widenings of the template, each a mistake that somebody could make, are found."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from stockyard.domain.records import CloudAccount
from stockyard.providers.clouds.aws.policies import tenant_template
from tests.harness.closure.changes import CHANGED, MAKES, READS
from tests.harness.closure.rights import Account, closure, findings
from tests.harness.worlds.stage import Stage

BY_DECISION = {
    "dlm:DeleteLifecyclePolicy dlm:policy": "371: DLM has no condition that tells a new policy from another's",
    "dlm:TagResource dlm:policy": "371",
    "dlm:UntagResource dlm:policy": "371",
    "dlm:UpdateLifecyclePolicy dlm:policy": "371",
    "elasticfilesystem:DeleteAccessPoint efs:access-point": "371: EKS's driver of EFS gives its access points no tag",
    "iam:PassRole other-installation iam:role": "371: IAM tells no tags of a role that is passed",
}
"""What is left open -> the decision, and why nothing narrower exists."""
OUR_TAG = "aws:ResourceTag/stockyard:installation"
Statements = dict[str, dict[str, Any]]
Edit = Callable[[Statements], None]


ROLE = {"role_arn": "arn:aws:iam::222222222222:role/stockyard"}


@pytest.fixture(scope="module")
def template() -> dict[str, Any]:
    account = CloudAccount("1", "aws", "a", "", ROLE, "ext-1", "verified", "", "t", "t")
    document: dict[str, Any] = json.loads(json.dumps(tenant_template.render(account, "inst-1", Stage())))
    return document


def statements(template: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Policy or role, and each statement of it."""
    for name, resource in template["Resources"].items():
        properties = resource["Properties"]
        documents = [properties.get("PolicyDocument"), *(p["PolicyDocument"] for p in properties.get("Policies", ()))]
        for document in filter(None, documents):
            for statement in document["Statement"]:
                yield name, statement["Fn::If"][1] if "Fn::If" in statement else statement


def is_left_open(finding: str) -> bool:
    action, _, thing = finding.partition(" on ")
    return f"{action} {thing}" in BY_DECISION or f"{action} {thing.rpartition(' ')[2]}" in BY_DECISION


def test_nothing_that_is_not_ours_can_be_changed(template: dict[str, Any]) -> None:
    changes = closure(template)
    assert sorted(change for change in changes if not is_left_open(change)) == []
    needed = {action for action in BY_DECISION if any(action.startswith(f"{c.partition(' on ')[0]} ") for c in changes)}
    assert needed == set(BY_DECISION), "a decision that nothing needs"


def test_each_part_alone_changes_nothing_that_is_not_ours(template: dict[str, Any]) -> None:
    for parameters in ({"Kubeadm": "no"}, {"Eks": "no"}, {"Efs": "no", "CapacityBlocks": "no"}):
        assert [finding for finding in closure(template, **parameters) if not is_left_open(finding)] == [], parameters


def test_an_account_with_earlier_clusters_is_as_wide_as_it_was(template: dict[str, Any]) -> None:
    """Earlier clusters would not go on otherwise; whoever sets the parameter reads it there."""
    changes = closure(template, EarlierEks="yes")
    assert {"ec2:CreateTags on plain ec2:vpc", "ec2:TerminateInstances on plain ec2:instance"} <= set(changes)


def test_somebody_has_thought_about_each_action(template: dict[str, Any]) -> None:
    granted = {action for _, statement in statements(template) for action in statement["Action"]}
    changing = {action for action in granted if not action.split(":")[1].startswith(READS)}
    assert sorted(changing - CHANGED.keys() - MAKES.keys()) == []


def without_condition(*sids: str) -> Edit:
    def edit(by_id: Statements) -> None:
        for sid in sids:
            del by_id[sid]["Condition"]

    return edit


def without(sid: str, operator: str, key: str = "") -> Edit:
    """A condition less, or one key of it."""

    def edit(by_id: Statements) -> None:
        condition = narrow(by_id[sid])
        condition[operator].pop(key) if key else condition.pop(operator)

    return edit


def narrow(statement: dict[str, Any]) -> dict[str, Any]:
    """The condition that an account without earlier clusters has."""
    condition: dict[str, Any] = statement["Condition"]
    return dict(condition["Fn::If"][2]) if "Fn::If" in condition else condition


def condition(sid: str, value: dict[str, Any]) -> Edit:
    return lambda by_id: by_id[sid].update(Condition=value)


def on(sid: str, *resources: str) -> Edit:
    return lambda by_id: by_id[sid].update(Resource=list(resources))


def may(sid: str, *actions: str) -> Edit:
    return lambda by_id: by_id[sid]["Action"].extend(actions)


def all_of(*edits: Edit) -> Edit:
    def edit(by_id: Statements) -> None:
        for each in edits:
            each(by_id)

    return edit


ANY_ROLE = "arn:aws:iam::222222222222:role/*"
OF_EKS = {"StringLike": {"aws:ResourceTag/eks:nodegroup-name": "?*"}}
MARK = {"aws:RequestTag/stockyard:installation": "inst-1"}
WIDENINGS: dict[str, tuple[str, Edit, str]] = {
    "machines of any group on EKS are marked": (
        "GroupPermissions",
        condition("MarkMachines", {"StringEquals": MARK, **OF_EKS}),
        "ec2:TerminateInstances on other-cluster ec2:instance",
    ),
    "any scaling group of EKS is marked": (
        "GroupPermissions",
        condition("MarkGroups", {"StringEquals": MARK, **OF_EKS}),
        "autoscaling:SetDesiredCapacity on other-cluster autoscaling:group",
    ),
    "any cluster's security group is marked": (
        "EksPermissions",
        without("MarkClusterGroups", "StringLike"),
        "ec2:DeleteSecurityGroup on plain ec2:security-group",
    ),
    "any cluster is tagged as a new one": (
        "EksPermissions",
        on("CreateClusters", "arn:aws:eks:*:222222222222:cluster/*"),
        "eks:DeleteCluster on plain eks:cluster",
    ),
    "a cluster of another installation is tagged as new": (
        "EksPermissions",
        without("CreateClusters", "StringEqualsIfExists"),
        "eks:TagResource on other-installation eks:cluster",
    ),
    "parts are made in any cluster": (
        "EksPermissions",
        without("CreateInClusters", "StringEquals", OUR_TAG),
        "eks:CreateAccessEntry on plain eks:cluster",
    ),
    "access entries of any cluster are changed": (
        "EksPermissions",
        without_condition("ChangeAccessentry"),
        "eks:AssociateAccessPolicy on tagged eks:access-entry",
    ),
    "an interface is known by who runs it": (
        "EksPermissions",
        condition("RemoveInterfaces", {"StringEquals": {"aws:ResourceTag/eks:eni:owner": "amazon-vpc-cni"}}),
        "ec2:DeleteNetworkInterface on other-cluster ec2:network-interface",
    ),
    "anything is changed": (
        "MachinePermissions",
        without_condition("ChangeOurs"),
        "ec2:TerminateInstances on plain ec2:instance",
    ),
    "what has no tag is ours": (
        "MachinePermissions",
        condition("ChangeOurs", {"StringEqualsIfExists": {OUR_TAG: "inst-1"}}),
        "ec2:DeleteVpc on tagged ec2:vpc",
    ),
    "any installation's things are ours": (
        "MachinePermissions",
        condition("ChangeOurs", {"StringLike": {OUR_TAG: "*"}}),
        "ec2:DeleteVolume on other-installation ec2:volume",
    ),
    "the request says whose the thing is": (
        "NodePermissions",
        condition("ChangeOurNodes", {"StringEquals": MARK}),
        "ec2:StopInstances on plain ec2:instance",
    ),
    "tags are given at any time": (
        "MachinePermissions",
        without("TagWhatIsCreated", "StringEquals", "ec2:CreateAction"),
        "ec2:ReleaseAddress on plain ec2:elastic-ip",
    ),
    "tags of nodes are given at any time": (
        "NodePermissions",
        without("TagNewNodes", "StringEquals", "ec2:CreateAction"),
        "ec2:DeleteLaunchTemplate on plain ec2:launch-template",
    ),
    "one more action for machines": (
        "NodePermissions",
        lambda by_id: by_id.setdefault("UseOurTemplates", {}).update(
            Action=["ec2:ModifyInstanceAttribute"], Resource="*", Condition={}
        ),
        "ec2:ModifyInstanceAttribute on plain ec2:instance",
    ),
    "owners' tags are changed on anything": (
        "TagPermissions",
        without("Retag", "StringEquals"),
        "ec2:CreateTags on plain ec2:subnet",
    ),
    "a member of any cluster is named": (
        "KubeadmPermissions",
        condition("NameClusterOfMembers", {"ForAllValues:StringEquals": {"aws:TagKeys": ["KubernetesCluster"]}}),
        "ec2:CreateTags on plain ec2:instance",
    ),
    "what is left of any cluster's driver is removed": (
        "TagPermissions",
        without("RemoveLeftoversEbs", "StringEquals"),
        "ec2:DeleteVolume on other-cluster ec2:volume",
    ),
    "balancers are known by their controller's tag": (
        "KubeadmPermissions",
        condition("ChangeOurBalancers", {"StringLike": {"aws:ResourceTag/elbv2.k8s.aws/cluster": "?*"}}),
        "elasticloadbalancing:DeleteLoadBalancer on other-cluster elb:loadbalancer",
    ),
    "a listener is made by its own tags": (
        "KubeadmPermissions",
        may("CreateBalancers", "elasticloadbalancing:CreateListener"),
        "elasticloadbalancing:CreateListener on plain elb:loadbalancer",
    ),
    "snapshots are in any folder": (
        "KubeadmPermissions",
        on("KeepSnapshots", "arn:aws:s3:::*"),
        "s3:DeleteObject on plain s3:object",
    ),
    "any bucket is ours": (
        "KubeadmPermissions",
        on("OurBuckets", "arn:aws:s3:::*"),
        "s3:DeleteBucket on plain s3:bucket",
    ),
    "any snapshot is deleted": (
        "KubeadmPermissions",
        without_condition("DeleteOurSnapshots"),
        "ec2:DeleteSnapshot on plain ec2:snapshot",
    ),
    "the role of snapshots deletes any": (
        "SnapshotRole",
        without_condition("DeleteOldSnapshots"),
        "ec2:DeleteSnapshot on plain ec2:snapshot",
    ),
    "any file system is changed": (
        "GroupPermissions",
        without_condition("ChangeOurFiles"),
        "elasticfilesystem:DeleteFileSystem on plain efs:file-system",
    ),
    "roles of kubeadm have no boundary": (
        "KubeadmPermissions",
        all_of(
            without("CreateBoundedRoles", "StringEquals", "iam:PermissionsBoundary"),
            without("FillBoundedRoles", "StringEquals", "iam:PermissionsBoundary"),
        ),
        "iam:CreateAccessKey on plain iam:user",
    ),
    "roles of EKS have no boundary": (
        "EksRolePermissions",
        all_of(
            without("CreateEksRoles", "StringEquals", "iam:PermissionsBoundary"),
            without("AttachPolicies", "StringEquals", "iam:PermissionsBoundary"),
        ),
        "ec2:TerminateInstances on plain ec2:instance",
    ),
    "a boundary is taken away": (
        "NodePermissions",
        may("Roles", "iam:DeleteRolePermissionsBoundary"),
        "iam:PutUserPolicy on plain iam:user",
    ),
    "everything of roles under our path": (
        "NodePermissions",
        lambda by_id: by_id["Roles"].update(Action=["iam:*"]),
        "iam:CreatePolicyVersion on template's iam:policy",
    ),
    "our own role is filled": (
        "EksRolePermissions",
        all_of(on("AttachPolicies", ANY_ROLE), without_condition("AttachPolicies")),
        "iam:AttachRolePolicy on template's iam:role",
    ),
    "a boundary is rewritten": (
        "NodePermissions",
        lambda by_id: by_id["ReadIdentities"].update(Action=["iam:CreatePolicyVersion"], Resource=["*"]),
        "iam:CreatePolicyVersion on template's iam:policy",
    ),
    "any role is handed to EC2": ("NodePermissions", on("PassRoles", ANY_ROLE), "iam:PassRole on plain iam:role"),
    "any role is given to pods": (
        "EksRolePermissions",
        all_of(on("PassPodRoles", ANY_ROLE), without_condition("PassPodRoles")),
        "iam:PassRole on tagged iam:role",
    ),
    "any role is taken": (
        "EksRolePermissions",
        all_of(on("ActAsPeople", ANY_ROLE), without_condition("ActAsPeople")),
        "sts:AssumeRole on plain iam:role",
    ),
    "any role trusts us": (
        "NodePermissions",
        all_of(may("Roles", "iam:UpdateAssumeRolePolicy"), on("Roles", ANY_ROLE), without_condition("Roles")),
        "iam:UpdateAssumeRolePolicy on template's iam:role",
    ),
    "a role of another installation is tagged as new": (
        "NodePermissions",
        without("TagNewIdentities", "StringEqualsIfExists"),
        "iam:DeleteRole on other-installation iam:role",
    ),
    "the network of EKS reaches everything": (
        "EksBoundary",
        without_condition("Network"),
        "ec2:AuthorizeSecurityGroupIngress on plain ec2:security-group",
    ),
    "interfaces are tagged at any time": (
        "EksBoundary",
        condition("TagNew", {"StringEquals": MARK}),
        "ec2:DetachNetworkInterface on plain ec2:network-interface",
    ),
    "balancers of EKS are anybody's": (
        "EksBoundary",
        without_condition("Balancers"),
        "elasticloadbalancing:DeleteLoadBalancer on plain elb:loadbalancer",
    ),
    "files of EKS are in any file system": (
        "EksBoundary",
        without_condition("MakeAccessPoints"),
        "elasticfilesystem:CreateAccessPoint on plain efs:file-system",
    ),
    "a control plane takes any volume": (
        "Boundary",
        without_condition("ChangeVolumes"),
        "ec2:DetachVolume on plain ec2:volume",
    ),
    "a control plane writes to any folder": (
        "Boundary",
        on("EtcdSnapshots", "arn:aws:s3:::*"),
        "s3:PutObject on plain s3:object",
    ),
}
"""A mistake -> where, how, and one thing of others that it opens."""


@pytest.mark.parametrize("name", WIDENINGS)
def test_a_widening_is_found(template: dict[str, Any], name: str) -> None:
    policy, edit, expected = WIDENINGS[name]
    widened = copy.deepcopy(template)
    edit(
        {
            statement["Sid"]: statement
            for owner, statement in statements(widened)
            if owner == policy and "Sid" in statement
        }
    )
    assert widened != template
    assert not is_left_open(expected)
    assert any(finding == expected for finding, _ in findings(Account(widened, {})))


def test_there_are_enough_of_them() -> None:
    assert len(WIDENINGS) >= 30
