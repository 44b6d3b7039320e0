"""The crash matrix of launch groups: at any write or call a worker dies, a call is lost or late, a member is deleted.

At the end every remaining claim has one machine, and every machine has a claim.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import pytest

from stockyard.domain.records import Resource
from stockyard.domain.values.times import from_text
from stockyard.operations.listing import every
from stockyard.providers.nodes.ec2 import together
from tests.workflows.fleet_world import HIDDEN, LATE, FleetLife

Cell = dict[str, Any]
SAMPLE, MANY = 12, 1000
"""How many cells of a kind are run: the first number normally, the second in the soak."""


def run_life(**cell: Any) -> tuple[FleetLife, list[str]]:
    """Runs a life, and returns it with its faults."""
    life = FleetLife(**cell)
    life.create()
    try:
        life.work()
        bad = [*life.wrong(), *life.end()]
    except AssertionError as error:
        bad = [str(error)]
    return life, bad


def faults(call_names: list[str]) -> Iterator[Cell]:
    for site, name in enumerate(call_names):
        for fault in ("before", "after"):
            yield {"site": site, "fault": fault}
        if name != "commit":
            yield {"site": site, "fault": "timeout"}
        if name == "create_fleet":
            yield {"site": site, "fault": "late"}


def events(call_names: list[str]) -> Iterator[Cell]:
    for at in range(len(call_names)):
        for event in (0, 1, 2, "others"):
            yield {"at": at, "event": event}


def sites(**cell: Any) -> list[str]:
    """The names of all writes and calls in a life without a fault, until all claims are served."""
    life = FleetLife(**cell)
    life.create()
    life.work()
    assert list(life.wrong()) == []
    return list(life.call_names)


def test_equal_claims_are_launched_by_one_call() -> None:
    life, bad = run_life(count=3)
    assert bad == []
    assert life.cloud.calls == ["create_fleet"]


@pytest.mark.parametrize("first", [3, 2, 0], ids=["enough", "one-too-few", "none"])
def test_group_crash_matrix(
    first: int, seed: int, soaking: bool, record_property: Callable[[str, object], None]
) -> None:
    draw, most = random.Random(seed), MANY if soaking else SAMPLE
    call_names = sites(first=first)
    single, with_event = list(faults(call_names)), list(events(call_names))
    bad: list[str] = []
    double: list[Cell] = []
    single = single if first == 2 else sample_of(draw, single, most)
    for cell in (*single, *sample_of(draw, with_event, most)):
        life = judge(bad, first=first, **cell)
        if "event" in cell:
            # Faults also at the writes and calls that the event has added, for example those of a deletion.
            double += [{**cell, **fault} for fault in faults(life.call_names)]
    double = sample_of(draw, double, most)
    reached = sum(judge(bad, first=first, **cell).fired for cell in double)
    assert not bad, f"{len(bad)} cells\n" + "\n".join(bad[:20])
    assert reached > len(double) // 2
    cells = len(single) + min(most, len(with_event)) + len(double)
    record_property(f"figure:group_crash_matrix_{first}_of_3", {"cells": cells, "bad": 0})


def sample_of(draw: random.Random, cells: list[Cell], most: int) -> list[Cell]:
    return draw.sample(cells, min(most, len(cells)))


def judge(bad: list[str], **cell: Any) -> FleetLife:
    """Runs a life and adds its faults to ``bad``."""
    life, wrong = run_life(**cell)
    bad += [f"{cell}: {text}" for text in (*wrong, *(f"failed for good: {failure}" for failure in life.failed))]
    return life


def test_a_late_call_is_waited_for_until_its_worker_cannot_live() -> None:
    """A claim whose machine was refused is launched alone. It is deleted while that call is announced but invisible."""
    alone = sites(first=2).index("create_fleet", sites(first=2).index("create_fleet") + 1)
    cell = {"first": 2, "at": alone, "event": 2, "site": alone, "fault": "late"}
    life, bad = run_life(**cell)
    assert bad == []
    (announced,) = [line.intended_at for line in every(life.plain, Resource) if line.id.startswith(life.order[2])]
    machine = life.cloud.machines["i-00000000000000002"]
    assert machine["shown_at"] - from_text(announced).timestamp() == LATE + HIDDEN
    impatient = FleetLife(**cell)
    settings = replace(impatient.services.settings, worker_seconds=LATE - 1, visibility_seconds=0)
    impatient.services = replace(impatient.services, settings=settings)
    impatient.faulty_services = replace(impatient.faulty_services, settings=settings)
    impatient.create()
    impatient.work()
    assert any("are the claims'" in text for text in impatient.wrong()), (
        "the judge must see a product that does not wait"
    )


def test_a_refused_call_fails_one_claim_and_leaves_nothing() -> None:
    life = FleetLife(site=sites().index("create_fleet"), fault="refused")
    life.create()
    life.work()
    phases = sorted((claim.phase, bool(claim.machine_id)) for claim in life.claims())
    assert phases == [("Failed", False), ("Pending", True), ("Pending", True)]
    assert len(life.cloud.alive()) == 2
    assert list(life.end()) == []


def test_the_judge_sees_a_member_that_ignores_its_share(monkeypatch: pytest.MonkeyPatch) -> None:
    """A member that ignores the launches of others for it leaves a machine, and the judge must report the machine."""
    monkeypatch.setattr(together, "settle", lambda *_: None)
    call_names = sites()
    faults_of_lives = [bad for cell in events(call_names) if cell["event"] != "others" for bad in run_life(**cell)[1]]
    assert faults_of_lives


@pytest.mark.parametrize("count", [100])
def test_many_equal_claims_need_few_calls(count: int, record_property: Callable[[str, object], None]) -> None:
    life = FleetLife(count=count)
    life.create()
    life.work()
    assert list(life.wrong()) == []
    calls = life.cloud.calls.count("create_fleet")
    assert calls <= count // 20
    record_property("figure:create_fleet_calls", {"claims": count, "calls": calls})
