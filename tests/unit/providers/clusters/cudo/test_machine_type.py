"""Machine type and image of the control plane on Cudo, also where a type is scarce."""

from __future__ import annotations

from dataclasses import replace

import pytest

from stockyard.errors import InsufficientCapacity, VendorRefused
from tests.unit.providers.clusters.cudo.test_settings import CONTROL
from tests.unit.providers.clusters.cudo.world import CHEAP, DEAR, PHASES, World


def test_the_machine_type_is_chosen_once_and_kept_whatever_the_prices_are_later() -> None:
    world = World()
    outcome = world.up_to("machine_type")
    assert outcome.facts == {"place": "us-dallas-1"}
    assert world.choice().detail["types"] == [CHEAP, DEAR]
    choice = world.choice()
    world.yard.cudo.stock = tuple(reversed(world.yard.cudo.stock))[:1]
    assert world.until_done("machine_type").message == outcome.message
    assert world.choice() == choice
    assert world.yard.cudo.calls["ListVMMachineTypes"] == 1


def test_everything_stands_where_the_type_was_chosen_whatever_the_account_names_since() -> None:
    world = World()
    world.until_done("machine_type")
    attributes = {**world.yard.account.attributes, "data_center_id": "no-kristiansand-1"}
    world.yard.account = replace(world.yard.account, attributes=attributes)
    for phase in PHASES[2:]:
        world.until_done(phase)
    project = world.yard.project
    bodies = [*(each.body for each in project.networks.values()), *(each.body for each in project.disks.values())]
    things = [*project.groups.values(), *bodies, world.machine()]
    assert {thing["dataCenterId"] for thing in things} == {"us-dallas-1"}


def test_the_cheapest_type_is_taken_and_the_next_one_where_it_is_scarce() -> None:
    first, second = World(), World()
    first.up_to("control_plane")
    assert first.machine()["machineType"] == CHEAP
    second.up_to("disk")
    second.yard.run_out([CHEAP])
    assert not second.step("control_plane").done
    assert second.choice().detail["refused"] == [CHEAP]
    second.yard.run_out([])
    second.until_done("control_plane")
    assert second.machine()["machineType"] == DEAR
    assert second.choice().detail["refused"] == [], "one that takes its place may have the cheapest again"
    second.until_done("control_plane")
    assert second.machine()["machineType"] == DEAR, "a machine that is there is not made again"


def test_a_later_try_begins_anew_when_there_was_no_room_for_any_type() -> None:
    world = World()
    world.up_to("disk")
    world.yard.run_out([CHEAP, DEAR])
    with pytest.raises(InsufficientCapacity):
        world.step("control_plane")
    assert world.yard.machines() == []
    assert world.choice().detail["refused"] == []
    world.yard.run_out([])
    world.until_done("control_plane")
    assert world.machine()["machineType"] == CHEAP


def test_no_type_is_chosen_where_none_has_room() -> None:
    world = World()
    world.up_to("account")
    world.yard.run_out([CHEAP, DEAR])
    with pytest.raises(InsufficientCapacity, match="No machine type in us-dallas-1 has 8 vCPUs"):
        world.step("machine_type")
    world.yard.run_out([CHEAP])
    world.until_done("machine_type")
    assert world.choice().detail["types"] == [DEAR]


def test_a_named_type_is_the_only_one() -> None:
    world = World(autoscaler_node_groups=[CONTROL])
    world.up_to("machine_type")
    assert world.choice().detail["types"] == ["intel-broadwell"]
    world = World(autoscaler_node_groups=[{**CONTROL, "machine_type": "sapphire-rapids"}])
    with pytest.raises(VendorRefused, match="us-dallas-1 has no sapphire-rapids"):
        world.step("machine_type")


@pytest.mark.parametrize(("dev_mode", "image"), [(False, "ubuntu-2404"), (True, "ubuntu-2504")])
def test_dev_mode_chooses_the_image_of_the_development_channel(dev_mode: bool, image: str) -> None:
    world = World(dev_mode=dev_mode)
    world.up_to("control_plane")
    assert world.machine()["bootDiskImageId"] == image
