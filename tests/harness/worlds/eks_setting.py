"""An account with a network and roles, over HTTP and without, for tests of our imitation of EKS."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

import boto3
from botocore.exceptions import ClientError
from moto import mock_aws
from moto.core.base_backend import BackendDict
from moto.moto_server.threaded_moto_server import ThreadedMotoServer

from local.aws.corrections.compute.capacity_reservations import capacity_reservations
from local.aws.corrections.compute.placement_groups import placement_groups
from local.aws.corrections.eks.eks import eks_service
from local.aws.corrections.file_systems import file_systems
from local.aws.corrections.pace import paced
from tests.harness.worlds.direct_aws import direct_aws

REGION = "us-east-1"
KEYS = {"aws_access_key_id": "a", "aws_secret_access_key": "b", "region_name": REGION}
ZONES = ("us-east-1a", "us-east-1b")

WAYS = (False, True) if os.environ.get("STOCKYARD_SOAK") == "1" else (False,)
"""Whether a test calls on the wire: in the soak too. That the service answers there alike, the tests of EKS's clusters
and of EFS show each time."""


class Time:
    """A clock, and how long every change takes."""

    def __init__(self) -> None:
        self.now, self.seconds = 1_790_000_000.0, 0.0


class Setting:
    """``client`` makes clients of the account."""

    def __init__(self, client: Callable[[str], Any], time: Time) -> None:
        self.client, self.time = client, time
        self.eks, self.ec2, self.iam = client("eks"), client("ec2"), client("iam")
        self.scaling = client("autoscaling")
        self.vpc = self.ec2.create_vpc(CidrBlock="10.0.0.0/16")["Vpc"]["VpcId"]
        self.subnets = [
            self.ec2.create_subnet(VpcId=self.vpc, CidrBlock=f"10.0.{number}.0/24", AvailabilityZone=zone)["Subnet"][
                "SubnetId"
            ]
            for number, zone in enumerate(ZONES)
        ]
        self.cluster_role = self.role("cluster", "eks.amazonaws.com")
        self.node_role = self.role("node", "ec2.amazonaws.com")
        self.pod_role = self.role("pod", "pods.eks.amazonaws.com")

    def role(self, name: str, service: str) -> str:
        """The ARN of a new role for a service."""
        statement = {
            "Effect": "Allow",
            "Principal": {"Service": service},
            "Action": ["sts:AssumeRole", "sts:TagSession"],
        }
        policy = json.dumps({"Version": "2012-10-17", "Statement": [statement]})
        return str(self.iam.create_role(RoleName=name, AssumeRolePolicyDocument=policy)["Role"]["Arn"])

    def cluster(self, name: str = "demo", **fields: Any) -> Any:
        """The answer to a call that makes a cluster."""
        usual = {
            "version": "1.35",
            "roleArn": self.cluster_role,
            "resourcesVpcConfig": {"subnetIds": self.subnets},
            "accessConfig": {"authenticationMode": "API_AND_CONFIG_MAP"},
        }
        return self.eks.create_cluster(name=name, **{**usual, **fields})["cluster"]

    def look(self, name: str = "demo") -> Any:
        """The cluster."""
        return self.eks.describe_cluster(name=name)["cluster"]

    def group(self, name: str = "system", **fields: Any) -> Any:
        """The answer to a call that makes a node group in an active cluster."""
        usual = {
            "scalingConfig": {"minSize": 1, "maxSize": 4, "desiredSize": 2},
            "instanceTypes": ["m6i.xlarge"],
            "subnets": self.subnets,
            "nodeRole": self.node_role,
        }
        fields = {**usual, **fields}
        fields = {field: value for field, value in fields.items() if value is not None}
        return self.eks.create_nodegroup(clusterName="demo", nodegroupName=name, **fields)["nodegroup"]

    def look_at_group(self, name: str = "system") -> Any:
        """The node group."""
        return self.eks.describe_nodegroup(clusterName="demo", nodegroupName=name)["nodegroup"]

    def scaling_group(self, name: str = "system") -> Any:
        """The auto scaling group of a node group."""
        scaling = self.look_at_group(name)["resources"]["autoScalingGroups"][0]["name"]
        (group,) = self.scaling.describe_auto_scaling_groups(AutoScalingGroupNames=[scaling])["AutoScalingGroups"]
        return group

    def machines(self, name: str = "system") -> list[Any]:
        """The living instances of a node group."""
        filters = [
            {"Name": "tag:eks:nodegroup-name", "Values": [name]},
            {"Name": "instance-state-name", "Values": ["pending", "running", "stopping", "stopped"]},
        ]
        answer = self.ec2.describe_instances(Filters=filters)["Reservations"]
        return [instance for reservation in answer for instance in reservation["Instances"]]


def refusal(call: Callable[..., Any], **parameters: Any) -> tuple[str, str]:
    """Code and message with which a call is refused."""
    try:
        call(**parameters)
    except ClientError as error:
        return error.response["Error"]["Code"], error.response["Error"]["Message"]
    raise AssertionError("it was not refused")


@contextmanager
def eks_setting(*, wire: bool = False) -> Iterator[Setting]:
    """The account. With ``wire`` calls are sent to a server."""
    time, make = Time(), boto3.client
    BackendDict.reset()
    with ExitStack() as stack:
        stack.callback(BackendDict.reset)
        stack.enter_context(paced(lambda _kind: time.seconds, lambda: time.now))
        if not wire:
            stack.enter_context(mock_aws())
            stack.enter_context(direct_aws())
            yield Setting(lambda service: make(service, **KEYS), time)  # type: ignore[call-overload]
            return
        stack.enter_context(capacity_reservations())
        stack.enter_context(placement_groups())
        stack.enter_context(eks_service())
        stack.enter_context(file_systems())
        server = ThreadedMotoServer("127.0.0.1", 0, verbose=False)
        server.start()
        stack.callback(server.stop)
        url = f"http://127.0.0.1:{server.get_host_and_port()[1]}"
        yield Setting(lambda service: make(service, endpoint_url=url, **KEYS), time)  # type: ignore[call-overload]


def set_desired(setting: Setting, desired: int, name: str = "system") -> None:
    """Ask the auto scaling group of a node group for that many machines."""
    scaling = setting.scaling_group(name)["AutoScalingGroupName"]
    setting.scaling.set_desired_capacity(AutoScalingGroupName=scaling, DesiredCapacity=desired)


def member_ids(group: Any, state: str = "InService") -> list[str]:
    """The machines of an auto scaling group that are in a state of its life cycle."""
    return [member["InstanceId"] for member in group["Instances"] if member["LifecycleState"] == state]


def failures(setting: Setting, name: str = "system") -> list[str]:
    """Reasons why machines of a node group did not come."""
    scaling = setting.scaling_group(name)["AutoScalingGroupName"]
    activities = setting.scaling.describe_scaling_activities(AutoScalingGroupName=scaling)["Activities"]
    return [activity["StatusMessage"] for activity in activities if activity["StatusCode"] == "Failed"]
