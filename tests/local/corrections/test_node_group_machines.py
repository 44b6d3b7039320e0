"""The machines of EKS's node groups: how they leave, are spread and replaced, and where EC2 has none."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from local.aws.corrections.compute.reservations import NOTICE, new_block
from local.aws.corrections.refusals import scarce_capacity
from tests.harness.worlds.eks_setting import REGION, ZONES, Setting, failures, member_ids, refusal, set_desired

ACCOUNT, BLOCK = "123456789012", "cr-0123456789abcdef0"
DAY = 86_400.0


def test_a_machine_leaves_by_name_with_and_without_a_replacement(setting: Setting) -> None:
    setting.group()
    first, second = member_ids(setting.scaling_group())
    leave = setting.scaling.terminate_instance_in_auto_scaling_group
    activity = leave(InstanceId=first, ShouldDecrementDesiredCapacity=True)["Activity"]
    assert first in activity["Description"]
    assert (member_ids(setting.scaling_group()), setting.scaling_group()["DesiredCapacity"]) == ([second], 1)
    code, message = refusal(leave, InstanceId=second, ShouldDecrementDesiredCapacity=True)
    assert (code, "desiredSize equals minSize (1)" in message) == ("ValidationError", True)
    leave(InstanceId=second, ShouldDecrementDesiredCapacity=False)
    (third,) = member_ids(setting.scaling_group())
    assert third not in {first, second}
    assert refusal(leave, InstanceId=first, ShouldDecrementDesiredCapacity=False)[0] == "ValidationError"
    setting.time.seconds = 10
    leave(InstanceId=third, ShouldDecrementDesiredCapacity=False)
    again = refusal(leave, InstanceId=third, ShouldDecrementDesiredCapacity=False)
    assert again[0] == "ScalingActivityInProgress"


def test_a_group_has_a_machine_until_after_its_end(setting: Setting) -> None:
    setting.group()
    first, second = member_ids(setting.scaling_group())
    setting.time.seconds = 10
    leave = setting.scaling.terminate_instance_in_auto_scaling_group
    leave(InstanceId=first, ShouldDecrementDesiredCapacity=True)
    seen_states = []
    for _ in range(3):
        machine = setting.ec2.describe_instances(InstanceIds=[first])["Reservations"][0]["Instances"][0]
        seen_states.append((member_ids(setting.scaling_group(), "Terminating"), machine["State"]["Name"]))
        setting.time.now += 10
        setting.scaling_group()
    # So who has not seen it end finds it in its group, and ends it by no other way.
    assert seen_states == [([first], "running"), ([first], "terminated"), ([], "terminated")]
    assert member_ids(setting.scaling_group()) == [second]


@pytest.mark.parametrize("suspended", [False, True])
def test_machines_are_spread_over_zones_unless_that_is_suspended(setting: Setting, suspended: bool) -> None:
    setting.group()
    set_desired(setting, 4)
    scaling = setting.scaling_group()["AutoScalingGroupName"]
    if suspended:
        setting.scaling.suspend_processes(AutoScalingGroupName=scaling, ScalingProcesses=["AZRebalance"])
    before = setting.machines()
    for machine in before:
        if machine["SubnetId"] == setting.subnets[0]:
            setting.scaling.terminate_instance_in_auto_scaling_group(
                InstanceId=machine["InstanceId"], ShouldDecrementDesiredCapacity=True
            )
    remaining = {machine["InstanceId"] for machine in before if machine["SubnetId"] == setting.subnets[1]}
    setting.look_at_group()
    now = {machine["InstanceId"] for machine in setting.machines()}
    assert len(now) == 2
    assert (now == remaining) is suspended


@pytest.mark.parametrize("end", ["terminate_instances", "stop_instances"])
def test_a_machine_that_dies_is_replaced(setting: Setting, end: str) -> None:
    setting.group()
    first, second = member_ids(setting.scaling_group())
    getattr(setting.ec2, end)(InstanceIds=[first])
    left_over = member_ids(setting.scaling_group())
    assert len(left_over) == 2
    assert first not in left_over
    assert second in left_over
    assert {machine["InstanceId"] for machine in setting.machines()} == set(left_over)


def test_a_group_stays_small_while_ec2_has_no_more(setting: Setting) -> None:
    limits = {"m6i.xlarge": 1}
    with scarce_capacity(limits):
        setting.group()
        group = setting.look_at_group()
        assert (group["status"], group["health"]["issues"][0]["code"]) == ("CREATE_FAILED", "AsgInstanceLaunchFailures")
        assert len(member_ids(setting.scaling_group())) == 1
        messages = failures(setting)
        assert len(messages) == len(ZONES)
        for message in messages:
            assert message.startswith("Could not launch On-Demand Instances. InsufficientInstanceCapacity - ")
            assert message.endswith("Launching EC2 instance failed.")
        assert all(any(f"you requested ({zone})" in message for message in messages) for zone in ZONES)
        limits["m6i.xlarge"] = 2
        assert len(member_ids(setting.scaling_group())) == 2
        setting.group("more")
        assert setting.scaling_group("more")["Instances"] == []


def test_a_full_zone_is_avoided_and_an_active_group_becomes_degraded(setting: Setting) -> None:
    with scarce_capacity({f"m6i.xlarge/{ZONES[0]}": 0, "m6i.xlarge": 3}):
        setting.group()
        assert {machine["SubnetId"] for machine in setting.machines()} == {setting.subnets[1]}
        assert setting.look_at_group()["status"] == "ACTIVE"
        set_desired(setting, 4)
        assert setting.look_at_group()["status"] == "DEGRADED"
        set_desired(setting, 3)
        assert (setting.look_at_group()["status"], setting.look_at_group()["health"]["issues"]) == ("ACTIVE", [])


def of_block(setting: Setting, name: str = "block", **fields: Any) -> Any:
    """A group of a block, whose launch template is made first."""
    data = {
        "InstanceType": "p5.48xlarge",
        "InstanceMarketOptions": {"MarketType": "capacity-block"},
        "CapacityReservationSpecification": {"CapacityReservationTarget": {"CapacityReservationId": BLOCK}},
        "BlockDeviceMappings": [{"DeviceName": "/dev/xvda", "Ebs": {"VolumeSize": 100, "VolumeType": "gp3"}}],
    }
    setting.ec2.create_launch_template(LaunchTemplateName=name, LaunchTemplateData=data)
    usual = {
        "launchTemplate": {"name": name},
        "instanceTypes": None,
        "capacityType": "CAPACITY_BLOCK",
        "amiType": "AL2023_x86_64_NVIDIA",
        "subnets": setting.subnets[:1],
        "scalingConfig": {"minSize": 0, "maxSize": 3, "desiredSize": 1},
    }
    return setting.group(name, **{**usual, **fields})


def test_a_group_of_a_block_has_machines_between_its_dates_alone(setting: Setting) -> None:
    begin = datetime.fromtimestamp(setting.time.now + DAY, UTC)
    new_block(ACCOUNT, REGION, "p5.48xlarge", ZONES[0], 2, begin, begin + timedelta(days=1), name=BLOCK)
    of_block(setting)
    assert setting.scaling_group("block")["Instances"] == []
    assert "ReservationCapacityExceeded" in failures(setting, "block")[0]
    setting.time.now += DAY
    with scarce_capacity({"p5.48xlarge": 0}):
        assert len(member_ids(setting.scaling_group("block"))) == 1
    set_desired(setting, 3, "block")
    assert len(member_ids(setting.scaling_group("block"))) == 2
    assert setting.machines("block")[0]["CapacityReservationId"] == BLOCK
    setting.time.now += DAY - NOTICE.total_seconds()
    assert setting.scaling_group("block")["Instances"] == []
    assert setting.machines("block") == []


def test_a_group_of_a_block_in_another_zone_has_no_machines(setting: Setting) -> None:
    begin = datetime.fromtimestamp(setting.time.now, UTC)
    new_block(ACCOUNT, REGION, "p5.48xlarge", ZONES[0], 2, begin, begin + timedelta(days=1), name=BLOCK)
    of_block(setting, subnets=setting.subnets[1:])
    assert setting.machines("block") == []
    assert setting.look_at_group("block")["status"] == "CREATE_FAILED"
