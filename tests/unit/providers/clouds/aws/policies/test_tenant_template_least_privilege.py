"""The tenant's template grants exactly the calls that the cluster drivers make."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import boto3
import pytest
from moto.iam.models import iam_backends

from local.aws import tenant_role
from local.aws.corrections.compute.capacity_reservations import capacity_reservations
from local.aws.permissions import buckets, table
from local.aws.permissions.balancing import ASKED_FOR_THE_FIRST_BALANCER
from local.aws.permissions.ec2 import OF_A_VOLUME_KEY
from stockyard.domain.models.base import read
from stockyard.providers.clouds.aws import calls, tags
from stockyard.providers.clouds.aws.calls import Calls
from stockyard.providers.clouds.aws.policies import eks, nodes, tenant_template
from stockyard.providers.clouds.aws.policies.statements import ArnScope
from stockyard.providers.clusters.ec2.members import identity
from stockyard.providers.clusters.eks import addons
from stockyard.providers.clusters.eks.provider import EksClusterDriver, EksConfig
from stockyard.providers.clusters.eks.settings import EksSettings
from tests.harness import tenant_stack
from tests.harness.asks import recorded_asks
from tests.harness.policies import refused, used, without
from tests.harness.worlds.memory_kubernetes import MemoryKubernetes
from tests.harness.worlds.stage import Stage
from tests.unit.providers.clusters.eks.conftest import CREATE as EKS_CREATE
from tests.unit.providers.clusters.eks.conftest import DELETE as EKS_DELETE
from tests.unit.providers.conftest import ACME

IMPLIED = {
    "ec2:RunInstances": {
        "ec2:CreateTags",
        "iam:PassRole",
        "kms:CreateGrant",
        *(f"kms:{action}" for action in OF_A_VOLUME_KEY),
    },
    "elasticloadbalancing:CreateLoadBalancer": {
        "elasticloadbalancing:AddTags",
        "iam:CreateServiceLinkedRole",
        "ec2:GetSecurityGroupsForVpc",
        *ASKED_FOR_THE_FIRST_BALANCER,
    },
    "dlm:CreateLifecyclePolicy": {"dlm:TagResource"},
    "iam:CreateRole": {"iam:TagRole"},
    "s3:DeleteObject": {buckets.VERSIONS},
    "iam:CreateInstanceProfile": {"iam:TagInstanceProfile"},
    "eks:CreateCluster": {"eks:TagResource", "iam:CreateServiceLinkedRole"},
    "elasticfilesystem:CreateFileSystem": {"elasticfilesystem:TagResource"},
    "elasticfilesystem:CreateMountTarget": {"ec2:CreateNetworkInterface"},
}
OF_NODES = frozenset(statement["Sid"] for statement in nodes.nodes(ArnScope("222222222222"), "inst-1"))
"""What the sources of nodes do; their own tests hold it against their calls."""
OF_GROUPS = frozenset(statement["Sid"] for statement in eks.groups(ArnScope("222222222222"), "inst-1", "vantage"))
"""What claims of node groups do, and the groups' driver."""


def _action(service: str, operation: str) -> str:
    if service == "s3":
        name = "".join(word.capitalize() for word in operation.split("_"))
        return buckets.action_of(name)
    prefix, name = table.prefix(service), "".join(word.capitalize() for word in operation.split("_"))
    # IAM writes some abbreviations in capitals.
    return f"{prefix}:{next((row for row in table.TABLE[prefix] if row.lower() == name.lower()), name)}"


@pytest.fixture
def actions(monkeypatch: pytest.MonkeyPatch) -> set[str]:
    """Calls from now on, as IAM names them."""
    actions: set[str] = set()
    real_call, real_pages = calls.Calls.call, calls.Calls.pages

    def call(self: Any, service: str, operation: str, **parameters: Any) -> Any:
        actions.add(_action(service, operation))
        return real_call(self, service, operation, **parameters)

    def pages(self: Any, service: str, operation: str, key: str, **parameters: Any) -> Any:
        actions.add(_action(service, operation))
        return real_pages(self, service, operation, key, **parameters)

    monkeypatch.setattr(calls.Calls, "call", call)
    monkeypatch.setattr(calls.Calls, "pages", pages)
    return actions


def test_template_grants_exactly_the_calls_of_the_driver(yard: Any, actions: set[str]) -> None:
    list(yard.provider.inspect(yard.work("account")))
    yard.cluster = yard.ledger.cluster = replace(yard.cluster, tags={"team": "a"})
    yard.with_settings(bastion=BASTION, ssh_cidrs=["192.0.2.0/24"], zones=ZONES[:2]).create()
    yard.with_settings(zones=ZONES)
    for phase in ("network", "security", "endpoint"):
        yard.ensure(phase)
    yard.cluster = yard.ledger.cluster = replace(yard.cluster, tags={"stage": "b"})
    yard.provider.retag(yard.work("tags"), ["team"])
    yard.provider.console(yard.work("control_plane"))
    _snapshots(yard)
    first = yard.ledger.find("instance", "control-plane").vendor_id
    yard.provider.targets(yard.work("members"), [first])
    yard.provider.admit(yard.work("members"), first)
    yard.provider.withdraw(yard.work("members"), first)
    session, owned = yard.tenant(), [{"Key": f"kubernetes.io/cluster/{yard.cluster.client_id}", "Value": "owned"}]
    ec2 = session.client("ec2")
    ec2.create_volume(
        AvailabilityZone="us-east-1a", Size=1, TagSpecifications=[{"ResourceType": "volume", "Tags": owned}]
    )
    group = ec2.create_security_group(
        GroupName="k8s", Description="d", VpcId=yard.ledger.find("vpc", "main").vendor_id,
        TagSpecifications=[{"ResourceType": "security-group", "Tags": owned}],
    )["GroupId"]  # fmt: skip
    ec2.authorize_security_group_ingress(
        GroupId=yard.ledger.find("security_group", "node").vendor_id,
        IpPermissions=[{"IpProtocol": "tcp", "FromPort": 1, "ToPort": 1, "UserIdGroupPairs": [{"GroupId": group}]}],
    )
    iam = session.client("iam")
    policy = iam.create_policy(PolicyName="p", PolicyDocument=json.dumps(identity.node_policy()))
    role = yard.ledger.find("role", "node").vendor_id
    iam.attach_role_policy(RoleName=role, PolicyArn=policy["Policy"]["Arn"])
    list(yard.cloud.tagged(yard.account, "inst-1", "acme", ["us-east-1"]))
    yard.later(120)
    yard.delete()
    needed = actions | {implied for action in actions for implied in IMPLIED.get(action, ())}
    template = tenant_template.render(yard.account, "inst-1", Stage())
    every = {a for s in _statements(template, {}) for a in s["Action"]}
    assert needed - every - set(table.NOTHING) == set()
    granted = {a for s in _statements(template, {"Eks": "no"}) for a in s["Action"]}
    # The sweep looks for what is on EKS too; where it may not, there is none.
    assert needed - granted - set(table.NOTHING) == SEEN_BY_THE_SWEEP
    assert (
        granted - needed - {"eks:TagResource", "eks:UntagResource", *(f"elasticfilesystem:{n}" for n in TAGGING)}
        == set()
    )


def _statements(template: dict[str, Any], parameters: dict[str, str]) -> list[dict[str, Any]]:
    """Statements of the role without those for claims."""
    statements = tenant_stack.statements(template, parameters=parameters)
    return [statement for statement in statements if statement["Sid"] not in OF_NODES | OF_GROUPS]


def _snapshots(yard: Any) -> None:
    """Work with snapshots of etcd, in a bucket of the tenant's and in ours."""
    settings = {"cloud_controllers": True, "bastion": BASTION, "zones": ZONES}
    yard.tenant().client("s3").create_bucket(Bucket="acme-backups")
    backup = {"interval_hours": 6, "keep": 3, "bucket": "acme-backups", "on_deletion": "remove"}
    list(yard.with_settings(**settings, etcd_backup=backup).provider.inspect(yard.work("account")))
    yard.with_settings(**settings, etcd_backup={**backup, "bucket": None}).ensure("identity")
    store, snapshot = yard.provider.snapshot_store(yard.cluster), "20260101T000000Z"
    yard.tenant().client("s3").put_object(Bucket=store.bucket, Key=store.key(snapshot), Body=b"s")
    yard.provider.snapshots(yard.work("identity"))
    yard.provider.snapshot(yard.work("identity"), snapshot)
    yard.provider.remove_snapshots(yard.work("identity"), [snapshot])


BASTION = {"enabled": True, "instance_type": "t3.micro", "image": None, "protocol": "ssh"}
ZONES = ["us-east-1a", "us-east-1b", "us-east-1c"]
SEEN_BY_THE_SWEEP = {"eks:ListClusters", "elasticfilesystem:DescribeFileSystems"}
TAGGING = ("TagResource", "UntagResource")
GROUPS = {"autoscaling:CreateOrUpdateTags", "autoscaling:ResumeProcesses", "autoscaling:SuspendProcesses"}
"""Of the policy for groups, what the driver needs; the others are calls of the source of nodes."""


def test_template_grants_exactly_what_clusters_on_eks_need(
    yard: Any, actions: set[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    _whole_life_on_eks(yard)
    needed = actions | {implied for action in actions for implied in IMPLIED.get(action, ())}
    template = tenant_template.render(yard.account, "inst-1", Stage())
    granted = {a for s in tenant_stack.statements(template) for a in s["Action"]}
    assert needed - granted - set(table.NOTHING) == set()
    own = {
        a
        for s in tenant_stack.statements(template, without=["MachinePermissions", "NodePermissions"])
        for a in s["Action"]
    }
    own = {action for action in own if action.startswith(("eks:", "elasticfilesystem:", "sts:", "iam:Attach"))}
    assert own - needed == set()
    assert granted >= GROUPS


def test_each_call_for_a_cluster_on_eks_is_allowed_as_it_is_made(yard: Any) -> None:
    """With its resources and conditions: tags of the request and of the things, the boundary, who gets a role."""
    with recorded_asks("222222222222") as asks:
        _whole_life_on_eks(yard)
    template = tenant_template.render(yard.account, "inst-1", Stage())
    statements = [_in_aws(statement) for statement in tenant_stack.statements(template)]
    assert refused({"tenant": asks}, {"tenant": statements}) == []
    without_kubeadm = [
        _in_aws(statement) for statement in tenant_stack.statements(template, parameters={"Kubeadm": "no"})
    ]
    assert refused({"tenant": asks}, {"tenant": without_kubeadm}) == []
    of_eks = [
        _in_aws(statement)
        for statement in tenant_stack.statements(template, without=BESIDES_EKS)
        if statement["Sid"] not in OF_GROUPS | {"KeepMachinesOfClaims"}
    ]
    grants = {f"{statement['Sid']} {action}" for statement in of_eks for action in statement["Action"]}
    assert sorted(grants - used({"tenant": asks}, {"tenant": statements})["tenant"] - set(ELSEWHERE)) == []
    for grant in sorted(grants - set(ELSEWHERE)):
        sid, action = grant.split(" ")
        assert refused({"tenant": asks}, {"tenant": without(statements, sid, action)}), f"nobody needs {grant}"


def test_a_cluster_of_an_earlier_release_lives_by_its_own_template_and_by_todays_with_the_parameter(yard: Any) -> None:
    yard.cluster = yard.ledger.cluster = replace(yard.cluster, cloud_prefix="")
    yard.tenant().client("iam").tag_role(RoleName="stockyard", Tags=[{"Key": "stockyard:template", "Value": "7"}])
    with recorded_asks("222222222222") as asks:
        _whole_life_on_eks(yard)
    template = json.loads(json.dumps(tenant_template.render(yard.account, "inst-1", Stage())))

    def refusals(document: dict[str, Any], **parameters: str) -> list[str]:
        deployed = tenant_role.resources(document, **parameters)
        policies = [deployed[name]["PolicyDocument"] for name in deployed["Role"]["ManagedPolicyArns"]]
        statements = [statement for policy in policies for statement in policy["Statement"]]
        return refused({"tenant": asks}, {"tenant": statements})

    # What came later is looked at where it may be, and gone without where it may not.
    later = {text.split(" on ")[0].removeprefix("tenant: ") for text in refusals(tenant_role.of_version(template, 7))}
    assert later == {
        *(f"ec2:{name}" for name in ("CreateVpcEndpoint", "DeleteVpcEndpoints", "DescribeVpcEndpoints")),
        "ec2:DescribePlacementGroups",
        "ec2:ModifyVpcEndpoint",
        "ec2:GetEbsDefaultKmsKeyId",
        "servicequotas:GetAWSDefaultServiceQuota",
    }
    assert refusals(template, EarlierEks="yes") == []
    assert {text.split(" on ")[0] for text in refusals(template)} >= {
        "tenant: eks:CreateCluster",
        "tenant: eks:TagResource",
    }


BESIDES_EKS = ("KubeadmPermissions", "MachinePermissions", "NodePermissions", "TagPermissions")
ELSEWHERE = {"UseReservations ec2:RunInstances": "a group of a capacity block"}
"""Granted action that this life has no use for -> who has."""


def _in_aws(value: Any) -> Any:
    return json.loads(json.dumps(tenant_stack.handed_to_iam(value)).replace("aws-us-gov", "aws"))


EFA_GROUP = {
    "name": "h100", "role": "gpu", "instance_type": "p5.48xlarge", "accelerator_type": "nvidia-h100",
    "zones": ["us-east-1b"], "fabric": "efa", "labels": {"a": "b"},
}  # fmt: skip


def _whole_life_on_eks(yard: Any) -> None:
    """A cluster on EKS with a group of GPUs is made, looked at, changed and removed."""
    settings = read(EksSettings, {"node_groups": [EFA_GROUP], "region_name": "us-east-1"}).normal()
    yard.provider = EksClusterDriver(EksConfig("vantage", "u", "i"), boto3.Session, MemoryKubernetes().client)
    yard.cluster = replace(yard.cluster, settings=settings, kubernetes_version="1.35", driver="eks", tags={"team": "a"})
    yard.ledger.cluster = yard.cluster
    with capacity_reservations():
        _live(yard)


def _live(yard: Any) -> None:
    """Everything that the driver does to a cluster: made, looked at, changed, removed."""

    def run(phases: Sequence[str], **changed: Any) -> None:
        yard.cluster = yard.ledger.cluster = replace(yard.cluster, **changed)
        for phase in phases:
            facts = yard.ensure(phase).facts
            fields = {name: facts[name] for name in ("endpoint", "certificate_authority") if name in facts}
            yard.cluster = replace(yard.cluster, **fields)

    list(yard.provider.inspect(yard.work("account")))
    run(EKS_CREATE)
    settings = yard.cluster.settings
    versions = addons.versions(Calls(yard.provider._sessions.of(yard.account, "op_1"), "us-east-1"), "coredns", "1.35")
    h100, system = settings["node_groups"]
    block = {**h100, "name": "b", "capacity_reservation_id": "cr-0123456789abcdef0"}
    group = replace(yard.cluster, settings={**settings, "node_groups": [system, block]}, kubernetes_version="1.36")
    monitored = replace(yard, cluster=group)
    list(monitored.provider.inspect(monitored.work("account")))
    list(monitored.provider.upgrade_findings(monitored.work("account")))
    changed = {**settings, "addon_versions": {"coredns": list(versions)[-1]}, "public_access_cidrs": ["192.0.2.0/24"]}
    changed["node_groups"] = [system, {**h100, "labels": {}}]
    run(("control_plane", "addons", "node_groups"), settings=changed, tags={"stage": "b"})
    run(("control_plane", "node_groups"), kubernetes_version="1.36")
    client = yard.tenant().client("eks")
    (viewer, *_) = (line for line in yard.ledger.lines() if line.kind == "access_entry")
    cluster, principal = viewer.vendor_id.split("/", 1)
    client.associate_access_policy(
        clusterName=cluster, principalArn=principal, accessScope={"type": "cluster"},
        policyArn="arn:aws:eks::aws:cluster-access-policy/AmazonEKSAdminPolicy",
    )  # fmt: skip
    run(("access",))
    # Somebody takes a role of people and that of nodes away: their entries are made anew, too.
    roles = iam_backends[ACME]["aws"].roles
    for key in [key for key, role in roles.items() if role.name.endswith(("-viewer-role", "-node-role"))]:
        del roles[key]
    yard.later(120)
    run(("identity", "access"))
    yard.provider.retag(yard.work("tags"), ["team"])
    yard.provider.mint(yard.work("tokens"), "viewer")
    subnet = yard.ledger.find("subnet", "private-0").vendor_id
    marks = [{"Key": key, "Value": value} for key, value in tags.of_owner(_owner(yard)).items()]
    yard.tenant().client("ec2").create_network_interface(
        SubnetId=subnet, TagSpecifications=[{"ResourceType": "network-interface", "Tags": marks}]
    )
    list(yard.cloud.tagged(yard.account, "inst-1", "acme", ["us-east-1"]))
    yard.later(120)
    for phase in EKS_DELETE:
        yard.remove(phase)


def _owner(yard: Any) -> tags.Owner:
    return tags.Owner("inst-1", "acme", yard.cluster.id, "1", yard.cluster.client_id, "vantage")
