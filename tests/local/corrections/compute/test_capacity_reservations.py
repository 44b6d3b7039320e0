"""Capacity reservations and blocks in EC2: their states, and which launches fit in them."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from local.aws.corrections.compute.reservations import NOTICE, new_block
from tests.harness.worlds.eks_setting import REGION, WAYS, ZONES, Setting, eks_setting, refusal

ACCOUNT = "123456789012"
KIND, BLOCK = "p5.48xlarge", "cr-0123456789abcdef0"
DAY = 86_400.0


@pytest.fixture(params=WAYS, ids=lambda wire: "wire" if wire else "direct")
def setting(request: pytest.FixtureRequest) -> Iterator[Setting]:
    with eks_setting(wire=request.param) as setting:
        yield setting


def block(setting: Setting, **fields: Any) -> str:
    """A block of two machines for a day, which begins tomorrow."""
    begin = datetime.fromtimestamp(setting.time.now + DAY, UTC)
    return new_block(ACCOUNT, REGION, KIND, ZONES[0], 2, begin, begin + timedelta(days=1), name=BLOCK, **fields)


def launch(setting: Setting, target: str = BLOCK, **fields: Any) -> list[str]:
    """Ids of what a launch into a block makes."""
    image = setting.ec2.describe_images(Owners=["amazon"])["Images"][0]["ImageId"]
    usual = {
        "ImageId": image,
        "InstanceType": KIND,
        "MinCount": 1,
        "MaxCount": 1,
        "SubnetId": setting.subnets[0],
        "InstanceMarketOptions": {"MarketType": "capacity-block"},
        "CapacityReservationSpecification": {"CapacityReservationTarget": {"CapacityReservationId": target}},
    }
    answer = setting.ec2.run_instances(**{**usual, **fields})
    return [instance["InstanceId"] for instance in answer["Instances"]]


def look(setting: Setting, name: str = BLOCK) -> Any:
    (reservation,) = setting.ec2.describe_capacity_reservations(CapacityReservationIds=[name])["CapacityReservations"]
    return reservation


def states(setting: Setting, ids: list[str]) -> list[str]:
    answer = setting.ec2.describe_instances(InstanceIds=ids)["Reservations"]
    return [instance["State"]["Name"] for group in answer for instance in group["Instances"]]


def test_a_block_takes_launches_between_its_dates_alone(setting: Setting) -> None:
    block(setting, tags={"a": "b"})
    scheduled = look(setting)
    assert (scheduled["State"], scheduled["AvailableInstanceCount"], scheduled["TotalInstanceCount"]) == (
        "scheduled",
        0,
        2,
    )
    assert (scheduled["ReservationType"], scheduled["Tags"]) == ("capacity-block", [{"Key": "a", "Value": "b"}])
    assert refusal(launch, setting=setting)[0] == "ReservationCapacityExceeded"
    setting.time.now += DAY
    assert (look(setting)["State"], look(setting)["AvailableInstanceCount"]) == ("active", 2)
    ids = launch(setting) + launch(setting)
    assert look(setting)["AvailableInstanceCount"] == 0
    assert refusal(launch, setting=setting)[0] == "ReservationCapacityExceeded"
    (instance,) = setting.ec2.describe_instances(InstanceIds=ids[:1])["Reservations"][0]["Instances"]
    assert (instance["CapacityReservationId"], instance["InstanceLifecycle"]) == (BLOCK, "capacity-block")
    setting.ec2.terminate_instances(InstanceIds=ids[:1])
    assert look(setting)["AvailableInstanceCount"] == 1
    setting.time.now += DAY - NOTICE.total_seconds()
    look(setting)
    assert states(setting, ids) == ["terminated", "terminated"]
    assert refusal(launch, setting=setting)[0] == "ReservationCapacityExceeded"
    setting.time.now += NOTICE.total_seconds()
    assert look(setting)["State"] == "expired"


def test_a_launch_that_does_not_fit_falls_back_to_nothing(setting: Setting) -> None:
    block(setting)
    setting.time.now += DAY
    elsewhere = {"SubnetId": setting.subnets[1]}
    assert refusal(launch, setting=setting, **elsewhere)[0] == "ReservationCapacityExceeded"
    assert refusal(launch, setting=setting, InstanceType="p4d.24xlarge")[0] == "ReservationCapacityExceeded"
    assert refusal(launch, setting=setting, MinCount=3, MaxCount=3)[0] == "ReservationCapacityExceeded"
    spot = {"InstanceMarketOptions": {"MarketType": "spot"}}
    assert refusal(launch, setting=setting, **spot)[0] == "InvalidParameterCombination"
    absent = refusal(launch, setting=setting, target="cr-0123456789abcdeff")
    assert absent[0] == "InvalidCapacityReservationId.NotFound"
    assert refusal(launch, setting=setting, target="block")[0] == "InvalidCapacityReservationId.Malformed"
    assert setting.ec2.describe_instances()["Reservations"] == []


def test_a_launch_template_targets_a_block(setting: Setting) -> None:
    block(setting)
    data = {
        "InstanceType": KIND,
        "ImageId": setting.ec2.describe_images(Owners=["amazon"])["Images"][0]["ImageId"],
        "InstanceMarketOptions": {"MarketType": "capacity-block"},
        "CapacityReservationSpecification": {"CapacityReservationTarget": {"CapacityReservationId": BLOCK}},
    }
    setting.ec2.create_launch_template(LaunchTemplateName="t", LaunchTemplateData=data)
    call = {
        "MinCount": 1,
        "MaxCount": 1,
        "SubnetId": setting.subnets[0],
        "LaunchTemplate": {"LaunchTemplateName": "t"},
    }
    assert refusal(setting.ec2.run_instances, **call)[0] == "ReservationCapacityExceeded"
    setting.time.now += DAY
    setting.ec2.run_instances(**call)
    assert look(setting)["AvailableInstanceCount"] == 1


def test_a_block_that_is_not_paid_is_not_to_be_used(setting: Setting) -> None:
    block(setting, is_paid=False)
    setting.time.now += DAY
    assert look(setting)["State"] == "payment-pending"
    assert refusal(launch, setting=setting)[0] == "ReservationCapacityExceeded"


def test_a_reservation_is_made_found_and_cancelled(setting: Setting) -> None:
    ec2 = setting.ec2
    tags = [{"ResourceType": "capacity-reservation", "Tags": [{"Key": "a", "Value": "b"}]}]
    wish = {
        "InstanceType": "m6i.large",
        "InstancePlatform": "Linux/UNIX",
        "AvailabilityZone": ZONES[0],
        "InstanceCount": 1,
        "ClientToken": "t",
        "TagSpecifications": tags,
    }
    reservation = ec2.create_capacity_reservation(**wish)["CapacityReservation"]
    name = reservation["CapacityReservationId"]
    assert ec2.create_capacity_reservation(**wish)["CapacityReservation"]["CapacityReservationId"] == name
    assert (reservation["State"], reservation["EndDateType"]) == ("active", "unlimited")
    for key, value, count in (("tag:a", "b", 1), ("state", "expired", 0), ("instance-type", "m6i.large", 1)):
        found_ones = ec2.describe_capacity_reservations(Filters=[{"Name": key, "Values": [value]}])
        assert len(found_ones["CapacityReservations"]) == count
    preference = {"CapacityReservationPreference": "open"}
    spot = {"MarketType": "spot"}
    launch(setting, InstanceType="m6i.large", InstanceMarketOptions=spot, CapacityReservationSpecification=preference)
    assert look(setting, name)["AvailableInstanceCount"] == 1
    launch(setting, name, InstanceType="m6i.large", InstanceMarketOptions={})
    assert look(setting, name)["AvailableInstanceCount"] == 0
    ec2.cancel_capacity_reservation(CapacityReservationId=name)
    assert look(setting, name)["State"] == "cancelled"
    assert refusal(ec2.cancel_capacity_reservation, CapacityReservationId=name)[0] == "InvalidCapacityReservationState"
    block(setting)
    assert refusal(ec2.cancel_capacity_reservation, CapacityReservationId=BLOCK)[0] == "OperationNotPermitted"
