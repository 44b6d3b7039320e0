"""Over random months no purchase brings the forecast above the budget, whatever becomes of a launch, and whoever else
buys at the same moment."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from local.testing.memory_store import MemoryStore
from stockyard.domain.month_budgets import BUDGET_REACHED
from stockyard.domain.records import NodeClaim, Quota
from stockyard.errors import StockyardError
from stockyard.operations.costs import kept_sums
from stockyard.operations.costs.budgets import all_budgets, ledger
from stockyard.operations.listing import every
from stockyard.ports import Put, Write
from tests.unit.operations.conftest import make_world
from tests.unit.operations.nodes import Nodes

PRICES = (0.05, 0.2, 0.9, 3.0)
TYPES = [
    {"name": f"t{number}", "resources": {"cpu": str(2**number), "memory": "64Gi"}, "usdPerHour": price}
    for number, price in enumerate(PRICES, 1)
]
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("claim"), st.integers(1, 16)),
        st.tuples(st.just("delete"), st.integers(0, 30)),
        st.tuples(st.just("hours"), st.integers(1, 300)),
        st.tuples(st.just("budget"), st.integers(0, 4000)),
        st.tuples(st.just("schedule"), st.integers(0, 3)),
    ),
    min_size=4,
    max_size=30,
)


class Month:
    """A tenant with a budget, whose claims are scheduled by passes that may come between each other."""

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        world = make_world()
        world.clock.moment = datetime(2026, 1, 20, tzinfo=UTC)
        self.nodes = Nodes.of(world.registry, world.services, world.clock)
        self.nodes.provider("lab", *TYPES)
        self.store = self.nodes.services.store
        self.patch = patch
        self.count = 0

    def step(self, kind: str, number: int) -> None:
        claims = list(every(self.store, NodeClaim))
        if kind == "claim":
            self.nodes.claim(f"c{self.count}", resources={"cpu": str(number)})
            self.count += 1
        elif kind == "delete" and claims:
            self.nodes.delete(claims[number % len(claims)])
            self.nodes.relay()
        elif kind == "hours":
            self.nodes.clock.advance(number * 3600)
        elif kind == "budget":
            self.store.commit(Put(Quota("usd_month", number, self.nodes.services.now())))
        elif kind == "schedule":
            self.schedule(number)

    def schedule(self, number: int) -> None:
        """A pass whose commit of this number comes after another pass, with a claim that goes before all others."""
        original, commits = MemoryStore.commit, iter(range(1, 10_000))

        def commit(store: MemoryStore, *writes: Write) -> None:
            if next(commits) == number:
                with self.patch.context() as patch:
                    patch.setattr(MemoryStore, "commit", original)
                    self.nodes.claim(f"c{self.count}", resources={"cpu": "4"}, priority=9)
                    self.count += 1
                    self.nodes.schedule()
            original(store, *writes)

        before = self.bound()
        with self.patch.context() as patch:
            patch.setattr(MemoryStore, "commit", commit)
            self.nodes.schedule()
        if self.bound() - before:
            self.check()

    def bound(self) -> set[str]:
        return {claim.id for claim in every(self.store, NodeClaim) if claim.placement is not None}

    def check(self) -> None:
        for budget in ledger(self.nodes.services, all_budgets(self.nodes.services)).budgets:
            most = budget.forecast + budget.launching * budget.hours_left
            assert most <= budget.usd + 1e-3, (most, budget)


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
@given(steps=STEPS, large=st.booleans())
def test_nothing_is_bought_above_the_budget(steps: list[tuple[str, int]], large: bool) -> None:
    with pytest.MonkeyPatch.context() as patch:
        if large:  # the budget goes by sums that are kept
            patch.setattr(kept_sums, "LARGE", 0)
        month = Month(patch)
        month.step("budget", 500)
        for kind, number in steps:
            month.step(kind, number)
        month.schedule(1)
        # What waits has a reason that is true: with a large budget all of it is bought.
        reasons = {claim.reason for claim in every(month.store, NodeClaim) if claim.placement is None}
        assert reasons <= {BUDGET_REACHED}
        month.step("budget", 10**8)
        month.schedule(0)
        assert all(claim.placement is not None for claim in every(month.store, NodeClaim) if not claim.deleting)


def test_two_passes_do_not_buy_for_the_same_room() -> None:
    """A claim waits; a node goes, which gives room for one; and before the pass has written that the claim gets it,
    another pass gives it to a claim that goes before it. What is said of the claim that waits is not new."""
    with pytest.MonkeyPatch.context() as patch:
        month = Month(patch)
        month.step("budget", 110)
        for cpu in (4, 4):
            month.step("claim", cpu)
            month.schedule(0)
        claims: list[Any] = list(every(month.store, NodeClaim))
        assert [claim.reason for claim in claims] == ["", BUDGET_REACHED]
        month.step("delete", 0)
        month.schedule(1)
        assert len(month.bound()) == 1
        month.check()
        with pytest.raises(StockyardError):
            month.nodes.claim("c1")
