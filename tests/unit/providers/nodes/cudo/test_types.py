"""The node types of Cudo: which sizes there are, what they cost, and what is free."""

from __future__ import annotations

from dataclasses import replace

import pytest

from local.cudo.stock import stock
from stockyard.domain.node_types import NodeType
from stockyard.domain.requirements import INSTANCE_TYPE
from stockyard.providers.clouds.cudo import sizing
from stockyard.providers.clouds.cudo.sizing import Size
from stockyard.providers.clouds.cudo.values import MachineType, machine_type
from stockyard.providers.nodes.cudo.types import node_types, sizes

TYPES = [machine_type(offered.document()) for offered in stock()]
DALLAS, DISK = "us-dallas-1", 50


def named(types: list[MachineType], name: str) -> NodeType:
    return next(each for each in node_types("gpus", types, DISK) if each.bare == name)


def kind(name: str, data_center: str) -> MachineType:
    return next(each for each in TYPES if (each.name, each.data_center) == (name, data_center))


def test_every_size_is_one_that_cudo_sells() -> None:
    for each in TYPES:
        own_sizes = list(sizes(each, DISK))
        assert len(own_sizes) == len(set(own_sizes)) > 20
        assert not [fault for size in own_sizes for fault in sizing.bounds_faults(each, size)]
        assert {size.gpus for size in own_sizes} == ({1, 2, 4, 8} if each.gpu_model else {0})


def test_a_size_is_sold_in_several_places_at_their_own_prices() -> None:
    size = named(TYPES, "intel-broadwell-4x16")
    prices = {offering.zones: offering.usd_hour for offering in size.offerings}
    assert prices == {
        (place,): pytest.approx(float(sizing.price(kind("intel-broadwell", place), Size(4, 16, DISK))))
        for place in ("us-dallas-1", "us-newyork-1")
    }
    assert size.usd_hour == min(price for price in prices.values() if price is not None)
    assert size.properties[INSTANCE_TYPE] == ("intel-broadwell",)
    assert size.available


def test_what_a_node_keeps_for_itself_is_not_for_pods() -> None:
    size = named(TYPES, "intel-broadwell-v100-8x32-1g")
    assert (size.capacity["cpu"], size.capacity["nvidia.com/gpu"], size.capacity["pods"]) == (8000, 1000, 110_000)
    assert size.allocatable["cpu"] == 8000 - 90
    assert size.capacity["memory"] - size.allocatable["memory"] == (255 + 11 * 110 + 100) * 2**20 * 1000
    assert size.properties["cudocompute.com/gpu-model"] == ("v100",)


def test_what_is_free_nowhere_is_not_available_and_what_is_free_elsewhere_is_offered_there_alone() -> None:
    full = [replace(each, max_vcpu_free=2) if each.data_center == DALLAS else each for each in TYPES]
    size = named(full, "intel-broadwell-4x16")
    assert [offering.zones for offering in size.offerings] == [("us-newyork-1",)]
    assert size.available
    assert named(full, "intel-broadwell-2x8").offerings[0].zones == (DALLAS,)
    nothing = [replace(each, max_vcpu_free=2) for each in TYPES]
    assert not named(nothing, "intel-broadwell-4x16").available
    assert len(named(nothing, "intel-broadwell-4x16").offerings) == 2, "it still has prices"


def test_a_catalogue_stays_small() -> None:
    assert len(node_types("gpus", TYPES, DISK)) < 1500, "a region of EC2 has some 1,000"
