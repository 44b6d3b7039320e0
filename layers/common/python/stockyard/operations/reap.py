"""One sweep over all tenants: leases, stuck work, then orphans in clouds, in the realm and among the secrets."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from stockyard.domain import times
from stockyard.domain.records import CloudAccount, Cluster, Fact
from stockyard.errors import StockyardError
from stockyard.lifecycle import sweeping
from stockyard.operations import sweep_clusters, sweep_orphans
from stockyard.operations.services import Services
from stockyard.operations.sweep_orphans import Suspect
from stockyard.ports import Clock, Put, Registry

PLATFORM = "_platform"
MARK = "swept-table"
"""The platform's fact of the last sweep: which table it was, and when."""


@dataclass(slots=True)
class _Tally:
    done: list[str] = field(default_factory=list)
    orphans: list[str] = field(default_factory=list)
    removed: list[str] = field(default_factory=list)
    stopped: list[str] = field(default_factory=list)
    failures: list[str] = field(default_factory=list)

    def attempt(self, what: str, work: Callable[[], None]) -> None:
        """Run one piece; its failure is noted and keeps none of the others."""
        try:
            work()
        except StockyardError as error:
            self.failures.append(f"{what}: {error.error_type}")


@dataclass(frozen=True, slots=True)
class Reaper:
    """``services_of`` gives a tenant's ports; ``registry`` spans tenants."""

    registry: Registry
    clock: Clock
    services_of: Callable[[str], Services]

    def run(self, *, reconciled: bool = False) -> dict[str, Any]:
        """Names of what was found, done, removed, refused (``stopped``) and what failed.

        ``distrusted``: the table is not the one of the last sweep, so nothing is undone or removed until an operator
        has looked and runs a sweep with ``reconciled``.
        """
        tally = _Tally()
        trusted = self._trusted(reconciled)
        clusters = self.registry.all(Cluster)
        if trusted:
            for tenant, cluster in self.registry.due(Cluster, self.clock.now()):
                tally.attempt(cluster.id, self._lease(tenant, cluster, tally))
            for tenant, cluster in clusters:
                tally.attempt(cluster.id, self._cluster(tenant, cluster.id, tally))
        accounts = self.registry.all(CloudAccount)
        for tenant in sorted({tenant for tenant, _ in (*accounts, *clusters)}):
            own = [account for owner, account in accounts if owner == tenant]
            tally.attempt(tenant, self._tenant(self._services(tenant, trusted), own, tally))
        if accounts or clusters:
            platform = self._services(PLATFORM, trusted)
            tally.attempt("realm", self._realm(platform, [tenant for tenant, _ in clusters], tally))
        return {
            "distrusted": not trusted,
            "done": tally.done,
            "orphans": tally.orphans,
            "removed": tally.removed,
            "stopped": tally.stopped,
            "failures": tally.failures,
        }

    def _trusted(self, reconciled: bool) -> bool:
        """Whether this is the table of the last sweep. Only then the mark moves on."""
        store, table, now = self.registry.platform(), self.registry.table_id(), self.clock.now()
        last = store.get(Fact, MARK)
        mark = (last.value, last.time) if last else None
        if not reconciled and not sweeping.trusted(mark, table, now):
            return False
        store.commit(Put(Fact(MARK, table, times.to_text(now))))
        return True

    def _services(self, tenant: str, trusted: bool) -> Services:
        services = self.services_of(tenant)
        return services if trusted else replace(services, rules=replace(services.rules, report_only=True))

    def _lease(self, tenant: str, cluster: Cluster, tally: _Tally) -> Callable[[], None]:
        def work() -> None:
            if (done := sweep_clusters.sweep_lease(self.services_of(tenant), cluster)) != sweep_clusters.NOTHING:
                tally.done.append(f"{done} {cluster.id}")

        return work

    def _cluster(self, tenant: str, cluster_id: str, tally: _Tally) -> Callable[[], None]:
        def work() -> None:
            if (done := sweep_clusters.sweep_cluster(self.services_of(tenant), cluster_id)) != sweep_clusters.NOTHING:
                tally.done.append(f"{done} {cluster_id}")

        return work

    def _tenant(self, services: Services, accounts: Sequence[CloudAccount], tally: _Tally) -> Callable[[], None]:
        def work() -> None:
            for account in accounts:
                if account.provider in services.providers and account.verification == "verified":
                    tally.attempt(
                        f"{services.tenant} cloud account {account.id}",
                        lambda a=account: self._account(services, a, tally),  # type: ignore[misc]
                    )
            self._remove(services, "secrets", sweep_orphans.secret_suspects(services), tally)

        return work

    def _account(self, services: Services, account: CloudAccount, tally: _Tally) -> None:
        regions = sweep_orphans.regions_of(services, account)
        self._remove(services, f"account-{account.id}", sweep_orphans.cloud_suspects(services, account, regions), tally)

    def _realm(self, platform: Services, tenants: Sequence[str], tally: _Tally) -> Callable[[], None]:
        def work() -> None:
            suspects = sweep_orphans.client_suspects(platform)
            alive = frozenset(
                client_owner
                for tenant in set(tenants)
                for client_owner in sweep_orphans.living(self.services_of(tenant))
            )
            self._remove(platform, "realm", suspects, tally, alive)

        return work

    def _remove(
        self,
        services: Services,
        scope: str,
        suspects: Sequence[Suspect],
        tally: _Tally,
        alive: frozenset[str] | None = None,
    ) -> None:
        # What is alive is read after what is there, so that a cluster made in between is not taken for an orphan.
        found = sweep_orphans.sweep(
            services, scope, suspects, sweep_orphans.living(services) if alive is None else alive
        )
        tally.orphans += found.orphans
        tally.removed += found.removed
        tally.stopped += found.stopped
