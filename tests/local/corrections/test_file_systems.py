"""Our imitation of EFS: states, refusals, and interfaces in EC2."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.harness.worlds.eks_setting import Setting, eks_setting, refusal


@pytest.fixture(params=[False, True], ids=["direct", "wire"])
def setting(request: pytest.FixtureRequest) -> Iterator[Setting]:
    with eks_setting(wire=request.param) as setting:
        yield setting


def system(setting: Setting, **fields: Any) -> str:
    usual = {"CreationToken": "t", "Encrypted": True, "ThroughputMode": "elastic"}
    return str(setting.client("efs").create_file_system(**{**usual, **fields})["FileSystemId"])


def test_a_file_system_and_its_mount_targets_come_and_go_in_their_time(setting: Setting) -> None:
    efs, subnet = setting.client("efs"), setting.subnets[0]
    setting.time.seconds = 10
    name = system(setting, Tags=[{"Key": "Name", "Value": "demo-efs"}])
    mount_target = {"FileSystemId": name, "SubnetId": subnet}
    assert refusal(efs.create_mount_target, **mount_target)[0] == "IncorrectFileSystemLifeCycleState"
    setting.time.now += 10
    (described,) = efs.describe_file_systems(FileSystemId=name)["FileSystems"]
    assert (described["LifeCycleState"], described["Encrypted"], described["ThroughputMode"], described["Name"]) == (
        "available",
        True,
        "elastic",
        "demo-efs",
    )
    group = setting.ec2.create_security_group(GroupName="efs", Description="d", VpcId=setting.vpc)["GroupId"]
    target = efs.create_mount_target(**mount_target, SecurityGroups=[group])
    assert target["LifeCycleState"] == "creating"
    assert efs.describe_mount_target_security_groups(MountTargetId=target["MountTargetId"])["SecurityGroups"] == [group]
    (interface,) = setting.ec2.describe_network_interfaces(NetworkInterfaceIds=[target["NetworkInterfaceId"]])[
        "NetworkInterfaces"
    ]
    assert (interface["SubnetId"], interface["PrivateIpAddress"]) == (subnet, target["IpAddress"])
    setting.time.now += 10
    (target,) = efs.describe_mount_targets(FileSystemId=name)["MountTargets"]
    assert target["LifeCycleState"] == "available"
    assert efs.describe_file_systems(FileSystemId=name)["FileSystems"][0]["NumberOfMountTargets"] == 1
    assert refusal(efs.delete_file_system, FileSystemId=name)[0] == "FileSystemInUse"
    assert refusal(setting.ec2.delete_subnet, SubnetId=subnet)[0] == "DependencyViolation"
    efs.delete_mount_target(MountTargetId=target["MountTargetId"])
    assert refusal(efs.delete_file_system, FileSystemId=name)[0] == "FileSystemInUse"
    setting.time.now += 10
    assert efs.describe_mount_targets(FileSystemId=name)["MountTargets"] == []
    efs.delete_file_system(FileSystemId=name)
    assert efs.describe_file_systems(FileSystemId=name)["FileSystems"][0]["LifeCycleState"] == "deleting"
    setting.time.now += 10
    assert refusal(efs.describe_file_systems, FileSystemId=name)[0] == "FileSystemNotFound"
    assert efs.describe_file_systems()["FileSystems"] == []
    setting.ec2.delete_security_group(GroupId=group)
    setting.ec2.delete_subnet(SubnetId=subnet)


def test_a_creation_token_makes_one_file_system(setting: Setting) -> None:
    efs = setting.client("efs")
    name = system(setting)
    assert refusal(system, setting=setting)[0] == "FileSystemAlreadyExists"
    (listed,) = efs.describe_file_systems(CreationToken="t")["FileSystems"]
    assert listed["FileSystemId"] == name
    assert efs.describe_file_systems(CreationToken="other")["FileSystems"] == []


def test_a_zone_has_one_mount_target(setting: Setting) -> None:
    efs, name = setting.client("efs"), system(setting)
    for subnet in setting.subnets:
        efs.create_mount_target(FileSystemId=name, SubnetId=subnet)
    again = refusal(efs.create_mount_target, FileSystemId=name, SubnetId=setting.subnets[0])
    assert again[0] == "MountTargetConflict"
    for fields, code in (
        ({"FileSystemId": name, "SubnetId": "subnet-0123456789abcdef0"}, "SubnetNotFound"),
        ({"FileSystemId": "fs-0123456789abcdef0", "SubnetId": setting.subnets[0]}, "FileSystemNotFound"),
        (
            {"FileSystemId": name, "SubnetId": setting.subnets[0], "SecurityGroups": ["sg-0123456789abcdef0"]},
            "SecurityGroupNotFound",
        ),
    ):
        assert refusal(efs.create_mount_target, **fields)[0] == code
    assert refusal(efs.delete_mount_target, MountTargetId="fsmt-0123456789abcdef0")[0] == "MountTargetNotFound"


def test_tags_change(setting: Setting) -> None:
    efs, name = setting.client("efs"), system(setting, Tags=[{"Key": "a", "Value": "b"}])
    efs.tag_resource(ResourceId=name, Tags=[{"Key": "c", "Value": "d"}])
    efs.untag_resource(ResourceId=name, TagKeys=["a"])
    assert efs.list_tags_for_resource(ResourceId=name)["Tags"] == [{"Key": "c", "Value": "d"}]
    efs.put_lifecycle_configuration(FileSystemId=name, LifecyclePolicies=[{"TransitionToIA": "AFTER_30_DAYS"}])
    policies = efs.describe_lifecycle_configuration(FileSystemId=name)["LifecyclePolicies"]
    assert policies == [{"TransitionToIA": "AFTER_30_DAYS"}]
