"""Load balancing takes as many tags as AWS takes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import boto3
import pytest
from moto import mock_aws

from local.aws.accounts import OWN_ACCOUNT
from local.aws.corrections.compute.balancers import fifty_tags
from tests.harness.worlds.inprocess import credentials


@pytest.fixture
def aws() -> Iterator[None]:
    with mock_aws(), credentials(OWN_ACCOUNT):
        yield


def refused_tag() -> int:
    """The number of the tag that a target group does not take."""
    elb: Any = boto3.client("elbv2")
    vpc = boto3.client("ec2").create_vpc(CidrBlock="10.0.0.0/16")["Vpc"]["VpcId"]
    group = elb.create_target_group(Name="g", Protocol="TCP", Port=1, VpcId=vpc)["TargetGroups"][0]
    for number in range(1, 60):
        try:
            elb.add_tags(ResourceArns=[group["TargetGroupArn"]], Tags=[{"Key": f"key-{number}", "Value": "v"}])
        except elb.exceptions.TooManyTagsException:
            return number
    return 60


def test_target_group_takes_fifty_tags(aws: None) -> None:
    with fifty_tags():
        assert refused_tag() == 51


def test_moto_still_takes_ten(aws: None) -> None:
    """Remove the correction when this test fails."""
    assert refused_tag() == 11
