"""Limits that are below the smallest node type are named with what that one uses."""

from __future__ import annotations

import pytest

from stockyard.domain.nodes.node_types import NodeType
from stockyard.domain.pools.limits import PricedType, too_small, unknown_limits


def node_type(name: str, cpu: int, gib: int, usd_hour: float | None, **more: int) -> PricedType:
    capacity = {"cpu": cpu * 1000, "memory": gib * 2**30 * 1000, **more}
    return PricedType(NodeType(f"lab.{name}", "lab", {}, capacity, capacity, 1.0, ()), usd_hour)


BROAD = node_type("broad", 8, 8, 0.2)
DEEP = node_type("deep", 2, 64, 0.3)


@pytest.mark.parametrize(
    ("limits", "warnings"),
    [
        ({}, []),
        ({"cpu": "2"}, []),
        ({"cpu": "1"}, [("cpu", "No node fits within it: lab.deep alone is 2 of cpu.")]),
        ({"memory": "4Gi"}, [("memory", "No node fits within it: lab.broad alone is 8Gi of memory.")]),
        ({"usd_hour": "0.2"}, []),
        ({"usd_hour": "0.1"}, [("usd_hour", "No node fits within it: lab.broad alone is 0.2 USD an hour.")]),
        ({"nodes": "1"}, []),
        ({"nodes": "0"}, [("nodes", "No node fits within it: lab.broad alone is one node.")]),
        ({"nvidia.com/gpu": "0"}, []),
        ({"cpu": "2", "memory": "8Gi"}, [("", "No node fits within all limits together.")]),
        ({"cpu": "2", "memory": "64Gi"}, []),
    ],
)
def test_what_no_node_fits_within(limits: dict[str, str], warnings: list[tuple[str, str]]) -> None:
    assert too_small(limits, [BROAD, DEEP]) == warnings


def test_without_types_nothing_is_said() -> None:
    assert too_small({"cpu": "1"}, []) == []


def test_a_type_without_a_price_is_within_no_limit_in_money() -> None:
    (warning,) = too_small({"usd_hour": "0.1"}, [node_type("free", 1, 1, None)])
    assert warning == ("usd_hour", "No node fits within it: the price of no type is known.")


def test_money_is_compared_with_types_whose_price_is_known() -> None:
    (warning,) = too_small({"usd_hour": "0.001"}, [node_type("free", 1, 1, None), BROAD])
    assert warning == ("usd_hour", "No node fits within it: lab.broad alone is 0.2 USD an hour.")


def test_names_that_limit_nothing_are_told_with_what_was_meant() -> None:
    resources = {"cpu", "memory", "nvidia.com/gpu"}
    right_names = {
        "usd": "usd_hour",
        "usd-hour": "usd_hour",
        "node": "nodes",
        "cpus": "cpu",
        "mem": "memory",
        "gpu": "nvidia.com/gpu",
        "nvidia.com/gpus": "nvidia.com/gpu",
    }
    for name, right in right_names.items():
        assert unknown_limits([name], resources) == [(name, f"no node type has {name}; did you mean {right}?")]
    (fault,) = unknown_limits(["price"], resources)
    assert fault[1].startswith("no node type has price; a limit is nodes, usd_hour, usd_month, cpu")
    known_names = (
        "nodes",
        "usd_hour",
        "usd_month",
        "pods",
        "ephemeral-storage",
        "hugepages-2Mi",
        "example.com/fpga",
        "nvidia.com/gpu",
    )
    assert unknown_limits(known_names, resources) == []
