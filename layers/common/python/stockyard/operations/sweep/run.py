"""One sweep over all tenants: leases, stuck work, orphans in the realm and among the secrets. What asks clouds and
vendors is handed out, one scope to a worker; see ``scopes``."""

from __future__ import annotations

from bisect import bisect_right
from collections import deque
from collections.abc import Callable, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from stockyard.domain.cost_records import SUMS
from stockyard.domain.platform import PLATFORM, USES
from stockyard.domain.records import CloudAccount, Cluster, Fact, NodeProvider, Site
from stockyard.domain.values import times
from stockyard.lifecycle import sweeping
from stockyard.metrics import IDENTITY_UNREACHABLE
from stockyard.operations.listing import every
from stockyard.operations.services import Services
from stockyard.operations.sweep.tally import Tally
from stockyard.ports import Clock, Put, Registry

LAST_SWEPT = "swept-last"
"""The platform's fact of whose turn it was last: a tenant's, or the platform's own."""
FEW_TENANTS = 20
"""So many tenants have their turns in the run itself. Turns of more are handed out, so that the run's time does not
decide how many have one."""
GROUP = 20
"""Tenants whose turns are handed out together, so that few workers are at work at once."""
SUMS_SECONDS = 150
"""How long a worker counts what is not in the sums of a tenant: the function has 240 seconds."""
LAST_SWEEP = "swept-table"
"""The platform's fact of the last sweep: which table it was, and when."""


@dataclass(frozen=True, slots=True)
class Reaper:
    """``services_of`` gives a tenant's ports; ``registry`` spans tenants; ``hand_out`` has one scope (tenant, scope)
    swept by a worker of its own, and does not wait for it. ``hand_out_tenants`` has some tenants swept so, one after
    the other; None where the run sweeps all tenants itself.
    """

    registry: Registry
    clock: Clock
    services_of: Callable[[str], Services]
    hand_out: Callable[[str, str], None]
    hand_out_tenants: Callable[[Sequence[str]], None] | None = None

    def run(self, *, reconciled: bool = False, until: datetime | None = None) -> dict[str, Any]:
        """Bring records back to work, sweep realm and secrets, and hand out every scope of every tenant.

        Answers names of what was found, done, removed, refused (``stopped``) and what failed. After ``until`` no other
        turn begins; the next run goes on behind the last one.

        ``distrusted``: the table is not the one of the last sweep, so nothing is undone or removed until an operator
        has looked and runs a sweep with ``reconciled``.
        """
        tally = Tally()
        trusted = self._trusted(reconciled)
        if trusted:
            for tenant, cluster in self.registry.due(Cluster, self.clock.now()):
                tally.attempt(cluster.id, self._lease, tenant, cluster)
        accounts: dict[str, list[CloudAccount]] = {}
        for tenant, account in self.registry.all(CloudAccount):
            accounts.setdefault(tenant, []).append(account)
        tenants = accounts.keys() | {tenant for tenant, _ in self.registry.all(Cluster)}
        tenants |= {tenant for tenant, _ in self.registry.all(NodeProvider)}
        tenants |= {use.value for use in every(self.registry.platform(), Fact, USES)}
        order = self._order(tenants)
        if self.hand_out_tenants is not None and len(tenants) > FEW_TENANTS:
            names = [name for name in order if name != PLATFORM]
            # the next run begins one tenant later, so that each comes first in its group at times
            self._note_turn(names[0])
            for begin in range(0, len(names), GROUP):
                group = names[begin : begin + GROUP]
                tally.attempt(f"{group[0]} and {len(group) - 1} more", self.hand_out_tenants, group)
            self._realm_turn(trusted, tally)
        else:
            self._turns(order, accounts, trusted, until, tally)
        return tally.report(trusted)

    def sweep_tenants(self, tenants: Sequence[str], *, until: datetime | None = None) -> dict[str, Any]:
        """Do the turns of the tenants that ``run`` has handed out together; the report is of the same form. Like a
        scope's, they ask again whether the table can be trusted."""
        tally = Tally()
        trusted = sweeping.trusted(self._last_sweep(), self.registry.table_id(), self.clock.now())
        accounts = {tenant: list(every(self.services_of(tenant).store, CloudAccount)) for tenant in tenants}
        self._turns(tenants, accounts, trusted, until, tally, noted=False)
        return tally.report(trusted)

    def _turns(
        self,
        order: Sequence[str],
        accounts: Mapping[str, Sequence[CloudAccount]],
        trusted: bool,
        until: datetime | None,
        tally: Tally,
        *,
        noted: bool = True,
    ) -> None:
        """Give each tenant its turn, and who was not gone through another one, until the time is up. ``noted``: the
        next run goes on behind the last turn."""

        def over() -> bool:
            return until is not None and self.clock.now() >= until

        waiting = deque(order)
        while waiting:
            name = waiting.popleft()
            if noted:
                self._note_turn(name)
            if name == PLATFORM:
                self._realm_turn(trusted, tally)
            else:
                from stockyard.operations.sweep.tenant_sweeps import TenantSweep

                services, own = self._services(name, trusted), accounts.get(name, ())
                tenant_sweep = TenantSweep(services, trusted, own, self.hand_out, over, tally)
                tally.attempt(name, tenant_sweep.run)
                if not tenant_sweep.whole:
                    waiting.append(name)
            if over():
                break

    def _note_turn(self, name: str) -> None:
        self.registry.platform().commit(Put(Fact(LAST_SWEPT, name, times.to_text(self.clock.now()))))

    def _realm_turn(self, trusted: bool, tally: Tally) -> None:
        failures = len(tally.failures)
        tally.attempt("realm", self._realm, trusted, tally)
        if len(tally.failures) > failures:
            telemetry = self.services_of(PLATFORM).telemetry
            telemetry.measure("identity unreachable", IDENTITY_UNREACHABLE, 1)

    def sweep_scope(self, tenant: str, scope: str) -> dict[str, Any]:
        """Sweep one scope that ``run`` has handed out; the report is of the same form.

        Whether the table can be trusted is asked again: it may have been restored since, and nothing moves the mark.
        """
        from stockyard.operations.sweep.scopes import TEMPLATES, ScopeSweep, follow_templates

        tally = Tally()
        trusted = sweeping.trusted(self._last_sweep(), self.registry.table_id(), self.clock.now())
        services = self._services(tenant, trusted)
        if scope == SUMS:
            tally.attempt(f"{tenant} {scope}", self._sums, services)
        elif scope != TEMPLATES:
            tally.attempt(f"{tenant} {scope}", ScopeSweep(services, scope, trusted, tally).run)
        elif trusted:
            tally.attempt(f"{tenant} {scope}", follow_templates, services, tally)
        return tally.report(trusted)

    def _sums(self, services: Services) -> None:
        """Count what is not in the sums of a large tenant; what takes longer than one worker's time the next does."""
        from stockyard.operations.costs.kept_sums import catch_up

        if not catch_up(services, services.expires_in(SUMS_SECONDS)):
            self.hand_out(services.tenant, SUMS)

    def look_at_nodes(self, tenant: str, cluster_id: str) -> dict[str, Any]:
        """Look at the nodes of one cluster of which its agent says that some are not ready; the report is of the same
        form. Like any scope, only where the table can be trusted."""
        tally = Tally()
        trusted = sweeping.trusted(self._last_sweep(), self.registry.table_id(), self.clock.now())
        if trusted:
            from stockyard.operations.sweep.scopes import look_at_nodes

            look_at_nodes(self.services_of(tenant), cluster_id, tally)
        return tally.report(trusted)

    def _order(self, tenants: Set[str]) -> Sequence[str]:
        """The tenants, and the platform for the realm they share, from behind the one whose turn was the last."""
        if not tenants:
            return ()
        order = sorted({*tenants, PLATFORM})
        last = self.registry.platform().get(Fact, LAST_SWEPT)
        start = bisect_right(order, last.value) if last else 0
        return (*order[start:], *order[:start])

    def _trusted(self, reconciled: bool) -> bool:
        """Whether this is the table of the last sweep. Only then the mark moves on."""
        store, table, now = self.registry.platform(), self.registry.table_id(), self.clock.now()
        if not reconciled and not sweeping.trusted(self._last_sweep(), table, now):
            return False
        store.commit(Put(Fact(LAST_SWEEP, table, times.to_text(now))))
        return True

    def _last_sweep(self) -> tuple[str, str] | None:
        last = self.registry.platform().get(Fact, LAST_SWEEP)
        return (last.value, last.time) if last else None

    def _services(self, tenant: str, trusted: bool) -> Services:
        services = self.services_of(tenant)
        return services if trusted else replace(services, settings=replace(services.settings, report_only=True))

    def _lease(self, tenant: str, cluster: Cluster) -> str | None:
        from stockyard.operations.sweep.records import sweep_lease

        return sweep_lease(self.services_of(tenant), cluster)

    def _realm(self, trusted: bool, tally: Tally) -> None:
        from stockyard.operations.sweep import orphans as sweep_orphans

        platform = self._services(PLATFORM, trusted)
        suspects = sweep_orphans.client_suspects(platform)
        # Tenants too are read after what is there: a tenant's first cluster may be made in between.
        tenants = {tenant for tenant, _ in self.registry.all(CloudAccount)}
        tenants |= {tenant for tenant, _ in self.registry.all(Cluster)}
        tenants |= {tenant for tenant, _ in self.registry.all(Site)}
        stores = (self.services_of(tenant).store for tenant in tenants)
        alive = frozenset(owner.id for store in stores for kind in (Cluster, Site) for owner in every(store, kind))
        sweep_orphans.sweep(platform, "realm", suspects, alive, tally)
