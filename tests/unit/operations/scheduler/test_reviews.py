"""Budgets that a pass of the schedule looks at: the longest due first, and none is kept by another's failure."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from stockyard.domain.month_budgets import WATCH, BudgetWatch
from stockyard.errors import StoreUnavailable
from stockyard.operations.costs import review as reviews
from stockyard.operations.scheduler.wake import BUDGETS_SECONDS, Scheduler
from stockyard.operations.services import Services
from stockyard.ports import Put
from tests.unit.operations.conftest import World

FAILURES = {"initech": KeyError("a fault of ours"), "umbrella": StoreUnavailable("throttled")}


@pytest.fixture
def tenants(world: World, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Tenants whose budgets are looked at. Of those that are due, who waits longest is last by name."""
    order: list[str] = []

    def review(services: Services) -> int:
        order.append(services.tenant)
        if services.tenant in FAILURES:
            raise FAILURES[services.tenant]
        return 1

    monkeypatch.setattr(reviews, "review", review)
    for tenant in ("umbrella", "initech", "globex", "acme"):
        world.registry.store(tenant).commit(Put(BudgetWatch(WATCH, world.services.now(), due_at=world.services.now())))
        world.clock.advance(1)
    return order


def scheduler(world: World, seconds: Callable[[], float] = lambda: 0.0) -> Scheduler:
    return Scheduler(
        world.registry, lambda tenant: replace(world.services, store=world.registry.store(tenant)), seconds
    )


def test_one_tenants_failure_keeps_no_other_and_the_retryable_is_raised(world: World, tenants: list[str]) -> None:
    with pytest.raises(StoreUnavailable):
        scheduler(world).review_budgets(world.clock.now())
    assert tenants == ["umbrella", "initech", "globex", "acme"]


def test_no_other_budget_is_looked_at_when_the_time_is_over(world: World, tenants: list[str]) -> None:
    moments = iter([0.0, 0.0, BUDGETS_SECONDS])
    with pytest.raises(StoreUnavailable):
        scheduler(world, lambda: next(moments)).review_budgets(world.clock.now())
    assert tenants == ["umbrella"]
