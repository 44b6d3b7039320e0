"""The life of a node claim from creation to deletion, on the cheapest type that fits, and its failures."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from stockyard.domain.records import Event, Name, NodeClaim, NodeEnvironment, Refusal
from stockyard.errors import (
    IllegalTransition,
    NotFound,
    VendorRefused,
    VendorUnavailable,
)
from stockyard.operations.engine.advance import WORKFLOW_ACTOR
from stockyard.operations.fleet.explain import explain_claim
from stockyard.operations.listing import every
from stockyard.operations.node_claims.change import change_claim
from stockyard.operations.node_claims.delete import delete_claim
from stockyard.operations.node_claims.power import plan_power, power_claim
from stockyard.ports import Replace
from tests.unit.operations.conftest import World
from tests.unit.operations.nodes import Nodes

SMALL: dict[str, Any] = {"name": "small", "resources": {"cpu": "2", "memory": "4Gi"}, "usdPerHour": 0.1}
LARGE: dict[str, Any] = {"name": "large", "resources": {"cpu": "8", "memory": "32Gi"}, "usdPerHour": 0.4}


@pytest.fixture
def nodes(world: World) -> Nodes:
    return Nodes.of(world.registry, world.services, world.clock)


def _conditions(claim: NodeClaim) -> dict[str, str]:
    return {condition.type: condition.status for condition in claim.conditions}


def _events(nodes: Nodes, claim: NodeClaim) -> list[str]:
    events = [event for event in every(nodes.services.store, Event) if event.subject == claim.id]
    return [event.reason for event in sorted(events, key=lambda event: event.sequence)]


def test_claim_becomes_available_and_is_deleted(nodes: Nodes) -> None:
    provider = nodes.provider("lab", {**SMALL, "maxCapacity": 2}, LARGE, block={"launchSeconds": 5, "joinSeconds": 30})
    claim = nodes.claim("one", resources={"cpu": "1"})
    assert (claim.phase, claim.reason) == ("Pending", "Pending")
    assert nodes.schedule() == {"bound": 1, "waiting": 0, "lost": 0, "left": 0}
    bound = nodes.now(claim)
    assert bound.type_ref == "lab.small"
    assert bound.placement is not None
    assert bound.placement.counted
    assert nodes.used(provider, "small") == 1
    started = nodes.clock.now()
    assert nodes.relay() == ["available"]
    there = nodes.now(claim)
    assert there.phase == "Available"
    assert there.node_name == "one.simulated"
    assert _conditions(there) == {"Scheduled": "True", "Provisioned": "True", "Joined": "True", "NotDrifted": "True"}
    assert 35 <= (nodes.clock.now() - started).total_seconds() <= 36
    operation = nodes.operation(there)
    assert operation.status == "succeeded"
    assert {phase.state for phase in operation.phases} == {"succeeded"}
    assert _events(nodes, claim) == ["Accepted", "Scheduled", "Provisioned", "Joined", "Available"]
    assert len(nodes.machines()) == 1
    deleted = nodes.delete(claim)
    assert deleted.deleting
    assert nodes.delete(claim).operation_id == deleted.operation_id
    assert nodes.relay() == ["gone"]
    assert nodes.nothing_left()
    assert nodes.services.store.get(Name, "node-claim/one") is None
    with pytest.raises(NotFound):
        nodes.delete(claim)


def test_claims_take_cheapest_type_then_next(nodes: Nodes) -> None:
    nodes.provider("dear", {**SMALL, "usdPerHour": 0.2})
    nodes.provider("cheap", {**SMALL, "usdPerHour": 0.1, "maxCapacity": 2})
    claims = [nodes.claim(f"c{i}", resources={"cpu": "1"}) for i in range(3)]
    assert nodes.schedule()["bound"] == 3
    assert [nodes.now(claim).type_ref for claim in claims] == ["cheap.small", "cheap.small", "dear.small"]
    explanation = explain_claim(nodes.services, claims[2].id)
    verdicts = {
        candidate["type"]: (candidate["usd_hour"], candidate["rule"]) for candidate in explanation["candidates"]
    }
    assert verdicts == {"dear.small": (0.2, None), "cheap.small": (0.1, "Full")}
    assert explanation["chosen"]["type"] == "dear.small"
    assert explanation["considered"] == {"Fits": 1, "Full": 1}


def test_unplaceable_claim_explains_and_is_placed_later(nodes: Nodes) -> None:
    nodes.provider("lab", SMALL, {**LARGE, "maxCapacity": 0})
    claim = nodes.claim(resources={"cpu": "4"})
    assert nodes.schedule() == {"bound": 0, "waiting": 1, "lost": 0, "left": 0}
    waits = nodes.now(claim)
    assert waits.reason == "NoCapacity"
    assert "1 node type without enough cpu" in waits.message
    assert "1 node type with all nodes taken" in waits.message
    before = waits.version
    assert nodes.schedule()["waiting"] == 1
    assert nodes.now(claim).version == before, "what was said is not written again"
    nodes.provider("more", LARGE)
    assert nodes.schedule()["bound"] == 1
    assert nodes.now(claim).type_ref == "more.large"


def test_freed_capacity_goes_to_older_claim(nodes: Nodes) -> None:
    nodes.provider("lab", {**SMALL, "maxCapacity": 1})
    first, second = nodes.claim("first"), nodes.claim("second")
    nodes.schedule()
    nodes.relay()
    assert nodes.now(second).reason == "NoCapacity"
    nodes.delete(first)
    nodes.relay()
    third = nodes.claim("third")
    nodes.schedule(third)
    assert nodes.now(second).type_ref == "lab.small"
    assert nodes.now(third).reason == "NoCapacity"


def test_priority_precedes_age(nodes: Nodes) -> None:
    nodes.provider("lab", {**SMALL, "maxCapacity": 1})
    old, urgent = nodes.claim("old"), nodes.claim("urgent", priority=10)
    nodes.schedule()
    assert nodes.now(urgent).type_ref == "lab.small"
    assert nodes.now(old).reason == "NoCapacity"


def test_refused_offering_is_avoided_for_some_minutes(nodes: Nodes) -> None:
    cheap = nodes.provider("cheap", {**SMALL, "maxCapacity": 5})
    nodes.provider("dear", {**SMALL, "usdPerHour": 0.2})
    nodes.refused.add(("cheap", "small", "global"))
    claim = nodes.claim()
    nodes.schedule()
    assert nodes.relay() == ["superseded"]
    again = nodes.now(claim)
    assert (again.phase, again.reason, again.attempt) == ("Pending", "InsufficientCapacity", 2)
    assert nodes.used(cheap, "small") == 0
    assert [refusal.id for refusal in nodes.registry.platform().list(Refusal).items] == [
        f"provider/{cheap.id}/small/on-demand/global"
    ]
    nodes.schedule()
    assert nodes.relay() == ["available"]
    assert nodes.now(claim).type_ref == "dear.small"
    second = nodes.claim("other")
    nodes.schedule()
    assert nodes.now(second).type_ref == "dear.small", "the memory is everybody's"
    nodes.clock.advance(200)
    nodes.refused.clear()
    late = nodes.claim("late")
    nodes.schedule()
    assert nodes.now(late).type_ref == "cheap.small", "it is forgotten after some minutes"


def test_claim_with_refused_launch_can_be_deleted(nodes: Nodes) -> None:
    nodes.provider("lab", {**SMALL, "maxCapacity": 1})
    nodes.refused.add(("lab", "small", "global"))
    claim = nodes.claim()
    nodes.schedule()
    nodes.relay()
    nodes.delete(claim)
    assert nodes.relay() == ["gone"]
    assert nodes.nothing_left()


def test_launch_uses_next_option_after_refusal(nodes: Nodes) -> None:
    provider = nodes.provider("lab", {**SMALL, "maxCapacity": 1}, LARGE)
    nodes.refused.add(("lab", "small", "global"))
    claim = nodes.claim()
    nodes.schedule()
    assert nodes.relay() == ["available"]
    assert nodes.now(claim).type_ref == "lab.large"
    assert nodes.used(provider, "small") == 0, "the place it did not take is free again"
    nodes.delete(claim)
    nodes.relay()
    assert nodes.nothing_left()


def test_machine_that_never_joins_fails_claim_and_is_removed(nodes: Nodes) -> None:
    nodes.provider("lab", {**SMALL, "maxCapacity": 1}, block={"joinSeconds": "never"})
    claim = nodes.claim()
    nodes.schedule()
    assert nodes.relay() == ["not_provisioned"]
    failed = nodes.now(claim)
    assert (failed.phase, failed.reason) == ("Failed", "NodeCouldNotBeProvisioned")
    assert "register did not finish within 900 s" in failed.message
    assert nodes.machines() == []
    assert nodes.operation(failed).error is not None
    nodes.delete(claim)
    assert nodes.relay() == ["gone"]
    assert nodes.nothing_left()


def test_machine_that_takes_longer_than_the_stage_allows_joins_within_its_providers_limit(nodes: Nodes) -> None:
    nodes.provider("lab", SMALL, block={"launchSeconds": 600, "joinSeconds": 3000})
    claim = nodes.claim()
    nodes.schedule()
    assert nodes.relay() == ["available"]
    assert nodes.now(claim).node_name


def cause_type(nodes: Nodes, claim: NodeClaim) -> str:
    """The name of the error that made the claim's operation fail."""
    error = nodes.operation(nodes.now(claim)).error
    assert error is not None
    return error.cause_type


def test_transient_failures_are_retried_and_final_ones_fail(nodes: Nodes) -> None:
    nodes.provider("lab", SMALL)
    claim = nodes.claim()
    nodes.errors["launch"] = [VendorUnavailable("busy"), VendorUnavailable("busy")]
    nodes.schedule()
    assert nodes.relay() == ["available"]
    second = nodes.claim()
    nodes.errors["launch"] = [VendorRefused("no such image")]
    nodes.schedule()
    assert nodes.relay() == ["not_provisioned"]
    assert nodes.now(second).message == "no such image"
    assert cause_type(nodes, second) == "VendorRefused"
    nodes.errors["terminate"] = [VendorRefused("not allowed")]
    nodes.delete(claim)
    assert nodes.relay() == ["blocked"]
    blocked = nodes.now(claim)
    assert cause_type(nodes, claim) == "VendorRefused"
    assert len(blocked.remaining) == 1
    assert _conditions(blocked)["Destroyed"] == "False"
    assert delete_claim(nodes.services, claim.id, WORKFLOW_ACTOR) == blocked, "a workflow has mended nothing"
    nodes.delete(claim)
    assert nodes.relay() == ["gone"]


def test_a_type_whose_launch_is_refused_again_and_again_is_left_out_for_longer_each_time(nodes: Nodes) -> None:
    """A pod that fits on it alone waits three minutes at first; where other types can be had, their turn comes."""
    nodes.provider("lab", SMALL, LARGE)
    source: Any = nodes.services.node_sources["simulated"]
    launch = source.launch

    def refusing(work: Any) -> Any:
        if work.claim.type_ref == "lab.small":
            raise VendorRefused("not here")
        return launch(work)

    source.launch = refusing
    placed = []
    for seconds in (0, 170, 20, 340, 40):
        nodes.clock.advance(seconds)
        claim = nodes.claim()
        nodes.schedule()
        placed.append(nodes.now(claim).type_ref.removeprefix("lab."))
        nodes.relay()
    assert placed == ["small", "large", "small", "large", "small"]


def test_claim_can_be_created_switched_off(nodes: Nodes) -> None:
    nodes.provider("lab", SMALL)
    claim = nodes.claim(power="Off")
    nodes.schedule()
    assert nodes.relay() == ["available"]
    assert nodes.now(claim).power_observed == "Off"
    assert [machine.power for machine in nodes.machines()] == ["Off"]
    with pytest.raises(IllegalTransition, match="POST /power"):
        change_claim(nodes.services, claim.id, nodes.now(claim).version, {"power": "On"}, "user:ann", "r")
    nodes.delete(claim)
    nodes.relay()
    assert nodes.nothing_left()


def test_power_is_switched_and_failure_is_reported(nodes: Nodes) -> None:
    nodes.provider("lab", SMALL)
    claim = nodes.claim()
    with pytest.raises(IllegalTransition, match="is Pending"):
        power_claim(nodes.services, claim.id, "Off", "user:ann")
    with pytest.raises(IllegalTransition, match="is Pending"):
        plan_power(nodes.services, nodes.now(claim), "Off", "user:ann")
    nodes.schedule()
    nodes.relay()
    before = nodes.now(claim)
    plan = plan_power(nodes.services, before, "Off", "user:ann")
    assert plan["verdict"] == f"The machine of node claim {claim.name} would be switched off."
    assert [warning["pointer"] for warning in plan["warnings"]] == ["/state"]
    assert plan_power(nodes.services, before, "Reboot", "user:ann")["warnings"] == []
    assert nodes.now(claim) == before, "a plan changes nothing"
    off = power_claim(nodes.services, claim.id, "Off", "user:ann")
    repeated_plan = plan_power(nodes.services, nodes.now(claim), "Off", "user:ann")
    assert repeated_plan == {"verdict": f"Operation {off.operation_id} does so already."}
    assert power_claim(nodes.services, claim.id, "Off", "user:ann").operation_id == off.operation_id
    with pytest.raises(IllegalTransition, match="still at work"):
        power_claim(nodes.services, claim.id, "On", "user:ann")
    assert nodes.relay() == ["switched"]
    assert (nodes.now(claim).power, nodes.now(claim).power_observed) == ("Off", "Off")
    assert [machine.power for machine in nodes.machines()] == ["Off"]
    power_claim(nodes.services, claim.id, "Reboot", "user:ann")
    nodes.errors["power"] = [VendorRefused("no such machine")]
    assert nodes.relay() == ["not_switched"]
    failed = nodes.operation(nodes.now(claim))
    assert failed.error is not None
    assert (failed.status, failed.error.cause, nodes.now(claim).phase) == ("failed", "no such machine", "Available")
    assert failed.error.cause_type == "VendorRefused"
    nodes.delete(claim)
    nodes.relay()
    assert nodes.nothing_left()


def test_unplaced_claim_is_deleted_at_once(nodes: Nodes) -> None:
    claim = nodes.claim("lonely")
    deleted = nodes.delete(claim)
    assert nodes.services.store.get(NodeClaim, claim.id) is None
    assert nodes.operation(deleted).status == "succeeded"
    assert nodes.relay() == []
    assert nodes.nothing_left()
    assert _events(nodes, claim)[-1] == "Deleted"


def test_deletion_during_launch_leaves_nothing(nodes: Nodes) -> None:
    nodes.provider("lab", {**SMALL, "maxCapacity": 1}, block={"joinSeconds": 600})
    claim = nodes.claim()
    nodes.schedule()
    bound = nodes.now(claim)
    payload = {"tenant": "acme", "claim_id": claim.id, "operation_id": bound.operation_id, "attempt": 1}
    assert nodes.run("provision_node", payload, most=2).startswith("still at register")
    assert len(nodes.machines()) == 1
    nodes.delete(claim)
    assert nodes.run("provision_node", payload) == "superseded"
    assert "gone" in nodes.relay()
    assert nodes.nothing_left()


def test_two_schedulers_bind_a_claim_once(nodes: Nodes) -> None:
    provider = nodes.provider("lab", {**SMALL, "maxCapacity": 3})
    claims = [nodes.claim() for _ in range(3)]
    assert nodes.schedule(*claims)["bound"] == 3
    # A second one with the records as the stream showed them, twice and in another order.
    stale = [*reversed(claims), *claims]
    assert (
        nodes.schedule(*stale) == {"bound": 0, "waiting": 3, "lost": 0, "left": 0} or nodes.used(provider, "small") == 3
    )
    assert nodes.used(provider, "small") == 3
    assert {nodes.now(claim).type_ref for claim in claims} == {"lab.small"}


def test_waiting_claim_has_reason(nodes: Nodes) -> None:
    nodes.provider("iron", {"name": "box", "resources": {"cpu": 2, "memory": "4Gi"}}, kind="clusterAPI")
    unbuilt = nodes.claim("unbuilt", provider_ref="iron")
    nowhere = nodes.claim("nowhere", provider_ref="ghost", cluster_ref="no-such", strict=False)
    orphan = nodes.claim("orphan", provider_ref="ghost", strict=False)
    nodes.schedule()
    assert nodes.now(unbuilt).reason == "ProviderNotAvailable"
    assert nodes.now(nowhere).reason == "ClusterNotFound"
    assert nodes.now(orphan).reason == "ProviderNotFound"
    anywhere = nodes.claim("anywhere")
    nodes.schedule()
    assert nodes.now(anywhere).reason == "NoMatchingNodeType"


def test_first_claim_of_cluster_creates_environment(nodes: Nodes, world: World) -> None:
    nodes.provider("lab", SMALL)
    cluster = world.create()
    early = nodes.claim(cluster_ref="demo")
    nodes.schedule()
    assert nodes.now(early).reason == "ClusterNotReady"
    ready = replace(world.cluster(cluster), status="ready", version=world.cluster(cluster).version + 1)
    world.services.store.commit(Replace(ready))
    later = nodes.claim(cluster_ref=cluster.id)
    nodes.schedule()
    nodes.relay()
    environments = list(every(nodes.services.store, NodeEnvironment))
    assert [(environment.cluster_id, environment.phase) for environment in environments] == [(cluster.id, "Available")]
    assert {nodes.now(early).environment_ref, nodes.now(later).environment_ref} == {environments[0].id}


def test_claim_older_than_its_cluster_belongs_to_it_once_placed(nodes: Nodes, world: World) -> None:
    nodes.provider("lab", SMALL)
    early = nodes.claim(cluster_ref="demo", strict=False)
    assert early.cluster_id == ""
    nodes.schedule()
    assert nodes.now(early).reason == "ClusterNotFound"
    cluster = world.create()
    assert world.drive(cluster, "provision_cluster") == "ready"
    nodes.schedule()
    nodes.relay()
    there = nodes.now(early)
    assert (there.phase, there.cluster_id) == ("Available", cluster.id)
    assert [environment.cluster_id for environment in every(nodes.services.store, NodeEnvironment)] == [cluster.id]
