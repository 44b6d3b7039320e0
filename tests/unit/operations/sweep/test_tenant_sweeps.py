"""Many clusters and tenants: each run of the sweep does a part, and goes on where the last one stopped."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from itertools import pairwise

import pytest

from stockyard.domain.records import CloudAccount, Cluster, Fact
from stockyard.domain.values import times
from stockyard.lifecycle import sweeping
from stockyard.operations.services import Services
from stockyard.operations.sweep import records, run, tenant_sweeps
from stockyard.ports import Create
from tests.unit.operations.conftest import World, make_world

SCOPE_SECONDS = 0.1
RUN = timedelta(minutes=3)
TENANTS = ("large", *(f"t{number:03}" for number in range(10)))
"""Of the small yard."""


class Yard:
    """Clusters of which one tenant has half, and what each run of the sweep has visited; ``seconds`` of a visit."""

    def __init__(
        self, world: World, monkeypatch: pytest.MonkeyPatch, clusters: int, tenants: int, seconds: float
    ) -> None:
        self.world, self.size, self.seconds = world, clusters, seconds
        self.clusters: list[tuple[str, str]] = []
        """(tenant, cluster) as they were visited."""
        self.scopes: list[tuple[str, str]] = []
        first = world.create("first")
        account = world.services.store.get(CloudAccount, "1")
        assert account is not None
        for tenant in ("large", *(f"t{number:03}" for number in range(tenants))):
            world.registry.store(tenant).commit(Create(account))
        for number in range(clusters - 1):
            tenant = "large" if number < clusters // 2 else f"t{number % tenants:03}"
            store = world.registry.store(tenant)
            name = f"clu_{number:026}"
            store.commit(Create(replace(first, id=name, client_id=f"c{number}", operation_id=None, version=1)))
        self.reaper = run.Reaper(world.registry, world.clock, self.services_of, self._hand_out)
        monkeypatch.setattr(records, "sweep_cluster", self._visit)

    def services_of(self, tenant: str) -> Services:
        registry = self.world.registry
        store = registry.platform() if tenant == "_platform" else registry.store(tenant)
        return replace(self.world.services, store=store)

    def _visit(self, services: Services, cluster: Cluster) -> str:
        self.clusters.append((services.tenant, cluster.id))
        self.world.clock.advance(self.seconds)
        return ""

    def _hand_out(self, tenant: str, scope: str) -> None:
        self.scopes.append((tenant, scope))
        self.world.clock.advance(SCOPE_SECONDS)

    def sweep(self) -> float:
        """One run on its schedule; the seconds it took."""
        start = self.world.clock.now()
        assert self.reaper.run(until=start + RUN)["failures"] == []
        seconds = (self.world.clock.now() - start).total_seconds()
        self.world.clock.advance(max(0.0, 300 - seconds))
        return seconds


@pytest.fixture
def small_yard(monkeypatch: pytest.MonkeyPatch) -> Yard:
    """A run has time for some 50 of its 160 clusters, and a turn for 15."""
    monkeypatch.setattr(tenant_sweeps, "PAGE", 5)
    monkeypatch.setattr(tenant_sweeps, "PAGES", 3)
    return Yard(make_world(), monkeypatch, 160, 10, 3.5)


def test_all_scopes_of_three_thousand_clusters_are_visited_within_two_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    yard, visited = Yard(make_world(), monkeypatch, 3000, 60, 0.1), []
    for _ in range(2):
        assert yard.sweep() < RUN.total_seconds() + tenant_sweeps.PAGE, "a page is ended, and no more is begun"
        visited.append(len(set(yard.clusters)))
    assert visited[0] < visited[1] == 3000, visited
    assert len(set(yard.scopes)) == 62, "of each tenant its account"


def test_no_tenant_waits_behind_a_large_one(small_yard: Yard) -> None:
    for _ in range(12):
        small_yard.sweep()
    assert len(set(small_yard.clusters)) == small_yard.size
    own = {tenant: [at for at, (owner, _) in enumerate(small_yard.clusters) if owner == tenant] for tenant in TENANTS}
    for tenant, moments in own.items():
        # Between two turns of a tenant all others have had theirs.
        apart = max(after - before for before, after in pairwise(moments))
        assert apart <= small_yard.size - small_yard.size // 2 + 15 + tenant_sweeps.PAGE, tenant


def test_two_runs_at_once_leave_nothing_out(small_yard: Yard) -> None:
    """Another run of one turn begins in the middle of each run, from where the first one is by then."""
    visit, calls = small_yard._visit, [0]

    def interrupted(services: Services, cluster: Cluster) -> str:
        calls[0] += 1
        if calls[0] % 30 == 0:
            small_yard.reaper.run(until=small_yard.world.clock.now())
        return visit(services, cluster)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(records, "sweep_cluster", interrupted)
        for _ in range(12):
            small_yard.sweep()
    assert len(set(small_yard.clusters)) == small_yard.size


@contextmanager
def dying_at(yard: Yard, name: str) -> Iterator[list[int]]:
    """The process ends whenever it works on this cluster."""
    deaths = [0]
    visit = yard._visit

    def deadly(services: Services, cluster: Cluster) -> str:
        if cluster.id == name:
            deaths[0] += 1
            raise Died
        return visit(services, cluster)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(records, "sweep_cluster", deadly)
        yield deaths


class Died(BaseException):
    """As Lambda's time-out: nothing runs afterwards."""


def test_a_cluster_that_ends_the_process_holds_up_only_its_own_page(small_yard: Yard) -> None:
    with dying_at(small_yard, f"clu_{22:026}") as deaths:
        for _ in range(16):
            try:
                small_yard.sweep()
            except Died:
                small_yard.world.clock.advance(300)
    assert 2 <= deaths[0] <= 6, "it is met again, once in a round"
    unseen = small_yard.size - len(set(small_yard.clusters))
    assert 1 <= unseen <= tenant_sweeps.PAGE
    assert ("large", f"clu_{22:026}") not in small_yard.clusters


def test_only_a_tenant_of_several_pages_has_a_position(small_yard: Yard) -> None:
    small_yard.sweep()
    positions = {
        tenant: small_yard.world.registry.store(tenant).get(Fact, tenant_sweeps.POSITION) for tenant in TENANTS
    }
    fact = positions.pop("large")
    assert fact is not None
    assert fact.value == f"Cluster/clu_{14:026}"


def test_what_two_sweeps_at_once_see_is_one_sighting() -> None:
    now = datetime(2026, 11, 23, 12, tzinfo=UTC)
    old, grace = "2026-11-01T00:00:00.000Z", timedelta(hours=1)
    for seconds, counts in ((0, False), (119, False), (120, True)):
        assert sweeping.old_enough(old, times.to_text(now - timedelta(seconds=seconds)), now, grace) is counts


def test_turns_of_many_tenants_are_handed_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """All is done by the turns together, and takes none of the time of the run."""
    yard, handed_out = Yard(make_world(), monkeypatch, 160, run.FEW_TENANTS, 3.5), list[Sequence[str]]()
    reaper = replace(yard.reaper, hand_out_tenants=handed_out.append)
    start = yard.world.clock.now()
    assert reaper.run(until=start + RUN)["failures"] == []
    assert (yard.clusters, yard.world.clock.now()) == ([], start)
    tenants = [tenant for group in handed_out for tenant in group]
    assert len(tenants) == len(set(tenants)) > run.FEW_TENANTS
    assert [len(group) for group in handed_out] == [run.GROUP, len(tenants) - run.GROUP]
    for group in handed_out:
        # Each has a worker, and so the time of one, of its own.
        report = reaper.sweep_tenants(group, until=yard.world.clock.now() + timedelta(hours=1))
        assert (report["failures"], report["distrusted"]) == ([], False)
    assert len(set(yard.clusters)) == yard.size
    assert {tenant for tenant, _ in yard.scopes} == set(tenants)
    first = handed_out[0][0]
    reaper.run(until=yard.world.clock.now() + RUN)
    assert handed_out[2][0] == tenants[1], "each tenant comes first in its group at times"
    assert handed_out[3][-1] == first


def test_a_turn_that_was_handed_out_ends_in_time_and_goes_on_later(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tenant_sweeps, "PAGE", 5)
    yard = Yard(make_world(), monkeypatch, 160, 10, 3.5)
    for _ in range(3):
        start = yard.world.clock.now()
        yard.reaper.sweep_tenants(["large"], until=start + RUN)
        assert yard.world.clock.now() - start < RUN + timedelta(seconds=tenant_sweeps.PAGE * 3.5 + 1)
    assert len({cluster for tenant, cluster in yard.clusters if tenant == "large"}) == yard.size // 2


def test_few_tenants_have_their_turns_in_the_run(small_yard: Yard) -> None:
    handed_out = list[Sequence[str]]()
    replace(small_yard.reaper, hand_out_tenants=handed_out.append).run(until=small_yard.world.clock.now() + RUN)
    assert handed_out == []
    assert small_yard.clusters != []
