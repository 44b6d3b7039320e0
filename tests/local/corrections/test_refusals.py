"""Capacity runs out, calls are throttled or refused by plan, and EC2 does not know a new instance profile at once."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import boto3
import pytest
from botocore.config import Config
from botocore.exceptions import ClientError
from moto import mock_aws
from moto.ec2.models import ec2_backends

from local.aws.accounts import OWN_ACCOUNT
from local.aws.corrections.compute.compute import instant_fleets
from local.aws.corrections.refusals import (
    gone_have_no_tags,
    known_things,
    new_profiles_unusable,
    planned_refusals,
    scarce_capacity,
)
from local.aws.corrections.scarcity import shortage_now, take_away
from tests.harness.worlds.eks_setting import KEYS, eks_setting
from tests.harness.worlds.inprocess import credentials

IMAGE = "ami-12c6146b"
ONCE = Config(retries={"mode": "standard", "total_max_attempts": 1})


@pytest.fixture
def aws() -> Iterator[None]:
    with mock_aws(), credentials(OWN_ACCOUNT):
        yield


def client(service: str) -> Any:
    return boto3.client(service, config=ONCE)  # type: ignore[call-overload]


def run(ec2: Any, kind: str = "t3.large", count: int = 1, **more: Any) -> list[str]:
    answer = ec2.run_instances(ImageId=IMAGE, MinCount=count, MaxCount=count, InstanceType=kind, **more)
    return [instance["InstanceId"] for instance in answer["Instances"]]


def refusal(work: Callable[[], Any]) -> tuple[str, int]:
    """Code and HTTP status of a call that must be refused."""
    with pytest.raises(ClientError) as caught:
        work()
    return caught.value.response["Error"]["Code"], caught.value.response["ResponseMetadata"]["HTTPStatusCode"]


def test_capacity_runs_out_and_comes_back(aws: None) -> None:
    ec2 = client("ec2")
    with scarce_capacity({"t3.large": 2}):
        first = run(ec2)
        assert refusal(lambda: run(ec2, count=2))[0] == "InsufficientInstanceCapacity"
        run(ec2)
        assert refusal(lambda: run(ec2))[0] == "InsufficientInstanceCapacity"
        assert run(ec2, "t3.small")
        ec2.terminate_instances(InstanceIds=first)
        assert run(ec2)


def test_calls_are_throttled_then_refused_then_answered(aws: None) -> None:
    ec2, iam, elb = client("ec2"), client("iam"), client("elbv2")

    def vpc() -> Any:
        return ec2.create_vpc(CidrBlock="10.0.0.0/16")

    plan = {"ec2:CreateVpc": 1, "iam:ListRoles": 1, "elasticloadbalancing:DescribeLoadBalancers": 1}
    with planned_refusals(plan, {"ec2:CreateVpc": 1, "iam:ListRoles": 1}):
        assert refusal(vpc) == ("RequestLimitExceeded", 400)
        assert refusal(vpc) == ("UnauthorizedOperation", 403)
        assert vpc()["Vpc"]["State"]
        assert refusal(iam.list_roles) == ("Throttling", 400)
        assert refusal(iam.list_roles) == ("AccessDenied", 403)
        assert refusal(elb.describe_load_balancers) == ("Throttling", 400)
        assert elb.describe_load_balancers()["LoadBalancers"] == []
        assert ec2.describe_vpcs()["Vpcs"]


def test_calls_of_services_with_rest_are_refused_by_plan_too() -> None:
    with (
        eks_setting(wire=True) as setting,
        planned_refusals({"eks:ListClusters": 1}, {"elasticfilesystem:DescribeFileSystems": 1}),
    ):
        url = setting.client("eks").meta.endpoint_url
        eks, efs = (
            boto3.client(name, endpoint_url=url, config=ONCE, **KEYS)  # type: ignore[call-overload]
            for name in ("eks", "efs")
        )
        assert refusal(eks.list_clusters) == ("ThrottlingException", 429)
        assert eks.list_clusters()["clusters"] == []
        assert refusal(efs.describe_file_systems) == ("AccessDeniedException", 403)
        assert efs.describe_file_systems()["FileSystems"] == []


def test_a_plan_refuses_only_while_its_condition_holds(aws: None) -> None:
    ec2 = client("ec2")
    accounts: list[str] = []

    def strikes(account: str) -> bool:
        accounts.append(account)
        return len(accounts) > 1

    with planned_refusals({}, {"ec2:DescribeVpcs": 1}, strikes):
        assert ec2.describe_vpcs()["Vpcs"]
        assert refusal(ec2.describe_vpcs)[0] == "UnauthorizedOperation"
        assert ec2.describe_vpcs()["Vpcs"]
    assert accounts[0] == OWN_ACCOUNT


def test_a_new_profile_is_unknown_to_ec2_for_a_while(aws: None) -> None:
    ec2, iam, moment = client("ec2"), client("iam"), [0.0]
    with new_profiles_unusable(lambda: 10.0, lambda: moment[0]):
        arn = iam.create_instance_profile(InstanceProfileName="node", Path="/x/")["InstanceProfile"]["Arn"]
        for profile in ({"Name": "node"}, {"Arn": arn}):
            code, _ = refusal(lambda profile=profile: run(ec2, IamInstanceProfile=profile))
            assert code == "InvalidParameterValue"
        assert run(ec2)
        moment[0] = 11.0
        assert run(ec2, IamInstanceProfile={"Name": "node"})


def test_a_zone_that_is_down_has_nothing(aws: None) -> None:
    ec2 = client("ec2")
    subnets = {each["AvailabilityZone"]: each["SubnetId"] for each in ec2.describe_subnets()["Subnets"]}
    here, there = {"SubnetId": subnets["us-east-1a"]}, {"SubnetId": subnets["us-east-1b"]}
    with scarce_capacity({}, ["us-east-1b"]):
        assert refusal(lambda: run(ec2, **there))[0] == "InsufficientInstanceCapacity"
        assert run(ec2, **here)
        assert shortage_now(ec2_backends[OWN_ACCOUNT]["us-east-1"], "t3.large", "us-east-1b")
        take_away(["us-east-1a"])
        assert run(ec2, **there)
        assert refusal(lambda: run(ec2, **here))[0] == "InsufficientInstanceCapacity"
    assert run(ec2, **here)


def test_moto_still_has_unlimited_capacity_and_knows_profiles_at_once(aws: None) -> None:
    """Remove the corrections when this test fails."""
    ec2, iam = client("ec2"), client("iam")
    iam.create_instance_profile(InstanceProfileName="node")
    assert len(run(ec2, "p5.48xlarge", 50, IamInstanceProfile={"Name": "node"})) == 50


def test_deleting_a_missing_resource_is_refused_to_a_role_and_not_found_for_a_person(aws: None) -> None:
    role = f"arn:aws:iam::{OWN_ACCOUNT}:role/x"
    keys = client("sts").assume_role(RoleArn=role, RoleSessionName="xx")["Credentials"]
    tenant_client = boto3.client(
        "ec2",
        config=ONCE,
        aws_access_key_id=keys["AccessKeyId"],
        aws_secret_access_key=keys["SecretAccessKey"],
        aws_session_token=keys["SessionToken"],
    )
    person = client("ec2")
    with gone_have_no_tags():
        instance, vpc = run(tenant_client)[0], tenant_client.create_vpc(CidrBlock="10.0.0.0/16")["Vpc"]["VpcId"]
        tenant_client.terminate_instances(InstanceIds=[instance])
        tenant_client.delete_vpc(VpcId=vpc)
        assert refusal(lambda: tenant_client.terminate_instances(InstanceIds=[instance])) == (
            "UnauthorizedOperation",
            403,
        )
        assert refusal(lambda: tenant_client.delete_vpc(VpcId=vpc)) == ("UnauthorizedOperation", 403)
        assert refusal(lambda: person.delete_vpc(VpcId=vpc))[0] == "InvalidVpcID.NotFound"
        person.terminate_instances(InstanceIds=[instance])
    assert refusal(lambda: tenant_client.delete_vpc(VpcId=vpc))[0] == "InvalidVpcID.NotFound", "moto still needs it"


def test_a_launch_that_names_what_is_not_there_is_refused(aws: None) -> None:
    """RunInstances as a whole, an instant fleet way by way: the others are tried."""
    ec2, iam = client("ec2"), client("iam")
    iam.create_instance_profile(InstanceProfileName="there")
    here = ec2.describe_subnets()["Subnets"][0]["SubnetId"]
    strange_profile, strange_image = {"IamInstanceProfile": {"Name": "gone"}}, {"ImageId": "ami-0123456789abcdef0"}
    with instant_fleets({}):
        named = {"ImageId": IMAGE, "IamInstanceProfile": {"Name": "there"}}
        for name, changed in (("good", {}), ("profile", strange_profile), ("image", strange_image)):
            ec2.create_launch_template(LaunchTemplateName=name, LaunchTemplateData={**named, **changed})

        def fleet(*ways: tuple[str, str]) -> tuple[list[str], int]:
            configs = [
                {
                    "LaunchTemplateSpecification": {"LaunchTemplateName": name, "Version": "$Latest"},
                    "Overrides": [{"InstanceType": "t3.large", "SubnetId": subnet}],
                }
                for name, subnet in ways
            ]
            capacity = {"TotalTargetCapacity": 1, "DefaultTargetCapacityType": "on-demand"}
            answer = ec2.create_fleet(
                Type="instant", LaunchTemplateConfigs=configs, TargetCapacitySpecification=capacity
            )
            return [error["ErrorCode"] for error in answer["Errors"]], len(answer["Instances"])

        with known_things():
            assert refusal(lambda: run(ec2, SubnetId="subnet-0123456789abcdef0"))[0] == "InvalidSubnetID.NotFound"
            assert refusal(lambda: run(ec2, **strange_profile))[0] == "InvalidParameterValue"
            image = {"ImageId": strange_image["ImageId"], "MinCount": 1, "MaxCount": 1}
            assert refusal(lambda: ec2.run_instances(**image))[0] == "InvalidAMIID.NotFound"
            assert run(ec2, SubnetId=here, IamInstanceProfile={"Name": "there"})
            codes, count = fleet(
                ("image", here), ("profile", here), ("good", "subnet-0123456789abcdef0"), ("good", here)
            )
            assert codes == ["InvalidAMIID.NotFound", "InvalidParameterValue", "InvalidSubnetID.NotFound"]
            assert count == 1
