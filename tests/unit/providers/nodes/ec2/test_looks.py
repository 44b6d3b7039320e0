"""A cluster's machines that boot are looked at together, and what is gone is never taken from an old list."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from stockyard.operations.node_claims.phases import FIRST_LOOK, LOOK_AGAIN, LOOK_LATE
from stockyard.providers.clouds.aws.calls import Calls
from stockyard.providers.nodes.ec2 import looks

CLAIMS = 100
BOOT_SECONDS = 180


@pytest.fixture
def counted(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """Calls by operation; each page is one."""
    counter: Counter[str] = Counter()
    call, pages = Calls.call, Calls.pages

    def counted_call(self: Calls, service: str, operation: str, **parameters: Any) -> Any:
        counter[operation] += 1
        return call(self, service, operation, **parameters)

    def counted_pages(self: Calls, service: str, operation: str, key: str, **parameters: Any) -> Any:
        counter[operation] += 1
        return pages(self, service, operation, key, **parameters)

    monkeypatch.setattr(Calls, "call", counted_call)
    monkeypatch.setattr(Calls, "pages", counted_pages)
    return counter


def launched(hand: Any, count: int) -> list[Any]:
    """Hands with one machine each, all of the same source."""
    hand.prepare()
    hands = []
    for number in range(count):
        claim = replace(hand.claim, id=f"{hand.claim.id[:-4]}{number:04d}", name=f"workers-{number}")
        ledger = type(hand.ledger)(claim, "launch", hand.yard.now)
        hands.append(replace(hand, claim=claim, ledger=ledger))
        hands[-1].launch()
    return hands


def test_hundred_claims_ask_once_a_minute(
    hand: Any, counted: Counter[str], record_property: Callable[[str, object], None]
) -> None:
    hands = launched(hand, CLAIMS)
    hand.later(1)
    counted.clear()
    age, rounds = 1, 0
    while age < BOOT_SECONDS:
        for each in hands:
            assert each.source.glance(each.node_work()).state == "running"
        rounds += 1
        pause = FIRST_LOOK - age if age < FIRST_LOOK - LOOK_AGAIN else min(LOOK_LATE, max(LOOK_AGAIN, age // 4))
        hand.later(pause)
        age += pause
    before = CLAIMS * math.ceil(BOOT_SECONDS / LOOK_AGAIN)
    figures = {"claims": CLAIMS, "boot_seconds": BOOT_SECONDS, "looks_a_claim": rounds}
    figures |= {"transitions_to_register": 3 * rounds, "transitions_before": 3 * math.ceil(BOOT_SECONDS / LOOK_AGAIN)}
    figures |= {"describe_instances": counted["describe_instances"], "describe_instances_before": before}
    record_property("figure:looks", figures)
    assert counted["describe_instances"] <= math.ceil(BOOT_SECONDS / looks.SECONDS) + 1
    assert set(counted) == {"describe_instances"}
    assert rounds <= 7


def test_machine_that_has_ended_is_seen_within_a_minute(hand: Any) -> None:
    (single,) = launched(hand, 1)
    hand.later(1)
    assert single.source.glance(single.node_work()).state == "running"
    hand.calls.terminate_instances(InstanceIds=[hand.instances()[0]["InstanceId"]])
    assert single.source.glance(single.node_work()).state == "running", "the list is not older than a minute"
    hand.later(looks.SECONDS)
    assert single.source.glance(single.node_work()).state == "gone"


def test_young_machine_that_no_list_has_is_starting_and_an_old_one_is_asked_for(
    hand: Any, counted: Counter[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    (single,) = launched(hand, 1)
    monkeypatch.setattr(looks, "_described", lambda _: {})
    assert single.source.glance(single.node_work()).state == "starting"
    hand.later(hand.source._config.visibility_seconds + 1)
    counted.clear()
    assert single.source.glance(single.node_work()).state == "running", "the list was late"
    assert counted["describe_instances"] == 1


def test_clusters_and_tenants_have_lists_of_their_own(hand: Any, counted: Counter[str]) -> None:
    (single,) = launched(hand, 1)
    counted.clear()
    other_cluster = replace(hand.yard.cluster, client_id="other-0123456789ab")
    for work in (single.node_work(), single.node_work(tenant="globex"), single.node_work(cluster=other_cluster)):
        single.source.glance(work)
    assert counted["describe_instances"] == 3


def test_claim_without_a_machine_is_absent(hand: Any, counted: Counter[str]) -> None:
    assert hand.source.glance(hand.node_work()).state == "absent"
    assert counted["describe_instances"] == 0
