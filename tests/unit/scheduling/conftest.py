"""Kinds and claims in a few words."""

from __future__ import annotations

import pytest

from stockyard.domain.nodes.node_types import NodeType, Offering
from stockyard.domain.values.requirements import INSTANCE_TYPE
from stockyard.scheduling.reading import Reader


def make_node_type(name, usd=None, *, cpu=4, zones=("a", "b"), offerings=None, label=None, allocatable=None, **more):
    """A node type of ``cpu`` cores, offered on demand at ``usd`` an hour; ``more`` are fields or properties."""
    provider = name.partition(".")[0]
    fields = {
        name_: more.pop(name_)
        for name_ in ("cost", "limited", "available", "cost_given", "unit_price", "small", "unserved")
        if name_ in more
    }
    properties = {key: value if isinstance(value, tuple) else (value,) for key, value in more.items()}
    capacity = {"cpu": cpu * 1000, "memory": cpu * 1000, "pods": 110_000, **(allocatable or {})}
    return NodeType(
        name=name,
        provider=provider,
        properties={INSTANCE_TYPE: (label or name,), **properties},
        allocatable=capacity,
        capacity=capacity,
        cost=fields.pop("cost", 10 * cpu),
        offerings=(Offering("on-demand", zones, usd),) if offerings is None else offerings,
        **fields,
    )


def make_request(*requirements, provider=None, allowed=None, **resources):
    """A claim: entries as (key, operator, values...), resources as quantities."""
    entries = [{"key": key, "operator": operator, "values": list(values)} for key, operator, *values in requirements]
    return Reader().request(
        entries, {name.replace("_", "/"): value for name, value in resources.items()}, provider, allowed
    )


@pytest.fixture
def node_type():
    return make_node_type


@pytest.fixture
def asking():
    return make_request
