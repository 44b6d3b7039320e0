"""Facts of an instance that the local cloud tells besides its description."""

from __future__ import annotations

from typing import Any

import boto3
import pytest
from botocore.exceptions import ClientError
from moto import mock_aws
from moto.ec2.models.amis import AMIS

from local.aws.corrections.compute.console import told_topology

KEYS = {"aws_access_key_id": "a", "aws_secret_access_key": "b", "region_name": "us-east-1"}


def test_the_network_above_a_machine_is_told_of_few_types() -> None:
    with mock_aws(), told_topology():
        ec2: Any = boto3.client("ec2", **KEYS)  # type: ignore[call-overload]
        names = {}
        for kind in ("p5.48xlarge", "t3.large"):
            launched = ec2.run_instances(ImageId=AMIS[0]["ami_id"], InstanceType=kind, MinCount=1, MaxCount=1)
            names[kind] = launched["Instances"][0]["InstanceId"]
        (placed,) = ec2.describe_instance_topology(InstanceIds=list(names.values()))["Instances"]
        assert (placed["InstanceId"], placed["InstanceType"]) == (names["p5.48xlarge"], "p5.48xlarge")
        assert len(set(placed["NetworkNodes"])) == 3
        with pytest.raises(ClientError, match=r"InvalidInstanceID\.NotFound"):
            ec2.describe_instance_topology(InstanceIds=["i-0123456789abcdef0"])
