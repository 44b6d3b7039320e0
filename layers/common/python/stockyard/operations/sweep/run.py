"""One sweep over all tenants: leases, stuck work, orphans in the realm and among the secrets. What asks clouds and
vendors is handed out, one place to a worker; see ``places``."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from typing import Any

from stockyard.domain import times
from stockyard.domain.platform import PLATFORM, USES
from stockyard.domain.records import CloudAccount, Cluster, Fact, NodeClaim, NodeEnvironment, NodeProvider
from stockyard.lifecycle import sweeping
from stockyard.metrics import CERTIFICATE_DAYS
from stockyard.operations.listing import every
from stockyard.operations.node_providers import limited_types
from stockyard.operations.node_providers.visible import all_providers
from stockyard.operations.services import Services
from stockyard.operations.sweep import orphans as sweep_orphans
from stockyard.operations.sweep import records as sweep_records
from stockyard.operations.sweep.places import PlaceSweep, places_of, remove_environment
from stockyard.operations.sweep.tally import Tally
from stockyard.ports import Clock, Put, Registry

TURN = "swept-last"
"""The platform's fact of whose turn it was last: a tenant's, or the platform's own."""
MARK = "swept-table"
"""The platform's fact of the last sweep: which table it was, and when."""


@dataclass(frozen=True, slots=True)
class Reaper:
    """``services_of`` gives a tenant's ports; ``registry`` spans tenants; ``hand_out`` has one place (tenant, place)
    swept by a worker of its own, and does not wait for it."""

    registry: Registry
    clock: Clock
    services_of: Callable[[str], Services]
    hand_out: Callable[[str, str], None]

    def run(self, *, reconciled: bool = False) -> dict[str, Any]:
        """Bring records back to work, sweep realm and secrets, and hand out every place of every tenant.

        Answers names of what was found, done, removed, refused (``stopped``) and what failed.

        ``distrusted``: the table is not the one of the last sweep, so nothing is undone or removed until an operator
        has looked and runs a sweep with ``reconciled``.
        """
        tally = Tally()
        trusted = self._trusted(reconciled)
        if trusted:
            for tenant, cluster in self.registry.due(Cluster, self.clock.now()):
                tally.attempt(cluster.id, self._lease, tenant, cluster)
        tenants = self._clusters(trusted, tally)
        accounts: dict[str, list[CloudAccount]] = {}
        for tenant, account in self.registry.all(CloudAccount):
            accounts.setdefault(tenant, []).append(account)
        tenants |= accounts.keys()
        tenants |= {tenant for tenant, _ in self.registry.all(NodeProvider)}
        tenants |= {mark.value for mark in every(self.registry.platform(), Fact, USES)}
        for tenant in self._in_turn(tenants):
            if tenant == PLATFORM:
                tally.attempt("realm", self._realm, trusted, tally)
            else:
                tally.attempt(tenant, self._tenant, tenant, trusted, accounts.get(tenant, ()), tally)
        return tally.report(trusted)

    def sweep_place(self, tenant: str, place: str) -> dict[str, Any]:
        """Sweep one place that ``run`` has handed out; the report is of the same form.

        Whether the table can be trusted is asked again: it may have been restored since, and nothing moves the mark.
        """
        tally = Tally()
        trusted = sweeping.trusted(self._mark(), self.registry.table_id(), self.clock.now())
        tally.attempt(f"{tenant} {place}", PlaceSweep(self._services(tenant, trusted), place, trusted, tally).run)
        return tally.report(trusted)

    def _clusters(self, trusted: bool, tally: Tally) -> set[str]:
        """Go through all clusters, and name the tenants they belong to."""
        tenants = set()
        for tenant, cluster in self.registry.all(Cluster):
            tenants.add(tenant)
            if trusted:
                tally.attempt(cluster.id, self._cluster, tenant, cluster.id)
            if cluster.certificates_expire_at is not None and cluster.status == "ready":
                remaining = times.from_text(cluster.certificates_expire_at) - self.clock.now()
                self.services_of(tenant).telemetry.measure("certificates", CERTIFICATE_DAYS, remaining.days)
        return tenants

    def _in_turn(self, tenants: Set[str]) -> Iterator[str]:
        """The tenants, and the platform for the realm they share, from behind the one whose turn was the last.

        A sweep may run out of time on the way; the next one then goes on where it stopped.
        """
        if not tenants:
            return
        store = self.registry.platform()
        order = sorted({*tenants, PLATFORM})
        last = store.get(Fact, TURN)
        start = bisect_right(order, last.value) if last else 0
        for name in (*order[start:], *order[:start]):
            store.commit(Put(Fact(TURN, name, times.to_text(self.clock.now()))))
            yield name

    def _trusted(self, reconciled: bool) -> bool:
        """Whether this is the table of the last sweep. Only then the mark moves on."""
        store, table, now = self.registry.platform(), self.registry.table_id(), self.clock.now()
        if not reconciled and not sweeping.trusted(self._mark(), table, now):
            return False
        store.commit(Put(Fact(MARK, table, times.to_text(now))))
        return True

    def _mark(self) -> tuple[str, str] | None:
        last = self.registry.platform().get(Fact, MARK)
        return (last.value, last.time) if last else None

    def _services(self, tenant: str, trusted: bool) -> Services:
        services = self.services_of(tenant)
        return services if trusted else replace(services, settings=replace(services.settings, report_only=True))

    def _lease(self, tenant: str, cluster: Cluster) -> str:
        return sweep_records.sweep_lease(self.services_of(tenant), cluster)

    def _cluster(self, tenant: str, cluster_id: str) -> str:
        return sweep_records.sweep_cluster(self.services_of(tenant), cluster_id)

    def _tenant(self, tenant: str, trusted: bool, accounts: Sequence[CloudAccount], tally: Tally) -> None:
        services = self._services(tenant, trusted)
        providers = {provider.id: provider for provider in all_providers(services)}
        for place in places_of(services, accounts, providers.values()):
            tally.attempt(f"{tenant} {place}", self.hand_out, tenant, place)
        if trusted:
            _claims(services, providers, tally)
            for environment in every(services.store, NodeEnvironment):
                # One whose provider is gone, so that it stands at no place any more.
                if environment.provider_id not in providers:
                    tally.attempt(environment.id, remove_environment, services, environment)
        suspects = sweep_orphans.secret_suspects(services)
        alive = sweep_orphans.living(services, every(services.store, NodeClaim))
        sweep_orphans.sweep(services, "secrets", suspects, alive, tally)

    def _living(self, tenant: str) -> frozenset[str]:
        services = self.services_of(tenant)
        return sweep_orphans.living(services, every(services.store, NodeClaim))

    def _realm(self, trusted: bool, tally: Tally) -> None:
        platform = self._services(PLATFORM, trusted)
        suspects = sweep_orphans.client_suspects(platform)
        # Tenants too are read after what is there: a tenant's first cluster may be made in between.
        tenants = {tenant for tenant, _ in self.registry.all(CloudAccount)}
        tenants |= {tenant for tenant, _ in self.registry.all(Cluster)}
        alive = frozenset(owner for tenant in tenants for owner in self._living(tenant))
        sweep_orphans.sweep(platform, "realm", suspects, alive, tally)


def _claims(services: Services, providers: Mapping[str, NodeProvider], tally: Tally) -> None:
    counters = limited_types.counters_of(providers.values())
    uncounted: list[NodeClaim] = []
    for claim in every(services.store, NodeClaim):
        tally.attempt(claim.id, sweep_records.sweep_claim, services, claim, providers)
        if limited_types.lacking(counters, claim) is not None:
            uncounted.append(claim)
    tally.attempt(f"{services.tenant} limited types", _limited, services, counters, uncounted, tally)


def _limited(
    services: Services, counters: limited_types.Counters, uncounted: Sequence[NodeClaim], tally: Tally
) -> None:
    """Count the nodes that came past their type's limit; see ``limited_types``."""
    if count := limited_types.take_over(services, counters, uncounted):
        tally.done.append(f"counted {count} nodes of {services.tenant}")
