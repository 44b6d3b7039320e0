"""Sums that are kept equal the sum over all claims, whatever happens, and however its events come: twice, late, in
another order, or while the sums are being made."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from random import Random
from typing import Any

import pytest

from stockyard.domain.cost_records import KeptSums, Usage
from stockyard.domain.month_budgets import hours_between, month_of, month_start
from stockyard.domain.records import Cluster, Event, NodeClaim, Quota
from stockyard.domain.values import times
from stockyard.errors import StockyardError, StoreUnavailable
from stockyard.operations.clusters.removal.delete import delete_cluster
from stockyard.operations.costs import following, gauges, kept_sums
from stockyard.operations.costs.kept_sums import recent_sums, tenant_sums
from stockyard.operations.costs.report import report
from stockyard.operations.costs.tenant_sums import TenantSums
from stockyard.operations.listing import every
from stockyard.operations.services import Services
from stockyard.ports import Put
from tests.unit.operations.conftest import make_world
from tests.unit.operations.nodes import Nodes

TYPES = [
    {"name": f"t{number}", "resources": {"cpu": str(2**number), "memory": "64Gi"}, "usdPerHour": price}
    for number, price in enumerate((0.05, 0.2, None), 1)
]
BRIEF = ("claim", "claim", "schedule", "relay", "delete")
READERS: tuple[Callable[[Services], TenantSums], ...] = (tenant_sums, recent_sums)
STEPS = (*BRIEF, "hours", "cluster", "removal", "budget", "look", "look")


class Story:
    """A tenant to which one thing after the other happens."""

    def __init__(self, chance: Random) -> None:
        self.chance, self.world = chance, make_world()
        self.world.clock.moment = datetime(2026, 1, 27, tzinfo=UTC)
        self.nodes = Nodes.of(self.world.registry, self.world.services, self.world.clock)
        self.services, self.store = self.nodes.services, self.nodes.services.store
        self.nodes.provider("lab", *[{k: v for k, v in each.items() if v is not None} for each in TYPES])
        self.number = 0

    def step(self, kind: str) -> None:
        """One thing that happens; what is refused has not."""
        if kind == "look":
            self.look()
            return
        with suppress(StockyardError):
            self._step(kind)

    def _step(self, kind: str) -> None:
        claims, clusters = list(every(self.store, NodeClaim)), list(every(self.store, Cluster))
        self.number += 1
        name = f"n{self.number}"
        if kind == "claim":
            cluster = self.chance.choice(["", f"n{self.number + 3}", *(each.name for each in clusters)])
            requirement = {"key": "vcluster.com/node-type", "values": [f"lab.t{self.chance.randint(1, 3)}"]}
            self.nodes.claim(name, cluster_ref=cluster, requirements=[requirement], strict=False)
        elif kind == "schedule":
            self.nodes.schedule()
        elif kind == "relay":
            self.nodes.relay()
        elif kind == "delete" and claims:
            self.nodes.delete(self.chance.choice(claims))
        elif kind == "hours":
            self.nodes.clock.advance(self.chance.choice((1, 60, 3600, 90_000, 400_000)))
        elif kind == "cluster" and len(clusters) < 4:
            created = self.world.create(name)
            if self.chance.random() < 0.8:
                self.world.drive(created, "provision_cluster")
        elif kind == "removal" and clusters:
            delete_cluster(self.services, (leaving := self.chance.choice(clusters)).id, "ann")
            self.world.drive(leaving, "delete_cluster")
        elif kind == "budget":
            self.store.commit(Put(Quota("usd_month", self.chance.choice((40, 4000)), self.services.now())))

    def look(self) -> None:
        """Look while events come as they like, which keeps something or nothing; then look at all of them."""
        if self.chance.random() < 0.5:
            with pytest.MonkeyPatch.context() as patch:
                patch.setattr(following, "_events", self._as_they_like)
                patch.setattr(kept_sums, "KEEP_RECORDS", 1)
                # Who waits counts a part, and lets the rest be counted later.
                patch.setattr(kept_sums, "A_LOOK", following.Room(*(self.chance.randint(1, 3) for _ in range(3))))
                patch.setattr(kept_sums, "ASK_SECONDS", self.chance.choice((0, 60)))
                self.sums(self.chance.choice(READERS))
            self.nodes.clock.advance(self.chance.choice((0, 30)))
        self.check()

    def _as_they_like(self, services: Any, since: str, most: int) -> Iterator[tuple[Sequence[Event], bool]]:
        """Young events may come later, each may come twice, and none has a place."""
        late = times.to_text(self.world.clock.now() - timedelta(minutes=1))
        events = [event for event in every(services.store, Event) if event.id >= since]
        listed = [event for event in events if event.time < late or self.chance.random() < 0.8]
        listed += self.chance.choices(listed, k=3) if listed else []
        self.chance.shuffle(listed)
        for begin in range(0, len(listed), most):
            yield listed[begin : begin + most], begin + most < len(listed)

    def sums(self, read: Callable[[Services], TenantSums] = tenant_sums) -> TenantSums:
        for _ in range(50):
            try:
                return read(self.services)
            except StoreUnavailable:
                self.step(self.chance.choice(BRIEF))
        raise AssertionError("the sums are never there")

    def check(self) -> None:
        """The answers from kept sums are those from sums that are made now, and the nodes of both are the claims."""
        sums = self.sums()
        now = self.services.now()
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(kept_sums, "LARGE", 10**9)
            added = tenant_sums(self.services)
        assert in_digits(report(self.services, all_sums=sums)) == in_digits(report(self.services, all_sums=added))
        names = {key: {"cluster": name} for key, name in sums.cluster_names().items()}
        tallies = [sorted(map(str, gauges._of_claims(list(each.groups), names))) for each in (sums, added)]
        assert tallies[0] == tallies[1]
        lines = [line for line in report(self.services, all_sums=sums)["lines"] if line["kind"] == "nodes"]
        placed = [claim.placement for claim in every(self.store, NodeClaim) if claim.placement]
        usages = [usage for usage in every(self.store, Usage, f"{month_of(now)}/") if not usage.cluster]
        begin = month_start(now)
        stood = [(each.usd_hour, each.decided_at, now) for each in placed]
        stood += [(usage.usd_hour, usage.since, usage.until) for usage in usages]
        spent = sum((usd or 0) * hours_between(max(since, begin), until) for usd, since, until in stood if usd)
        assert sum(line["quantity"] for line in lines) == len(placed)
        assert sum(line["spent"] or 0 for line in lines) == pytest.approx(spent, abs=1e-3 * (1 + len(lines)))


def in_digits(document: Any) -> Any:
    """The document with numbers at the digits that people read: means are kept to a millisecond."""
    if isinstance(document, dict):
        return {key: in_digits(value) for key, value in document.items()}
    if isinstance(document, list):
        return [in_digits(value) for value in document]
    return round(document, 2) if isinstance(document, float) else document


def test_kept_sums_are_those_of_the_claims(seed: int, soaking: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kept_sums, "LARGE", 0)
    monkeypatch.setattr(kept_sums, "_PAGE", 2)
    parts = 0
    for number in range(150 if soaking else 3):
        chance = Random(f"{seed}/{number}")
        # Some make their sums in as many calls as there are pages, while other things happen.
        monkeypatch.setattr(kept_sums, "READ_SECONDS", chance.choice((-1, 12)))
        story = Story(chance)
        for _ in range(40):
            story.step(chance.choice(STEPS))
        story.check()
        parts += len(list(every(story.store, KeptSums)))
    assert parts, "nothing was kept"
