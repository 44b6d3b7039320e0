"""A session is refused actions outside its role's policies, by each service in AWS's words, with the name of the
action. Roles of services are made with the first use."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import boto3
import pytest
from botocore.config import Config
from botocore.exceptions import ClientError
from moto import mock_aws
from moto.iam.models import iam_backends
from moto.moto_server.threaded_moto_server import ThreadedMotoServer

from local.aws.corrections.eks.eks import eks_service
from local.aws.corrections.file_systems import file_systems
from local.aws.corrections.lifecycle_policies import lifecycle_policies
from local.aws.corrections.quick.clients import quick_clients
from local.aws.corrections.quick.images import quick_images
from local.aws.corrections.roles import service_session
from local.aws.permissions import linked
from local.aws.permissions.account import Settings
from local.aws.permissions.asked import Guard, asked_permissions, make_linked_role

ACCOUNT, REGION, ROLE = "222222222222", "us-east-1", "tenant"
ONCE = Config(retries={"mode": "standard", "total_max_attempts": 1})
ADMIN = "AKIA" + "A" * 16
LINKED_EKS = linked.LINKED[linked.NODE_GROUPS]


class Tenant:
    """An account with a role, whose policy can be changed, and clients of a session of it."""

    def __init__(self, url: str, guard: Guard) -> None:
        self._url, self.guard = url, guard
        self.iam = iam_backends[ACCOUNT]["aws"]
        self.admin = self._client("iam", {"aws_access_key_id": ADMIN, "aws_secret_access_key": "x"})
        trust = {"Effect": "Allow", "Action": "sts:AssumeRole", "Principal": {"AWS": "111111111111"}}
        self.iam.create_role(ROLE, json.dumps({"Statement": [trust]}), "/", None, "", [], "3600")
        self.allow("*")
        self.keys = self.session()

    def session(self, policy: Any = None) -> dict[str, str]:
        """The keys of a new session of the role, narrowed to a policy."""
        arn, narrowed = f"arn:aws:iam::{ACCOUNT}:role/{ROLE}", {} if policy is None else {"Policy": json.dumps(policy)}
        sts = self._client("sts", {"aws_access_key_id": ADMIN, "aws_secret_access_key": "x"})
        keys = sts.assume_role(RoleArn=arn, RoleSessionName="one", **narrowed)["Credentials"]
        return {
            "aws_access_key_id": keys["AccessKeyId"],
            "aws_secret_access_key": keys["SecretAccessKey"],
            "aws_session_token": keys["SessionToken"],
        }

    def allow(self, *actions: str, but: tuple[str, ...] = (), resource: str = "*") -> None:
        """Give the role these actions, and deny it others."""
        statements = [{"Effect": "Allow", "Action": list(actions), "Resource": resource}]
        if but:
            statements.append({"Effect": "Deny", "Action": list(but), "Resource": "*"})
        self.iam.put_role_policy(ROLE, "own", json.dumps({"Version": "2012-10-17", "Statement": statements}))

    def client(self, service: str) -> Any:
        """A client of the session."""
        return self._client(service, self.keys)

    def _client(self, service: str, keys: dict[str, str]) -> Any:
        return boto3.client(service, endpoint_url=self._url, region_name=REGION, config=ONCE, **keys)  # type: ignore[call-overload]


@pytest.fixture
def tenant(tmp_path: Path) -> Iterator[Tenant]:
    guard = Guard(lambda account: account == ACCOUNT, Settings(), tmp_path / "asked.jsonl")
    with ExitStack() as stack:
        for quick in (quick_images, quick_clients):
            stack.enter_context(quick())
        stack.enter_context(mock_aws())
        for services in (eks_service, file_systems, lifecycle_policies):
            stack.enter_context(services())
        stack.enter_context(asked_permissions(guard))
        server = ThreadedMotoServer("127.0.0.1", 0, verbose=False)
        server.start()
        stack.callback(server.stop)
        host, port = server.get_host_and_port()
        # moto's own key of the account
        backend = iam_backends[ACCOUNT]["aws"]
        backend.create_user(REGION, "admin")
        key = backend.create_access_key("admin")
        key.access_key_id, _ = ADMIN, backend.access_keys.update({ADMIN: key})
        yield Tenant(f"http://{host}:{port}", guard)


def refusal(work: Any, *args: Any, **parameters: Any) -> tuple[str, int, str]:
    """Code, HTTP status and message of a call that must be refused."""
    with pytest.raises(ClientError) as caught:
        work(*args, **parameters)
    error = caught.value.response["Error"]
    return error["Code"], caught.value.response["ResponseMetadata"]["HTTPStatusCode"], error["Message"]


def test_each_service_refuses_as_it_does(tenant: Tenant) -> None:
    tenant.allow("none:Nothing")
    policy_id = {"PolicyId": "policy-0123456789abcdef0"}
    group = {"AutoScalingGroupName": "a", "DesiredCapacity": 1}
    quota = {"ServiceCode": "ec2", "QuotaCode": "L-1216C47A"}
    cases: list[tuple[str, str, dict[str, Any], str, int, str]] = [
        (
            "ec2",
            "create_vpc",
            {"CidrBlock": "10.0.0.0/16"},
            "UnauthorizedOperation",
            403,
            "ec2:CreateVpc on resource: ",
        ),
        ("iam", "list_roles", {}, "AccessDenied", 403, "iam:ListRoles because no identity-based policy allows"),
        ("elbv2", "describe_load_balancers", {}, "AccessDenied", 403, "elasticloadbalancing:DescribeLoadBalancers"),
        ("autoscaling", "set_desired_capacity", group, "AccessDenied", 403, "autoScalingGroupName/a"),
        ("eks", "describe_cluster", {"name": "a"}, "AccessDeniedException", 403, f"eks:{REGION}:{ACCOUNT}:cluster/a"),
        ("efs", "describe_file_systems", {}, "AccessDeniedException", 403, "elasticfilesystem:DescribeFileSystems"),
        ("dlm", "delete_lifecycle_policy", policy_id, "AccessDeniedException", 403, "dlm:DeleteLifecyclePolicy"),
        ("ssm", "get_parameter", {"Name": "/aws/x"}, "AccessDeniedException", 400, f"ssm:{REGION}::parameter/aws/x"),
        ("service-quotas", "get_service_quota", quota, "AccessDeniedException", 400, "servicequotas:GetServiceQuota"),
        (
            "s3",
            "create_bucket",
            {"Bucket": "data-1"},
            "AccessDenied",
            403,
            "on resource: arn:aws:s3:::data-1",
        ),
        ("s3", "get_bucket_tagging", {"Bucket": "data-1"}, "AccessDenied", 403, "s3:GetBucketTagging"),
        ("ec2", "describe_hosts", {}, "UnauthorizedOperation", 403, "has no row"),
    ]
    for service, operation, parameters, code, status, text in cases:
        error = refusal(getattr(tenant.client(service), operation), **parameters)
        assert error[:2] == (code, status), (service, error)
        assert text in error[2], error
        assert "arn:aws:sts::222222222222:assumed-role/tenant/one" in error[2] or "no row" in text
    assert tenant.client("sts").get_caller_identity()["Account"] == ACCOUNT
    assert tenant.admin.list_roles()["Roles"], "whoever has a user's key is the account's owner"
    tenant.allow("*")
    assert tenant.client("iam").list_roles()["Roles"]
    assert tenant.client("s3").create_bucket(Bucket="data-1")


def test_objects_of_a_bucket_are_asked_for_one_by_one(tenant: Tenant) -> None:
    s3 = tenant.client("s3")
    s3.create_bucket(Bucket="data-1")
    s3.put_object(Bucket="data-1", Key="mine/1", Body=b"x")
    tenant.allow("s3:DeleteObject", "s3:ListBucket", resource="arn:aws:s3:::data-1/mine/*")
    objects = {"Objects": [{"Key": "mine/1"}, {"Key": "others/1"}]}
    assert "data-1/others/1" in refusal(s3.delete_objects, Bucket="data-1", Delete=objects)[2]
    objects = {"Objects": [{"Key": "mine/1", "VersionId": "1"}]}
    assert "s3:DeleteObjectVersion" in refusal(s3.delete_objects, Bucket="data-1", Delete=objects)[2]
    assert "s3:ListBucket on resource: arn:aws:s3:::data-1 " in refusal(s3.list_objects_v2, Bucket="data-1")[2]
    assert len(s3.delete_objects(Bucket="data-1", Delete={"Objects": [{"Key": "mine/1"}]})["Deleted"]) == 1


def test_denial_boundary_and_session_policy_narrow(tenant: Tenant) -> None:
    tenant.allow("*", but=("iam:ListRoles",))
    assert "with an explicit deny" in refusal(tenant.client("iam").list_roles)[2]
    tenant.allow("*")
    only_ec2 = {"Version": "2012-10-17", "Statement": [{"Effect": "Allow", "Action": "ec2:*", "Resource": "*"}]}
    tenant.keys = tenant.session(only_ec2)
    assert "no session policy allows" in refusal(tenant.client("iam").list_roles)[2]
    assert tenant.client("ec2").describe_vpcs()["Vpcs"]
    tenant.keys = tenant.session()
    boundary = tenant.iam.create_policy("", "/", json.dumps(only_ec2), "bound", [])
    tenant.iam.put_role_permissions_boundary(ROLE, boundary.arn)
    assert "no permissions boundary allows" in refusal(tenant.client("iam").list_roles)[2]
    assert tenant.client("ec2").describe_vpcs()["Vpcs"]


GROUP = {"clusterName": "c", "nodegroupName": "g", "subnets": ["subnet-00000001"], "nodeRole": "arn:aws:iam::1:role/n"}
BALANCER = {"Name": "b", "Subnets": ["subnet-00000001"], "Type": "network"}
FLEET = {
    "LaunchTemplateConfigs": [{"LaunchTemplateSpecification": {"LaunchTemplateName": "ttt"}, "Overrides": [{}]}],
    "TargetCapacitySpecification": {"TotalTargetCapacity": 1, "DefaultTargetCapacityType": "spot"},
}
NO_SPOT = "AuthFailure.ServiceLinkedRoleCreationNotPermitted"
INVALID, DENIED = "InvalidRequestException", "AccessDeniedException"
CLUSTER, SYSTEM = {"name": "c", "roleArn": "arn:aws:iam::1:role/c"}, {"CreationToken": "c"}
BALANCING, FILES = "elasticloadbalancing", "elasticfilesystem"
FIRST_USES: list[tuple[str, str, dict[str, Any], str, str, str]] = [
    ("eks", "CreateCluster", CLUSTER, linked.EKS, INVALID, "Failed to create"),
    ("eks", "CreateNodegroup", GROUP, linked.NODE_GROUPS, INVALID, f"service linked role: {LINKED_EKS}"),
    (BALANCING, "CreateTargetGroup", {"Name": "t"}, linked.BALANCING, "AccessDenied", "ForElasticLoadBalancing"),
    (BALANCING, "CreateLoadBalancer", BALANCER, linked.BALANCING, "AccessDenied", "ForElasticLoadBalancing"),
    (FILES, "CreateFileSystem", SYSTEM, linked.FILES, DENIED, "ForAmazonElasticFileSystem"),
    ("ec2", "CreateFleet", FLEET, linked.SPOT, NO_SPOT, "EC2 Spot Instances"),
]
"""Service, operation, parameters -> the service whose role it makes, and how it tells that the caller may not."""


def test_first_use_makes_the_role_of_the_service(tenant: Tenant) -> None:
    key = tenant.keys["aws_access_key_id"]
    for service, operation, parameters, owner, code, text in FIRST_USES:
        name = linked.LINKED[owner]
        tenant.allow("*", but=("iam:CreateServiceLinkedRole",))
        refused = tenant.guard.refusal(key, REGION, service, operation, parameters)
        assert refused is not None, operation
        assert refused.code == code
        assert text in refused.message
        assert "iam:CreateServiceLinkedRole" in refused.message
        make_linked_role(ACCOUNT, owner)
        if operation == "CreateNodegroup":
            make_linked_role(ACCOUNT, linked.SCALING)
        assert tenant.guard.refusal(key, REGION, service, operation, parameters) is None, "it is there"
        tenant.iam.delete_role(name)
        tenant.allow("*")
        assert tenant.guard.refusal(key, REGION, service, operation, parameters) is None
        role = tenant.iam.get_role(name)
        assert role.path == f"/aws-service-role/{owner}/"
        tenant.iam.delete_role(name)


def test_what_a_service_asks_in_the_callers_name_is_told_as_it_tells_it(tenant: Tenant) -> None:
    key = tenant.keys["aws_access_key_id"]
    template = {**GROUP, "launchTemplate": {"name": "t", "version": "1"}}
    make_linked_role(ACCOUNT, linked.NODE_GROUPS)
    make_linked_role(ACCOUNT, linked.SCALING)
    association = {"clusterName": "c", "serviceAccount": "s", "namespace": "n", "roleArn": "arn:aws:iam::1:role/p"}
    target = {"FileSystemId": "fs-1", "SubnetId": "subnet-00000001", "SecurityGroups": ["sg-00000001"]}
    profile = {"InstanceProfileName": "p", "RoleName": "r"}
    policy = {"ExecutionRoleArn": "arn:aws:iam::1:role/d", "Tags": {"a": "b"}}
    cases: list[tuple[str, str, dict[str, Any], str, str, str]] = [
        ("eks", "CreateNodegroup", template, "ec2:DescribeLaunchTemplateVersions", INVALID, "launch template version"),
        ("eks", "CreateNodegroup", template, "ec2:RunInstances", INVALID, "not authorized to launch instances"),
        ("eks", "CreateNodegroup", GROUP, "iam:GetRole", INVALID, f"SLR: {LINKED_EKS} already exists"),
        ("eks", "CreateNodegroup", GROUP, "iam:ListAttachedRolePolicies", INVALID, "iam:ListAttachedRolePolicies"),
        ("eks", "CreateNodegroup", GROUP, "iam:PassRole", DENIED, "iam:PassRole on resource: arn:aws:iam::1:role/n"),
        ("eks", "CreateCluster", CLUSTER, "iam:PassRole", DENIED, "role/c"),
        ("eks", "CreatePodIdentityAssociation", association, "iam:GetRole", DENIED, "iam:GetRole"),
        ("eks", "CreatePodIdentityAssociation", association, "iam:PassRole", DENIED, "iam:PassRole"),
        (FILES, "CreateMountTarget", target, "ec2:CreateNetworkInterface", DENIED, "network-interface/*"),
        (FILES, "CreateMountTarget", target, "ec2:DescribeSubnets", DENIED, "ec2:DescribeSubnets"),
        (FILES, "DeleteMountTarget", {}, "ec2:DeleteNetworkInterface", DENIED, "DeleteNetworkInterface"),
        (
            "elasticloadbalancing",
            "CreateLoadBalancer",
            BALANCER,
            "ec2:DescribeInternetGateways",
            "AccessDenied",
            "ec2:",
        ),
        ("iam", "AddRoleToInstanceProfile", profile, "iam:PassRole", "AccessDenied", "role/r"),
        ("dlm", "CreateLifecyclePolicy", policy, "iam:PassRole", DENIED, "role/d"),
        ("dlm", "CreateLifecyclePolicy", policy, "dlm:TagResource", DENIED, "dlm:TagResource"),
        ("ec2", "CreateFleet", FLEET, "ec2:RunInstances", "UnauthorizedOperation", "ec2:RunInstances"),
    ]
    for service, operation, parameters, lacking, code, text in cases:
        tenant.allow("*", but=(lacking,))
        refused = tenant.guard.refusal(key, REGION, service, operation, parameters)
        assert refused is not None, (operation, lacking)
        assert refused.code == code
        assert text in refused.message


def test_fleet_answers_with_the_refusal_of_its_machines(tenant: Tenant) -> None:
    tenant.allow("*", but=("iam:CreateServiceLinkedRole",))
    ec2 = tenant.client("ec2")
    data = {"ImageId": "ami-12c6146b", "InstanceType": "t3.large"}
    ec2.create_launch_template(LaunchTemplateName="ttt", LaunchTemplateData=data)
    answer = ec2.create_fleet(**FLEET, Type="instant")
    (error,) = answer["Errors"]
    assert error["ErrorCode"] == NO_SPOT
    assert answer["Instances"] == []


def test_volumes_with_a_key_of_the_account_need_it(tenant: Tenant) -> None:
    key = tenant.keys["aws_access_key_id"]
    tenant.allow("*", but=("kms:CreateGrant",))
    for operation in ("CreateVolume", "RunInstances", "StartInstances", "AttachVolume", "CreateFleet"):
        parameters = FLEET if operation == "CreateFleet" else {}
        tenant.guard.settings.volume_key = ""
        assert tenant.guard.refusal(key, REGION, "ec2", operation, parameters) is None
        tenant.guard.settings.volume_key = "own"
        refused = tenant.guard.refusal(key, REGION, "ec2", operation, parameters)
        assert refused is not None
        assert f"kms:CreateGrant on resource: arn:aws:kms:{REGION}:{ACCOUNT}:key/own" in refused.message


def test_machines_are_asked_for_what_they_do_to_volumes(tenant: Tenant) -> None:
    trust = {"Effect": "Allow", "Action": "sts:AssumeRole", "Principal": {"Service": "ec2.amazonaws.com"}}
    document = json.dumps({"Version": "2012-10-17", "Statement": [trust]})
    arn = tenant.iam.create_role("node", document, "/", None, "", [], "3600").arn
    key = service_session(arn, "ec2.amazonaws.com", "i-1", REGION)["AccessKeyId"]
    for operation in ("AttachVolume", "CreateVolume", "DeleteVolume", "DetachVolume", "ModifyVolume"):
        refused = tenant.guard.refusal(
            key, REGION, "ec2", operation, {"VolumeId": "vol-01234567", "InstanceId": "i-01234567"}
        )
        assert refused is not None
        assert f":assumed-role/node/i-1 is not authorized to perform: ec2:{operation}" in refused.message
    assert tenant.guard.refusal(key, REGION, "ec2", "ModifyHosts", {}) is None, "machines call more than the table has"


def test_checks_are_recorded_once(tenant: Tenant) -> None:
    for _ in range(2):
        tenant.client("ec2").describe_vpcs()
    assert tenant.guard.record is not None
    (line,) = tenant.guard.record.read_text().splitlines()
    entry = json.loads(line)
    assert (entry["action"], entry["resource"], entry["refused"]) == ("ec2:DescribeVpcs", "*", False)
