"""After a decision whose pods have found no place: the next ones are careful, and then there is rest."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from stockyard.domain.pools.disruption_records import IDLE
from stockyard.lifecycle.pools.pool import later_than
from stockyard.operations.fleet.disruption import run
from stockyard.operations.fleet.disruption.decide import decide
from stockyard.ports import Replace
from tests.unit.operations.fleet.disruption.conftest import Pods, pod
from tests.unit.operations.fleet.disruption.test_run import LARGE, idle


def test_decisions_are_careful_for_a_day_after_pods_of_one_have_found_no_room(
    pods: Pods, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A node is made soon after others have left: the scheduler did not put pods where the decision had them."""
    monkeypatch.setattr(run, "CAREFUL_NODES", 0)
    idle(pods, 3)
    pods.run(8)
    assert pods.types() == [LARGE]
    assert (pods.record().left_at != "", pods.record().careful_until) == (True, "")
    careful: list[bool] = []

    def watched(view: Any, settings: Any, *, for_price: bool) -> Any:
        careful.append(settings.careful)
        return decide(view, settings, for_price=for_price)

    monkeypatch.setattr(run, "decide", watched)
    pods.waiting = [pod("7500m")]
    pods.run(6)
    assert pods.types() == [LARGE, LARGE]
    assert careful[-1]
    pods.yard.nodes.hours(25)
    pods.run(2)
    assert not careful[-1]


@pytest.mark.parametrize(("few", "careful"), [(3, True), (2, False)])
def test_in_a_small_cluster_every_decision_is_careful(
    pods: Pods, monkeypatch: pytest.MonkeyPatch, few: int, careful: bool
) -> None:
    settings = []
    monkeypatch.setattr(run, "CAREFUL_NODES", few)
    monkeypatch.setattr(run, "decide", lambda _, options, **__: settings.append(options))
    idle(pods, 3)
    pods.run(1)
    assert settings[-1].careful is careful


def test_a_careful_decision_that_was_too_tight_is_followed_by_rest(pods: Pods) -> None:
    idle(pods, 3)
    pods.run(8)
    assert pods.types() == [LARGE]
    now, store = pods.yard.nodes.services.now(), pods.yard.nodes.services.store
    record = pods.record()
    careful_until = later_than(now, run.CAREFUL_SECONDS)
    store.commit(Replace(replace(record, careful_until=careful_until, version=record.version + 1)))
    pods.waiting = [pod("7500m")]
    pods.run(6)
    assert pods.types() == [LARGE, LARGE]
    assert pods.record().rests_until > pods.yard.nodes.services.now()
    (late,) = [name for name in pods.on if any(dict(each.requests)["cpu"] == 7500 for each in pods.on[name])]
    pods.on[late] = [pod("1")]
    pods.run(20)
    assert pods.types() == [LARGE, LARGE], "it could leave, and may not yet"
    pods.yard.nodes.hours(1)
    pods.run(8)
    assert pods.types() == [LARGE]


def test_a_pass_whose_time_is_over_decides_what_needs_no_search(pods: Pods, monkeypatch: pytest.MonkeyPatch) -> None:
    idle(pods, 3)
    empty = sorted(pods.on)[0]
    pods.on[empty] = []
    with monkeypatch.context() as patch:
        patch.setattr(run, "DEADLINE_SECONDS", 0)
        pods.run(10)
        assert pods.types() == [LARGE, LARGE], "the empty node left, and nothing was decided for its price"
        assert (empty in pods.on, pods.record().state, pods.waiting) == (False, IDLE, [])
    pods.yard.nodes.clock.advance(3600)
    pods.run(10)
    assert pods.types() == [LARGE]
