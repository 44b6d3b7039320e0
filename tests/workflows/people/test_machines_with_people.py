"""The crash matrix of a claim that EC2 serves, with people: at each step of its life somebody acts on its node, or a
kubelet or a DaemonSet changes, and a worker dies, an answer is lost, EC2 throttles or refuses.

The pool has its one node in the end, another one only where somebody has deleted its Node object; no machine ends with
pods on it, and nothing is left. ``make soak`` runs each act at each step, alone and with each fault from then on.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from stockyard.lifecycle.disruption import forced, vanished
from stockyard.operations.node_claims import phases
from stockyard.ports import Outcome
from tests.workflows.conftest import no_sleep
from tests.workflows.faulty_cloud import Cloud, FaultInjection, machine_cloud
from tests.workflows.people.acts import ACTS, CORDON, DELETED, READY_AGAIN
from tests.workflows.people.cells import Cell, sample, with_faults
from tests.workflows.people.machine_life import PeopleMachineLife


@pytest.fixture(scope="module")
def cloud() -> Iterator[Cloud]:
    with pytest.MonkeyPatch.context() as patched, machine_cloud() as machine_account:
        patched.setattr(time, "sleep", no_sleep)
        yield machine_account


def lived(cloud: Cloud, cell: Cell, seed: int) -> PeopleMachineLife:
    injection = FaultInjection(cell.number, cell.fault)
    life = PeopleMachineLife(cloud, injection, act=cell.act, at_step=cell.at_step, seed=seed)
    life.run()
    return life


def wrong(cloud: Cloud, cell: Cell, seed: int) -> list[str]:
    """Faults of the cell's life."""
    try:
        life = lived(cloud, cell, seed)
    except Exception as error:
        return [f"{type(error).__name__}: {error}"]
    came = bool(life.people.node) and (not cell.fault or life.injection.fired)
    return life.wrong() if came else ["the act or the fault never came"]


def with_crashes(cloud: Cloud, cell: Cell, seed: int) -> list[Cell]:
    """The act alone and with all faults after it."""
    life = lived(cloud, cell, seed)
    return [*with_faults(cell, life.injection.sites, life.sites_at[cell.at_step], lambda site: site.faults)]


@pytest.mark.timeout(14_400)
def test_people_act_on_the_node_of_a_machine(
    cloud: Cloud, soaking: bool, seed: int, record_property: Callable[[str, object], None]
) -> None:
    normal = PeopleMachineLife(cloud, seed=seed)
    assert (normal.run(), normal.wrong()) == ("Available", [])
    steps = len(normal.sites_at)
    selection = sample(normal.sites_at, seed)
    if soaking:
        alone = [Cell(act, step) for act in ACTS for step in range(steps)]
        selection = [crash for cell in alone for crash in with_crashes(cloud, cell, seed)]
    bad = {cell: texts for cell in selection if (texts := wrong(cloud, cell, seed))}
    figures: dict[str, Any] = {
        "steps": steps,
        "run": len(selection),
        "by_act": dict(Counter(cell.act for cell in selection)),
        "bad": len(bad),
    }
    record_property("figure:machine_crashes_with_people", figures)
    assert not bad, f"{len(bad)} of {len(selection)}\n" + "\n".join(f"{cell}: {bad[cell]}" for cell in [*bad][:20])


def test_the_judge_sees_a_deleted_node_whose_claim_stays(cloud: Cloud, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(vanished, "to_end", lambda *_: ())
    (text, *_) = wrong(cloud, Cell(DELETED, 3), 1)
    assert text.startswith("hangs: ")


def test_the_judge_sees_a_node_that_leaves_for_nothing(cloud: Cloud, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(forced, "REPAIR_SECONDS", 60)
    assert any(" leaves: " in text for text in wrong(cloud, Cell(READY_AGAIN, 6), 1))


def test_the_judge_sees_a_machine_that_ends_with_pods_on_it(cloud: Cloud, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(phases.RUNNER.actions, "drain", lambda *_: Outcome(True))
    assert any(text.endswith(" ended with pods on it") for text in wrong(cloud, Cell(CORDON, 6), 1))
