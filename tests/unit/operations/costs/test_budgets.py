"""Budgets of a month: what would pass them is not bought, what runs goes on, and an event tells of it once."""

from __future__ import annotations

import math
from dataclasses import replace
from datetime import UTC, datetime

import pytest

from stockyard.domain.models.base import read
from stockyard.domain.models.pools.pools import PoolCreate
from stockyard.domain.month_budgets import BUDGET_NEARLY_REACHED, BUDGET_REACHED
from stockyard.domain.nodes.records import NewClaim
from stockyard.domain.records import Cluster, Event
from stockyard.errors import BudgetReached
from stockyard.operations.clusters.changes.prices import limits_remarks
from stockyard.operations.clusters.creation import create
from stockyard.operations.costs.budgets import all_budgets, budgets_over, ledger
from stockyard.operations.costs.kept_sums import used_by_tenant
from stockyard.operations.costs.present_prices import PresentPrices
from stockyard.operations.costs.report import report
from stockyard.operations.costs.review import review
from stockyard.operations.fleet.explain import plan_claim
from stockyard.operations.fleet.pools.plan import change_warnings, plan_pool
from stockyard.operations.fleet.pools.pools import create_pool
from stockyard.operations.listing import every
from stockyard.operations.quotas.limits import set_quota
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


def test_budget_lower_than_what_is_spent_is_reached_at_once_and_what_waited_goes_on_with_the_month(
    world, nodes, cluster
):
    set_quota(nodes.services, "usd_month", 10_000, 0)
    running = nodes.claim("one", cluster_ref=cluster.id)
    nodes.schedule()
    nodes.relay()
    world.clock.advance(10 * DAY)
    set_quota(nodes.services, "usd_month", 1, 1)
    waiting = nodes.claim("two")
    nodes.schedule()
    assert (nodes.now(waiting).reason, nodes.now(running).phase) == (BUDGET_REACHED, "Available")
    assert budget_events(nodes) == [(BUDGET_REACHED, "quota/usd_month")]
    assert report(nodes.services)["budgets"][0]["percent"] > 100
    # The next month: the budget has room for what runs and one node more.
    world.clock.moment = datetime(2026, 7, 1, tzinfo=UTC)
    set_quota(nodes.services, "usd_month", 100_000, 2)
    nodes.schedule()
    assert nodes.now(waiting).placement is not None
    assert used_by_tenant(nodes.services) == math.ceil(report(nodes.services)["budgets"][0]["forecast"])


def test_midnight_of_utc_begins_with_what_stands(world, nodes):
    nodes.provider("other", TYPE)
    world.clock.moment = datetime(2026, 6, 30, 23, 59, tzinfo=UTC)
    set_quota(nodes.services, "usd_month", 300, 0)
    claims = [nodes.claim(f"c{number}") for number in range(3)]
    nodes.schedule()
    assert all(nodes.now(claim).placement for claim in claims), "one minute is left, which costs next to nothing"
    nodes.relay()
    world.clock.moment = datetime(2026, 7, 1, tzinfo=UTC)
    late = nodes.claim("late")
    nodes.schedule()
    assert nodes.now(late).reason == BUDGET_REACHED
    assert {nodes.now(claim).phase for claim in claims} == {"Available"}


def test_unknown_prices_are_not_bought_and_owned_machines_are_free(nodes, monkeypatch):
    set_quota(nodes.services, "usd_month", 5, 0)
    nodes.provider("lab", {"name": "x", "resources": {"cpu": "64", "memory": "8Gi"}})
    claim = nodes.claim("one", resources={"cpu": "60"})
    nodes.schedule()
    assert (nodes.now(claim).reason, "lab.x has none" in nodes.now(claim).message) == (BUDGET_REACHED, True)
    assert budget_events(nodes) == [], "nothing is reached"
    monkeypatch.setattr(PresentPrices, "is_owned", lambda *_: True)
    nodes.schedule()
    assert nodes.now(claim).type_ref == "lab.x"
    assert report(nodes.services)["budgets"][0]["complete"]


def test_spot_counts_at_its_present_price(world, nodes):
    both = {**TYPE, "name": "both", "spotUsdPerHour": 0.1, "resources": {"cpu": "32", "memory": "8Gi"}}
    lab = nodes.provider("lab", both)
    requirements = ({"key": "karpenter.sh/capacity-type", "operator": "In", "values": ["spot"]},)
    nodes.claim("one", provider_ref="lab", requirements=requirements)
    nodes.schedule()
    nodes.relay()
    set_quota(nodes.services, "usd_month", 1000, 0)
    before = forecast(nodes)
    dearer = {"simulated": {"nodeTypes": [{**both, "spotUsdPerHour": 0.3}]}}
    nodes.services.store.commit(Replace(replace(lab, spec=dearer, version=2, generation=2)))
    assert forecast(nodes) == pytest.approx(3 * before, rel=0.01)


def test_new_cluster_that_a_budget_has_no_room_for_is_refused_and_its_plan_says_so(world, nodes):
    assert create.plan_creation(nodes.services, world.new_cluster("next"))["warnings"] == []
    set_quota(nodes.services, "usd_month", 10, 0)
    [warning] = create.plan_creation(nodes.services, world.new_cluster("next"))["warnings"]
    assert "the tenant has no room for this: 10.00 USD for 2026-06" in warning["detail"]
    with pytest.raises(BudgetReached, match="no room"):
        world.create("next")
    assert not [cluster for cluster in every(nodes.services.store, Cluster) if cluster.name == "next"]
    small = replace(world.new_cluster("small"), limits={"usd_month": "1"})
    set_quota(nodes.services, "usd_month", 100_000, 1)
    with pytest.raises(BudgetReached, match="the cluster"):
        create.create_cluster(nodes.services, small, "ann")


def test_plans_of_pools_and_claims_say_what_has_no_room(nodes, cluster):
    with_budget(nodes, cluster, forecast_of_all(nodes, cluster) + 0.5 * 20.5 * 24 * 1.5)
    services, current = nodes.services, nodes.services.store.get(Cluster, cluster.id)
    for quantity, count in ((1, 0), (2, 1)):
        new_pool = read(PoolCreate, {"name": "web", "quantity": quantity, "provider": "sim"}).new_pool()
        warnings = [entry["detail"] for entry in plan_pool(services, current, new_pool)["warnings"]]
        assert len(warnings) == count, warnings
    assert "no room" in warnings[0]
    assert plan_claim(services, NewClaim(cluster_ref=cluster.id, provider_ref="sim"))["warnings"] == []
    tight = read(PoolCreate, {"name": "web", "quantity": 1, "limits": {"usd_month": 1}}).new_pool()
    assert "pool web" in plan_pool(services, current, tight)["warnings"][0]["detail"]
    pool = create_pool(services, current, tight, "user:ann")
    more = replace(tight, quantity=3, limits={})
    assert len(change_warnings(services, current, pool, more)) == 1
    assert "reached at once" in limits_remarks(services, current, {"usd_month": "1"})[0]["detail"]


def forecast_of_all(nodes, cluster):
    with_budget(nodes, cluster, 10_000)
    return forecast(nodes)


def test_members_that_a_cluster_lacks_count_as_its_items(world, installation):
    """The items of a cluster have its members: what is bought for one that is missing is counted already."""
    services = installation.nodes.services
    created = world.create()
    assert world.drive(created, "provision_cluster") == "ready"
    sums = ledger(services, budgets_over(services, [(created.id, "")]))
    assert sums.missing_members == {}
    with_budget(installation.nodes, created, 5000)
    sums = ledger(services, budgets_over(services, [(created.id, "")]))
    assert sums.missing_members == {created.id: 1}
