"""A name that several node types have is refused in requirements, as it is as the type of a claim."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from stockyard.domain.pools.records import NewPool
from stockyard.errors import InvalidInput
from stockyard.operations.fleet.pools.pools import change_pool, create_pool
from stockyard.ports import Replace
from tests.unit.operations.fleet.pools.conftest import SMALL, USER, Yard, make_yard


def entry(value: str, key: str = "vcluster.com/node-type", **more: Any) -> dict[str, Any]:
    return {"key": key, "operator": "In", "values": ["sim.large", value], **more}


@pytest.fixture
def yard() -> Yard:
    yard = make_yard()
    yard.nodes.provider("lab", SMALL)
    return yard


def claim(yard: Yard, asking: dict[str, Any]) -> None:
    yard.nodes.claim(requirements=(asking,))


def pool(yard: Yard, asking: dict[str, Any]) -> None:
    create_pool(yard.nodes.services, yard.cluster, NewPool(name="x", requirements=(asking,)), USER)


def test_a_name_of_two_types_is_refused(yard: Yard) -> None:
    for key, operator in (("vcluster.com/node-type", "In"), ("node.kubernetes.io/instance-type", "NotIn")):
        asking = entry("small", key, operator=operator)
        for create in (claim, pool):
            with pytest.raises(InvalidInput) as refused:
                create(yard, asking)
            (fault,) = refused.value.errors
            assert fault.pointer == "/requirements/0/values/1"
            assert fault.detail == "small may be any of lab.small, sim.small; give the whole name"

    yard.nodes.claim(provider_ref="lab", requirements=(entry("small"),))
    yard.nodes.claim(requirements=(entry("lab.small"), entry("small", "example.com/size")))


def test_a_name_that_a_second_provider_has_brought_does_not_keep_a_pool_from_changes(yard: Yard) -> None:
    pool = yard.dynamic_pool("old")
    old = replace(pool, requirements=(entry("small"),), version=pool.version + 1)
    yard.nodes.services.store.commit(Replace(old))
    changed = NewPool(name="old", **{**old.spec(), "weight": 3})
    assert change_pool(yard.nodes.services, yard.current(), old, old.version, changed, USER, "").weight == 3
