"""Parts of a fingerprint, and facts that are no part of it; and what is said when it differs."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from stockyard.domain.records import NodeClaim, NodeProvider, Placement
from stockyard.lifecycle.nodes.drift import (
    PROPERTIES,
    TEMPLATE,
    TYPE,
    differences,
    fingerprint,
    note_drift,
    still_declared,
)
from stockyard.providers.nodes.ec2.catalogue import still_offers

NOW = "2026-01-01T00:00:00.000Z"
LATER = "2026-01-02T00:00:00.000Z"
SMALL: dict[str, Any] = {
    "name": "small",
    "resources": {"cpu": "2", "memory": "4Gi"},
    "properties": {"tier": "gold,silver", "vcluster.com/image": "an image: any text"},
    "zones": ["a", "b"],
    "usdPerHour": 0.1,
    "maxCapacity": 3,
}
CLAIM = NodeClaim("ncl_1", "one", NOW, NOW, node_labels={"tier": "gold", "team": "red"})
PLACED = Placement("npr_1", "lab.small", "on-demand", ("a",), 28, NOW)
EC2: dict[str, Any] = {
    "cloudAccount": 1,
    "region": "us-east-1",
    "capacityTypes": ["on-demand", "spot"],
    "instanceTypes": ["m5.*"],
    "image": "ami-1",
    "subnets": ["subnet-1"],
}
ON_EC2 = Placement("npr_1", "aws.m5.large", "spot", ("us-east-1a",), 28, NOW)


def provider(kind: str = "simulated", name: str = "lab", **fields: Any) -> NodeProvider:
    block = fields.pop("block", {"nodeTypes": [SMALL]})
    return NodeProvider("npr_1", name, kind, {kind: block}, NOW, NOW, **fields)


def changed(now: NodeProvider, *, before: NodeProvider, claim: NodeClaim = CLAIM, placed: Placement = PLACED) -> Any:
    launched = fingerprint(before, claim, placed, offered=True)
    return differences(launched, fingerprint(now, claim, placed, offered=_offered(now, placed)))


def _offered(now: NodeProvider, placed: Placement) -> bool:
    return (still_offers if now.kind == "ec2" else still_declared)(now, placed)


def small(**fields: Any) -> NodeProvider:
    entry = {key: value for key, value in {**SMALL, **fields}.items() if value is not None}
    return provider(block={"nodeTypes": [entry]})


def test_nothing_has_changed() -> None:
    assert changed(provider(), before=provider()) == ()


@pytest.mark.parametrize(
    "fields",
    [
        {"usdPerHour": 7},
        {"spotUsdPerHour": 0.01},
        {"cost": 5},
        {"maxCapacity": 1},
        {"displayName": "S"},
        {"metadata": {"labels": {"a": "b"}}},
        {"zones": ["c", "a"]},
        {"zones": ["*"]},
        {"resources": {"cpu": 2, "memory": "4096Mi"}},
        {"properties": {**SMALL["properties"], "tier": "silver,gold,iron"}},
        {"properties": {**SMALL["properties"], "tier": "*"}},
    ],
)
def test_what_makes_no_other_node_is_no_drift(fields: dict[str, Any]) -> None:
    assert changed(small(**fields), before=provider()) == ()


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ({"resources": {"cpu": "3", "memory": "4Gi"}}, TYPE),
        ({"overhead": {"kubeReserved": {"cpu": "100m"}}}, TYPE),
        ({"zones": ["b"]}, TYPE),
        ({"name": "tiny"}, TYPE),
        ({"properties": {**SMALL["properties"], "tier": "silver"}}, PROPERTIES),
        ({"properties": {**SMALL["properties"], "vcluster.com/image": "another: text"}}, PROPERTIES),
        ({"properties": {**SMALL["properties"], "more": "x"}}, PROPERTIES),
        ({"virtualMachineTemplate": {"spec": {}, "x": 1}}, TEMPLATE),
    ],
)
def test_what_makes_another_node_is_drift_for_that_reason(fields: dict[str, Any], reason: str) -> None:
    reasons = changed(small(**fields), before=provider())
    assert reason in reasons
    if fields.get("name") != "tiny":
        assert reasons == (reason,)
    assert changed(provider(), before=provider()) == (), "and undone it is none"


def test_a_capacity_type_that_is_withdrawn_is_drift_of_the_nodes_that_have_it() -> None:
    on_spot = replace(PLACED, capacity_type="spot")
    assert changed(provider(), before=small(spotUsdPerHour=0.05), placed=on_spot) == (TYPE,)
    assert changed(provider(), before=small(spotUsdPerHour=0.05)) == ()


def test_settings_of_launch_and_of_what_is_shown_are_no_template() -> None:
    for block in ({"launchSeconds": 9}, {"joinSeconds": "never"}, {"deploy": {"kubevirt": {"version": "2"}}}):
        assert changed(provider(block={"nodeTypes": [SMALL], **block}), before=provider()) == ()
    unchanged = provider(display_name="L", price_per_cost_unit=2.0, labels={"a": "b"}, annotations={"c": "d"})
    assert changed(unchanged, before=provider()) == ()


def test_the_claims_own_property_wins_so_that_the_providers_is_none() -> None:
    claim = replace(CLAIM, properties={"tier": "own", "team": "blue"}, node_labels={"tier": "own", "team": "blue"})
    before = provider(properties={"team": "red"})
    now = provider(properties={"team": "green"})
    assert changed(now, before=before, claim=claim) == ()
    assert changed(now, before=before) == (PROPERTIES,)


def test_a_types_property_wins_over_its_providers() -> None:
    assert changed(provider(properties={"tier": "none"}), before=provider()) == ()


def test_what_stockyard_sets_itself_is_no_property() -> None:
    properties = {
        "kubernetes.io/os": "windows",
        "topology.kubernetes.io/zone": "a",
        "karpenter.sh/capacity-type": "spot",
    }
    assert changed(provider(properties=properties), before=provider()) == ()


@pytest.mark.parametrize(
    ("fields", "reasons"),
    [
        ({"image": "ami-2"}, (TEMPLATE,)),
        ({"subnets": ["subnet-2"]}, (TEMPLATE,)),
        ({"securityGroups": ["sg-1"]}, (TEMPLATE,)),
        ({"instanceProfile": "p"}, (TEMPLATE,)),
        ({"cloudAccount": 2}, (TEMPLATE,)),
        ({"instanceTypes": ["c5.*"]}, (TYPE,)),
        ({"instanceTypes": ["c5.*", "m5.*"]}, ()),
        ({"capacityTypes": ["on-demand"]}, (TYPE,)),
        ({"capacityTypes": None}, (TYPE,)),
        ({"instanceTypes": None}, ()),
        ({"allocationStrategy": "diversified"}, ()),
        ({"image": "ami-2", "capacityTypes": ["on-demand"]}, (TYPE, TEMPLATE)),
        ({"nodeTypes": [{"name": "m5.large", "cost": 3, "maxCapacity": 1}]}, ()),
        ({"nodeTypes": [{"name": "m5.large", "properties": {"tier": "x"}}]}, (PROPERTIES,)),
        *(
            ({"nodeTypes": [{"name": "m5.large", "properties": {f"{key}/zone": "us-east-1b"}}]}, (TYPE,))
            for key in ("topology.kubernetes.io", "failure-domain.beta.kubernetes.io")
        ),
    ],
)
def test_a_provider_of_ec2(fields: dict[str, Any], reasons: tuple[str, ...]) -> None:
    claim = replace(CLAIM, node_labels={})
    block = {key: value for key, value in {**EC2, **fields}.items() if value is not None}
    before, now = provider("ec2", "aws", block=EC2), provider("ec2", "aws", block=block)
    assert changed(now, before=before, claim=claim, placed=ON_EC2) == reasons


def test_a_way_that_was_withdrawn_before_the_launch_is_no_drift_until_it_is_changed() -> None:
    withdrawn = small(zones=["b"])
    launched = fingerprint(withdrawn, CLAIM, PLACED, offered=True)
    assert (
        differences(launched, fingerprint(provider(), CLAIM, PLACED, offered=still_declared(provider(), PLACED))) == ()
    )
    assert differences(launched, fingerprint(withdrawn, CLAIM, PLACED, offered=still_declared(withdrawn, PLACED))) == (
        TYPE,
    )


@pytest.mark.parametrize("before", ["", "0:a:b:c", "1:a:b", "1:a:b:c:d"])
def test_a_fingerprint_of_other_rules_is_not_compared(before: str) -> None:
    assert differences(before, "1:x:y:z") == ()
    assert differences("1:x:q:r", "1:x:y:z") == (TEMPLATE, PROPERTIES)


def test_drift_is_said_once_by_its_first_reason_and_taken_back_once() -> None:
    there = replace(CLAIM, phase="Available")
    noted = note_drift(there, (TYPE, PROPERTIES), LATER)
    assert noted is not None
    drifted, event = noted
    (condition,) = drifted.conditions
    assert (condition.type, condition.status, condition.reason) == ("NotDrifted", "False", TYPE)
    assert condition.message == event.message == "Changed since the launch: type, properties."
    assert (event.before, event.after, event.reason) == ("Available", "Available", "Drifted")
    assert (drifted.version, drifted.updated_at) == (there.version + 1, LATER)
    assert note_drift(drifted, (TYPE, PROPERTIES), LATER) is None
    assert note_drift(drifted, (TYPE,), LATER) is not None
    back = note_drift(drifted, (), LATER)
    assert back is not None
    assert [(condition.status, condition.reason) for condition in back[0].conditions] == [("True", "AsLaunched")]
    assert back[1].reason == "AsLaunched"
    assert note_drift(back[0], (), LATER) is None
