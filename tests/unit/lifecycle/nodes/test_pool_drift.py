"""Differences between a node and a new node of its pool that are drift, and others that are not."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from stockyard.domain.pools.records import Pool
from stockyard.domain.records import NodeClaim, Placement
from stockyard.domain.values.requirements import Requirements
from stockyard.lifecycle.nodes import drift
from stockyard.lifecycle.nodes.pool_drift import (
    NODE_POOL,
    REASONS,
    REQUIREMENTS,
    pool_drift,
    requirements_drifted,
    template_hash,
)

NOW, LATER = "2026-01-01T00:00:00.000Z", "2026-01-02T00:00:00.000Z"
ZONE, NAME = "topology.kubernetes.io/zone", "node.kubernetes.io/instance-type"
POOL = Pool(
    id="c/web",
    cluster_id="c",
    name="web",
    created_at=NOW,
    updated_at=NOW,
    kind="dynamic",
    provider_ref="aws",
    requirements=({"key": ZONE, "operator": "In", "values": ["a", "b"]},),
    taints=({"key": "t", "value": "v", "effect": "NoSchedule"}, {"key": "s", "effect": "NoExecute"}),
    expire_after="720h",
    termination_grace_period="Never",
)


def claim(pool: Pool = POOL, **fields: Any) -> NodeClaim:
    launch = {"pool_generation": pool.generation, "pool_hash": template_hash(pool), "requirements": pool.requirements}
    labels = {ZONE: "a", NAME: "t3.large", "vcluster.com/node-type": "aws.t3.large"}
    placement = Placement("npr_1", "aws.t3.large", "on-demand", ("a",), 1, NOW)
    return NodeClaim("ncl_1", "web-1", NOW, NOW, **{"node_labels": labels, "placement": placement, **launch, **fields})


def reasons(changed: Pool, of: NodeClaim | None = None) -> tuple[str, ...]:
    pool = replace(changed, generation=2)
    return pool_drift(pool, Requirements.of(pool.requirements), template_hash(pool), of or claim())


@pytest.mark.parametrize(
    "change",
    [
        {"labels": {"a": "b"}},
        {"annotations": {"a": "b"}},
        {"taints": ()},
        {"taints": ({**POOL.taints[0], "value": "w"}, POOL.taints[1])},
        {"startup_taints": ({"key": "s", "effect": "NoSchedule"},)},
        {"kubelet_args": {"max-pods": "50"}},
        {"expire_after": "24h"},
        {"termination_grace_period": "5m"},
        {"provider_ref": "sim"},
        {"properties": {"image": "i"}},
        {"document": {"nodeClassRef": {"name": "other"}}},
    ],
)
def test_a_change_of_the_template_is_drift(change: dict[str, Any]) -> None:
    assert reasons(replace(POOL, **change)) == (NODE_POOL,)


@pytest.mark.parametrize(
    "change",
    [
        {"limits": {"nodes": "3"}},
        {"weight": 9},
        {"quantity": 4},
        {"floor": 4},
        {"headroom": {"cpu": "1"}},
        {"disruption": {"budgets": [{"nodes": "0"}]}},
        {"document": {"profile": "p", "metadata": {"labels": {"a": "b"}}}},
        {"kind": "static"},
        {"taints": tuple({**taint, "value": taint.get("value", "")} for taint in reversed(POOL.taints))},
        {"expire_after": "43200m"},
        {"termination_grace_period": ""},
        {"requirements": ({"key": ZONE, "operator": "In", "values": ["a", "c"]},)},
    ],
)
def test_what_makes_no_other_node_is_no_drift(change: dict[str, Any]) -> None:
    assert reasons(replace(POOL, **change)) == ()


@pytest.mark.parametrize("pool_hash", ["", "0:0123456789abcdef", "1"])
def test_a_claim_without_a_hash_of_these_rules_is_not_compared(pool_hash: str) -> None:
    expected = (NODE_POOL,) if pool_hash == "1" else ()
    assert reasons(replace(POOL, labels={"a": "b"}), claim(pool_hash=pool_hash)) == expected


@pytest.mark.parametrize(
    ("requirement", "expected"),
    [
        ({"key": ZONE, "operator": "In", "values": ["b"]}, True),
        ({"key": ZONE, "operator": "NotIn", "values": ["b"]}, False),
        ({"key": ZONE, "operator": "DoesNotExist"}, True),
        ({"key": "tier", "operator": "Exists"}, True),
        ({"key": "tier", "operator": "NotIn", "values": ["gold"]}, False),
        ({"key": "tier", "operator": "DoesNotExist"}, False),
        ({"key": "size", "operator": "Gt", "values": ["3"]}, True),
        # A type may be spelled with its provider or without.
        ({"key": NAME, "operator": "In", "values": ["aws.t3.large"]}, False),
        ({"key": NAME, "operator": "In", "values": ["t3.large"]}, False),
        ({"key": "vcluster.com/node-type", "operator": "In", "values": ["t3.large"]}, False),
        ({"key": NAME, "operator": "NotIn", "values": ["aws.t3.large"]}, True),
        ({"key": NAME, "operator": "NotIn", "values": ["t3.small"]}, False),
        ({"key": NAME, "operator": "In", "values": ["t3.small"]}, True),
    ],
)
def test_a_requirement_that_the_labels_break_is_drift(requirement: dict[str, Any], expected: bool) -> None:
    assert reasons(replace(POOL, requirements=(requirement,))) == ((REQUIREMENTS,) if expected else ())


def test_what_the_node_was_chosen_by_is_no_drift_though_no_label_tells_of_it() -> None:
    requirement = {"key": "gpu", "operator": "Exists"}
    narrower = {"key": "gpu", "operator": "In", "values": ["a100"]}
    under_it = claim(replace(POOL, requirements=(requirement,)))
    assert reasons(replace(POOL, requirements=(requirement,)), under_it) == ()
    assert reasons(replace(POOL, requirements=(narrower,)), under_it) == (REQUIREMENTS,)
    packed = replace(under_it, requirements=(requirement, narrower))
    assert reasons(replace(POOL, requirements=(narrower,)), packed) == ()
    same_generation = replace(POOL, requirements=(narrower,))
    current = template_hash(same_generation)
    assert pool_drift(same_generation, Requirements.of((narrower,)), current, under_it) == ()


def test_requirements_are_strict() -> None:
    requirement = Requirements.of(
        [{"key": "a", "operator": "Exists"}, {"key": "b", "operator": "NotIn", "values": ["x"]}]
    )
    assert not requirements_drifted(requirement, {"a": "1"})
    assert requirements_drifted(requirement, {"b": "y"})
    assert requirements_drifted(requirement, {"a": "1", "b": "x"})


def test_reasons_of_the_pool_and_of_the_provider_do_not_take_each_other_back() -> None:
    def drift_of(of: NodeClaim) -> tuple[str, ...]:
        (condition,) = of.conditions
        return condition.status, condition.reason, condition.message.removeprefix("Changed since the launch: ")

    def noted(of: NodeClaim, changed: tuple[str, ...], compared: tuple[str, ...]) -> NodeClaim:
        result = drift.note_drift(of, changed, LATER, compared)
        assert result is not None
        assert drift.note_drift(result[0], changed, LATER, compared) is None
        return result[0]

    by_pool = noted(claim(), (NODE_POOL, REQUIREMENTS), REASONS)
    assert drift_of(by_pool) == ("False", NODE_POOL, "the pool's template, the pool's requirements.")
    assert drift.note_drift(by_pool, (), LATER) is None, "the provider has nothing to add"
    by_both = noted(by_pool, (drift.TYPE,), drift.REASONS)
    assert drift_of(by_both) == ("False", "TypeChanged", "type, the pool's template, the pool's requirements.")
    by_provider = noted(by_both, (), REASONS)
    assert drift_of(by_provider) == ("False", "TypeChanged", "type.")
    by_none = noted(by_provider, (), drift.REASONS)
    assert drift_of(by_none)[:2] == ("True", "AsLaunched")


def test_an_older_claim_keeps_what_its_provider_said() -> None:
    result = drift.note_drift(claim(), (drift.TEMPLATE,), LATER)
    assert result is not None
    older = replace(result[0], drift_reasons=())
    assert drift.note_drift(older, (), LATER, REASONS) is None
    assert drift.note_drift(older, (drift.TEMPLATE,), LATER) is None
    taken_back = drift.note_drift(older, (), LATER)
    assert taken_back is not None
    assert taken_back[1].reason == drift.AS_LAUNCHED
