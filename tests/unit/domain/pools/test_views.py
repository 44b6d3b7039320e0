"""The pool of a control plane's members has its state, though no pass looks at it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from stockyard.domain.nodes.records import NodeClaim
from stockyard.domain.pools.records import CONTROL_PLANE, GROUP, Pool
from stockyard.domain.pools.views import pool_view

AT, LATER = "2026-11-28T10:00:00Z", "2026-11-28T10:05:00Z"
MEMBERS = Pool(
    id=f"clu_1/{CONTROL_PLANE}",
    cluster_id="clu_1",
    name=CONTROL_PLANE,
    created_at=AT,
    updated_at=AT,
    form=CONTROL_PLANE,
    quantity=3,
)


def members(*phases: str, **fields: Any) -> list[NodeClaim]:
    return [
        NodeClaim(id=f"nc_{n}", name=f"m{n}", created_at=AT, updated_at=LATER, phase=phase, **fields)
        for n, phase in enumerate(phases)
    ]


def ready(*claims: NodeClaim) -> tuple[str, str, str, str]:
    (condition,) = pool_view(MEMBERS, claims)["conditions"]
    assert condition["type"] == "Ready"
    return condition["status"], condition["reason"], condition["message"], condition["last_transition_time"]


def test_a_pool_names_the_node_group_that_it_is_of() -> None:
    stands_on = replace(MEMBERS, document={"group": "master"})
    of_workers = replace(MEMBERS, name="web", form=GROUP)
    own = replace(MEMBERS, name="web", form="stockyard", document={"group": "master"})
    assert [pool_view(pool, ())["group"] for pool in (MEMBERS, stands_on, of_workers, own)] == [
        None,
        "master",
        "web",
        None,
    ]


def test_the_state_of_members_follows_from_their_claims() -> None:
    available = members(*["Available"] * 3)
    assert ready(*available) == ("True", "Satisfied", "3 of 3 members are available.", LATER)
    lacking = ("False", "Scaling", "2 of 3 members are available.", LATER)
    assert ready(*available[:2]) == lacking
    assert ready(*members("Available", "Available", "Pending")) == lacking
    assert ready(*available, *members("Available", deleting=True))[:2] == ("False", "Scaling")
    nodes = pool_view(MEMBERS, [*available, *members("Available", deleting=True)])["nodes"]
    assert (nodes["claims"], nodes["leaving"]) == (3, 1)
    assert ready() == ("False", "Scaling", "0 of 3 members are available.", AT)
