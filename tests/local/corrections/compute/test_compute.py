"""Client tokens and names make a call idempotent; new resources are hidden from searches for a while."""

from __future__ import annotations

import base64
from collections.abc import Iterator
from typing import Any

import boto3
import pytest
from botocore.exceptions import ClientError
from moto import mock_aws

from local.aws.accounts import OWN_ACCOUNT
from local.aws.corrections.compute.compute import hidden_at_first, idempotent_calls, instant_fleets
from local.aws.corrections.compute.spot_prices import moving_spot_prices
from tests.harness.worlds.inprocess import credentials

IMAGE = "ami-12c6146b"


@pytest.fixture
def aws() -> Iterator[None]:
    with mock_aws(), credentials(OWN_ACCOUNT):
        yield


def run(ec2: Any, token: str, kind: str = "t3.large") -> str:
    answer = ec2.run_instances(ImageId=IMAGE, MinCount=1, MaxCount=1, InstanceType=kind, ClientToken=token)
    return str(answer["Instances"][0]["InstanceId"])


def test_a_client_token_starts_one_instance(aws: None) -> None:
    ec2 = boto3.client("ec2")
    with idempotent_calls():
        assert run(ec2, "a") == run(ec2, "a")
        assert run(ec2, "b") != run(ec2, "a")
        with pytest.raises(ClientError) as caught:
            run(ec2, "a", "t3.small")
        assert caught.value.response["Error"]["Code"] == "IdempotentParameterMismatch"


def test_moto_still_ignores_client_tokens(aws: None) -> None:
    """Remove the correction when this test fails."""
    ec2 = boto3.client("ec2")
    assert run(ec2, "a") != run(ec2, "a")


def subnet(ec2: Any) -> str:
    vpc = ec2.create_vpc(CidrBlock="10.0.0.0/16")["Vpc"]["VpcId"]
    return str(ec2.create_subnet(VpcId=vpc, CidrBlock="10.0.0.0/24")["Subnet"]["SubnetId"])


def test_a_load_balancers_name_is_idempotent_until_it_is_deleted(aws: None) -> None:
    elb: Any = boto3.client("elbv2")
    subnet_id = subnet(boto3.client("ec2"))

    def create(scheme: str = "internet-facing") -> str:
        answer = elb.create_load_balancer(Name="api", Subnets=[subnet_id], Type="network", Scheme=scheme)
        return str(answer["LoadBalancers"][0]["LoadBalancerArn"])

    with idempotent_calls():
        first = create()
        assert create() == first
        with pytest.raises(ClientError) as caught:
            create("internal")
        assert caught.value.response["Error"]["Code"] == "DuplicateLoadBalancerName"
        elb.delete_load_balancer(LoadBalancerArn=first)
        assert create("internal") != first


def test_new_resources_are_hidden_from_searches_but_not_from_calls_by_id(aws: None) -> None:
    ec2: Any = boto3.client("ec2")
    with hidden_at_first(lambda: 1000.0):
        vpc = ec2.create_vpc(CidrBlock="10.0.0.0/16")["Vpc"]["VpcId"]
        ec2.create_subnet(VpcId=vpc, CidrBlock="10.0.0.0/24")
        filters = [{"Name": "cidr", "Values": ["10.0.0.0/16"]}]
        assert ec2.describe_vpcs(Filters=filters)["Vpcs"] == []
        assert ec2.describe_subnets(Filters=[{"Name": "vpc-id", "Values": [vpc]}])["Subnets"] == []
        assert len(ec2.describe_vpcs(VpcIds=[vpc])["Vpcs"]) == 1
        instance = run(ec2, "a")
        by_state = [{"Name": "instance-state-name", "Values": ["running", "pending"]}]
        assert ec2.describe_instances(Filters=by_state)["Reservations"] == []
        assert len(ec2.describe_instances(InstanceIds=[instance])["Reservations"]) == 1
        with pytest.raises(ClientError) as caught:
            ec2.create_subnet(VpcId=vpc, CidrBlock="10.0.0.0/24")
        assert caught.value.response["Error"]["Code"] == "InvalidSubnet.Conflict"
    with hidden_at_first(lambda: 0.0):
        ec2.create_vpc(CidrBlock="10.1.0.0/16")
        assert len(ec2.describe_vpcs(Filters=[{"Name": "cidr", "Values": ["10.1.0.0/16"]}])["Vpcs"]) == 1


def template(ec2: Any, name: str = "pool", **data: Any) -> str:
    """A launch template with a disk, and the id of a subnet to launch into."""
    disk = {"DeviceName": "/dev/sda1", "Ebs": {"VolumeSize": 50, "VolumeType": "gp3", "DeleteOnTermination": True}}
    user_data = base64.b64encode(b"#cloud-config").decode()
    template_data: dict[str, Any] = {"ImageId": IMAGE, "BlockDeviceMappings": [disk], "UserData": user_data, **data}
    ec2.create_launch_template(LaunchTemplateName=name, LaunchTemplateData=template_data)
    return subnet(ec2)


def fleet(
    ec2: Any,
    subnet_id: str,
    *kinds: str,
    mark: str = "a",
    count: int = 1,
    spot: bool = False,
    key: str = "a",
    strategy: str = "",
) -> Any:
    """An instant fleet whose overrides are in the reverse order of their priority."""
    overrides = [{"InstanceType": kind, "SubnetId": subnet_id, "Priority": float(n)} for n, kind in enumerate(kinds)]
    specification = {"LaunchTemplateName": "pool", "Version": "$Default"}
    pairs = [{"Key": key, "Value": "value"}]
    return ec2.create_fleet(
        Type="instant",
        ClientToken=mark,
        LaunchTemplateConfigs=[{"LaunchTemplateSpecification": specification, "Overrides": overrides[::-1]}],
        TargetCapacitySpecification={
            "TotalTargetCapacity": count,
            "DefaultTargetCapacityType": "spot" if spot else "on-demand",
        },
        TagSpecifications=[{"ResourceType": kind, "Tags": pairs} for kind in ("instance", "volume", "fleet")],
        **({"SpotOptions": {"AllocationStrategy": strategy}} if strategy else {}),
    )


def test_an_instant_fleet_takes_the_first_available_override_by_priority(aws: None) -> None:
    ec2: Any = boto3.client("ec2")
    with instant_fleets({"t3.small": 1, "t3.medium": 0}):
        subnet_id = template(ec2)
        answer = fleet(ec2, subnet_id, "t3.medium", "t3.small", "t3.large", count=2)
        assert [instance["InstanceType"] for instance in answer["Instances"]] == ["t3.small", "t3.large"]
        assert {instance["Lifecycle"] for instance in answer["Instances"]} == {"on-demand"}
        assert [
            (failure["LaunchTemplateAndOverrides"]["Overrides"]["InstanceType"], failure["ErrorCode"])
            for failure in answer["Errors"]
        ] == [("t3.medium", "InsufficientInstanceCapacity"), ("t3.small", "InsufficientInstanceCapacity")]
        none = fleet(ec2, subnet_id, "t3.medium", mark="b")
        assert (none["Instances"], len(none["Errors"])) == ([], 1)


def test_spot_comes_where_it_is_cheapest_by_a_strategy_that_goes_by_price(aws: None) -> None:
    ec2: Any = boto3.client("ec2")
    prices = {"t3.large": [(0.0, 0.03)], "t3.small": [(0.0, 0.01)], "t3.medium": [(0.0, 0.02)]}
    with moving_spot_prices(prices), instant_fleets({"t3.small": 0}):
        subnet_id = template(ec2)
        kinds = ("t3.large", "t3.small", "t3.medium")
        first = {
            strategy: fleet(ec2, subnet_id, *kinds, mark=strategy, spot=True, strategy=strategy)["Instances"][0]
            for strategy in ("price-capacity-optimized", "lowest-price", "capacity-optimized")
        }
    assert {strategy: instance["InstanceType"] for strategy, instance in first.items()} == {
        "price-capacity-optimized": "t3.medium",
        "lowest-price": "t3.medium",
        "capacity-optimized": "t3.large",
    }


def test_instances_of_a_fleet_follow_template_and_tags(aws: None) -> None:
    ec2: Any = boto3.client("ec2")
    with instant_fleets({}):
        subnet_id = template(ec2, MetadataOptions={"InstanceMetadataTags": "enabled", "HttpTokens": "required"})
        answer = fleet(ec2, subnet_id, "t3.small", spot=True, key="key")
        (machine,) = answer["Instances"][0]["InstanceIds"]
        (instance,) = ec2.describe_instances(InstanceIds=[machine])["Reservations"][0]["Instances"]
        assert {"Key": "key", "Value": "value"} in instance["Tags"]
        assert (instance["SubnetId"], instance["InstanceLifecycle"]) == (subnet_id, "spot")
        assert instance["MetadataOptions"]["HttpTokens"] == "required"
        (volume,) = ec2.describe_volumes()["Volumes"]
        assert (volume["Size"], volume["VolumeType"]) == (50, "gp3")
        assert {"Key": "key", "Value": "value"} in volume["Tags"]
        user_data = ec2.describe_instance_attribute(InstanceId=machine, Attribute="userData")["UserData"]["Value"]
        assert base64.b64decode(user_data) == b"#cloud-config"
        interfaces = len(ec2.describe_network_interfaces()["NetworkInterfaces"])
        ec2.terminate_instances(InstanceIds=[machine])
        assert len(ec2.describe_network_interfaces()["NetworkInterfaces"]) == interfaces - 1
        with pytest.raises(ClientError, match="not a valid tag key"):
            fleet(ec2, subnet_id, "t3.small", mark="b", key="kubernetes.io/cluster/c")


def test_a_client_token_makes_a_fleet_idempotent(aws: None) -> None:
    ec2: Any = boto3.client("ec2")
    limits = {"t3.small": 1}
    with instant_fleets(limits):
        subnet_id = template(ec2)
        assert fleet(ec2, subnet_id, "t3.small")["Instances"] == fleet(ec2, subnet_id, "t3.small")["Instances"]
        refused = fleet(ec2, subnet_id, "t3.small", mark="b")
        limits.clear()
        assert fleet(ec2, subnet_id, "t3.small", mark="b")["Errors"] == refused["Errors"], "also a refusal is repeated"
        with pytest.raises(ClientError) as caught:
            fleet(ec2, subnet_id, "t3.small", "t3.large")
        assert caught.value.response["Error"]["Code"] == "IdempotentParameterMismatch"


def test_moto_still_ignores_priority_and_token_of_a_fleet(aws: None) -> None:
    """Remove a part of the correction when an assertion here fails."""
    ec2: Any = boto3.client("ec2")
    subnet_id = template(ec2)
    first = fleet(ec2, subnet_id, "t3.small", "t3.large")
    assert first["Instances"][0]["InstanceType"] == "t3.large", "by priority it would be the other"
    assert fleet(ec2, subnet_id, "t3.small", "t3.large")["FleetId"] != first["FleetId"]


def test_a_new_launch_template_is_hidden_from_searches_but_not_from_calls_by_name(aws: None) -> None:
    ec2: Any = boto3.client("ec2")
    by_tag = [{"Name": "launch-template-name", "Values": ["pool"]}]
    with hidden_at_first(lambda: 1000.0):
        template(ec2)
        assert ec2.describe_launch_templates(Filters=by_tag)["LaunchTemplates"] == []
        assert len(ec2.describe_launch_templates(LaunchTemplateNames=["pool"])["LaunchTemplates"]) == 1
