"""One sweep over all tenants: leases, stuck work, then orphans in clouds, in the realm and among the secrets."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from stockyard.domain import times
from stockyard.domain.platform import PLATFORM, USES
from stockyard.domain.records import CloudAccount, Cluster, Fact, NodeClaim, NodeEnvironment, NodeProvider
from stockyard.errors import StockyardError, VendorError
from stockyard.lifecycle import sweeping
from stockyard.operations import (
    limited_types,
    lost_machines,
    node_environments,
    sweep_claims,
    sweep_clusters,
    sweep_orphans,
)
from stockyard.operations.cloud_accounts import clusters_of
from stockyard.operations.every import every
from stockyard.operations.services import Services
from stockyard.operations.sweep_orphans import Suspect
from stockyard.operations.visible_providers import all_providers, by_name
from stockyard.ports import Clock, Put, Registry

TURN = "swept-last"
"""The platform's fact of whose turn it was last: a tenant's, or the platform's own."""
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
        except Exception as error:
            # One record that cannot be worked on must not keep the sweep from all others.
            self.failures.append(f"{what}: {type(error).__name__}")


def _in_use(services: Services, account: CloudAccount) -> bool:
    """Whether something of ours may be in it. One that has clusters counts also before it was verified, or again."""
    return account.verification == "verified" or bool(clusters_of(services, account.id))


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
        if trusted:
            for tenant, cluster in self.registry.due(Cluster, self.clock.now()):
                tally.attempt(cluster.id, self._lease(tenant, cluster, tally))
        tenants = self._clusters(trusted, tally)
        accounts: dict[str, list[CloudAccount]] = {}
        for tenant, account in self.registry.all(CloudAccount):
            accounts.setdefault(tenant, []).append(account)
        tenants |= accounts.keys()
        tenants |= {tenant for tenant, _ in self.registry.all(NodeProvider)}
        tenants |= {mark.value for mark in every(self.registry.platform(), Fact, USES)}
        for tenant in self._in_turn(tenants):
            if tenant == PLATFORM:
                tally.attempt("realm", self._realm(trusted, tally))
            else:
                tally.attempt(tenant, self._tenant(tenant, trusted, accounts.get(tenant, ()), tally))
        return {
            "distrusted": not trusted,
            "done": tally.done,
            "orphans": tally.orphans,
            "removed": tally.removed,
            "stopped": tally.stopped,
            "failures": tally.failures,
        }

    def _clusters(self, trusted: bool, tally: _Tally) -> set[str]:
        """Go through all clusters, and name the tenants they belong to."""
        tenants = set()
        for tenant, cluster in self.registry.all(Cluster):
            tenants.add(tenant)
            if trusted:
                tally.attempt(cluster.id, self._cluster(tenant, cluster.id, tally))
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

    def _tenant(
        self, tenant: str, trusted: bool, accounts: Sequence[CloudAccount], tally: _Tally
    ) -> Callable[[], None]:
        def work() -> None:
            services = self._services(tenant, trusted)
            providers = {one.id: one for one in all_providers(services)} if trusted else {}
            named = {name: one.id for name, one in by_name(providers.values()).items()}
            counters = limited_types.counters_of(providers.values())
            needed: set[str] = set()
            uncounted: list[NodeClaim] = []
            nodes: list[NodeClaim] = []
            for claim in every(services.store, NodeClaim) if trusted else ():
                needed |= node_environments.needed_by(claim, named)
                tally.attempt(claim.id, self._claim(services, claim, providers, tally))
                if limited_types.lacking(counters, claim) is not None:
                    uncounted.append(claim)
                if lost_machines.has_machine(claim):
                    nodes.append(claim)
            tally.attempt(f"{tenant} limited types", self._limited(services, counters, uncounted, tally))
            for environment in every(services.store, NodeEnvironment) if trusted else ():
                if environment.id not in needed or environment.removing:
                    tally.attempt(environment.id, self._environment(services, environment, tally))
            shown = lost_machines.Shown()
            for account in accounts:
                if account.provider in services.providers and _in_use(services, account):
                    tally.attempt(
                        f"{services.tenant} cloud account {account.id}",
                        partial(self._account, services, account, shown, tally),
                    )
            for provider in providers.values():
                what = f"{services.tenant} node provider {provider.id}"
                tally.attempt(what, partial(self._provider, services, provider, shown, tally))
            minute = times.epoch(self.clock.now()) // 60
            for claim in lost_machines.missing(nodes, providers, shown, minute):
                tally.attempt(claim.id, partial(self._lost, services, claim.id, tally))
            self._remove(services, "secrets", sweep_orphans.secret_suspects(services), tally)

        return work

    def _claim(
        self, services: Services, claim: NodeClaim, providers: Mapping[str, NodeProvider], tally: _Tally
    ) -> Callable[[], None]:
        def work() -> None:
            if (done := sweep_claims.sweep_claim(services, claim, providers)) != sweep_clusters.NOTHING:
                tally.done.append(f"{done} {claim.id}")

        return work

    def _limited(
        self, services: Services, counters: limited_types.Counters, uncounted: Sequence[NodeClaim], tally: _Tally
    ) -> Callable[[], None]:
        """Count the nodes that came past their type's limit; see ``limited_types``."""

        def work() -> None:
            if count := limited_types.take_over(services, counters, uncounted):
                tally.done.append(f"counted {count} nodes of {services.tenant}")

        return work

    def _environment(self, services: Services, environment: NodeEnvironment, tally: _Tally) -> Callable[[], None]:
        def work() -> None:
            if node_environments.remove_unused(services, environment):
                tally.done.append(f"removed {environment.id}")

        return work

    def _account(self, services: Services, account: CloudAccount, shown: lost_machines.Shown, tally: _Tally) -> None:
        left_out: list[str] = []

        def skipped(region: str, error: VendorError) -> None:
            left_out.append(region)
            tally.failures.append(f"{services.tenant} cloud account {account.id} {region}: {error.error_type}")

        regions = sweep_orphans.regions_of(services, account)
        things = sweep_orphans.tagged(services, account, regions, skipped)
        if not left_out:
            shown.at(lost_machines.account_place(account.id), things)
        suspects = sweep_orphans.cloud_suspects(services, account, things)
        self._remove(services, f"account-{account.id}", suspects, tally)

    def _provider(self, services: Services, provider: NodeProvider, shown: lost_machines.Shown, tally: _Tally) -> None:
        """A provider whose machines are in no cloud account."""
        source = services.sources.get(provider.kind)
        if source is None or lost_machines.place_of(provider) != provider.id:
            return
        things = source.tagged(provider, services.installation, services.tenant)
        shown.at(provider.id, things)
        suspects = sweep_orphans.node_suspects(services, source, provider, things)
        self._remove(services, f"provider-{provider.id}", suspects, tally)

    def _lost(self, services: Services, claim_id: str, tally: _Tally) -> None:
        if lost_machines.note(services, claim_id):
            tally.done.append(f"lost {claim_id}")

    def _realm(self, trusted: bool, tally: _Tally) -> Callable[[], None]:
        def work() -> None:
            platform = self._services(PLATFORM, trusted)
            suspects = sweep_orphans.client_suspects(platform)
            # Tenants too are read after what is there: a tenant's first cluster may be made in between.
            tenants = {tenant for tenant, _ in self.registry.all(CloudAccount)}
            tenants |= {tenant for tenant, _ in self.registry.all(Cluster)}
            alive = frozenset(owner for tenant in tenants for owner in sweep_orphans.living(self.services_of(tenant)))
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
