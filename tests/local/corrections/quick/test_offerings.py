"""Offerings that are looked up are those that moto finds."""

from __future__ import annotations

from typing import Any

import boto3
import pytest
from moto import mock_aws

from local.aws.accounts import OWN_ACCOUNT, REGION
from local.aws.corrections.quick.offerings import quick_offerings
from tests.harness.worlds.inprocess import credentials


@pytest.mark.parametrize("names", [["t3.medium"], ["t3.medium", "m6i.large"], ["none.such"]])
def test_offerings_are_the_same(names: list[str]) -> None:
    with mock_aws(), credentials(OWN_ACCOUNT):
        ec2: Any = boto3.client("ec2", REGION)
        zone = {"Name": "location", "Values": [f"{REGION}a", f"{REGION}b"]}
        query: dict[str, Any] = {
            "LocationType": "availability-zone",
            "Filters": [zone, {"Name": "instance-type", "Values": names}],
        }
        slow = ec2.describe_instance_type_offerings(**query)["InstanceTypeOfferings"]
        with quick_offerings():
            assert ec2.describe_instance_type_offerings(**query)["InstanceTypeOfferings"] == slow
        assert {offering["InstanceType"] for offering in slow} == set(names) - {"none.such"}
