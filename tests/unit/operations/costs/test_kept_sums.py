"""Sums of a large tenant: when they are kept, what a look at them reads, and what heals them."""

from __future__ import annotations

import json
import zlib
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from jsonschema import validate

from stockyard.domain.cost_records import SUMS, SUMS_BEHIND, KeptSums
from stockyard.domain.month_budgets import USD_MONTH
from stockyard.domain.records import Cluster, NodeClaim, Outbox
from stockyard.errors import StoreUnavailable
from stockyard.operations.costs import following, kept_sums
from stockyard.operations.costs.budgets import month_budgets, scope_of_tenant
from stockyard.operations.costs.kept_report import costs_by_cluster
from stockyard.operations.costs.kept_sums import ledger_now, tenant_sums, used_by_tenant
from stockyard.operations.costs.report import report
from stockyard.operations.listing import every
from stockyard.operations.quotas import limits as quotas
from stockyard.ports import Put, Remove, Replace
from tests.harness.sweeping import Reaper
from tests.unit.operations.fleet.pools.conftest import Yard, make_yard


@pytest.fixture
def yard(monkeypatch: pytest.MonkeyPatch) -> Yard:
    monkeypatch.setattr(kept_sums, "LARGE", 3)
    yard = make_yard()
    yard.pool("workers", quantity=3)
    yard.settle()
    return yard


def nodes(yard: Yard) -> int:
    lines = report(yard.nodes.services)["lines"]
    return sum(line["quantity"] for line in lines if line["kind"] == "nodes")


def parts(yard: Yard) -> list[KeptSums]:
    return list(every(yard.nodes.services.store, KeptSums))


def test_a_look_at_what_has_not_changed_reads_no_claim(yard: Yard, monkeypatch: pytest.MonkeyPatch) -> None:
    assert nodes(yard) == 3
    kept_parts = parts(yard)
    kinds, store = list[type](), type(yard.nodes.services.store)
    for name in ("list", "get_all"):
        real = getattr(store, name)

        def counted(self: Any, kind: type, *arguments: Any, _real: Any = real, **options: Any) -> Any:
            kinds.extend([kind] if not arguments or arguments[0] else [])
            return _real(self, kind, *arguments, **options)

        monkeypatch.setattr(store, name, counted)
    yard.nodes.clock.advance(60)
    assert nodes(yard) == 3
    assert kinds.count(NodeClaim) + kinds.count(Cluster) == 0
    assert parts(yard) == kept_parts, "nothing is new, so nothing is written"


def test_a_small_tenant_keeps_nothing(yard: Yard, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kept_sums, "LARGE", 1000)
    assert nodes(yard) == 3
    assert parts(yard) == []


def test_first_sums_are_read_by_parts(yard: Yard, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kept_sums, "_PAGE", 2)
    monkeypatch.setattr(kept_sums, "READ_SECONDS", -1)
    for _ in range(2):
        with pytest.raises(StoreUnavailable, match="added up for the first time"):
            tenant_sums(yard.nodes.services)
    assert nodes(yard) == 3


def test_mistakes_do_not_last(yard: Yard) -> None:
    """A claim that is changed behind our back, and a cluster whose settings are."""
    services = yard.nodes.services
    assert nodes(yard) == 3
    claim = next(every(services.store, NodeClaim))
    services.store.commit(Replace(replace(claim, placement=None, version=claim.version + 1)))
    assert nodes(yard) == 3
    yard.nodes.clock.advance(following.FACTS_LAST.total_seconds() + 1)
    assert nodes(yard) == 2


@pytest.mark.parametrize("spoiled", ["torn", "old", "long"])
def test_sums_that_cannot_be_followed_are_made_anew(yard: Yard, monkeypatch: pytest.MonkeyPatch, spoiled: str) -> None:
    assert nodes(yard) == 3
    kept_parts = parts(yard)
    if spoiled == "torn":
        yard.nodes.services.store.commit(Put(replace(kept_parts[0], parts=3, version=kept_parts[0].version + 1)))
    elif spoiled == "old":
        yard.nodes.claim("more")
        yard.nodes.schedule()
        monkeypatch.setattr(kept_sums, "FOLLOW_SECONDS", 60)
    else:
        monkeypatch.setattr(kept_sums, "PART_BYTES", 1)
    yard.nodes.clock.advance(timedelta(hours=1).total_seconds())
    assert nodes(yard) == (4 if spoiled == "old" else 3)


def test_a_look_counts_a_part_and_the_sweep_the_rest(yard: Yard, monkeypatch: pytest.MonkeyPatch) -> None:
    """The answer says until when all is counted. The rest is asked for once a minute."""
    services = yard.nodes.services
    reaper = Reaper(yard.nodes.registry, services.clock, lambda _: services)
    assert kept_sums.are_due(services)
    reaper.run()
    assert (services.tenant, SUMS) in reaper.scopes
    assert parts(yard)[0].is_complete
    assert not kept_sums.are_due(services)
    yard.nodes.clock.advance(5)
    for number in range(2):
        yard.nodes.claim(f"more-{number}")
    yard.nodes.schedule()
    happened = services.now()
    yard.nodes.clock.advance(5)
    monkeypatch.setattr(kept_sums, "A_LOOK", following.Room(200, 0, 0))
    for _ in range(2):
        document = report(services)
        assert document["as_of"] <= happened < document["until"]
    events = [item for item in every(services.store, Outbox) if item.payload.get("detail_type") == SUMS_BEHIND]
    schema = json.loads((Path(__file__).parents[4] / "docs/events/SumsBehind.json").read_text(encoding="utf-8"))
    validate(events[0].payload["detail"], schema)
    assert len(events) == 1
    assert kept_sums.catch_up(services, lambda: True)
    assert parts(yard)[0].is_complete
    assert report(services)["as_of"] == report(services)["until"]
    assert nodes(yard) == 5


def test_the_background_ends_where_a_step_keeps_nothing(yard: Yard, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each further step would only begin again: sums that are too long would be read for ever."""
    monkeypatch.setattr(kept_sums, "STEP_SECONDS", 0)
    monkeypatch.setattr(kept_sums, "MOST_PARTS", 0)
    with pytest.raises(StoreUnavailable):
        kept_sums.catch_up(yard.nodes.services, lambda: False)
    monkeypatch.setattr(kept_sums, "MOST_PARTS", 12)
    assert kept_sums.catch_up(yard.nodes.services, lambda: False)
    assert parts(yard)[0].is_complete


def test_a_list_tells_costs_of_the_clusters_it_shows(yard: Yard, monkeypatch: pytest.MonkeyPatch) -> None:
    """The same as a small tenant is told; of sums that are only being made nothing."""
    services = yard.nodes.services
    costs = [costs_by_cluster(services)(cluster.id) for cluster in every(services.store, Cluster)]
    quotas_of_sums = quotas.views(services, kept_sums.most_of_pools(services))
    monkeypatch.setattr(kept_sums, "LARGE", 1000)
    costs_of_few = [costs_by_cluster(services)(cluster.id) for cluster in every(services.store, Cluster)]
    assert costs == costs_of_few
    assert any(costs)
    assert quotas.views(services) == quotas_of_sums
    assert costs_by_cluster(services)("none") is None


def test_the_budget_of_a_large_tenant_goes_by_its_sums(yard: Yard, monkeypatch: pytest.MonkeyPatch) -> None:
    services = yard.nodes.services
    quotas.set_quota(services, USD_MONTH, 500, 0)
    used = used_by_tenant(services)
    (budget,) = ledger_now(services, month_budgets(services, [scope_of_tenant(services)])).budgets
    assert parts(yard)
    monkeypatch.setattr(kept_sums, "LARGE", 1000)
    assert used_by_tenant(services) == used > 0
    assert budget.percent == report(services)["budgets"][0]["percent"]


def former(yard: Yard) -> KeptSums:
    """Sums in the form of the release before. There each cluster has its kinds of claims and its items in place of
    their numbers; in one part of its own id, which alone is there afterwards."""
    store = yard.nodes.services.store
    tenant_sums(yard.nodes.services)
    own = parts(yard)
    document = json.loads(zlib.decompress(b"".join(part.data for part in own)))
    for cluster in document["clusters"]:
        cluster[2] = [[*document["kinds"][kind], *numbers] for kind, *numbers in cluster[2]]
        cluster[6] = document["items"][cluster[6]]
    assert sum(len(cluster[2]) for cluster in document["clusters"]) > 0
    del document["kinds"], document["items"]
    data = zlib.compress(json.dumps(document).encode())
    replaced = [replace(own[0], id="00", parts=2), replace(own[0], id="01", parts=2, data=data)]
    store.commit(*(Remove(KeptSums, part.id) for part in own), *map(Put, replaced))
    return replaced[0]


def test_sums_that_the_release_before_has_kept_are_read_and_stay_as_they_are(
    yard: Yard, monkeypatch: pytest.MonkeyPatch
) -> None:
    head = former(yard)
    monkeypatch.setattr(kept_sums, "_read_on", lambda *_: pytest.fail("the sums are made anew"))
    yard.nodes.clock.advance(kept_sums.KEEP_SECONDS)
    yard.pool("others", quantity=2)
    assert nodes(yard) == 3
    assert [part.id for part in parts(yard)] == ["00", "01", "2-00", "2-01"]
    # Who runs the release before reads its own parts first, in the same list, and goes on with them.
    assert parts(yard)[0] == head
    assert nodes(yard) == 3
