"""Direct calls to moto get the same answers as calls on the wire: compared call by call in the same lives."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from datetime import datetime
from typing import Any
from unittest.mock import patch

import boto3
import pytest
from botocore.client import BaseClient
from botocore.exceptions import ClientError, ParamValidationError
from moto import mock_aws
from moto.moto_api._internal import mock_random

from tests.harness.crash.cells import live
from tests.harness.crash.world import crash_world
from tests.harness.worlds.direct_aws import RESPONSES, direct_aws
from tests.workflows.faulty_cloud import machine_cloud
from tests.workflows.machine_life import MachineLife

PASSING = {"ResponseMetadata", "SecretAccessKey", "SessionToken"}
DRAWN = re.compile(r"[0-9a-fA-Z]+")
"""Parts of ids, addresses, fingerprints and times, which differ from run to run."""
Answers = list[tuple[str, Any]]


def _lasting(value: Any) -> Any:
    """The value without parts that differ from run to run: random parts, times, and data of the connection."""
    if isinstance(value, Mapping):
        return {key: _lasting(part) for key, part in value.items() if key not in PASSING}
    if isinstance(value, list | tuple):
        return [_lasting(part) for part in value]
    if isinstance(value, str):
        return DRAWN.sub("#", value)
    return "a moment" if isinstance(value, datetime) and value.tzinfo else value


@contextmanager
def answers() -> Iterator[Answers]:
    """Records every call of the services that are called directly, with its answer or error."""
    recorded: Answers = []
    original: Any = BaseClient._make_api_call  # type: ignore[attr-defined]

    def call(client: Any, operation: str, parameters: Mapping[str, Any]) -> Any:
        service = client.meta.service_model.service_name
        if service not in RESPONSES:
            return original(client, operation, parameters)
        name = f"{service}.{operation}"
        try:
            answer = original(client, operation, parameters)
        except ClientError as refusal:
            error, meta = refusal.response["Error"], refusal.response["ResponseMetadata"]
            error_answer = error["Code"], _lasting(error["Message"]), meta["HTTPStatusCode"], type(refusal).__name__
            recorded.append((name, error_answer))
            raise
        recorded.append((name, _lasting(answer)))
        return answer

    with patch.object(BaseClient, "_make_api_call", call):
        yield recorded


def cluster(*, wire: bool) -> Answers:
    """The answers in a cluster's life: creation and deletion."""
    with crash_world(wire=wire) as world, answers() as recorded:
        assert live(world, "clean", 1).ready
    return recorded


def machine(*, wire: bool) -> Answers:
    """The answers in a claim's life with a machine of EC2."""
    mock_random.seed(1)
    with machine_cloud(wire=wire) as cloud, answers() as recorded:
        assert MachineLife(cloud).run() == "Available"
    return recorded


def refusals(*, wire: bool) -> Answers:
    """The answers to calls that moto refuses, one of each kind of refusal."""
    mock_random.seed(1)
    tried: list[tuple[str, str, dict[str, Any]]] = [
        ("ec2", "describe_vpcs", {"VpcIds": ["vpc-00000000000000000"]}),
        ("ec2", "delete_subnet", {"SubnetId": "subnet-00000000000000000"}),
        ("ec2", "create_vpc", {"CidrBlock": "nonsense"}),
        ("ec2", "run_instances", {"ImageId": "ami-0", "MinCount": 1, "MaxCount": 1}),
        ("elbv2", "describe_load_balancers", {"Names": ["nobody"]}),
        ("elbv2", "delete_target_group", {"TargetGroupArn": "arn:aws:elasticloadbalancing:us-east-1:1:none"}),
        ("iam", "get_role", {"RoleName": "nobody"}),
        ("iam", "get_instance_profile", {"InstanceProfileName": "nobody"}),
        ("iam", "delete_role", {"RoleName": "nobody"}),
    ]
    with pytest.MonkeyPatch.context() as patched, mock_aws(), answers() as recorded:
        patched.setenv("AWS_DEFAULT_REGION", "us-east-1")
        for service, operation, parameters in tried:
            client: Any = boto3.client(service)  # type: ignore[call-overload]
            try:
                getattr(client, operation)(**parameters)
            except ClientError:
                continue
    assert len(recorded) == len(tried)
    return recorded


@pytest.mark.parametrize("life", [cluster, machine])
def test_direct_calls_get_the_same_answers(life: Callable[..., Answers]) -> None:
    direct, sent = life(wire=False), life(wire=True)
    assert [name for name, _ in direct] == [name for name, _ in sent]
    assert len(direct) > 30
    for direct_answer, wire_answer in zip(direct, sent, strict=True):
        assert direct_answer == wire_answer


def test_direct_calls_get_the_same_refusals() -> None:
    sent = refusals(wire=True)
    with direct_aws():
        assert refusals(wire=False) == sent


def test_direct_calls_check_parameters_like_botocore() -> None:
    with mock_aws(), direct_aws(), pytest.raises(ParamValidationError, match="Missing required parameter"):
        boto3.client("ec2", "us-east-1").run_instances()  # type: ignore[call-arg]
