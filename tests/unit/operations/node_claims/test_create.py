"""Requests for node claims: refusals with their pointers, names, quotas, repeated requests, and plans."""

from __future__ import annotations

from typing import Any

import pytest

from stockyard.domain.nodes.records import NewClaim
from stockyard.domain.records import Quota
from stockyard.errors import (
    InUse,
    InvalidInput,
    QuotaExceeded,
)
from stockyard.operations.fleet.explain import plan_claim
from stockyard.operations.node_claims.create import check_creation, create_claim
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
def test_creation_refuses_unknown_references(nodes: Nodes, fields: dict[str, Any], pointer: str) -> None:
    nodes.provider("one", SMALL)
    nodes.provider("two", SMALL)
    with pytest.raises(InvalidInput) as caught:
        nodes.claim("x", **fields)
    assert [fault.pointer for fault in caught.value.errors] == [pointer]
    assert nodes.nothing_left()


def test_creation_refuses_a_claim_that_is_too_large_to_be_read_in_each_pass(nodes: Nodes) -> None:
    properties = {f"p{number}": "x" * 4000 for number in range(17)}
    with pytest.raises(InvalidInput, match="at most 65536 bytes as JSON; this one has 6") as caught:
        nodes.claim("x", properties=properties)
    assert [fault.pointer for fault in caught.value.errors] == [""]
    assert nodes.nothing_left()
    nodes.claim("x", properties=dict(list(properties.items())[:16]))


def test_type_is_accepted_with_or_without_provider_prefix(nodes: Nodes) -> None:
    nodes.provider("one", SMALL)
    nodes.provider("two", {**SMALL, "usdPerHour": 9})
    named = nodes.claim(type_ref="two.small")
    short = nodes.claim(type_ref="small", provider_ref="two")
    nodes.schedule()
    assert {nodes.now(named).type_ref, nodes.now(short).type_ref} == {"two.small"}


def test_creation_refuses_type_of_other_provider(nodes: Nodes) -> None:
    nodes.provider("one", SMALL)
    nodes.provider("two", SMALL)
    with pytest.raises(InvalidInput, match=r"one\.small is not one of provider two") as refused:
        nodes.claim(type_ref="one.small", provider_ref="two")
    assert [problem.pointer for problem in refused.value.errors] == ["/type"]
    foreign = create_claim(nodes.services, NewClaim(type_ref="one.small", provider_ref="two", strict=False), "user:a")
    nodes.schedule()
    assert nodes.now(foreign).reason == "NoMatchingNodeType"


def test_creation_refuses_taken_name_and_exceeded_quota(nodes: Nodes) -> None:
    nodes.claim("one")
    with pytest.raises(InUse):
        nodes.claim("one")
    nodes.services.store.commit(Create(Quota("nodeclaims", 1, nodes.moment())))
    with pytest.raises(QuotaExceeded, match="nodeclaims limit of 1 would be exceeded"):
        nodes.claim("two")


@pytest.mark.parametrize("quota", ["nodeclaims", "per-user.nodeclaims.provider=lab"])
def test_plan_refuses_exceeded_quota_as_creation_does(nodes: Nodes, quota: str) -> None:
    nodes.provider("lab", SMALL)
    nodes.services.store.commit(Create(Quota(quota, 1, nodes.moment())))
    request = NewClaim(name="two", provider_ref="lab")
    check_creation(nodes.services, request, "user:ann")
    create_claim(nodes.services, NewClaim(name="one", provider_ref="lab"), "user:ann")
    refusals = []
    for refuse in (check_creation, create_claim):
        with pytest.raises(QuotaExceeded) as refused:
            refuse(nodes.services, request, "user:ann")
        refusals.append(str(refused.value))
    assert refusals[0] == refusals[1]


def test_plan_refuses_taken_name(nodes: Nodes) -> None:
    nodes.claim("one")
    with pytest.raises(InUse, match="There is a node claim called one"):
        check_creation(nodes.services, NewClaim(name="one"), "user:ann")
    check_creation(nodes.services, NewClaim(), "user:ann")


def test_repeated_request_creates_one_claim(nodes: Nodes) -> None:
    request = NewClaim(name="one")
    first = create_claim(nodes.services, request, "user:ann", "ncl_01ARZ3NDEKTSV4RRFFQ69G5FAV")
    assert create_claim(nodes.services, request, "user:ann", first.id) == first


def test_plan_names_type_and_price_and_writes_nothing(nodes: Nodes) -> None:
    nodes.provider("lab", SMALL, LARGE)
    plan = plan_claim(nodes.services, NewClaim(name="x", resources={"cpu": "4"}))
    assert [creation["name"] for creation in plan["creates"]] == ["x", "lab.large"]
    assert plan["price"]["hour"] == 0.4
    assert [rejection["detail"].partition(":")[0] for rejection in plan["rejected"]] == ["lab.small"]
    assert nodes.nothing_left()


def test_plan_of_a_claim_that_nothing_fits_has_no_price(nodes: Nodes) -> None:
    nodes.provider("lab", SMALL, LARGE)
    plan = plan_claim(nodes.services, NewClaim(name="x", resources={"cpu": "400"}))
    assert (plan["price"]["hour"], plan["price"]["complete"]) == (None, False)


def test_plan_for_provider_rejects_only_its_own_types(nodes: Nodes) -> None:
    nodes.provider("lab", SMALL, LARGE)
    nodes.provider("another", SMALL, LARGE)
    plan = plan_claim(nodes.services, NewClaim(name="x", provider_ref="lab", resources={"cpu": "4"}))
    assert [rejection["detail"].partition(":")[0] for rejection in plan["rejected"]] == ["lab.small"]


def test_creation_refuses_type_that_is_not_allowed(nodes: Nodes) -> None:
    from stockyard.operations.node_providers.allowed_types import set_allowed_types

    nodes.provider("lab", SMALL, LARGE)
    set_allowed_types(nodes.services, ["lab.large"], 0)
    with pytest.raises(InvalidInput, match="not allowed"):
        nodes.claim(type_ref="lab.small")
    claim = nodes.claim()
    nodes.schedule()
    assert nodes.now(claim).type_ref == "lab.large"
