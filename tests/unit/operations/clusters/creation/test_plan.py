"""The prices of a cluster's plan, and the smallest control plane that it accepts."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from stockyard.domain.clusters import control_plane
from stockyard.domain.records import Cluster
from stockyard.errors import InvalidInput
from stockyard.operations.clusters.creation.create import create_cluster, plan_creation
from stockyard.operations.clusters.creation.plan import answer_of
from stockyard.operations.fleet.pools.pools import pools_of
from stockyard.providers.clusters.ec2 import planning
from stockyard.providers.clusters.ec2.configuration import control_plane_disk_gib
from stockyard.providers.clusters.ec2.planning import price_items

BASTION = {"enabled": True, "instance_type": "t3.micro"}
SMALL = {"t3.nano": (2, 512), "t3.micro": (2, 1024), "t2.one": (1, 4096)}


def _cluster(world: Any, settings: dict[str, Any]) -> Cluster:
    return replace(world.create(), settings=settings)


def test_plan_prices_disk_that_is_created(world: Any) -> None:
    assert control_plane_disk_gib({}) == control_plane.DISK_GIB == 50
    disk = next(item for item in price_items(_cluster(world, {}), world.services.prices) if "gp3" in item.name)
    assert disk.name == "control plane disk gp3 50 GiB"
    assert disk.hour == pytest.approx(50 * 0.08 / 730)


@pytest.mark.parametrize(
    ("settings", "addresses"),
    [
        ({}, 3),
        ({"public_control_plane": True}, 4),
        ({"vpc_id": "vpc-01234567"}, 2),
        ({"subnet_id": "subnet-01234567", "public_control_plane": True}, 3),
        ({"zones": ["a", "b", "c"], "nat_gateways": "one"}, 4),
        ({"zones": ["a", "b", "c"], "nat_gateways": "per_zone", "bastion": BASTION}, 7),
        ({"vpc_id": "vpc-01234567", "subnets": [{"public": "subnet-01234567"}]}, 1),
        ({"control_plane_size": 3}, 4),
    ],
)
def test_plan_prices_every_public_address(world: Any, settings: dict[str, Any], addresses: int) -> None:
    items = [
        item
        for item in price_items(_cluster(world, settings), world.services.prices)
        if item.name == "public IPv4 address"
    ]
    assert [item.quantity for item in items] == [addresses]
    assert items[0].hour == pytest.approx(addresses * 0.005)


def test_plan_names_what_it_assumes_of_an_overlays_egress(world: Any) -> None:
    with_overlay = {"overlay": {"range": "100.64.0.0/16", "node_to_node": True}, "cloud_controllers": False}
    plan = plan_creation(world.services, world.new_cluster(settings=with_overlay))
    (item,) = [item for item in plan["price"]["items"] if "egress" in item["name"]]
    assert item["name"] == "egress of the overlay, 100 GB a month assumed"
    assert item["hour"] * 730 == pytest.approx(9.0, abs=0.01)
    assert any("assumes 100 GB a month, 9.00 USD" in warning["detail"] for warning in plan["warnings"])
    without = plan_creation(world.services, world.new_cluster())
    assert not [item for item in without["price"]["items"] if "egress" in item["name"]]


@pytest.mark.parametrize("name", sorted(SMALL))
@pytest.mark.parametrize("grouped", [False, True])
def test_plan_refuses_control_plane_too_small_for_kubeadm(
    world: Any, monkeypatch: pytest.MonkeyPatch, name: str, grouped: bool
) -> None:
    def instance(region: str, instance_type: str) -> dict[str, Any]:
        vcpu, memory = SMALL.get(instance_type, (2, 2048))
        return {"vcpu": vcpu, "memory_mib": memory, "architecture": "x86_64", "usd_hour": 0.1}

    monkeypatch.setattr(world.services.factories.prices(), "instance", instance)
    worker = {"name": "w", "role": "worker", "min_size": 0, "max_size": 1, "instance_types": ["t3.nano"]}
    control = {"name": "c", "role": "control", "min_size": 1, "max_size": 1, "instance_types": [name]}
    groups = [worker, control] if grouped else [worker]
    settings = {"control_plane_instance_type": name, "autoscaler_node_groups": groups}
    with pytest.raises(InvalidInput) as refused:
        plan_creation(world.services, world.new_cluster(settings=settings))
    setting_pointer = "autoscaler_node_groups/1/instance_types/0" if grouped else "control_plane_instance_type"
    assert [e.pointer for e in refused.value.errors] == [f"/settings/{setting_pointer}"]
    assert "2 vCPU and 1700 MiB" in refused.value.errors[0].detail
    settings = {"control_plane_instance_type": "t3.small", "autoscaler_node_groups": [worker]}
    assert plan_creation(world.services, world.new_cluster(settings=settings))["creates"]


def test_plan_accepts_unknown_machine_without_price(world: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(world.services.factories.prices(), "instance", lambda region, name: None)
    assert not plan_creation(world.services, world.new_cluster())["price"]["complete"]


def test_internal_endpoint_of_named_subnets_has_no_public_address(world: Any) -> None:
    settings = {"vpc_id": "vpc-01234567", "subnets": [{"public": None}]}
    items = price_items(_cluster(world, settings), world.services.prices)
    assert not [item for item in items if "address" in item.name]


@pytest.mark.parametrize(("choice", "count"), [("one", 1), ("per_zone", 3)])
def test_plan_prices_gateways_and_says_what_the_other_choice_costs(world: Any, choice: str, count: int) -> None:
    zones = ["us-east-1a", "us-east-1b", "us-east-1c"]
    settings = {"key_pair": "my-key", "zones": zones, "nat_gateways": choice}
    plan = plan_creation(world.services, world.new_cluster(settings=settings))
    items = {item["name"]: item for item in plan["price"]["items"]}
    gateway, address = (world.services.prices.rate("us-east-1", name) for name in ("nat_gateway", "public_ipv4"))
    assert items["NAT gateway"]["quantity"] == count
    assert items["NAT gateway"]["hour"] == pytest.approx(count * gateway)
    (remark,) = [warning for warning in plan["warnings"] if warning["pointer"] == "/settings/nat_gateways"]
    assert remark["note"] is True
    for number in (1, 3):
        assert f"{(gateway + address) * number * 730:.2f}" in remark["detail"]
    names = [f"{entry['kind']} {entry['name']}" for entry in plan["creates"]]
    assert [name.rpartition("-public-")[2] for name in names if name.startswith("subnet") and "-public-" in name] == [
        "a (us-east-1a)", "b (us-east-1b)", "c (us-east-1c)",
    ]  # fmt: skip
    assert len([name for name in names if name.startswith("nat gateway")]) == count


def test_plan_of_a_larger_control_plane_has_all_that_a_smaller_one_has(world: Any) -> None:
    def creates(size: int) -> set[tuple[str, str]]:
        settings = {"key_pair": "my-key", "control_plane_size": size, "nat_gateways": "per_zone"}
        return set(planning.plan(replace(cluster, settings=settings), world.services.prices, "vantage").creates)

    cluster = world.create()
    # A growth shows what differs: what stands would look as if it were deleted and made again.
    assert creates(1) < creates(3)


def test_plan_names_the_bastion_and_its_price(world: Any) -> None:
    settings = {"key_pair": "my-key", "bastion": {}, "ssh_cidrs": ["192.0.2.0/24"]}
    plan = plan_creation(world.services, world.new_cluster(settings=settings))
    assert [item["name"] for item in plan["price"]["items"] if "bastion" in item["name"]] == [
        "bastion instance t3.micro",
        "bastion disk gp3 8 GiB",
    ]
    assert any(entry["name"].endswith("-bastion (t3.micro)") for entry in plan["creates"])
    assert not [warning for warning in plan["warnings"] if "nat_gateways" in warning["pointer"]]
    alone = plan_creation(world.services, world.new_cluster(settings={"key_pair": "my-key", "bastion": {}}))
    assert [warning["pointer"] for warning in alone["warnings"]] == ["/settings/ssh_cidrs"]


def test_a_vantage_body_without_groups_has_no_workers(world: Any) -> None:
    """A control plane and nothing else: no pool is made, none is planned, and no node of one is in the price."""
    new_cluster = world.new_cluster()
    plan = plan_creation(world.services, new_cluster)
    assert "pool" not in {thing["kind"] for thing in plan["creates"]}
    assert not any("of pool" in item["name"] for item in plan["price"]["items"])
    cluster, _ = create_cluster(world.services, new_cluster, "user:ann")
    assert cluster.settings["autoscaler_node_groups"] == []
    assert pools_of(world.services, cluster.id) == []


def test_the_answer_to_a_creation_has_the_price_of_its_plan(world: Any) -> None:
    new_cluster = world.new_cluster()
    plan = plan_creation(world.services, new_cluster)
    cluster, findings = create_cluster(world.services, new_cluster, "ann")
    answer = answer_of(world.services, cluster, findings)
    assert answer == {"warnings": plan["warnings"], "price": plan["price"]}
    assert answer["price"]["month"] > 0
