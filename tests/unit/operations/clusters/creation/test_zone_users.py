"""A ready cluster leaves a zone only when nobody uses it; otherwise the refusal names who does."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import pytest

from stockyard.domain.nodes.records import Placement
from stockyard.domain.records import Resource
from stockyard.errors import InvalidInput
from stockyard.ports import CloudWork, Create, Replace
from tests.harness.worlds.ports import with_ports
from tests.unit.operations.clusters.balanced_world import WEB, BalancedProvider, BalancedWorld, balanced_world

ZONES = ["us-east-1a", "us-east-1b", "us-east-1c"]


@dataclass
class ZoneProvider(BalancedProvider):
    """A cluster that stands in all three zones."""

    def leaving_zones(self, work: CloudWork) -> Mapping[str, str]:
        named = work.cluster.settings.get("zones") or ZONES
        return {zone: "/settings/zones" for zone in ZONES if zone not in named}


def world(*groups: Mapping[str, Any]) -> BalancedWorld:
    there = balanced_world(*groups, zones=ZONES)
    services, provider = there.world.services, ZoneProvider()
    there.world.services = with_ports(services, cluster_drivers={"ec2": provider})
    there.provider = provider
    return there


def stand(there: BalancedWorld, zone: str) -> str:
    """Put the first node of ``web`` into the zone; its name."""
    claim = there.claims("web")[0]
    placement = Placement("p", "yard.m5", "on-demand", (zone,), 1.0, "")
    changed = replace(claim, placement=placement, version=claim.version + 1)
    there.world.services.store.commit(Replace(changed))
    return claim.name


def refusal(there: BalancedWorld, zones: list[str], **settings: Any) -> dict[str, str]:
    with pytest.raises(InvalidInput) as refused:
        there.plan({"settings": {"zones": zones, **settings}})
    return {fault.pointer: fault.detail for fault in refused.value.errors}


def test_a_zone_with_a_node_is_not_left_and_the_node_is_named() -> None:
    there = world()
    name = stand(there, "us-east-1c")
    assert refusal(there, ZONES[:2]) == {
        "/settings/zones": f"us-east-1c is used by node {name}: move them first.",
    }
    with pytest.raises(InvalidInput, match="move them first"):
        there.patch({"settings": {"zones": ZONES[:2]}})


def test_a_zone_that_a_group_names_is_not_left() -> None:
    there = world({**WEB, "min_size": 0, "zones": ZONES[1:]})
    assert refusal(there, ZONES[:2]) == {"/settings/zones": "us-east-1c is used by pool web: move them first."}
    # Once the same patch takes it out of the group, nothing stands against it.
    plan = there.plan({"settings": {"zones": ZONES[:2], **there.groups({**WEB, "zones": ZONES[1:2]})["settings"]}})
    assert any("Volumes of pods in us-east-1c stay there" in each["detail"] for each in plan["warnings"])


def test_a_zone_with_what_the_first_machine_has_is_not_left() -> None:
    there = world()
    services = there.world.services
    line = Resource(f"{there.id}/control_plane/instance/machine", there.id, "control_plane", "instance", "machine", "t",
                    "made", "us-east-1", 1, services.now(), vendor_id="i-1", detail={"zone": "us-east-1c"})  # fmt: skip
    services.store.commit(Create(line))
    assert "the control plane's instance i-1" in refusal(there, ZONES[:2])["/settings/zones"]


def test_a_zone_that_nobody_uses_is_left_and_the_plan_says_in_what_order() -> None:
    there = world()
    plan = there.plan({"settings": {"zones": ZONES[:2]}})
    assert plan["steps"] == ["Take us-east-1c out of the balancer, then remove what the cluster's network has there."]
    plan = there.plan({"settings": {"zones": [*ZONES[:2], "us-east-1d"]}})
    assert [text.split(";")[0] for text in plan["steps"]] == [
        "Make subnets, routes and gateways in us-east-1d",
        "Have the balancer stand in us-east-1d too.",
        "Take us-east-1c out of the balancer, then remove what the cluster's network has there.",
    ]
    there.patch({"settings": {"zones": ZONES[:2]}})
    assert there.drive() == "changed"
    assert there.provider.stands["network"]["zones"] == ZONES[:2]
    assert "snapshots" in there.provider.stands


def test_who_comes_to_the_zone_before_the_operation_begins_stops_it() -> None:
    there = world()
    there.patch({"settings": {"zones": ZONES[:2]}})
    name = stand(there, "us-east-1c")
    assert there.drive() == "not_changed"
    assert there.operation.status == "failed"
    assert f"used by node {name}" in str(there.operation)
    assert "network" not in there.provider.stands


@pytest.mark.parametrize(
    ("settings", "step"),
    [
        ({"nat_gateways": "one"}, "Make the NAT gateways that come"),
        ({"etcd_snapshots": 0}, "Change how many daily snapshots"),
    ],
)
def test_gateways_and_snapshots_change(settings: dict[str, Any], step: str) -> None:
    there = world()
    plan = there.plan({"settings": settings})
    assert [text.startswith(step) for text in plan["steps"]] == [True]
    there.patch({"settings": settings})
    assert there.drive() == "changed"
