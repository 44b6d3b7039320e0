"""A cluster on EKS in moto with managed node groups whose machines come and go as EC2 Auto Scaling has them."""

from __future__ import annotations

from collections.abc import Iterator, Set
from contextlib import contextmanager
from typing import Any
from unittest.mock import patch

from moto.autoscaling.models import FakeAutoScalingGroup
from moto.autoscaling.responses import AutoScalingResponse
from moto.core.responses import ActionResult

from stockyard.domain.records import Cluster
from stockyard.providers.clouds.aws.child_names import cluster_name, node_group_name

SCARCE = "We currently do not have sufficient {type} capacity in the Availability Zone you requested. Launching failed."


class NodeGroups:
    """``session`` is a person's of the tenant's account. Activities of groups that failed are in ``failures``."""

    def __init__(self, session: Any, cluster: Cluster) -> None:
        self.ec2, self.eks = session.client("ec2"), session.client("eks")
        self.scaling, self.cluster = session.client("autoscaling"), cluster
        vpc = self.ec2.create_vpc(CidrBlock="10.0.0.0/16")["Vpc"]["VpcId"]
        zones = [zone["ZoneName"] for zone in self.ec2.describe_availability_zones()["AvailabilityZones"]][:2]
        self.subnets = {
            zone: self.ec2.create_subnet(VpcId=vpc, CidrBlock=f"10.0.{n}.0/24", AvailabilityZone=zone)["Subnet"][
                "SubnetId"
            ]
            for n, zone in enumerate(zones)
        }
        self.zones = list(self.subnets)
        self.eks.create_cluster(
            name=cluster_name(cluster),
            roleArn="arn:aws:iam::222222222222:role/cluster",
            resourcesVpcConfig={"subnetIds": list(self.subnets.values())},
        )
        self.image = self.ec2.describe_images(Filters=[{"Name": "architecture", "Values": ["x86_64"]}])["Images"][0]

    def group(self, pool: str, instance_type: str, least: int = 0, most: int = 4, size: int = 0) -> str:
        """Make a node group, and give the name of its auto scaling group."""
        answer = self.eks.create_nodegroup(
            clusterName=cluster_name(self.cluster),
            nodegroupName=node_group_name(pool),
            nodeRole="arn:aws:iam::222222222222:role/node",
            subnets=list(self.subnets.values()),
            scalingConfig={"minSize": least, "maxSize": max(most, 1), "desiredSize": max(size, least)},
        )
        name = str(answer["nodegroup"]["resources"]["autoScalingGroups"][0]["name"])
        template = {"ImageId": self.image["ImageId"], "InstanceType": instance_type}
        self.ec2.create_launch_template(LaunchTemplateName=f"lt-{pool}", LaunchTemplateData=template)
        self.scaling.create_auto_scaling_group(
            AutoScalingGroupName=name,
            MinSize=least,
            MaxSize=most,
            DesiredCapacity=max(size, least),
            LaunchTemplate={"LaunchTemplateName": f"lt-{pool}", "Version": "$Default"},
            VPCZoneIdentifier=",".join(self.subnets.values()),
        )
        return name

    def size(self, name: str) -> int:
        """The desired size of an auto scaling group."""
        return int(self._described(name)["DesiredCapacity"])

    def members(self, name: str) -> list[str]:
        """The machines of an auto scaling group."""
        return [str(member["InstanceId"]) for member in self._described(name)["Instances"]]

    def _described(self, name: str) -> Any:
        return self.scaling.describe_auto_scaling_groups(AutoScalingGroupNames=[name])["AutoScalingGroups"][0]

    def machines(self) -> list[str]:
        """The machines that were not ended."""
        listed = self.ec2.describe_instances()["Reservations"]
        return [i["InstanceId"] for r in listed for i in r["Instances"] if i["State"]["Name"] != "terminated"]


@contextmanager
def scarce_groups(full: Set[str], message: str = SCARCE) -> Iterator[list[dict[str, Any]]]:
    """Groups of the types in ``full`` make no machine and say so in an activity. Given are all of these, the newest
    first."""
    failures: list[dict[str, Any]] = []
    original = FakeAutoScalingGroup.replace_autoscaling_group_instances

    def launched(group: Any, count: int, tags: dict[str, str]) -> None:
        if group.instance_type not in full:
            original(group, count, tags)
            return
        failures.insert(
            0,
            {
                "ActivityId": f"activity-{len(failures)}",
                "AutoScalingGroupName": group.name,
                "Cause": "the desired size was raised",
                "StatusCode": "Failed",
                "StatusMessage": message.format(type=group.instance_type),
                "StartTime": "2026-01-01T00:00:00Z",
            },
        )

    def described(response: Any) -> ActionResult:
        name = response._get_param("AutoScalingGroupName")
        return ActionResult({"Activities": [each for each in failures if each["AutoScalingGroupName"] == name]})

    with (
        patch.object(FakeAutoScalingGroup, "replace_autoscaling_group_instances", launched),
        patch.object(AutoScalingResponse, "describe_scaling_activities", described),
    ):
        yield failures
