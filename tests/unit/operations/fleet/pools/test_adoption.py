"""Nodes that a group makes by itself become claims: the first ones, and those that replace machines that died.

The source is the real one of node groups, with an account in memory; the cluster's agent is played by the test.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from stockyard.domain.records import MachineHold, Outbox, Quota
from stockyard.operations.fleet.pools.adoption import missing_claims
from stockyard.operations.listing import every
from stockyard.operations.machines.unclaimed import DETAIL_TYPE
from stockyard.operations.node_claims import lost_machines
from stockyard.ports import Put
from tests.harness.worlds.node_group_story import Story, node_group_story

SCHEMA = Draft202012Validator(
    json.loads((Path(__file__).parents[5] / "docs/events/UnclaimedNodes.json").read_text(encoding="utf-8"))
)


@pytest.fixture
def story() -> Iterator[Story]:
    with node_group_story() as story:
        yield story


def test_first_nodes_of_a_cluster_become_claims_and_no_more_are_made(story: Story) -> None:
    group = story.pool(least=1, size=3)
    machines = story.groups.members(group)
    story.settle()
    claims = story.claims()
    assert sorted(claim.machine_id for claim in claims) == sorted(machines)
    assert {claim.phase for claim in claims} == {"Available"}
    assert story.groups.size(group) == 3
    for claim in claims:
        assert story.labels[claim.node_name]["stockyard.dev/claim"] == claim.id
        assert story.labels[claim.node_name]["stockyard.dev/pool"] == "workers"
    reasons = [story.yard.reasons(claim.id)[0] for claim in claims]
    assert sorted(reasons) == ["Accepted", "Adopted", "Adopted"], "one is the floor's"
    assert story.unclaimed() == "{}"


def test_nothing_is_written_while_nothing_changes(story: Story, monkeypatch: pytest.MonkeyPatch) -> None:
    story.pool(least=1, size=2)
    story.settle()
    story.yard.nodes.clock.advance(4000)
    story.post()
    writes: list[Any] = []
    store = type(story.yard.nodes.services.store)
    monkeypatch.setattr(store, "commit", lambda _store, *batch: writes.extend(batch))
    assert story.post() == 300
    assert writes == []


def test_a_machine_that_the_group_replaced_is_lost_and_its_replacement_adopted(story: Story) -> None:
    group = story.pool(least=1, size=1)
    story.settle()
    (first,) = story.claims()
    story.groups.scaling.terminate_instance_in_auto_scaling_group(
        InstanceId=first.machine_id, ShouldDecrementDesiredCapacity=False
    )
    assert lost_machines.note(story.yard.nodes.services, first.id)
    story.settle()
    (second,) = story.claims()
    assert (second.id != first.id, [second.machine_id]) == (True, story.groups.members(group))
    holds = list(every(story.yard.nodes.services.store, MachineHold))
    assert [(hold.machine_id, hold.claim_id) for hold in holds] == [(second.machine_id, second.id)]


def test_claims_that_wait_take_machines_before_others_are_made(story: Story) -> None:
    story.pool(size=2)
    story.post()
    story.yard.look()
    assert len(story.claims()) == 2
    story.yard.look()
    assert len(story.claims()) == 2, "the agent has not come again yet"
    assert story.unclaimed() != "{}"


def test_adoption_stays_within_the_limit_of_the_pool(story: Story) -> None:
    story.pool(most=2, size=2)
    extra = [story.node(f"i-{number}", f"ip-{number}") for number in range(4)]
    story.post(extra)
    story.yard.look()
    assert len(story.claims()) == 2
    pool, claims = story.yard.now(), story.claims()
    assert missing_claims(pool, claims, 9) == 0
    assert missing_claims(pool, [], 1) == 1


def test_a_quota_that_is_used_up_is_said_by_the_pool(story: Story) -> None:
    story.pool(size=3)
    story.yard.nodes.services.store.commit(Put(Quota("nodeclaims", 1, story.yard.nodes.services.now())))
    story.post()
    story.yard.look()
    assert len(story.claims()) == 1, "the one that fits is made"
    status, reason, message = story.yard.condition(story.yard.now())
    assert (status, reason) == ("False", "QuotaExceeded")
    assert message.endswith("2 machines of the pool run without a claim.")


def test_node_of_another_name_or_machine_does_not_pass_for_a_claims(story: Story) -> None:
    """Whoever may label nodes, or make some, must not take a claim's place."""
    story.pool(size=1)
    story.post()
    story.yard.look()
    story.yard.nodes.schedule()
    (claim,) = story.claims()

    def impostors() -> None:
        current = story.yard.nodes.now(claim)
        if not current.machine_id:
            story.post([])
            return
        labelled = story.node(current.machine_id, "ip-10-9-9-9")
        labelled["claim"] = claim.id
        story.post([labelled, story.node("i-0000000000000bad0", current.host_name)])

    story.yard.nodes.meanwhile = impostors
    bound = story.yard.nodes.now(claim)
    payload = {"tenant": "acme", "claim_id": claim.id, "operation_id": bound.operation_id, "attempt": bound.attempt}
    assert story.yard.nodes.run("provision_node", payload, most=30).startswith("still at register")
    story.yard.nodes.meanwhile = story.come
    assert story.yard.nodes.run("provision_node", payload) == "available"


def test_an_event_wakes_the_passes_when_a_group_has_made_nodes_and_only_then(story: Story) -> None:
    story.pool(size=2)
    story.post()
    services = story.yard.nodes.services
    (event,) = [item for item in every(services.store, Outbox) if item.payload.get("detail_type") == DETAIL_TYPE]
    SCHEMA.validate(event.payload["detail"])
    assert event.payload["detail"]["nodes"] == 2
    story.post()
    count = [item.payload.get("detail_type") for item in every(services.store, Outbox)].count(DETAIL_TYPE)
    assert count == 1, "the same nodes wake nobody again"
