"""Kinds and claims in a few words."""

from __future__ import annotations

import pytest

from stockyard.domain.node_types import NodeKind, Offering
from stockyard.domain.requirements import INSTANCE_TYPE
from stockyard.scheduling.reading import Reader


def make_kind(name, usd=None, *, cpu=4, zones=("a", "b"), offerings=None, label=None, allocatable=None, **more):
    """A kind of ``cpu`` cores, offered on demand at ``usd`` an hour; ``more`` are fields or properties."""
    provider = name.partition(".")[0]
    fields = {one: more.pop(one) for one in ("cost", "limited", "available", "cost_given", "unit_price") if one in more}
    properties = {key: value if isinstance(value, tuple) else (value,) for key, value in more.items()}
    held = {"cpu": cpu * 1000, "memory": cpu * 1000, "pods": 110_000, **(allocatable or {})}
    return NodeKind(
        name=name,
        provider=provider,
        properties={INSTANCE_TYPE: (label or name,), **properties},
        allocatable=held,
        capacity=held,
        cost=fields.pop("cost", 10 * cpu),
        offerings=(Offering("on-demand", zones, usd),) if offerings is None else offerings,
        **fields,
    )


def make_wanted(*requirements, provider=None, allowed=None, **resources):
    """A claim: entries as (key, operator, values...), resources as quantities."""
    entries = [{"key": key, "operator": operator, "values": list(values)} for key, operator, *values in requirements]
    return Reader().wanted(
        entries, {name.replace("_", "/"): value for name, value in resources.items()}, provider, allowed
    )


@pytest.fixture
def kind():
    return make_kind


@pytest.fixture
def wanted():
    return make_wanted
