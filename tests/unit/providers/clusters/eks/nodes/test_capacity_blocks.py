"""A node group of a capacity block has machines from the block's begin on, and none without the block."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from local.aws.corrections.compute.capacity_reservations import capacity_reservations
from local.aws.corrections.compute.reservations import new_block
from local.aws.corrections.pace import paced
from stockyard.errors import VendorRefused
from stockyard.providers.clusters.eks.nodes import launch_templates
from tests.unit.providers.clusters.eks.conftest import H100
from tests.unit.providers.clusters.eks.nodes.test_node_groups import Run, change, group
from tests.unit.providers.conftest import ACME, START


@pytest.fixture
def block() -> Iterator[str]:
    """A capacity block of four machines, which begins in two days of the yard's time."""
    begin = START + timedelta(days=2)
    with capacity_reservations(), paced(lambda _kind: 0.0, START.timestamp):
        yield new_block(ACME, "us-east-1", "p5.48xlarge", "us-east-1b", 4, begin, begin + timedelta(days=1))


def test_a_capacity_block_has_no_machines_before_it_begins(eks: Any, run: Run, block: str) -> None:
    change(eks, {**H100, "capacity_reservation_id": block, "count": 2, "min_size": 1})
    run("node_groups")
    described = group(eks, "h100")
    assert described["capacityType"] == "CAPACITY_BLOCK"
    assert described["updateConfig"] == {"maxUnavailable": 1, "updateStrategy": "MINIMAL"}
    assert described["scalingConfig"] == {"minSize": 0, "maxSize": 4, "desiredSize": 0}
    assert described.get("instanceTypes", []) == []
    data = launch_templates.data(eks.cluster.settings["node_groups"][0])
    assert data["InstanceMarketOptions"] == {"MarketType": "capacity-block"}
    assert data["CapacityReservationSpecification"] == {
        "CapacityReservationPreference": "capacity-reservations-only",
        "CapacityReservationTarget": {"CapacityReservationId": block},
    }
    assert "NetworkInterfaces" not in data


def test_a_capacity_block_that_has_begun_gets_its_least_size(eks: Any, run: Run, block: str) -> None:
    change(eks, {**H100, "capacity_reservation_id": block, "count": 2, "min_size": 1})
    run("node_groups")
    later = START + timedelta(days=2, hours=1)
    eks.now = later
    with paced(lambda _kind: 0.0, later.timestamp):
        eks.ensure("node_groups")
        assert group(eks, "h100")["scalingConfig"] == {"minSize": 1, "maxSize": 4, "desiredSize": 1}


def test_a_capacity_block_that_is_not_there_is_named(eks: Any, run: Run) -> None:
    change(eks, {**H100, "capacity_reservation_id": "cr-0123456789abcdef0"})
    with capacity_reservations(), pytest.raises(VendorRefused, match="no capacity reservation cr-0123456789abcdef0"):
        run("node_groups")


def test_a_group_keeps_its_version_while_it_has_machines(eks: Any, run: Run, block: str) -> None:
    eks.now = later = START + timedelta(days=2, hours=1)
    change(eks, {**H100, "capacity_reservation_id": block, "count": 2})
    with paced(lambda _kind: 0.0, later.timestamp):
        run("node_groups")
        eks.cluster = eks.ledger.cluster = replace(eks.cluster, kubernetes_version="1.36")
        (warning,) = eks.provider.upgrade_findings(eks.work("account"))
        assert warning.warning
        assert "keep Kubernetes 1.35 while there are any" in warning.detail
        for phase in ("control_plane", "node_groups"):
            eks.ensure(phase)
        assert {name: group(eks, name)["version"] for name in ("h100", "system")} == {"h100": "1.35", "system": "1.36"}
        scaling = group(eks, "h100")["resources"]["autoScalingGroups"][0]["name"]
        client = eks.tenant().client("autoscaling")
        client.set_desired_capacity(AutoScalingGroupName=scaling, DesiredCapacity=0)
        eks.ensure("node_groups")
        assert group(eks, "h100")["version"] == "1.36"
