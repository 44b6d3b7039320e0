"""Nodes that are replaced: with approval or without, by a change or for their own sake."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from stockyard.domain.values import times
from stockyard.errors import IllegalTransition
from stockyard.lifecycle.change_phases import CHANGE_BALANCED
from stockyard.lifecycle.phases import BALANCED, PROCEDURES
from stockyard.operations.clusters.changes.approval import decide_repave, repave_view
from stockyard.operations.clusters.changes.queue import enqueue
from stockyard.operations.clusters.changes.repaves import (
    certificates_view,
    plan_renewal,
    plan_repave,
    renew_certificates,
    start_repave,
)
from tests.unit.operations.clusters.balanced_world import USER, WEB, BalancedWorld, balanced_world

MEMBERS = "Replace or add members of the control plane one after the other; most of them serve all the time."
LABELLED: dict[str, Any] = {"settings": {"autoscaler_node_groups": [{**WEB, "labels": {"tier": "a"}}]}}


@pytest.fixture
def asking() -> BalancedWorld:
    """A cluster whose settings ask for approval."""
    return balanced_world(repave_approval="required")


def decide(balanced: BalancedWorld, approved: bool) -> dict[str, Any]:
    cluster = decide_repave(balanced.world.services, balanced.id, approved=approved, actor=USER)
    return repave_view(balanced.world.services, cluster)


def test_a_change_that_replaces_nodes_waits_for_approval(asking: BalancedWorld) -> None:
    names = sorted(claim.name for claim in asking.claims("web"))
    plan = asking.plan(LABELLED)
    assert plan["steps"][0] == "Wait for approval: The nodes of pool web are replaced."
    operation_id = asking.patch(LABELLED).operation_id
    view = repave_view(asking.world.services, asking.cluster)
    reason = {"code": "PoolChanged", "message": "The nodes of pool web are replaced.", "pool": "web"}
    assert view == {"state": "Pending", "reasons": [reason], "nodes": names, "operation_id": operation_id}
    meanwhile = asking.meanwhile

    def approved() -> None:
        if repave_view(asking.world.services, asking.cluster)["state"] == "Pending":
            assert {claim.name for claim in asking.claims("web")} == set(names), "nothing is replaced before"
            assert decide(asking, True)["state"] == "Approved"
        meanwhile()

    asking.meanwhile = approved
    assert asking.drive() == "changed"
    assert sorted(asking.replaced) == names
    assert repave_view(asking.world.services, asking.cluster)["nodes"] == []


def test_a_change_that_is_not_approved_is_taken_back(asking: BalancedWorld) -> None:
    before = asking.cluster
    operation_id = str(asking.patch({**LABELLED, "description": "other"}).operation_id)
    assert decide(asking, False)["state"] == "Reverted"
    cluster = asking.cluster
    assert (cluster.settings, cluster.kubernetes_version) == (before.settings, before.kubernetes_version)
    assert (cluster.status, cluster.phase, cluster.description) == ("ready", None, "other")
    operation = asking.operation_of(operation_id)
    assert (operation.status, operation.error) == ("reverted", None)
    assert asking.condition("Degraded") is None
    assert decide(asking, False)["state"] == "Reverted", "a second answer changes nothing"
    assert asking.drive() == "superseded"
    assert not asking.replaced
    assert asking.patch(LABELLED).operation_id != operation_id


def test_an_upgrade_that_is_not_approved_leaves_the_minor(asking: BalancedWorld) -> None:
    asking.patch({"kubernetes_version": "1.35"})
    assert repave_view(asking.world.services, asking.cluster)["reasons"][0]["code"] == "KubernetesVersionChanged"
    decide(asking, False)
    assert (asking.cluster.kubernetes_version, asking.cluster.node_minor) == ("1.34", "1.34")


def test_what_is_approved_cannot_be_taken_back(asking: BalancedWorld) -> None:
    asking.patch(LABELLED)
    decide(asking, True)
    assert decide(asking, True)["state"] == "Approved"
    with pytest.raises(IllegalTransition, match="Nothing waits"):
        decide(asking, False)


def test_what_replaces_nothing_asks_nobody(asking: BalancedWorld) -> None:
    asking.patch({"settings": {"api_cidrs": ["198.51.100.0/24"]}})
    assert repave_view(asking.world.services, asking.cluster)["state"] == "None"
    assert asking.drive() == "changed"
    with pytest.raises(IllegalTransition):
        decide(asking, True)


def test_nobody_is_asked_by_default() -> None:
    balanced = balanced_world()
    balanced.patch(LABELLED)
    assert repave_view(balanced.world.services, balanced.cluster)["state"] == "Approved"
    assert balanced.drive() == "changed"


def test_who_no_longer_wants_to_be_asked_says_so_first(asking: BalancedWorld) -> None:
    both = {"settings": {**LABELLED["settings"], "repave_approval": "automatic"}}
    asking.patch(both)
    assert repave_view(asking.world.services, asking.cluster)["state"] == "Pending"
    decide(asking, False)
    unasked = asking.patch({"settings": {"repave_approval": "automatic"}})
    assert unasked.operation_id == asking.operation.id, "the record alone"
    assert asking.operation.status == "reverted"
    asking.patch(LABELLED)
    assert repave_view(asking.world.services, asking.cluster)["state"] == "Approved"


def test_the_queue_goes_on_after_a_revert(asking: BalancedWorld) -> None:
    asking.patch(LABELLED)
    cidrs = {"settings": {"api_cidrs": ["198.51.100.0/24"]}}
    waiting = enqueue(asking.world.services, asking.id, cidrs, USER, "r")
    decide(asking, False)
    assert asking.cluster.operation_id == waiting.id


def test_every_node_is_replaced_on_request() -> None:
    balanced = balanced_world()
    services, names = balanced.world.services, sorted(claim.name for claim in balanced.claims("web"))
    balanced.world.clock.advance(60)
    plan = plan_repave(services, balanced.id)
    assert sorted(thing["name"] for thing in plan["deletes"]) == names
    assert plan["price"] == plan["price_before"]
    assert plan["steps"] == [MEMBERS, "Replace the nodes of every pool one by one, within its budgets."]
    started = start_repave(services, balanced.id, USER, "r")
    assert started.operation_id == balanced.operation.id
    with pytest.raises(IllegalTransition, match=str(started.operation_id)):
        start_repave(services, balanced.id, USER, "r")
    assert balanced.drive() == "changed"
    assert sorted(balanced.replaced) == names
    assert len(balanced.claims("web")) == 2


def test_certificates_are_renewed_where_members_are_replaced() -> None:
    balanced = balanced_world()
    services = balanced.world.services
    phases = tuple(phase for phase in CHANGE_BALANCED.phases if phase.name != "members")
    without = {**PROCEDURES, (CHANGE_BALANCED.kind, BALANCED): replace(CHANGE_BALANCED, phases=phases)}
    with pytest.raises(IllegalTransition, match="members of its control plane"):
        renew_certificates(replace(services, procedures=without), balanced.id, USER, "r")
    plan = plan_renewal(services, balanced.id)
    assert plan["steps"] == [MEMBERS]
    (change,) = plan["changes"]
    year = timedelta(days=365)
    assert change["after"] == times.to_text(balanced.world.clock.now() + year)
    # Workers stay, and cost what they do: the floor of two of them is in both prices.
    assert plan["price"] == plan["price_before"]
    assert any("of pool web" in item["name"] for item in plan["price"]["items"])
    renewed = renew_certificates(services, balanced.id, USER, "r")
    assert renewed.members_since
    assert renewed.nodes_since == "", "workers stay"
    view = certificates_view(services, balanced.cluster)
    assert (view["renewed_since"], view["operation_id"]) == (renewed.members_since, renewed.operation_id)
    assert repave_view(services, balanced.cluster)["reasons"][0]["code"] == "CertificatesRenewed"
