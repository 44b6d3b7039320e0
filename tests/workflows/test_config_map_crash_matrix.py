"""The crash matrix of a claim whose machine is a ConfigMap in a Kubernetes host: every fault at every request.

The cells are made from recorded lives without a fault. At the end there must be no object of ours in the host and no
claim, and no capacity slot may be taken. ``make soak`` runs the cells of all writes to the table too.
"""

from __future__ import annotations

import random
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from statistics import median

import pytest
import stamina

from stockyard.ports import Outcome
from stockyard.providers.clouds.kubernetes import host_template
from stockyard.providers.clouds.kubernetes.features import BASE, rights_of
from stockyard.providers.nodes.config_maps.provider import ConfigMapNodes
from tests.harness.worlds.kubernetes_host import NAMESPACE, SITE, TENANT
from tests.workflows.config_map_life import ConfigMapLife
from tests.workflows.cudo_life import CudoLife, faults_of
from tests.workflows.faulty_cloud import FaultInjection, Site

STORIES = {"had": False, "full": True}
"""``had``: the host has room. ``full``: it has none, and the claim gets a node of another provider."""
WRITES = 12
"""Cells of writes to the table in a run outside the soak: other matrices have them all."""
LIVES = 9
"""Lives of each kind whose time is compared."""
MOST_OF_CUDO = 1.1


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


def all_cells() -> list[Cell]:
    """Reads see the same states again, so only the first read of each name in a point has cells."""
    cells: list[Cell] = []
    for story, full in STORIES.items():
        life = ConfigMapLife(full=full)
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
    life = ConfigMapLife(injection, full=STORIES[cell.story])
    try:
        life.run()
    except Exception as error:
        return [f"{cell}: {type(error).__name__}: {error}"]
    faults = life.wrong() if injection.fired else ["the fault never came"]
    return [f"{cell}: {text}" for text in faults]


@pytest.mark.timeout(600)
def test_crash_matrix(soaking: bool, seed: int, record_property: Callable[[str, object], None]) -> None:
    cells = all_cells()
    calls = [cell for cell in cells if cell.site.name != "commit"]
    writes = [cell for cell in cells if cell.site.name == "commit"]
    selection = [*calls, *(writes if soaking else random.Random(seed).sample(writes, WRITES))]
    faults = [text for cell in selection for text in wrong(cell)]
    figures = {
        "cells": len(cells),
        "run": len(selection),
        "requests": len({cell.site for cell in calls}),
        "by_fault": dict(Counter(cell.fault for cell in selection)),
        "bad": len(faults),
    }
    record_property("figure:config_map_crash_matrix", figures)
    assert not faults, f"{len(faults)} of {len(selection)}\n" + "\n".join(faults[:40])


def milliseconds(make: Callable[[], ConfigMapLife | CudoLife]) -> float:
    started = time.process_time()
    make().run()
    return (time.process_time() - started) * 1000


def test_a_life_costs_no_more_than_one_on_cudo(record_property: Callable[[str, object], None]) -> None:
    for make in (ConfigMapLife, CudoLife):
        make().run()  # what is imported and read once
    figures: dict[str, float] = {}
    turns = [(milliseconds(ConfigMapLife), milliseconds(CudoLife)) for _ in range(LIVES)]
    figures["milliseconds_a_life"] = round(median(own for own, _ in turns), 1)
    figures["milliseconds_a_life_on_cudo"] = round(median(cudo for _, cudo in turns), 1)
    record_property("figure:config_map_life", figures)
    assert figures["milliseconds_a_life"] <= MOST_OF_CUDO * figures["milliseconds_a_life_on_cudo"], figures


def test_the_matrix_has_cells_for_every_call() -> None:
    calls = {(cell.site.point, cell.site.name.rpartition("machines/")[2]) for cell in all_cells()}
    assert calls >= {
        ("launch", "configmaps/-"),
        ("launch", "secrets/-"),
        ("power", "configmaps/-"),
        ("terminate", "configmaps/-"),
        ("terminate", "secrets/-"),
    }


def test_a_claim_that_is_switched_does_what_it_is_told_on_both_ways() -> None:
    for via in (None, SITE):
        life = ConfigMapLife(via=via)
        assert life.run() == "Available"
        assert life.wrong() == []
        assert life.powered == ["Off stopped", "On running", "Reboot running"]


def test_a_site_needs_every_line_of_its_allow_list_and_no_other() -> None:
    life = ConfigMapLife(via=SITE)
    cloud = life.nodes.services.clouds["kubernetes"]
    assert cloud.verify(life.host.account, TENANT).works
    life.run()
    cloud.tagged(life.host.account, "inst", TENANT, ())
    assert life.wrong() == []
    lines = host_template.allow_list([NAMESPACE], [BASE])
    assert life.host.allowed_lines == set(lines)
    document = cloud.template(life.host.account, "inst")["items"][-1]
    assert document["data"]["allowed"].splitlines() == lines


def test_the_judge_sees_an_object_that_is_left(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ConfigMapNodes, "terminate", lambda *_: Outcome(True))
    life = ConfigMapLife()
    life.run()
    assert sum("left in the account" in text for text in life.wrong()) == 2


class LifeWithoutRight(ConfigMapLife):
    """A life whose claim is asked why it failed before it is deleted."""

    error = ""

    def _delete(self) -> None:
        claim = self._claim()
        if claim is not None and claim.phase == "Failed":
            self.error = str(self.nodes.operation(claim).error)
        super()._delete()


def test_with_each_right_taken_away_nothing_ends_halfway(record_property: Callable[[str, object], None]) -> None:
    ends: dict[str, str] = {}
    for right in rights_of([BASE]):
        life = LifeWithoutRight(without=((right.verb, right.resource),))
        verification = life.nodes.services.clouds["kubernetes"].verify(life.host.account, TENANT)
        assert f"may not: {right} in namespace machines." in verification.message
        assert life.run() in ("Available", "Failed"), right
        waits = bool(life.cloud.leftovers())
        assert not (waits and life.reached_phase == "Failed" and right.verb not in ("get", "delete")), right
        if life.reached_phase == "Failed":
            assert "403 Forbidden" in life.error, (right, life.error)
        if waits:
            assert life._claim() is not None, "a claim whose machine stands is not forgotten"
        life.host.grant(right.verb, right.resource)
        life._delete()
        life._clear()
        assert life.cloud.leftovers() == [], right
        assert life.nodes.nothing_left(), right
        ends[str(right)] = f"{life.reached_phase}{', its deletion waits' if waits else ''}"
    record_property("figure:rights_taken_away", ends)
    assert set(ends.values()) == {"Available", "Failed", "Available, its deletion waits"}, ends
