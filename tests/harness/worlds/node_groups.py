"""A cluster on EKS in the imitated AWS, with managed node groups whose machines come and go."""

from __future__ import annotations

import json
from collections.abc import Iterator, Set
from contextlib import contextmanager
from typing import Any

from local.aws.corrections.scarcity import limited
from stockyard.domain.records import Cluster
from stockyard.providers.clouds.aws.resources.child_names import cluster_name, node_group_name

COMING = ("Pending", "InService")


class NodeGroups:
    """``session`` is a person's of the tenant's account."""

    def __init__(self, session: Any, cluster: Cluster) -> None:
        self.ec2, self.eks, self.iam = session.client("ec2"), session.client("eks"), session.client("iam")
        self.scaling, self.cluster = session.client("autoscaling"), cluster
        self.name = cluster_name(cluster)
        vpc = self.ec2.create_vpc(CidrBlock="10.0.0.0/16")["Vpc"]["VpcId"]
        zones = [zone["ZoneName"] for zone in self.ec2.describe_availability_zones()["AvailabilityZones"]][:2]
        self.subnets = {zone: self._subnet(vpc, number, zone) for number, zone in enumerate(zones)}
        self.zones = list(self.subnets)
        self.node_role = self._role("node", "ec2.amazonaws.com")
        subnets = {"subnetIds": list(self.subnets.values())}
        role = self._role("cluster", "eks.amazonaws.com")
        access = {"authenticationMode": "API_AND_CONFIG_MAP"}
        self.eks.create_cluster(name=self.name, roleArn=role, resourcesVpcConfig=subnets, accessConfig=access)
        self.eks.describe_cluster(name=self.name)

    def _subnet(self, vpc: str, number: int, zone: str) -> str:
        answer = self.ec2.create_subnet(VpcId=vpc, CidrBlock=f"10.0.{number}.0/24", AvailabilityZone=zone)
        return str(answer["Subnet"]["SubnetId"])

    def _role(self, name: str, service: str) -> str:
        statement = {"Effect": "Allow", "Principal": {"Service": service}, "Action": "sts:AssumeRole"}
        policy = json.dumps({"Version": "2012-10-17", "Statement": [statement]})
        return str(self.iam.create_role(RoleName=name, AssumeRolePolicyDocument=policy)["Role"]["Arn"])

    def group(
        self,
        pool: str,
        instance_type: str,
        least: int = 0,
        most: int = 4,
        size: int = 0,
        generation: int = 1,
        **fields: Any,
    ) -> str:
        """Make a node group, and give the name of its auto scaling group."""
        name = {"clusterName": self.name, "nodegroupName": node_group_name(self.cluster, pool, generation)}
        usual = {"instanceTypes": [instance_type], "subnets": list(self.subnets.values())}
        limits = {"minSize": least, "maxSize": most, "desiredSize": max(size, least)}
        self.eks.create_nodegroup(**name, nodeRole=self.node_role, scalingConfig=limits, **{**usual, **fields})
        answer = self.eks.describe_nodegroup(**name)["nodegroup"]
        scaling = str(answer["resources"]["autoScalingGroups"][0]["name"])
        # As its cluster's driver does.
        self.scaling.suspend_processes(AutoScalingGroupName=scaling, ScalingProcesses=["AZRebalance"])
        return scaling

    def block_group(self, pool: str, instance_type: str, block: str, most: int = 4) -> str:
        """Make a node group of a capacity block, as its cluster's driver does."""
        template = {
            "InstanceType": instance_type,
            "InstanceMarketOptions": {"MarketType": "capacity-block"},
            "CapacityReservationSpecification": {"CapacityReservationTarget": {"CapacityReservationId": block}},
        }
        self.ec2.create_launch_template(LaunchTemplateName=f"lt-{pool}", LaunchTemplateData=template)
        with_template = {"name": f"lt-{pool}", "version": "$Latest"}
        zone = self.zones[0]
        name = {"clusterName": self.name, "nodegroupName": node_group_name(self.cluster, pool)}
        self.eks.create_nodegroup(
            **name,
            nodeRole=self.node_role,
            subnets=[self.subnets[zone]],
            capacityType="CAPACITY_BLOCK",
            launchTemplate=with_template,
            scalingConfig={"minSize": 0, "maxSize": most, "desiredSize": 0},
        )
        answer = self.eks.describe_nodegroup(**name)["nodegroup"]
        return str(answer["resources"]["autoScalingGroups"][0]["name"])

    def size(self, name: str) -> int:
        """The desired size of an auto scaling group."""
        return int(self._described(name)["DesiredCapacity"])

    def members(self, name: str) -> list[str]:
        """The machines of an auto scaling group that stay in it."""
        members = self._described(name)["Instances"]
        return [str(member["InstanceId"]) for member in members if member["LifecycleState"] in COMING]

    def _described(self, name: str) -> Any:
        return self.scaling.describe_auto_scaling_groups(AutoScalingGroupNames=[name])["AutoScalingGroups"][0]

    def machines(self) -> list[str]:
        """The machines that were not ended."""
        self.scaling.describe_auto_scaling_groups()
        listed = self.ec2.describe_instances()["Reservations"]
        dead = ("terminated", "shutting-down")
        return [i["InstanceId"] for r in listed for i in r["Instances"] if i["State"]["Name"] not in dead]


class FullTypes(dict[str, int]):
    """Number of available machines of each type: none of those in ``full``, which may change meanwhile."""

    def __init__(self, full: Set[str]) -> None:
        super().__init__()
        self._full = full

    def __contains__(self, name: object) -> bool:
        return name in self._full

    def __getitem__(self, name: str) -> int:
        return 0


@contextmanager
def scarce_groups(full: Set[str]) -> Iterator[None]:
    """Groups find no machine of the types, or ``type/zone``, in ``full``."""
    with limited(FullTypes(full)):
        yield
