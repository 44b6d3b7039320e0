"""Client tokens and names make a call happen once; new resources are hidden from a search for a while."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import boto3
import pytest
from botocore.exceptions import ClientError
from moto import mock_aws

from local.corrections.compute import hidden_at_first, idempotent_calls
from local.inprocess import OWN_ACCOUNT, credentials

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
    """When this fails, the correction may go."""
    ec2 = boto3.client("ec2")
    assert run(ec2, "a") != run(ec2, "a")


def subnet(ec2: Any) -> str:
    vpc = ec2.create_vpc(CidrBlock="10.0.0.0/16")["Vpc"]["VpcId"]
    return str(ec2.create_subnet(VpcId=vpc, CidrBlock="10.0.0.0/24")["Subnet"]["SubnetId"])


def test_a_load_balancers_name_is_idempotent_until_it_is_deleted(aws: None) -> None:
    elb: Any = boto3.client("elbv2")
    place = subnet(boto3.client("ec2"))

    def create(scheme: str = "internet-facing") -> str:
        answer = elb.create_load_balancer(Name="api", Subnets=[place], Type="network", Scheme=scheme)
        return str(answer["LoadBalancers"][0]["LoadBalancerArn"])

    with idempotent_calls():
        first = create()
        assert create() == first
        with pytest.raises(ClientError) as caught:
            create("internal")
        assert caught.value.response["Error"]["Code"] == "DuplicateLoadBalancerName"
        elb.delete_load_balancer(LoadBalancerArn=first)
        assert create("internal") != first


def test_new_things_are_hidden_from_a_search_but_not_from_a_look(aws: None) -> None:
    ec2: Any = boto3.client("ec2")
    with hidden_at_first(lambda: 1000.0):
        vpc = ec2.create_vpc(CidrBlock="10.0.0.0/16")["Vpc"]["VpcId"]
        ec2.create_subnet(VpcId=vpc, CidrBlock="10.0.0.0/24")
        wanted = [{"Name": "cidr", "Values": ["10.0.0.0/16"]}]
        assert ec2.describe_vpcs(Filters=wanted)["Vpcs"] == []
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
