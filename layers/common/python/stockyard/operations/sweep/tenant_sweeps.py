"""One tenant's turn in the sweep: its scopes are handed out, its clusters and claims are gone through.

A turn ends after so many records, or when the run's time is over, and the tenant's next turn goes on behind them. So a
tenant with a hundred thousand of them delays no other, and is gone through all the same.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

from stockyard.domain.cost_records import SUMS
from stockyard.domain.records import CloudAccount, Cluster, Fact, NodeClaim, NodeEnvironment, NodeProvider
from stockyard.domain.values import ids, times
from stockyard.lifecycle.nodes.node_claim import PENDING
from stockyard.metrics import CERTIFICATE_DAYS
from stockyard.operations.listing import every
from stockyard.operations.node_providers import limited_types
from stockyard.operations.node_providers.template_moves import any_followed
from stockyard.operations.node_providers.visible import all_providers
from stockyard.operations.services import Services
from stockyard.operations.sweep import orphans as sweep_orphans
from stockyard.operations.sweep import records as sweep_records
from stockyard.operations.sweep.quiet import due_scopes, is_calm, note_calm
from stockyard.operations.sweep.scopes import TEMPLATES, remove_environment, scopes_of
from stockyard.operations.sweep.subject_entries import sweep_entries
from stockyard.operations.sweep.tally import Tally
from stockyard.ports import Put, Remove

R = TypeVar("R", Cluster, NodeClaim)

CLAIMS, SECRETS = "claims", "secrets"
"""Parts of a turn that a quiet tenant has once an hour, as its scopes."""
POSITION = "swept-until"
"""The tenant's fact of the record that its last turn ended at; none when that turn went through all."""
PAGE = 50
"""Records that are read together. The fact is written before they are worked on: what ends a run among them is not met
again before the next round."""
PAGES = 20
"""Of clusters, and of claims, in one turn."""


@dataclass(slots=True)
class TenantSweep:
    """``over`` says whether the time of the run is up; ``hand_out`` has a scope swept by a worker of its own.

    When the table is not ``trusted``, nothing is brought back to work. ``whole``: the tenant was gone through.
    """

    services: Services
    trusted: bool
    accounts: Sequence[CloudAccount]
    hand_out: Callable[[str, str], None]
    over: Callable[[], bool]
    tally: Tally
    whole: bool = True
    due: frozenset[str] = frozenset()
    """Scopes, and parts of the turn, that are not left out this time."""
    at_work: bool = False
    """Whether there are claims that a workflow works on, or that wait."""

    def run(self) -> None:
        """Go through the tenant's records, from behind the one that the last turn ended at."""
        fact = self.services.store.get(Fact, POSITION)
        kind, _, after = (fact.value if fact else "").partition("/")
        providers = {provider.id: provider for provider in all_providers(self.services)}
        if not kind:
            # Scopes first: others work on them, and they take longest.
            self._scopes(providers)
        else:
            self.due = frozenset({CLAIMS})  # A turn that has begun goes on.
        if kind != NodeClaim.__name__:
            self.whole = self._through(Cluster, after, self._clusters)
            after = ""
        if self.whole and CLAIMS in self.due:
            started_at = self.services.now()
            self.whole = self._through(NodeClaim, after, lambda claims: self._claims(claims, providers))
            calm = self.whole and not self.at_work and not self.tally.failures
            note_calm(self.services, CLAIMS, started_at, calm=calm)
        if self.whole and self.services.store.get(Fact, POSITION):
            self.services.store.commit(Remove(Fact, POSITION))

    def _through(self, kind: type[R], after: str, work: Callable[[Sequence[R]], None]) -> bool:
        """Whether ``work`` was given all records of the kind behind ``after``."""
        for _ in range(PAGES):
            # What is a moment old does no harm to claims: all that is written of them has the version that was read.
            page = self.services.store.list(kind, after=after or None, limit=PAGE, consistent=kind is not NodeClaim)
            if page.next_id is not None:
                after = page.next_id
                self.services.store.commit(Put(Fact(POSITION, f"{kind.__name__}/{after}", self.services.now())))
            work(page.items)
            if page.next_id is None:
                return True
            if self.over():
                break
        return False

    def _scopes(self, providers: Mapping[str, NodeProvider]) -> None:
        services, tally = self.services, self.tally
        scopes = scopes_of(services, self.accounts, providers.values())
        parts = (*scopes, CLAIMS, SECRETS)
        self.due = frozenset(due_scopes(services, parts) if self.trusted else parts)
        for scope in scopes:
            if scope in self.due:
                tally.attempt(f"{services.tenant} {scope}", self.hand_out, services.tenant, scope)
        if self.trusted and any_followed(services, providers.values()):
            tally.attempt(f"{services.tenant} {TEMPLATES}", self.hand_out, services.tenant, TEMPLATES)
        if self.trusted:
            for environment in every(services.store, NodeEnvironment):
                # One whose provider is gone, so that it stands in no scope any more.
                if environment.provider_id not in providers:
                    tally.attempt(environment.id, remove_environment, services, environment)
        if SECRETS in self.due:
            self._secrets()
            # All of a quiet tenant had their entries before it was quiet.
            tally.attempt(services.tenant, self._entries)
        tally.attempt(f"{services.tenant} {SUMS}", self._sums)

    def _entries(self) -> str | None:
        """Give entries by subject to what an earlier release has written; what was done."""
        return sweep_entries(self.services) if self.trusted else None

    def _sums(self) -> None:
        """Have the sums of a large tenant made before somebody looks, and kept young enough to be followed."""
        from stockyard.operations.costs.kept_sums import are_due

        if are_due(self.services):
            self.hand_out(self.services.tenant, SUMS)

    def _secrets(self) -> None:
        services, started_at, swept = self.services, self.services.now(), Tally()
        suspects = sweep_orphans.secret_suspects(services)
        owners = sweep_orphans.living(services, ())
        owners |= {f"{ids.ACCOUNT_SECRETS}{account.id}" for account in self.accounts}
        # Nearly all secrets are of clusters and accounts: of the claims only those are read that one is named after.
        names = {suspect.resource_id for suspect in suspects} - owners
        claim_ids = sorted(name for name in names if name.startswith(f"{ids.NODE_CLAIM}_"))
        owners |= {claim.id for claim in services.store.get_all(NodeClaim, claim_ids)}
        sweep_orphans.sweep(services, SECRETS, suspects, owners, swept)
        note_calm(services, SECRETS, started_at, calm=is_calm(swept, (), ()))
        self.tally.add(swept)

    def _clusters(self, clusters: Sequence[Cluster]) -> None:
        for cluster in clusters:
            if self.trusted:
                self.tally.attempt(cluster.id, sweep_records.sweep_cluster, self.services, cluster)
            if cluster.certificates_expire_at is not None and cluster.status == "ready":
                remaining = times.from_text(cluster.certificates_expire_at) - self.services.clock.now()
                self.services.telemetry.measure("certificates", CERTIFICATE_DAYS, remaining.days)

    def _claims(self, claims: Sequence[NodeClaim], providers: Mapping[str, NodeProvider]) -> None:
        if not self.trusted:
            return
        counters = limited_types.counters_of(self.services, providers.values())
        uncounted: list[NodeClaim] = []
        for claim in claims:
            self.at_work = self.at_work or claim.deleting or claim.phase == PENDING or claim.desired_power is not None
            self.tally.attempt(claim.id, sweep_records.sweep_claim, self.services, claim, providers)
            if limited_types.lacking(counters, claim) is not None:
                uncounted.append(claim)
        self.tally.attempt(f"{self.services.tenant} limited types", self._limited, counters, uncounted)

    def _limited(self, counters: limited_types.Counters, uncounted: Sequence[NodeClaim]) -> None:
        """Count the nodes that came past their type's limit; see ``limited_types``."""
        if count := limited_types.take_over(self.services, counters, uncounted):
            self.tally.done.append(f"counted {count} nodes of {self.services.tenant}")
