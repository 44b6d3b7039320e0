"""The node types of Cudo: which sizes there are, what they cost, and what is free."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from local.cudo.stock import stock
from stockyard.domain.nodes.node_types import NodeType
from stockyard.domain.records import NodeProvider
from stockyard.domain.values.requirements import INSTANCE_TYPE, REGION
from stockyard.providers.clouds.cudo import sizing
from stockyard.providers.clouds.cudo.sizing import Size
from stockyard.providers.clouds.cudo.values import MachineType, machine_type
from stockyard.providers.nodes.cudo.types import node_types, of_type_name, sizes, type_name

TYPES = [machine_type(offered.document()) for offered in stock()]
DALLAS, DISK = "us-dallas-1", 50


def provider(**block: Any) -> NodeProvider:
    return NodeProvider("npr_1", "gpus", "cudo", {"cudo": {"cloudAccount": 2, "dataCenter": DALLAS, **block}}, "t", "t")


def named(types: list[MachineType], name: str, **block: Any) -> NodeType:
    return next(each for each in node_types(provider(**block), types) if each.bare == name)


def kind(name: str, data_center: str = DALLAS) -> MachineType:
    return next(each for each in TYPES if (each.name, each.data_center) == (name, data_center))


def test_every_size_is_one_that_cudo_sells() -> None:
    for each in TYPES:
        own_sizes = list(sizes(each, DISK))
        assert len(own_sizes) == len(set(own_sizes)) > 20
        assert not [fault for size in own_sizes for fault in sizing.bounds_faults(each, size)]
        assert {size.gpus for size in own_sizes} == ({1, 2, 4, 8} if each.gpu_model else {0})


def test_types_are_those_of_the_data_center_at_its_prices() -> None:
    for data_center in (DALLAS, "us-newyork-1"):
        size = named(TYPES, "intel-broadwell-4x16", dataCenter=data_center)
        (offering,) = size.offerings
        assert offering.zones == (data_center,)
        price = sizing.price(kind("intel-broadwell", data_center), Size(4, 16, DISK))
        assert offering.usd_hour == pytest.approx(float(price))
        assert size.properties[REGION] == (data_center,)
        assert size.properties[INSTANCE_TYPE] == ("intel-broadwell",)
        assert size.available
    types = node_types(provider(dataCenter="se-stockholm-1"), TYPES)
    names = {each.properties["cudocompute.com/machine-type"] for each in types}
    assert names == {("ice-lake-a40-compute",), ("ice-lake-rtx-a6000",), ("epyc-milan",)}


def test_what_a_node_keeps_for_itself_is_not_for_pods() -> None:
    size = named(TYPES, "intel-broadwell-v100-8x32-1g")
    assert (size.capacity["cpu"], size.capacity["nvidia.com/gpu"], size.capacity["pods"]) == (8000, 1000, 110_000)
    assert size.allocatable["cpu"] == 8000 - 90
    assert size.capacity["memory"] - size.allocatable["memory"] == (255 + 11 * 110 + 100) * 2**20 * 1000
    labels = {
        "gpu-model": "v100",
        "machine-type": "intel-broadwell-v100",
        "vcpus": "8",
        "memory-gib": "32",
        "gpus": "1",
    }
    assert {name: size.properties[f"cudocompute.com/{name}"] for name in labels} == {n: (v,) for n, v in labels.items()}


@pytest.mark.parametrize(
    ("model_id", "model", "label"),
    [("v100", "V100", "v100"), ("", "RTX A6000", "rtx-a6000"), ("nvidia/h100 (pcie)", "H100", "nvidia-h100-pcie")],
)
def test_every_type_with_gpus_says_their_model_as_a_label(model_id: str, model: str, label: str) -> None:
    changed = replace(kind("intel-broadwell-v100"), gpu_model_id=model_id, gpu_model=model)
    size = named([changed], "intel-broadwell-v100-8x32-1g")
    assert size.properties["cudocompute.com/gpu-model"] == (label,)


def test_a_type_with_a_name_that_is_no_id_is_left_out() -> None:
    odd = replace(kind("intel-broadwell"), name="Intel Broadwell")
    assert node_types(provider(), [odd]) == ()


def test_what_is_not_free_now_is_not_available_and_keeps_its_price() -> None:
    full = [replace(each, max_vcpu_free=2) for each in TYPES]
    assert not named(full, "intel-broadwell-4x16").available
    assert named(full, "intel-broadwell-4x16").usd_hour == named(TYPES, "intel-broadwell-4x16").usd_hour
    assert named(full, "intel-broadwell-2x8").available


def test_a_document_chooses_machine_types_by_globs() -> None:
    names = {each.bare for each in node_types(provider(machineTypes=["intel-*-v100"]), TYPES)}
    assert names
    assert {name.partition("v100")[0] for name in names} == {"intel-broadwell-"}
    assert node_types(provider(machineTypes=["epyc-*"]), TYPES) == ()


def test_exactly_the_sizes_that_a_document_asks_for_are_on_offer() -> None:
    asked_for = [{"vcpus": 5, "memoryGib": 10}, {"vcpus": 5, "memoryGib": 11, "gpus": 1}, {"vcpus": 8, "memoryGib": 2}]
    types = node_types(provider(sizes=asked_for, bootDiskSizeGib=120), TYPES)
    assert [each.bare for each in types] == ["intel-broadwell-5x10", "intel-broadwell-v100-5x11-1g"]
    assert types[0].capacity["ephemeral-storage"] == 120 * 2**30 * 1000
    assert types[0].usd_hour == pytest.approx(float(sizing.price(kind("intel-broadwell"), Size(5, 10, 120))))


def test_a_document_says_what_differs_for_a_type() -> None:
    entry = {"name": "intel-broadwell-4x16", "cost": 7, "maxCapacity": 3, "properties": {"tier": "gold"}}
    size = named(TYPES, "intel-broadwell-4x16", nodeTypes=[entry])
    assert (size.cost, size.cost_given, size.limited, size.properties["tier"]) == (7, True, True, ("gold",))
    other = named(TYPES, "intel-broadwell-4x8", nodeTypes=[entry])
    assert (other.cost_given, other.limited) == (False, False)


@pytest.mark.parametrize("size", [Size(8, 32, 0, 1), Size(1, 2, 0), Size(192, 1536, 0, 8)])
@pytest.mark.parametrize("name", ["intel-broadwell", "odd-4x8", "a-2x2-1g"])
def test_a_name_says_type_and_size(name: str, size: Size) -> None:
    assert of_type_name(type_name(name, size)) == (name, size)
    assert of_type_name(type_name(name, size), 70) == (name, replace(size, disk_gib=70))


@pytest.mark.parametrize("name", ["m6i.large", "intel-broadwell", "4x8", "intel-x8"])
def test_any_other_name_says_nothing(name: str) -> None:
    assert of_type_name(name) is None


def test_a_catalogue_stays_small() -> None:
    for data_center in {each.data_center for each in TYPES}:
        assert 20 < len(node_types(provider(dataCenter=data_center), TYPES)) < 800, "a region of EC2 has some 1,000"
