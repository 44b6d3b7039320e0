"""EKS's node groups and their auto scaling groups: what they are made of, and how size, version and labels change."""

from __future__ import annotations

from unittest.mock import patch

import pytest
from moto.ec2.models.instance_types import INSTANCE_TYPE_OFFERINGS

from local.aws.corrections.refusals import scarce_capacity
from tests.harness.worlds.eks_setting import REGION, ZONES, Setting, eks_setting, member_ids, refusal, set_desired


def test_a_group_has_machines_in_its_subnets_and_ends_them(setting: Setting) -> None:
    setting.time.seconds = 10
    assert setting.group(labels={"a": "b"}, diskSize=50)["status"] == "CREATING"
    assert [member["LifecycleState"] for member in setting.scaling_group()["Instances"]] == ["Pending"] * 2
    setting.time.now += 10
    group, machines = setting.look_at_group(), setting.machines()
    assert (group["status"], group["version"], group["amiType"]) == ("ACTIVE", "1.35", "AL2023_x86_64_STANDARD")
    assert len(member_ids(setting.scaling_group())) == 2
    assert {machine["SubnetId"] for machine in machines} == set(setting.subnets)
    tags = {tag["Key"]: tag["Value"] for tag in machines[0]["Tags"]}
    assert tags["eks:cluster-name"] == "demo"
    assert tags["kubernetes.io/cluster/demo"] == "owned"
    assert tags["aws:autoscaling:groupName"] == setting.scaling_group()["AutoScalingGroupName"]
    cluster_group = setting.look()["resourcesVpcConfig"]["clusterSecurityGroupId"]
    assert [group["GroupId"] for group in machines[0]["SecurityGroups"]] == [cluster_group]
    disk = machines[0]["BlockDeviceMappings"][0]["Ebs"]["VolumeId"]
    assert setting.ec2.describe_volumes(VolumeIds=[disk])["Volumes"][0]["Size"] == 50
    assert setting.node_role in setting.eks.list_access_entries(clusterName="demo")["accessEntries"]
    assert refusal(setting.eks.delete_cluster, name="demo")[0] == "ResourceInUseException"
    setting.eks.delete_nodegroup(clusterName="demo", nodegroupName="system")
    assert len(member_ids(setting.scaling_group(), "Terminating")) == 2
    assert refusal(setting.eks.delete_cluster, name="demo")[0] == "ResourceInUseException"
    setting.time.now += 10
    assert setting.look_at_group()["status"] == "DELETING"
    setting.time.now += 10
    assert refusal(setting.look_at_group)[0] == "ResourceNotFoundException"
    assert setting.machines() == []
    assert setting.scaling.describe_auto_scaling_groups()["AutoScalingGroups"] == []
    setting.eks.delete_cluster(name="demo")


def test_what_cannot_be_is_refused_at_creation(setting: Setting) -> None:
    for fields, text in (
        ({"scalingConfig": {"minSize": 1, "maxSize": 2, "desiredSize": 3}}, "can't be greater than max size"),
        ({"scalingConfig": {"minSize": 2, "maxSize": 2, "desiredSize": 1}}, "can't be greater than desired size"),
        ({"nodeRole": setting.cluster_role}, "could not be assumed"),
        ({"subnets": ["subnet-1"]}, "does not exist"),
        ({"instanceTypes": ["m99.large"]}, "do not exist"),
        ({"amiType": "AL2023_ARM_64_STANDARD"}, "not a valid instance type"),
        ({"version": "1.36"}, "not supported"),
        ({"launchTemplate": {"name": "none"}}, "does not exist"),
        ({"capacityType": "CAPACITY_BLOCK"}, "capacity-block"),
    ):
        code, message = refusal(setting.group, **fields)
        assert code == "InvalidParameterException"
        assert text in message
    table = INSTANCE_TYPE_OFFERINGS["availability-zone"]
    with patch.dict(table, {REGION: [row for row in table[REGION] if row["Location"] != ZONES[1]]}):
        code, message = refusal(setting.group)
        assert (code, f"({ZONES[1]})" in message) == ("InvalidRequestException", True)
    setting.group()
    assert refusal(setting.group)[0] == "ResourceInUseException"
    other = refusal(setting.eks.describe_nodegroup, clusterName="demo", nodegroupName="other")
    assert other[0] == "ResourceNotFoundException"


def test_nodes_without_a_network_for_pods_are_waited_for_and_given_up() -> None:
    with eks_setting() as setting:
        setting.cluster(bootstrapSelfManagedAddons=False)
        setting.look()
        for name in ("lonely", "empty"):
            sizes = {"minSize": 0, "maxSize": 4, "desiredSize": 0 if name == "empty" else 2}
            setting.group(name, scalingConfig=sizes)
        assert setting.look_at_group("lonely")["status"] == "CREATING"
        assert setting.look_at_group("empty")["status"] == "ACTIVE"
        setting.time.now += 1
        group = setting.look_at_group("lonely")
        assert group["status"] == "CREATE_FAILED"
        assert group["health"]["issues"][0]["code"] == "NodeCreationFailure"


def test_nodes_with_a_network_for_pods_are_ready() -> None:
    with eks_setting() as setting:
        setting.cluster(bootstrapSelfManagedAddons=False)
        setting.look()
        setting.time.seconds = 10
        setting.group()
        setting.eks.create_addon(clusterName="demo", addonName="vpc-cni")
        setting.time.now += 10
        assert setting.look_at_group()["status"] == "ACTIVE"


def test_the_desired_size_moves_within_its_bounds(setting: Setting) -> None:
    setting.group()
    set_desired(setting, 4)
    assert len(setting.machines()) == 4
    assert setting.look_at_group()["scalingConfig"]["desiredSize"] == 4
    scaling = setting.scaling_group()["AutoScalingGroupName"]
    for desired, text in ((5, "above max value 4"), (0, "below min value 1")):
        call = {"AutoScalingGroupName": scaling, "DesiredCapacity": desired}
        code, message = refusal(setting.scaling.set_desired_capacity, **call)
        assert (code, text in message) == ("ValidationError", True)
    absent = refusal(setting.scaling.set_desired_capacity, AutoScalingGroupName="none", DesiredCapacity=1)
    assert absent[0] == "ValidationError"
    set_desired(setting, 1)
    assert len(setting.machines()) == 1


def test_eks_tells_the_size_late_and_leaves_it_alone_where_none_is_asked_for(setting: Setting) -> None:
    setting.group()
    setting.time.seconds = 10
    set_desired(setting, 4)
    assert setting.look_at_group()["scalingConfig"]["desiredSize"] == 2
    group_key = {"clusterName": "demo", "nodegroupName": "system"}
    code, message = refusal(setting.eks.update_nodegroup_config, **group_key, scalingConfig={"minSize": 3})
    assert (code, "greater than desired size 2" in message) == ("InvalidParameterException", True)
    setting.eks.update_nodegroup_config(**group_key, scalingConfig={"minSize": 2, "maxSize": 6})
    assert setting.scaling_group()["DesiredCapacity"] == 4
    setting.time.now += 10
    assert setting.look_at_group()["scalingConfig"] == {"minSize": 2, "maxSize": 6, "desiredSize": 4}


def test_sizes_labels_and_taints_change(setting: Setting) -> None:
    taint = {"key": "nvidia.com/gpu", "value": "true", "effect": "NO_SCHEDULE"}
    setting.group(labels={"a": "b", "c": "d"}, taints=[taint])
    setting.time.seconds = 10
    group_key = {"clusterName": "demo", "nodegroupName": "system"}
    update = setting.eks.update_nodegroup_config(
        **group_key,
        scalingConfig={"minSize": 0, "maxSize": 5, "desiredSize": 3},
        labels={"addOrUpdateLabels": {"a": "z"}, "removeLabels": ["c"]},
        taints={"removeTaints": [taint]},
        updateConfig={"maxUnavailable": 2},
    )["update"]
    assert setting.look_at_group()["status"] == "UPDATING"
    assert refusal(setting.eks.update_nodegroup_config, **group_key, labels={})[0] == "ResourceInUseException"
    assert refusal(setting.eks.delete_nodegroup, **group_key)[0] == "ResourceInUseException"
    setting.time.now += 10
    group = setting.look_at_group()
    assert (group["status"], group["labels"], group["taints"]) == ("ACTIVE", {"a": "z"}, [])
    assert group["scalingConfig"] == {"minSize": 0, "maxSize": 5, "desiredSize": 3}
    assert len(setting.machines()) == 3
    status = setting.eks.describe_update(name="demo", updateId=update["id"], nodegroupName="system")["update"]["status"]
    assert status == "Successful"
    too_many = refusal(setting.eks.update_nodegroup_config, **group_key, scalingConfig={"desiredSize": 6})
    assert too_many[0] == "InvalidParameterException"


@pytest.mark.parametrize("strategy", ["DEFAULT", "MINIMAL"])
def test_a_version_comes_machine_by_machine(setting: Setting, strategy: str) -> None:
    setting.group(version="1.34", updateConfig={"maxUnavailable": 1, "updateStrategy": strategy})
    before = member_ids(setting.scaling_group())
    setting.time.seconds = 10
    group_key = {"clusterName": "demo", "nodegroupName": "system"}
    update = setting.eks.update_nodegroup_version(**group_key, version="1.35")["update"]
    counts = set()
    for _ in range(20):
        counts.add(len(setting.machines()))
        setting.time.now += 10
        assert setting.look_at_group()["status"] in {"UPDATING", "ACTIVE"}
    # One comes before another leaves, unless the group is to take away first.
    assert max(counts) == (3 if strategy == "DEFAULT" else 2)
    group = setting.look_at_group()
    assert (group["status"], group["version"], group["releaseVersion"][:4]) == ("ACTIVE", "1.35", "1.35")
    assert not set(before) & set(member_ids(setting.scaling_group()))
    assert len(member_ids(setting.scaling_group())) == 2
    told_update = setting.eks.describe_update(name="demo", updateId=update["id"], nodegroupName="system")["update"]
    assert (told_update["status"], told_update["type"]) == ("Successful", "VersionUpdate")
    back = refusal(setting.eks.update_nodegroup_version, **group_key, version="1.34")
    assert back[0] == "InvalidParameterException"


def test_a_version_does_not_come_while_machines_may_not_be_spread(setting: Setting) -> None:
    setting.group(version="1.34")
    scaling = setting.scaling_group()["AutoScalingGroupName"]
    setting.scaling.suspend_processes(AutoScalingGroupName=scaling, ScalingProcesses=["AZRebalance"])
    group_key = {"clusterName": "demo", "nodegroupName": "system"}
    update = setting.eks.update_nodegroup_version(**group_key)["update"]
    answer = setting.eks.describe_update(name="demo", nodegroupName="system", updateId=update["id"])
    assert answer["update"]["status"] == "Failed"
    assert setting.look_at_group()["version"] == "1.34"


def test_a_version_without_room_for_another_machine_fails(setting: Setting) -> None:
    setting.group(version="1.34")
    before = member_ids(setting.scaling_group())
    group_key = {"clusterName": "demo", "nodegroupName": "system"}
    with scarce_capacity({"m6i.xlarge": 2}):
        update = setting.eks.update_nodegroup_version(**group_key, version="1.35")["update"]
        told_update = setting.eks.describe_update(name="demo", updateId=update["id"], nodegroupName="system")["update"]
    assert (told_update["status"], told_update["errors"][0]["errorCode"]) == ("Failed", "NodeCreationFailure")
    assert setting.look_at_group()["version"] == "1.34"
    assert member_ids(setting.scaling_group()) == before


def test_a_launch_template_gives_disk_tags_and_groups(setting: Setting) -> None:
    efa = setting.ec2.create_security_group(GroupName="efa", Description="d", VpcId=setting.vpc)["GroupId"]
    data = {
        "InstanceType": "g6.12xlarge",
        "NetworkInterfaces": [{"DeviceIndex": 0, "NetworkCardIndex": 0, "InterfaceType": "efa", "Groups": [efa]}],
        "BlockDeviceMappings": [{"DeviceName": "/dev/xvda", "Ebs": {"VolumeSize": 77, "VolumeType": "gp3"}}],
        "TagSpecifications": [{"ResourceType": "instance", "Tags": [{"Key": "own", "Value": "tag"}]}],
    }
    template = setting.ec2.create_launch_template(LaunchTemplateName="template", LaunchTemplateData=data)[
        "LaunchTemplate"
    ]
    both = refusal(setting.group, launchTemplate={"name": "template"})
    assert "not in both" in both[1]
    fields = {"launchTemplate": {"id": template["LaunchTemplateId"]}, "instanceTypes": None}
    assert "Disk size" in refusal(setting.group, **fields, diskSize=20)[1]
    group = setting.group(**fields)
    assert group["launchTemplate"] == {"name": "template", "version": "1", "id": template["LaunchTemplateId"]}
    assert "diskSize" not in group
    machine = setting.machines()[0]
    assert machine["InstanceType"] == "g6.12xlarge"
    assert [entry["GroupId"] for entry in machine["SecurityGroups"]] == [efa]
    assert {"Key": "own", "Value": "tag"} in machine["Tags"]
    (mapping,) = machine["BlockDeviceMappings"]
    assert setting.ec2.describe_volumes(VolumeIds=[mapping["Ebs"]["VolumeId"]])["Volumes"][0]["Size"] == 77
    setting.ec2.create_launch_template_version(
        LaunchTemplateName="template", LaunchTemplateData={**data, "InstanceType": "g6.xlarge"}
    )
    setting.eks.update_nodegroup_version(
        clusterName="demo", nodegroupName="system", launchTemplate={"name": "template", "version": "2"}
    )
    assert {machine["InstanceType"] for machine in setting.machines()} == {"g6.xlarge"}
    assert setting.look_at_group()["launchTemplate"]["version"] == "2"


def test_a_group_is_found_by_its_tags_and_its_machines_by_their_ids(setting: Setting) -> None:
    setting.group()
    setting.group("gpu", scalingConfig={"minSize": 0, "maxSize": 1, "desiredSize": 0})
    by_tag = [{"Name": "tag:eks:nodegroup-name", "Values": ["system"]}]
    (group,) = setting.scaling.describe_auto_scaling_groups(Filters=by_tag)["AutoScalingGroups"]
    member = group["Instances"][0]["InstanceId"]
    (row,) = setting.scaling.describe_auto_scaling_instances(InstanceIds=[member])["AutoScalingInstances"]
    assert row["AutoScalingGroupName"] == group["AutoScalingGroupName"]
    assert setting.scaling_group("gpu")["Instances"] == []
    setting.scaling.set_instance_protection(
        AutoScalingGroupName=group["AutoScalingGroupName"], InstanceIds=[member], ProtectedFromScaleIn=True
    )
    set_desired(setting, 1)
    assert member_ids(setting.scaling_group()) == [member]
    setting.scaling.suspend_processes(AutoScalingGroupName=group["AutoScalingGroupName"], ScalingProcesses=["Launch"])
    set_desired(setting, 2)
    assert member_ids(setting.scaling_group()) == [member]
    setting.scaling.resume_processes(AutoScalingGroupName=group["AutoScalingGroupName"])
    assert len(member_ids(setting.scaling_group())) == 2
    setting.scaling.set_instance_health(InstanceId=member, HealthStatus="Unhealthy")
    assert member not in member_ids(setting.scaling_group())
    setting.scaling.update_auto_scaling_group(AutoScalingGroupName=group["AutoScalingGroupName"], MinSize=3)
    assert len(member_ids(setting.scaling_group())) == 3
