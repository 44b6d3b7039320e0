"""The network interface of a NAT gateway."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import boto3
import pytest
from botocore.exceptions import ClientError
from moto import mock_aws

from local.aws.accounts import OWN_ACCOUNT
from local.aws.corrections.compute.interfaces import dependencies_hold, interfaces_go_with_gateways, tagged_interfaces
from tests.harness.worlds.inprocess import credentials


@pytest.fixture
def aws() -> Iterator[None]:
    with mock_aws(), credentials(OWN_ACCOUNT):
        yield


def left_after_deletion() -> list[Any]:
    ec2: Any = boto3.client("ec2")
    vpc = ec2.create_vpc(CidrBlock="10.0.0.0/16")["Vpc"]["VpcId"]
    subnet = ec2.create_subnet(VpcId=vpc, CidrBlock="10.0.0.0/24")["Subnet"]["SubnetId"]
    address = ec2.allocate_address(Domain="vpc")["AllocationId"]
    gateway = ec2.create_nat_gateway(SubnetId=subnet, AllocationId=address)["NatGateway"]["NatGatewayId"]
    assert len(ec2.describe_network_interfaces()["NetworkInterfaces"]) == 1
    ec2.delete_nat_gateway(NatGatewayId=gateway)
    interfaces_listed: list[Any] = ec2.describe_network_interfaces()["NetworkInterfaces"]
    return interfaces_listed


def test_the_interface_is_deleted_with_its_gateway(aws: None) -> None:
    with interfaces_go_with_gateways():
        assert left_after_deletion() == []


def test_moto_still_keeps_the_interface(aws: None) -> None:
    """Remove the correction when this test fails."""
    assert len(left_after_deletion()) == 1


def tags_of_new_interface() -> list[Any]:
    ec2: Any = boto3.client("ec2")
    image = ec2.describe_images(Owners=["amazon"])["Images"][0]["ImageId"]
    tags = [{"ResourceType": "network-interface", "Tags": [{"Key": "a", "Value": "b"}]}]
    ec2.run_instances(ImageId=image, MinCount=1, MaxCount=1, TagSpecifications=tags)
    (interface,) = ec2.describe_network_interfaces()["NetworkInterfaces"]
    pairs: list[Any] = interface["TagSet"]
    return pairs


def test_the_interface_of_an_instance_has_the_tags_of_the_request(aws: None) -> None:
    with tagged_interfaces():
        assert tags_of_new_interface() == [{"Key": "a", "Value": "b"}]


def test_moto_still_gives_it_none(aws: None) -> None:
    """Remove the correction when this test fails."""
    assert tags_of_new_interface() == []


def test_what_an_interface_or_a_rule_uses_cannot_be_deleted(aws: None) -> None:
    ec2: Any = boto3.client("ec2")
    vpc = ec2.create_vpc(CidrBlock="10.0.0.0/16")["Vpc"]["VpcId"]
    subnet = ec2.create_subnet(VpcId=vpc, CidrBlock="10.0.0.0/24")["Subnet"]["SubnetId"]
    group, other = (
        ec2.create_security_group(GroupName=name, Description="d", VpcId=vpc)["GroupId"] for name in ("one", "other")
    )
    rule = {"IpProtocol": "tcp", "FromPort": 22, "ToPort": 22, "UserIdGroupPairs": [{"GroupId": other}]}
    ec2.authorize_security_group_ingress(GroupId=group, IpPermissions=[rule])
    interface = ec2.create_network_interface(SubnetId=subnet, Groups=[group])["NetworkInterface"]["NetworkInterfaceId"]
    with dependencies_hold():
        for delete, thing in (
            (ec2.delete_subnet, {"SubnetId": subnet}),
            (ec2.delete_security_group, {"GroupId": group}),
            (ec2.delete_security_group, {"GroupId": other}),
        ):
            with pytest.raises(ClientError, match="DependencyViolation"):
                delete(**thing)
        ec2.delete_network_interface(NetworkInterfaceId=interface)
        ec2.delete_subnet(SubnetId=subnet)
        ec2.delete_security_group(GroupId=group)
        ec2.delete_security_group(GroupId=other)
