"""Key pairs of the first region are in all regions."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import boto3
import pytest
from moto import mock_aws

from local.aws.accounts import OWN_ACCOUNT
from local.aws.corrections.compute.key_pairs import key_pairs_everywhere
from tests.harness.worlds.inprocess import credentials


@pytest.fixture
def aws() -> Iterator[None]:
    with mock_aws(), credentials(OWN_ACCOUNT), key_pairs_everywhere():
        yield


def names(region: str) -> list[str]:
    ec2: Any = boto3.client("ec2", region_name=region)
    return [pair["KeyName"] for pair in ec2.describe_key_pairs()["KeyPairs"]]


@pytest.mark.usefixtures("aws")
def test_another_region_has_it_until_somebody_deletes_it_there() -> None:
    home: Any = boto3.client("ec2", region_name="us-east-1")
    home.create_key_pair(KeyName="my-key")
    assert names("eu-west-1") == names("us-east-1") == ["my-key"]
    west: Any = boto3.client("ec2", region_name="eu-west-1")
    west.delete_key_pair(KeyName="my-key")
    assert (names("eu-west-1"), names("us-east-1"), names("eu-north-1")) == ([], ["my-key"], ["my-key"])
