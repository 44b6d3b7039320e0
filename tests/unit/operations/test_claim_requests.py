"""Requests for node claims: what is refused and where, names, quotas, repeats, and plans that write nothing."""

from __future__ import annotations

from typing import Any

import pytest

from stockyard.domain.records import Quota
from stockyard.errors import (
    InUse,
    InvalidInput,
    QuotaExceeded,
)
from stockyard.operations.create_claim import NewClaim, create_claim
from stockyard.operations.explain_claim import plan_claim
from stockyard.ports import Create
from tests.unit.operations.conftest import World
from tests.unit.operations.nodes import Nodes

SMALL: dict[str, Any] = {"name": "small", "resources": {"cpu": "2", "memory": "4Gi"}, "usdPerHour": 0.1}
LARGE: dict[str, Any] = {"name": "large", "resources": {"cpu": "8", "memory": "32Gi"}, "usdPerHour": 0.4}


@pytest.fixture
def nodes(world: World) -> Nodes:
    return Nodes.of(world.registry, world.services, world.clock)


@pytest.mark.parametrize(
    ("fields", "pointer"),
    [
        ({"cluster_ref": "ghost"}, "/cluster"),
        ({"provider_ref": "ghost"}, "/provider"),
        ({"type_ref": "ghost"}, "/type"),
        ({"type_ref": "small"}, "/type"),
        ({"requirements": ({"key": "a", "operator": "In", "values": []},)}, "/requirements"),
        ({"resources": {"cpu": "much"}}, "/requirements"),
    ],
)
def test_a_claim_for_what_is_not_there_is_refused(nodes: Nodes, fields: dict[str, Any], pointer: str) -> None:
    nodes.provider("one", SMALL)
    nodes.provider("two", SMALL)
    with pytest.raises(InvalidInput) as caught:
        nodes.claim("x", **fields)
    assert [fault.pointer for fault in caught.value.errors] == [pointer]
    assert nodes.nothing_left()


def test_a_type_may_be_named_with_or_without_its_provider(nodes: Nodes) -> None:
    nodes.provider("one", SMALL)
    nodes.provider("two", {**SMALL, "usdPerHour": 9})
    named = nodes.claim(type_ref="two.small")
    short = nodes.claim(type_ref="small", provider_ref="two")
    nodes.schedule()
    assert {nodes.now(named).type_ref, nodes.now(short).type_ref} == {"two.small"}


def test_a_type_of_another_provider_than_the_one_named_is_refused(nodes: Nodes) -> None:
    nodes.provider("one", SMALL)
    nodes.provider("two", SMALL)
    with pytest.raises(InvalidInput, match=r"one\.small is not one of provider two") as refused:
        nodes.claim(type_ref="one.small", provider_ref="two")
    assert [problem.pointer for problem in refused.value.errors] == ["/type"]
    foreign = create_claim(nodes.services, NewClaim(type_ref="one.small", provider_ref="two", strict=False), "user:a")
    nodes.schedule()
    assert nodes.now(foreign).reason == "NoMatchingNodeType"


def test_names_are_unique_and_quotas_hold(nodes: Nodes) -> None:
    nodes.claim("one")
    with pytest.raises(InUse):
        nodes.claim("one")
    nodes.services.store.commit(Create(Quota("nodeclaims", 1, nodes.moment())))
    with pytest.raises(QuotaExceeded, match="nodeclaims limit of 1 would be exceeded"):
        nodes.claim("two")


def test_a_request_that_is_sent_twice_makes_one_claim(nodes: Nodes) -> None:
    wanted = NewClaim(name="one")
    first = create_claim(nodes.services, wanted, "user:ann", "ncl_01ARZ3NDEKTSV4RRFFQ69G5FAV")
    assert create_claim(nodes.services, wanted, "user:ann", first.id) == first


def test_a_plan_says_where_it_would_go_and_writes_nothing(nodes: Nodes) -> None:
    nodes.provider("lab", SMALL, LARGE)
    plan = plan_claim(nodes.services, NewClaim(name="x", resources={"cpu": "4"}))
    assert [one["name"] for one in plan["creates"]] == ["x", "lab.large"]
    assert plan["price"]["hour"] == 0.4
    assert [one["detail"].partition(":")[0] for one in plan["rejected"]] == ["lab.small"]
    assert nodes.nothing_left()


def test_a_plan_with_a_provider_does_not_count_up_the_others_types(nodes: Nodes) -> None:
    nodes.provider("lab", SMALL, LARGE)
    nodes.provider("another", SMALL, LARGE)
    plan = plan_claim(nodes.services, NewClaim(name="x", provider_ref="lab", resources={"cpu": "4"}))
    assert [one["detail"].partition(":")[0] for one in plan["rejected"]] == ["lab.small"]


def test_a_named_type_must_be_allowed(nodes: Nodes) -> None:
    from stockyard.operations.allowed_types import set_allowed_types

    nodes.provider("lab", SMALL, LARGE)
    set_allowed_types(nodes.services, ["lab.large"], 0)
    with pytest.raises(InvalidInput, match="not allowed"):
        nodes.claim(type_ref="lab.small")
    claim = nodes.claim()
    nodes.schedule()
    assert nodes.now(claim).type_ref == "lab.large"
