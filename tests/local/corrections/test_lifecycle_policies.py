"""The imitation of the Data Lifecycle Manager answers over HTTP as it does in this process."""

from __future__ import annotations

from typing import Any

import boto3
import pytest
from botocore.exceptions import ClientError
from moto import mock_aws
from moto.core.base_backend import BackendDict
from moto.moto_server.threaded_moto_server import ThreadedMotoServer

from local.aws.corrections.lifecycle_policies import lifecycle_policies
from tests.harness.worlds.direct_aws import direct_aws

DETAILS = {
    "PolicyType": "EBS_SNAPSHOT_MANAGEMENT",
    "ResourceTypes": ["VOLUME"],
    "TargetTags": [{"Key": "of", "Value": "one"}],
    "Schedules": [{"Name": "daily", "TagsToAdd": [{"Key": "by", "Value": "policy"}]}],
}


def life(client: Any) -> list[Any]:
    """Answers to the making, reading and deletion of a policy, and its snapshots."""
    ec2, dlm = client("ec2"), client("dlm")
    for value in ("one", "two"):
        tagged = [{"ResourceType": "volume", "Tags": [{"Key": "of", "Value": value}]}]
        ec2.create_volume(AvailabilityZone="us-east-1a", Size=1, TagSpecifications=tagged)
    policy_id = dlm.create_lifecycle_policy(
        ExecutionRoleArn="arn:aws:iam::123456789012:role/r",
        Description="d",
        State="ENABLED",
        PolicyDetails=DETAILS,
        Tags={"a": "b"},
    )["PolicyId"]
    answers: list[Any] = [dlm.get_lifecycle_policies(PolicyIds=[policy_id])["Policies"][0]["Tags"]]
    by_policy = [{"Name": "tag:by", "Values": ["policy"]}]
    answers.append(len(ec2.describe_snapshots(OwnerIds=["self"], Filters=by_policy)["Snapshots"]))
    arn = dlm.get_lifecycle_policy(PolicyId=policy_id)["Policy"]["PolicyArn"]
    dlm.tag_resource(ResourceArn=arn, Tags={"c": "d", "e": "f"})
    dlm.untag_resource(ResourceArn=arn, TagKeys=["a", "e"])
    dlm.update_lifecycle_policy(PolicyId=policy_id, PolicyDetails={**DETAILS, "ResourceTypes": ["INSTANCE"]})
    policy = dlm.get_lifecycle_policy(PolicyId=policy_id)["Policy"]
    answers.append((policy["Tags"], policy["PolicyDetails"]["ResourceTypes"], policy["Description"]))
    dlm.delete_lifecycle_policy(PolicyId=policy_id)
    answers.append(dlm.get_lifecycle_policies()["Policies"])
    for call, parameters in (
        (dlm.delete_lifecycle_policy, {"PolicyId": policy_id}),
        (dlm.get_lifecycle_policies, {"PolicyIds": [policy_id]}),
        (dlm.get_lifecycle_policy, {"PolicyId": policy_id}),
        (dlm.update_lifecycle_policy, {"PolicyId": policy_id, "State": "DISABLED"}),
        (dlm.tag_resource, {"ResourceArn": arn, "Tags": {"a": "b"}}),
        (dlm.untag_resource, {"ResourceArn": arn, "TagKeys": ["a"]}),
    ):
        with pytest.raises(ClientError) as refusal:
            call(**parameters)
        answers.append(
            (refusal.value.response["Error"]["Code"], refusal.value.response["ResponseMetadata"]["HTTPStatusCode"])
        )
    return answers


def test_answers_are_the_same_over_http_and_in_the_process() -> None:
    missing = ("ResourceNotFoundException", 404)
    changed_policy = ({"c": "d"}, ["INSTANCE"], "d")
    expected = [{"a": "b"}, 1, changed_policy, [], *[missing] * 6]
    BackendDict.reset()
    keys = {"aws_access_key_id": "a", "aws_secret_access_key": "b", "region_name": "us-east-1"}
    make: Any = boto3.client
    with mock_aws(), direct_aws():
        assert life(lambda service: make(service, **keys)) == expected
    BackendDict.reset()
    with lifecycle_policies():
        server = ThreadedMotoServer("127.0.0.1", 0, verbose=False)
        server.start()
        try:
            url = f"http://127.0.0.1:{server.get_host_and_port()[1]}"
            assert life(lambda service: make(service, endpoint_url=url, **keys)) == expected
        finally:
            server.stop()
            BackendDict.reset()
