"""The crash matrix of a claim on a host of bare metal: every fault at every request.

The cells are made from recorded lives without a fault. At the end every host must be ``available`` with its original
annotations, labels and network data, byte for byte; no Secret of ours and no claim may be left, and no capacity slot
may be taken. ``make soak`` runs all cells.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import pytest
import stamina

from stockyard.ports import Outcome
from stockyard.providers.clouds.kubernetes import host_template
from stockyard.providers.clouds.kubernetes.features import METAL3, rights_of
from stockyard.providers.nodes.metal3.provider import Metal3Nodes
from tests.harness.worlds.kubernetes_host import NAMESPACE, SITE, TENANT
from tests.workflows.bare_metal_life import BareMetalLife
from tests.workflows.cudo_life import faults_of
from tests.workflows.faulty_cloud import FaultInjection, Site

STORIES: Mapping[str, Mapping[str, Any]] = {"had": {}, "full": {"full": True}, "broken": {"broken": True}}
"""``had``: a host is free. ``full``: none is, and the claim gets a node of another provider. ``broken``: the first host
fails, and the claim gets the second."""
CELLS = {"had": 24, "full": 6, "broken": 14}
"""Cells of each story in a run outside the soak."""


@dataclass(frozen=True, slots=True)
class Cell:
    """One fault at one site of one story."""

    story: str
    number: int
    site: Site
    fault: str

    def __str__(self) -> str:
        return f"{self.story}: {self.site.name} in {self.site.point} ({self.number}), {self.fault}"


@pytest.fixture(autouse=True)
def no_pauses() -> Iterator[None]:
    """The client asks again at once."""
    with stamina.set_testing(True, attempts=3):
        yield


def cells_of(story: str) -> list[Cell]:
    """Reads see the same states again, so only the first read of each name in a point has cells."""
    cells: list[Cell] = []
    life = BareMetalLife(**STORIES[story])
    assert life.run() == "Available"
    assert life.wrong() == []
    covered: set[Site] = set()
    for number, site in enumerate(life.injection.sites):
        if not site.name.startswith("GET ") or site not in covered:
            cells += [Cell(story, number, site, fault) for fault in faults_of(site)]
        covered.add(site)
    return cells


def wrong(cell: Cell) -> list[str]:
    """The faults of a life with the cell's fault."""
    injection = FaultInjection(cell.number, cell.fault)
    life = BareMetalLife(injection, **STORIES[cell.story])
    try:
        life.run()
    except Exception as error:
        return [f"{cell}: {type(error).__name__}: {error}"]
    faults = life.wrong() if injection.fired else ["the fault never came"]
    return [f"{cell}: {text}" for text in faults]


@pytest.mark.timeout(1200)
def test_crash_matrix(soaking: bool, seed: int, record_property: Callable[[str, object], None]) -> None:
    cells, selection = [], list[Cell]()
    for story, number in CELLS.items():
        own = cells_of(story)
        cells += own
        calls = [cell for cell in own if cell.site.name != "commit"]
        picks = own if soaking else random.Random(seed).sample(calls, min(number, len(calls)))
        selection += picks
    faults = [text for cell in selection for text in wrong(cell)]
    figures = {
        "cells": len(cells),
        "run": len(selection),
        "by_fault": dict(Counter(cell.fault for cell in selection)),
        "bad": len(faults),
    }
    record_property("figure:bare_metal_crash_matrix", figures)
    requests = {
        (cell.site.point, cell.site.name.split(" ")[0], cell.site.name.split("/")[-2])
        for cell in cells
        if "/" in cell.site.name
    }
    assert requests >= {
        ("launch", "PATCH", "baremetalhosts"),
        ("launch", "PATCH", "secrets"),
        ("power", "PATCH", "baremetalhosts"),
        ("terminate", "PATCH", "baremetalhosts"),
        ("terminate", "DELETE", "secrets"),
    }
    assert not faults, f"{len(faults)} of {len(selection)}\n" + "\n".join(faults[:40])


def test_a_host_that_fails_is_replaced_by_the_next_within_one_look() -> None:
    life = BareMetalLife(broken=True)
    assert life.run() == "Available"
    assert life.wrong() == []
    assert life.ended_on not in ("", life.first())


def test_a_site_needs_every_line_of_its_allow_list_and_no_other() -> None:
    life = BareMetalLife(via=SITE)
    cloud = life.nodes.services.clouds["kubernetes"]
    assert cloud.verify(life.yard.account, TENANT).works
    assert life.run() == "Available"
    cloud.tagged(life.yard.account, "inst", TENANT, ())
    assert life.wrong() == []
    assert life.powered == ["Off stopped", "On running", "Reboot running"]
    lines = host_template.allow_list([NAMESPACE], [METAL3])
    assert life.yard.allowed_lines == set(lines)
    assert not [line for line in lines if "DELETE" in line and "baremetalhosts" in line], "hosts are their owner's"


def test_the_judge_sees_a_host_that_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Metal3Nodes, "terminate", lambda *_: Outcome(True))
    life = BareMetalLife()
    life.run()
    assert sum("left in the account" in text for text in life.wrong()) >= 5


def test_with_each_right_taken_away_nothing_ends_halfway(record_property: Callable[[str, object], None]) -> None:
    ends: dict[str, str] = {}
    for right in rights_of([METAL3]):
        life = BareMetalLife(without=((right.verb, right.resource),))
        verification = life.nodes.services.clouds["kubernetes"].verify(life.yard.account, TENANT)
        assert f"may not: {right} in namespace machines." in verification.message
        life.run()
        is_held = bool(life.yard.hosts_of_claims() or life.yard.objects("secrets"))
        assert not is_held or life._claim() is not None, "a claim whose machine stands is not forgotten"
        life.yard.grant(right.verb, right.resource)
        life._delete()
        life._clear()
        assert life.cloud.leftovers() == [], right
        assert life.nodes.nothing_left(), right
        ends[str(right)] = f"{life.reached_phase}{', its deletion waits' if is_held else ''}"
    record_property("figure:rights_taken_away_from_bare_metal", ends)
