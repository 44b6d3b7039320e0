"""The crash matrix of what EC2 does for a control plane's members: targets of the balancer, members admitted and
withdrawn, what the first one alone had. At any of these calls a worker dies, an answer is lost, the vendor throttles or
refuses.

etcd has its quorum at every moment, each member that stays is a target, and nothing is left in the account.
"""

from __future__ import annotations

import random
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence

import pytest

from stockyard.ports.clusters import HEALTHY
from stockyard.providers.clusters.ec2.members import members
from tests.harness.crash.faults import Call, Fault, Mode
from tests.workflows.conftest import no_sleep
from tests.workflows.ec2_member_life import Account, Ec2MemberLife, member_account
from tests.workflows.member_life import CALLS, STORIES, Death

SAMPLED = "renewed"
"""The story of a run outside the soak: it comes to all that is done for members."""
STORY_NAMES = ("3 are made", "5 are made", "1 grows to 3", "3 grow to 5", "1 of 3 is replaced", "renewed", "upgraded")
MODES = [mode for mode in Mode if mode is not Mode.RECORDED]
"""The table is not under these faults: ``test_member_crash_matrix`` has those."""
Cell = tuple[Call, Mode]


@pytest.fixture(scope="module")
def account() -> Iterator[Account]:
    with pytest.MonkeyPatch.context() as patched, member_account() as account_of_module:
        patched.setattr(time, "sleep", no_sleep)
        yield account_of_module


def recorded(account: Account, story: str) -> tuple[Sequence[Call], int]:
    """The calls of a life without a fault, and how often it waits."""
    life = Ec2MemberLife(STORIES[story], account=account)
    assert life.run() == []
    return list(account.tap.calls), life.members.waits


def cells_of(calls: Sequence[Call]) -> list[Cell]:
    """All faults at each change, and at the first and the last read of each name in a point."""
    lasts = {(call.point, call.name): call.number for call in calls}
    ends = [call for call in calls if call.mutating or call.number in (1, lasts[(call.point, call.name)])]
    return [(call, mode) for call in ends for mode in MODES]


def sample(cells: Sequence[Cell], seed: int) -> list[Cell]:
    """Each call once, and each kind of fault as often as the others."""
    chance, modes = random.Random(seed), Counter[Mode]()
    names = dict.fromkeys((call.point, call.name) for call, _ in cells)
    selection = []
    for name in names:
        mode = min(MODES, key=lambda mode: (modes[mode], chance.random()))
        modes[mode] += 1
        selection.append(
            chance.choice([cell for cell in cells if (cell[0].point, cell[0].name) == name and cell[1] is mode])
        )
    return selection


def bad_cells(account: Account, story: str, seed: int, *, soaking: bool) -> tuple[int, dict[str, list[str]]]:
    """The number of cells of a story, and the errors of the wrong ones."""
    calls, waits = recorded(account, story)
    every, chance, bad = cells_of(calls), random.Random(seed), dict[str, list[str]]()
    cells = every if soaking else sample(every, seed)
    for number, (call, mode) in enumerate(cells):
        death = Death(chance.randrange(waits), chance.randrange(6)) if number % 4 == 1 else None
        fault = Fault(call, mode)
        wrong = Ec2MemberLife(STORIES[story], death=death, account=account, fault=fault).run()
        # A machine that dies first may leave the fault's call nothing to do.
        if wrong or not (fault.fired or death):
            bad[f"{call}-{mode.value} {death or ''}"] = wrong or ["the fault never came"]
    return len(cells), bad


@pytest.mark.timeout(14_400)
def test_ec2_member_crash_matrix(
    account: Account, seed: int, soaking: bool, record_property: Callable[[str, object], None]
) -> None:
    judged = {
        story: bad_cells(account, story, seed, soaking=soaking) for story in (STORY_NAMES if soaking else [SAMPLED])
    }
    record_property(
        "figure:ec2_members", {story: {"run": run, "bad": len(bad)} for story, (run, bad) in judged.items()}
    )
    assert {story: bad for story, (_, bad) in judged.items() if bad} == {}


def test_a_life_comes_to_all_that_is_done_for_members(account: Account) -> None:
    calls, _ = recorded(account, SAMPLED)
    assert {call.point for call in calls} == set(CALLS)
    assert {call.name for call in calls} >= {
        "elbv2.DescribeTargetHealth", "ec2.DescribeInstances", "elbv2.RegisterTargets", "elbv2.DeregisterTargets",
        "ec2.DeleteVolume",
    }  # fmt: skip


def test_the_judge_sees_a_member_that_is_no_target(account: Account, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(members, "admit", lambda *_: None)
    monkeypatch.setattr(members, "targets", lambda _, machine_ids: dict.fromkeys(machine_ids, HEALTHY))
    wrong = Ec2MemberLife(STORIES["1 grows to 3"], account=account).run()
    assert any(text.startswith("the balancer has ") for text in wrong)
