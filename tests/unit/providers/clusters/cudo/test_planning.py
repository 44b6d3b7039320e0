"""Offers and free amounts of Cudo, and the price of a cluster there: by the simulated Cudo's own price list."""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal
from typing import Any

import pytest

from local.cudo.stock import stock
from stockyard.domain.models.base import read
from stockyard.ports import Finding
from stockyard.providers.clouds.cudo import sizing
from stockyard.providers.clouds.cudo.sheets import Sheet
from stockyard.providers.clouds.cudo.sizing import Size
from stockyard.providers.clouds.cudo.values import MachineType, machine_type
from stockyard.providers.clusters.cudo.inspection import findings
from stockyard.providers.clusters.cudo.planning import group_items, plan
from stockyard.providers.clusters.cudo.settings import CudoSettings
from tests.unit.providers.clusters.cudo.test_settings import CONTROL, GPUS

DALLAS = "us-dallas-1"
TYPES = [machine_type(offered.document()) for offered in stock()]
CLIENT = "demo-0123456789ab"
SHEET = Sheet("2026-01-01T00:00:00.000Z", tuple(TYPES), DALLAS, {DALLAS: Decimal("0.01")})


def kind(name: str, data_center: str = DALLAS) -> MachineType:
    return next(each for each in TYPES if (each.name, each.data_center) == (name, data_center))


def settings(**document: Any) -> dict[str, Any]:
    return read(CudoSettings, document).normal()


def faults(group: dict[str, Any], types: list[MachineType] = TYPES) -> list[Finding]:
    return list(findings(types, settings(autoscaler_node_groups=[group]), DALLAS))


def test_the_published_groups_are_fine() -> None:
    assert list(findings(TYPES, settings(autoscaler_node_groups=[CONTROL, GPUS]), DALLAS)) == []
    assert list(findings(TYPES, settings(), DALLAS)) == []


@pytest.mark.parametrize(
    ("changed", "field", "words"),
    [
        ({"data_center_id": "moon-1"}, "data_center_id", "There are ca-montreal-3"),
        ({"machine_type": "epyc-milan"}, "machine_type", "It has intel-broadwell, intel-broadwell-v100"),
        ({"vcpus": 16, "memory_gib": 8}, "memory_gib", "GiB of memory for each vCPU"),
        ({"vcpus": 1, "memory_gib": 64}, "memory_gib", "1 to 10 GiB"),
        ({"gpu_model": "H100"}, "gpu_model", "are V100"),
        ({"gpus": 0, "gpu_model": None}, "gpus", "with GPUs alone"),
        ({"gpus": 1, "vcpus": 48, "memory_gib": 96}, "vcpus", "for each GPU"),
        ({"machine_type": "intel-broadwell", "gpu_model": None}, "gpus", "no GPUs"),
    ],
)
def test_what_is_not_sold_is_refused_at_its_field(changed: dict[str, Any], field: str, words: str) -> None:
    (finding,) = faults({**GPUS, **changed})
    assert finding.pointer == f"/settings/autoscaler_node_groups/0/{field}"
    assert words in finding.detail
    assert not finding.warning


def test_machines_of_one_cluster_stand_in_one_data_center() -> None:
    elsewhere = {**GPUS, "data_center_id": "us-newyork-1"}
    (finding,) = findings(TYPES, settings(autoscaler_node_groups=[CONTROL, elsewhere]), DALLAS)
    assert finding.pointer == "/settings/autoscaler_node_groups/1/data_center_id"
    assert "The control plane's is us-dallas-1." in finding.detail
    moved = {**CONTROL, "data_center_id": "us-newyork-1"}
    assert list(findings(TYPES, settings(autoscaler_node_groups=[moved, elsewhere]), DALLAS)) == []


def test_what_is_not_free_is_refused_where_it_is_needed_now_and_warned_of_elsewhere() -> None:
    few = [replace(each, max_gpu_free=1) for each in TYPES]
    group = {**GPUS, "gpus": 2, "vcpus": 16, "memory_gib": 64}
    (warning,) = faults(group, few)
    (refusal,) = faults({**group, "min_size": 1}, few)
    assert (warning.warning, refusal.warning) == (True, False)
    assert refusal.detail.endswith("has 1 V100 free for one machine just now, and 2 are asked for.")


def test_a_profile_that_nothing_has_room_for_is_refused() -> None:
    full = [replace(each, max_vcpu_free=4) for each in TYPES]
    (finding,) = findings(full, settings(), DALLAS)
    assert finding.pointer == "/settings/control_plane_size"
    assert "8 vCPUs, 16 GiB of memory and 100 GiB of disk" in finding.detail
    assert list(findings(full, settings(control_plane_size="sm"), DALLAS)) == []


def test_the_cheapest_type_that_fits_is_taken() -> None:
    size = Size(8, 16, 100)
    dear = kind("intel-broadwell")
    cheap = replace(dear, name="atom", vcpu_price=dear.vcpu_price / 2)
    small = replace(cheap, name="tiny", max_memory_gib_free=8)
    assert sizing.cheapest([dear, cheap, small], DALLAS, size) == cheap
    assert sizing.cheapest([dear, cheap], "us-newyork-1", size) is None
    assert sizing.cheapest([replace(cheap, name="zeta"), cheap], DALLAS, size) == cheap


def test_a_plan_has_a_price_for_each_part() -> None:
    broadwell = kind("intel-broadwell")
    cluster_plan = plan(SHEET, settings(), "vantage", CLIENT)
    kinds = ["security group", "security group", "network", "disk", "machine"]
    assert [thing for thing, _ in cluster_plan.creates] == kinds
    assert cluster_plan.creates[3][1] == f"vantage-{CLIENT}-data (20 GiB, encrypted)"
    assert cluster_plan.creates[4][1] == f"vantage-{CLIENT}-control-plane (intel-broadwell in {DALLAS})"
    total = sum(Decimal(str(item.hour)) for item in cluster_plan.items)
    parts = broadwell.vcpu_price * 8 + broadwell.memory_gib_price * 16 + broadwell.storage_gib_price * 120
    assert total == pytest.approx(parts + broadwell.ipv4_price + Decimal("0.01"))
    plain = plan(SHEET, settings(no_vault=True), "vantage", CLIENT)
    assert plain.creates[3][1] == f"vantage-{CLIENT}-data (20 GiB)"


def test_what_is_not_known_has_no_price() -> None:
    unknown_plan = plan(Sheet("", ()), settings(autoscaler_node_groups=[CONTROL]), "vantage", CLIENT)
    assert {item.hour for item in unknown_plan.items} == {None}
    assert "intel-broadwell in us-dallas-1" in unknown_plan.creates[4][1]
    (floor,) = group_items([], settings(autoscaler_node_groups=[{**GPUS, "min_size": 1}]))
    assert (floor.name, floor.quantity, floor.hour) == ("1 node of pool gpu", 1, None)


def test_floors_are_priced_with_their_gpus() -> None:
    groups = [CONTROL, {**GPUS, "min_size": 2}, {**GPUS, "id": "idle"}]
    (floor,) = group_items(TYPES, settings(autoscaler_node_groups=groups))
    each = sizing.price(kind("intel-broadwell-v100"), Size(8, 16, 100, 1, "V100"))
    assert each > Decimal("0.19")
    assert (floor.name, floor.hour) == ("2 nodes of pool gpu", pytest.approx(float(each) * 2))
