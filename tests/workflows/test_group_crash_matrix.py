"""Claims that are launched together: a worker dies, a call is lost or late, a member is deleted, at any write or call.

In the end every claim that is wanted has one machine, and no machine is without its claim.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from stockyard.providers.nodes.ec2 import together
from tests.workflows.fleet_world import FleetLife

Cell = dict[str, Any]
SAMPLE, MANY = 12, 1000
"""How many cells of a kind are drawn; the second in the soak."""


def lived(**cell: Any) -> tuple[FleetLife, list[str]]:
    """A life, and what was wrong with it."""
    life = FleetLife(**cell)
    life.create()
    try:
        life.work()
        bad = [*life.wrong(), *life.end()]
    except AssertionError as error:
        bad = [str(error)]
    return life, bad


def faults(seen: list[str]) -> Iterator[Cell]:
    for site, what in enumerate(seen):
        for fault in ("before", "after"):
            yield {"site": site, "fault": fault}
        if what != "commit":
            yield {"site": site, "fault": "timeout"}
        if what == "create_fleet":
            yield {"site": site, "fault": "late"}


def events(seen: list[str]) -> Iterator[Cell]:
    for at in range(len(seen)):
        for event in (0, 1, 2, "others"):
            yield {"at": at, "event": event}


def sites(**cell: Any) -> list[str]:
    """The writes and calls until all are served, without a fault."""
    life = FleetLife(**cell)
    life.create()
    life.work()
    assert list(life.wrong()) == []
    return list(life.seen)


def test_one_call_for_all() -> None:
    life, bad = lived(count=3)
    assert bad == []
    assert life.cloud.calls == ["create_fleet"]


@pytest.mark.parametrize("first", [3, 2, 0], ids=["enough", "one-too-few", "none"])
def test_group_crash_matrix(
    first: int, seed: int, soaking: bool, record_property: Callable[[str, object], None]
) -> None:
    draw, most = random.Random(seed), MANY if soaking else SAMPLE
    seen = sites(first=first)
    single, with_event = list(faults(seen)), list(events(seen))
    bad: list[str] = []
    double: list[Cell] = []
    single = single if first == 2 else drawn(draw, single, most)
    for cell in (*single, *drawn(draw, with_event, most)):
        life = judged(bad, first=first, **cell)
        if "event" in cell:
            # The faults of what the event has added too: a deletion's own writes and calls.
            double += [{**cell, **fault} for fault in faults(life.seen)]
    double = drawn(draw, double, most)
    reached = sum(judged(bad, first=first, **cell).fired for cell in double)
    assert not bad, f"{len(bad)} cells\n" + "\n".join(bad[:20])
    assert reached > len(double) // 2
    cells = len(single) + min(most, len(with_event)) + len(double)
    record_property(f"figure:group_crash_matrix_{first}_of_3", {"cells": cells, "bad": 0})


def drawn(draw: random.Random, cells: list[Cell], most: int) -> list[Cell]:
    return draw.sample(cells, min(most, len(cells)))


def judged(bad: list[str], **cell: Any) -> FleetLife:
    """A life whose faults are added to ``bad``."""
    life, wrong = lived(**cell)
    bad += [f"{cell}: {text}" for text in (*wrong, *(f"failed for good: {one}" for one in life.failed))]
    return life


def test_a_call_that_is_refused_for_good_fails_one_claim_and_leaves_nothing() -> None:
    life = FleetLife(site=sites().index("create_fleet"), fault="refused")
    life.create()
    life.work()
    phases = sorted((claim.phase, bool(claim.machine_id)) for claim in life.claims())
    assert phases == [("Failed", False), ("Pending", True), ("Pending", True)]
    assert len(life.cloud.alive()) == 2
    assert list(life.end()) == []


def test_a_group_that_forgets_its_share_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    """The judge is not blind: a member that does not look at what others launched for it leaves a machine."""
    monkeypatch.setattr(together, "settle", lambda *_: None)
    seen = sites()
    found = [bad for cell in events(seen) if cell["event"] != "others" for bad in lived(**cell)[1]]
    assert found


@pytest.mark.parametrize("count", [100])
def test_calls_for_many_equal_claims(count: int, record_property: Callable[[str, object], None]) -> None:
    life = FleetLife(count=count)
    life.create()
    life.work()
    assert list(life.wrong()) == []
    calls = life.cloud.calls.count("create_fleet")
    assert calls <= count // 20
    record_property("figure:create_fleet_calls", {"claims": count, "calls": calls})
