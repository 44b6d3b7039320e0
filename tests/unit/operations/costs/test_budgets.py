"""Budgets of a month: what would pass them is not bought, what runs goes on, and an event tells of it once."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime

import pytest

from stockyard.domain.month_budgets import BUDGET_NEARLY_REACHED, BUDGET_REACHED
from stockyard.domain.records import Cluster, Event
from stockyard.operations.costs.budgets import all_budgets, ledger
from stockyard.operations.costs.review import review
from stockyard.operations.listing import every
from stockyard.ports import Replace

TYPE = {"name": "s", "resources": {"cpu": "4", "memory": "8Gi"}, "usdPerHour": 0.5}
DAY = 24 * 3600


@pytest.fixture
def nodes(world, installation):
    world.clock.moment = datetime(2026, 6, 10, tzinfo=UTC)
    own = installation.nodes
    own.provider("sim", TYPE)
    return own


@pytest.fixture
def cluster(world, nodes):
    created = world.create()
    assert world.drive(created, "provision_cluster") == "ready"
    return world.cluster(created)


def with_budget(nodes, cluster, usd):
    current = nodes.services.store.get(Cluster, cluster.id)
    changed = replace(current, limits={"usd_month": str(usd)}, version=current.version + 1)
    nodes.services.store.commit(Replace(changed))
    return changed


def forecast(nodes):
    [budget] = ledger(nodes.services, all_budgets(nodes.services)).budgets
    return budget.forecast


def budget_events(nodes):
    """The budget events so far, as (reason, subject)."""
    events = every(nodes.services.store, Event)
    return [
        (event.reason, event.subject)
        for event in events
        if event.detail_type != "NodeClaim" and "Budget" in event.reason
    ]


def test_what_would_pass_the_budget_waits_and_what_runs_goes_on(nodes, cluster):
    with_budget(nodes, cluster, 10_000)
    standing, hours = forecast(nodes), 20.5 * 24
    with_budget(nodes, cluster, standing + 0.5 * hours * 1.5)
    first, second = (nodes.claim(name, cluster_ref=cluster.id) for name in ("one", "two"))
    assert nodes.schedule()["bound"] == 1
    nodes.relay()
    assert nodes.now(first).phase == "Available"
    waiting = nodes.now(second)
    assert (waiting.phase, waiting.reason, waiting.placement) == ("Pending", BUDGET_REACHED, None)
    assert "cluster demo" in waiting.message
    assert budget_events(nodes) == [(BUDGET_REACHED, cluster.id)]
    nodes.schedule()
    assert len(budget_events(nodes)) == 1
    with_budget(nodes, cluster, 10_000)
    assert nodes.schedule()["bound"] == 1


def test_event_at_eighty_percent_is_told_once_a_month(world, nodes, cluster):
    with_budget(nodes, cluster, 10_000)
    with_budget(nodes, cluster, forecast(nodes) / 0.85)
    assert (review(nodes.services), review(nodes.services)) == (1, 0)
    assert budget_events(nodes) == [(BUDGET_NEARLY_REACHED, cluster.id)]
    world.clock.advance(25 * DAY)
    assert (review(nodes.services), review(nodes.services)) == (1, 0), "a whole month costs more than what was left"
    assert budget_events(nodes)[1:] == [(BUDGET_REACHED, cluster.id)]
