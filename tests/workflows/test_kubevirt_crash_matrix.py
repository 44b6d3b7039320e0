"""The crash matrix of a claim whose machine is a virtual machine of KubeVirt: every fault at every request.

The cells are made from recorded lives without a fault. At the end there must be no object of a machine in the host, no
address that a machine has, no claim, and no capacity slot. ``make soak`` runs every cell, another run some.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import pytest
import stamina

from stockyard.ports import Outcome
from stockyard.providers.clouds.kubernetes import host_template
from stockyard.providers.clouds.kubernetes.features import KUBEVIRT, rights_of
from stockyard.providers.nodes.kubevirt.provider import KubeVirtNodes
from tests.harness.worlds.kubernetes_host import NAMESPACE, SITE, TENANT
from tests.workflows.cudo_life import faults_of
from tests.workflows.faulty_cloud import FaultInjection, Site
from tests.workflows.kubevirt_life import KubeVirtLife

STORIES = {"had": False, "full": True}
"""``had``: the namespace has room. ``full``: its quota is used up, and the claim gets a node of another provider."""
CALLS, WRITES = 30, 5
"""Cells of requests and of writes to the table in a run outside the soak, chosen by the seed."""
RIGHTS = 4
"""Rights that are taken away in such a run."""


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
        life = KubeVirtLife(full=full)
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
    life = KubeVirtLife(injection, full=STORIES[cell.story])
    try:
        life.run()
    except Exception as error:
        return [f"{cell}: {type(error).__name__}: {error}"]
    faults = life.wrong() if injection.fired else ["the fault never came"]
    return [f"{cell}: {text}" for text in faults]


@pytest.mark.timeout(1200)
def test_crash_matrix(soaking: bool, seed: int, record_property: Callable[[str, object], None]) -> None:
    cells = all_cells()
    calls = [cell for cell in cells if cell.site.name != "commit"]
    writes = [cell for cell in cells if cell.site.name == "commit"]
    chance = random.Random(seed)
    selection = cells if soaking else [*chance.sample(calls, CALLS), *chance.sample(writes, WRITES)]
    faults = [text for cell in selection for text in wrong(cell)]
    figures = {
        "cells": len(cells),
        "run": len(selection),
        "requests": len({cell.site for cell in calls}),
        "by_fault": dict(Counter(cell.fault for cell in selection)),
        "bad": len(faults),
    }
    record_property("figure:kubevirt_crash_matrix", figures)
    assert not faults, f"{len(faults)} of {len(selection)}\n" + "\n".join(faults[:40])


def test_the_matrix_has_cells_for_every_call() -> None:
    calls = {(cell.site.point, cell.site.name.rpartition("/machines/")[2]) for cell in all_cells()}
    assert calls >= {
        ("launch", "virtualmachines/-"),
        ("launch", "secrets/-"),
        ("power", "virtualmachines/-"),
        ("power", "virtualmachineinstances/-"),
        ("terminate", "virtualmachines/-"),
        ("terminate", "datavolumes"),
    }


def test_a_claim_that_is_switched_does_what_it_is_told_on_both_ways() -> None:
    for via in (None, SITE):
        life = KubeVirtLife(via=via)
        assert life.run() == "Available"
        assert life.wrong() == []
        assert life.powered == ["Off stopped", "On running", "Reboot running"]


def test_the_judge_sees_objects_that_are_left(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(KubeVirtNodes, "terminate", lambda *_: Outcome(True))
    life = KubeVirtLife()
    life.run()
    faults = [text for text in life.wrong() if "left in the account" in text]
    assert len(faults) == 6, faults


def test_a_site_needs_every_line_of_its_allow_list_and_no_other(monkeypatch: pytest.MonkeyPatch) -> None:
    life = KubeVirtLife(via=SITE)
    cloud = life.nodes.services.clouds["kubernetes"]
    assert cloud.verify(life.host.account, TENANT).works
    life.run()
    assert life.wrong() == []
    monkeypatch.setattr(KubeVirtNodes, "terminate", lambda *_: Outcome(True))
    orphaned = KubeVirtLife(via=SITE)
    orphaned.run()
    sweeping, account = orphaned.nodes.services.clouds["kubernetes"], orphaned.host.account
    things = list(sweeping.tagged(account, orphaned.nodes.services.installation, TENANT, ()))
    for _ in range(2):  # a machine may take a moment to end
        ends = [sweeping.discard(account, thing, TENANT) for thing in things]
        orphaned.host.clock.advance(5)
    assert ends == [True] * 4
    assert orphaned.host.leftovers() == []
    lines = host_template.allow_list([NAMESPACE], [KUBEVIRT])
    document = cloud.template(life.host.account, "inst")["items"][-1]
    assert document["data"]["allowed"].splitlines() == lines
    assert life.host.allowed_lines | orphaned.host.allowed_lines == set(lines)


class LifeWithoutRight(KubeVirtLife):
    """A life whose claim is asked why it failed before it is deleted."""

    error = ""

    def _delete(self) -> None:
        claim = self._claim()
        if claim is not None and claim.phase == "Failed":
            self.error = str(self.nodes.operation(claim).error)
        super()._delete()


def test_with_each_right_taken_away_nothing_ends_halfway(
    soaking: bool, seed: int, record_property: Callable[[str, object], None]
) -> None:
    ends: dict[str, str] = {}
    rights = list(rights_of([KUBEVIRT]))
    for right in rights if soaking else random.Random(seed).sample(rights, RIGHTS):
        life = LifeWithoutRight(without=((right.verb, right.resource),))
        verification = life.nodes.services.clouds["kubernetes"].verify(life.host.account, TENANT)
        assert f"may not: {right} in namespace machines." in verification.message
        assert life.run() in ("Available", "Failed"), right
        waits = bool(life.cloud.leftovers())
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
    record_property("figure:kubevirt_rights_taken_away", ends)
