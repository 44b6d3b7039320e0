"""Properties of nodes where nobody asks: on demand and of amd64."""

from __future__ import annotations

import pytest

from stockyard.domain.nodes.defaults import AMD64, DEFAULTS, defaults_of, unasked, written_out
from stockyard.domain.nodes.node_types import ON_DEMAND, SPOT, NodeType, Offering
from stockyard.domain.values.requirements import ARCH, CAPACITY_TYPE, INSTANCE_TYPE, NODE_TYPE, Requirements


def entry(key: str, operator: str = "In", *values: str) -> dict[str, object]:
    return {"key": key, "operator": operator, **({"values": list(values)} if values else {})}


@pytest.mark.parametrize(
    ("entries", "keys"),
    [
        ([], {CAPACITY_TYPE, ARCH}),
        ([entry("team", "In", "a")], {CAPACITY_TYPE, ARCH}),
        ([entry(CAPACITY_TYPE, "In", "spot")], {ARCH}),
        ([entry(CAPACITY_TYPE, "Exists")], {ARCH}),
        ([entry(CAPACITY_TYPE, "NotIn", "on-demand")], {ARCH}),
        ([entry("beta.kubernetes.io/arch", "In", "arm64")], {CAPACITY_TYPE}),
        ([entry(INSTANCE_TYPE, "In", "t4g.small", "m5.large")], {CAPACITY_TYPE}),
        ([entry(NODE_TYPE, "In", "ec2.t4g.small")], {CAPACITY_TYPE}),
        ([entry(INSTANCE_TYPE, "NotIn", "m5.large")], {CAPACITY_TYPE, ARCH}),
        ([entry(NODE_TYPE, "Exists")], {CAPACITY_TYPE, ARCH}),
    ],
)
def test_who_names_a_label_or_lists_types_asks(entries: list[dict[str, object]], keys: set[str]) -> None:
    requirements = Requirements.of(entries)
    assert defaults_of(requirements) == {key: DEFAULTS[key] for key in keys}
    assert CAPACITY_TYPE not in defaults_of(requirements, bids=True), "a bid is for spot"
    out = Requirements.of(written_out(entries))
    assert not defaults_of(out), "what was left open is said"
    assert set(out) == {*requirements, *keys}


def test_what_is_written_out_allows_everything() -> None:
    out = Requirements.of(written_out([]))
    assert all(out[CAPACITY_TYPE].has(value) for value in (ON_DEMAND, SPOT, "capacity-block"))
    assert all(out[ARCH].has(value) for value in (AMD64, "arm64", "riscv64"))
    assert out[ARCH].absence_fits, "types that tell no architecture"
    unreadable = ({"key": "a", "operator": "Odd"},)
    assert written_out(unreadable) == unreadable


@pytest.mark.parametrize(
    ("architectures", "capacity_type", "keys"),
    [
        ((), ON_DEMAND, set()),
        (("amd64",), ON_DEMAND, set()),
        (("arm64", "amd64"), ON_DEMAND, set()),
        (("*",), SPOT, {CAPACITY_TYPE}),
        (("arm64",), ON_DEMAND, {ARCH}),
        (("arm64",), SPOT, {ARCH, CAPACITY_TYPE}),
    ],
)
def test_types_that_tell_no_architecture_are_as_nodes_are(
    architectures: tuple[str, ...], capacity_type: str, keys: set[str]
) -> None:
    properties = {ARCH: architectures} if architectures else {}
    node_type = NodeType("p.t", "p", properties, {}, {}, 1, ())
    assert unasked(DEFAULTS, node_type, Offering(capacity_type, ("a",))) == keys
    assert unasked({}, node_type, Offering(capacity_type, ("a",))) == set()
