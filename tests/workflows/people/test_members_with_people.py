"""The crash matrix of a control plane's members on EC2 with people: at each wait of an operation somebody acts on the
node of a member, or its kubelet dies, and a worker dies, an answer is lost, or AWS throttles or refuses.

etcd has its quorum at every moment, a member is replaced only where its kubelet stays dead, all are healthy in the end,
operations end, and nothing is left. ``make soak`` runs each act at each wait, alone and with two kinds of faults.
"""

from __future__ import annotations

import random
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import pytest

from stockyard.lifecycle.clusters import member_health
from stockyard.operations.clusters.healing import health as attending
from stockyard.operations.clusters.members import members
from tests.harness.crash.faults import Call, Fault
from tests.workflows.conftest import no_sleep
from tests.workflows.ec2_member_life import Account, member_account
from tests.workflows.member_life import STORIES
from tests.workflows.people import member_life
from tests.workflows.people.acts import ACTS, CORDON, DELETED, NOT_READY, READY_AGAIN
from tests.workflows.people.member_life import REST_MINUTES, PeopleMemberLife
from tests.workflows.table_faults import ERRORS, Faults
from tests.workflows.test_ec2_member_crash_matrix import MODES, STORY_NAMES

SAMPLED = "1 of 3 is replaced"
"""The story of a run outside the soak."""
OF_SAMPLE = (DELETED, NOT_READY, CORDON)
RESTING = 2
"""Steps of the rest at which somebody acts: the others are like these."""


@dataclass(frozen=True, slots=True)
class Cell:
    """``site``, ``when`` and ``error`` are of a fault of the table or the driver, ``call`` and ``mode`` of one of AWS;
    a cell has one of them or none."""

    story: str
    act: str
    at_step: int
    faults: tuple[int, str, int] | None = None
    fault: tuple[Call, int] | None = None

    def life(self, account: Account) -> PeopleMemberLife:
        """The life, not run yet."""
        faults, fault = Faults(), None
        if self.faults is not None:
            site, when, error = self.faults
            faults = Faults(site, when, ERRORS[error])
        if self.fault is not None:
            fault = Fault(self.fault[0], MODES[self.fault[1]])
        return PeopleMemberLife(
            STORIES[self.story], faults, account=account, fault=fault, act=self.act, at_step=self.at_step
        )


@pytest.fixture(scope="module")
def account() -> Iterator[Account]:
    with pytest.MonkeyPatch.context() as patched, member_account() as account_of_module:
        patched.setattr(time, "sleep", no_sleep)
        yield account_of_module


def wrong(account: Account, cell: Cell, most_claims: int) -> list[str]:
    """Faults of the cell's life; ``most_claims`` are those of a life without an act."""
    life = cell.life(account)
    texts = life.run()
    if not life.people.node:
        texts.append("the act never came")
    # The operation that is under way may replace the member anyway.
    if len(life.claim_ids) > most_claims + (cell.act == NOT_READY):
        texts.append(f"{len(life.claim_ids)} members were made, {most_claims} are without the act")
    return texts


def with_crashes(account: Account, alone: Cell, seed: int) -> Iterator[Cell]:
    """The act alone, with a fault of the table or the driver after it, and with one of AWS."""
    yield alone
    life = alone.life(account)
    life.run()
    if len(life.sites_at) <= alone.at_step:
        return
    chance = random.Random(f"{seed} {alone}")
    site, call = life.sites_at[alone.at_step]
    calls = [each for each in account.tap.calls[call:] if each.point]
    if site < life.sites_of_change:
        number = chance.randrange(site, life.sites_of_change)
        when = chance.choice(("before", "after"))
        yield Cell(alone.story, alone.act, alone.at_step, (number, when, chance.randrange(len(ERRORS))))
    if calls:
        fault = (chance.choice(calls), chance.randrange(len(MODES)))
        yield Cell(alone.story, alone.act, alone.at_step, fault=fault)


@pytest.mark.timeout(14_400)
def test_people_act_on_the_node_of_a_member(
    account: Account, seed: int, soaking: bool, record_property: Callable[[str, object], None]
) -> None:
    bad: dict[Cell, list[str]] = {}
    selection: list[Cell] = []
    for story in STORY_NAMES if soaking else [SAMPLED]:
        normal = PeopleMemberLife(STORIES[story], account=account)
        assert normal.run() == []
        steps = len(normal.sites_at) - REST_MINUTES + RESTING
        cells = [
            Cell(story, act, index * steps // len(OF_SAMPLE), (normal.sites_of_change // 2, "after", index))
            for index, act in enumerate(OF_SAMPLE)
        ]
        if soaking:
            alone = [Cell(story, act, step) for act in ACTS for step in range(steps)]
            cells = [crash for cell in alone for crash in with_crashes(account, cell, seed)]
        selection += cells
        bad |= {cell: texts for cell in cells if (texts := wrong(account, cell, len(normal.claim_ids)))}
    figures: dict[str, Any] = {
        "run": len(selection),
        "by_act": dict(Counter(cell.act for cell in selection)),
        "bad": len(bad),
    }
    record_property("figure:member_crashes_with_people", figures)
    assert not bad, f"{len(bad)} of {len(selection)}\n" + "\n".join(f"{cell}: {bad[cell]}" for cell in [*bad][:20])


def test_the_judge_sees_a_member_that_is_replaced_for_nothing(
    account: Account, monkeypatch: pytest.MonkeyPatch
) -> None:
    failing = member_health.failing
    for module in (attending, members):
        monkeypatch.setattr(module, "failing", lambda claims, _, now: failing(claims, 30, now))
    texts = wrong(account, Cell(SAMPLED, READY_AGAIN, 8), 4)
    assert "5 members were made, 4 are without the act" in texts


def test_the_judge_sees_a_dead_member_that_nobody_replaces(account: Account, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(attending, "failing", lambda *_: [])
    monkeypatch.setattr(member_life, "REST_MINUTES", 8)
    texts = wrong(account, Cell(SAMPLED, NOT_READY, 4), 4)
    assert any(text.startswith("members are not healthy") for text in texts)
