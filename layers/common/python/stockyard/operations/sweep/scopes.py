"""One scope of a tenant, swept by a worker of its own: a cloud account, or a node provider that is in no account.

Whatever asks a cloud or a vendor happens here, so that a scope that does not answer delays no other.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, field
from functools import partial

from stockyard.domain.records import CloudAccount, Cluster, NodeClaim, NodeEnvironment, NodeProvider, Resource
from stockyard.domain.values import times
from stockyard.errors import VendorError
from stockyard.operations.cloud_accounts.accounts import clusters_of
from stockyard.operations.clusters.healing.health import attend_members, tag_members, unready_nodes
from stockyard.operations.clusters.phases import start_following
from stockyard.operations.clusters.snapshots.snapshots import prune
from stockyard.operations.listing import every
from stockyard.operations.machines.pending_pods import pod_state_of
from stockyard.operations.node_claims import comparisons, lost_machines, reservations
from stockyard.operations.node_claims import environments as node_environments
from stockyard.operations.node_claims.cluster_claims import claims_of
from stockyard.operations.node_claims.environment_stages import look_at_stages
from stockyard.operations.node_providers.template_moves import follow_all
from stockyard.operations.node_providers.visible import all_providers, by_name
from stockyard.operations.services import Services
from stockyard.operations.sweep import orphans as sweep_orphans
from stockyard.operations.sweep.listing import account_listing
from stockyard.operations.sweep.orphans import Suspect
from stockyard.operations.sweep.parts import tell_gone_parts
from stockyard.operations.sweep.quiet import is_calm, note_calm
from stockyard.operations.sweep.records import sweep_kept_claim, sweep_kept_cluster
from stockyard.operations.sweep.tally import Tally
from stockyard.ports import Tagged

TEMPLATES = "templates"
"""Handed out as a scope: the repositories of the tenant's templates, whose hosts may be slow."""


def scopes_of(services: Services, accounts: Iterable[CloudAccount], providers: Iterable[NodeProvider]) -> list[str]:
    """The scopes where something of the tenant's may be.

    An account that clusters or node providers use counts also before it was verified, or again.
    """
    account_scopes = lost_machines.account_scope("")
    scopes = {
        scope
        for provider in providers
        if (scope := lost_machines.scope_of(services, provider)).startswith(account_scopes)
        or provider.kind in services.node_sources
    }
    for account in accounts:
        if account.verification == "verified" or clusters_of(services, account.id):
            scopes.add(lost_machines.account_scope(account.id))
    return sorted(scopes)


def remove_environment(services: Services, environment: NodeEnvironment) -> str | None:
    """Remove an environment that nobody needs; what was done."""
    return "removed" if node_environments.remove_unused(services, environment) else None


def follow_templates(services: Services, tally: Tally) -> None:
    """Look where the tenant's templates stand. Machines of one that has moved are compared by the next sweep of their
    scope, which is due then."""
    for provider in follow_all(services):
        tally.done.append(f"moved {provider.name}")
        note_calm(services, lost_machines.scope_of(services, provider), services.now(), calm=False)


@dataclass(slots=True)
class _View:
    """Result of a look at a scope; ``whole`` when no part of it failed to answer. ``silent_regions`` are those of the
    account that did not; None until the account has answered. Parts of clusters that are ``resting`` are left out."""

    things: list[Tagged] = field(default_factory=list)
    suspects: list[Suspect] = field(default_factory=list)
    whole: bool = False
    silent_regions: list[str] | None = None
    resting: Set[str] = frozenset()


@dataclass(frozen=True, slots=True)
class ScopeSweep:
    """The sweep of ``scope``. When the table is not ``trusted`` it only reports."""

    services: Services
    scope: str
    trusted: bool
    tally: Tally

    def run(self) -> None:
        """Remove orphans, then environments that nobody needs; ask for machines that were not found. Note whether
        anything is left to be watched."""
        started_at = self.services.now()
        view, clusters, claims = self._sweep()
        calm = self.trusted and view.whole and is_calm(self.tally, clusters, claims)
        note_calm(self.services, self.scope, started_at, calm=calm)

    def _sweep(self) -> tuple[_View, Sequence[Cluster], Sequence[NodeClaim]]:
        """Sight of the scope, its clusters, and the claims whose nodes it makes."""
        providers = {provider.id: provider for provider in all_providers(self.services)}
        here = {
            name: each for name, each in providers.items() if lost_machines.scope_of(self.services, each) == self.scope
        }
        account = self._account()
        view = _View()
        self.tally.attempt(self._name(account), self._look, view, account, here)
        # What is alive is read after what is there, so that a cluster made in between is not taken for an orphan.
        claims = list(every(self.services.store, NodeClaim))
        scope_id = f"account-{account.id}" if account else f"provider-{self.scope}"
        if view.whole or view.things:
            alive = sweep_orphans.living(self.services, claims)
            self.tally.attempt(scope_id, sweep_orphans.sweep, self.services, scope_id, view.suspects, alive, self.tally)
        if self.trusted:
            self._environments(providers, here, claims)
            self._kept_machines(account, claims, here)
            self._old_snapshots(account)
            self._reservations(claims, here)
            self._comparisons(claims, here)
        if view.whole and self.trusted:
            self._lost_machines(view, claims, here)
        clusters = clusters_of(self.services, account.id) if account is not None else []
        if account is not None and self.trusted:
            for cluster in clusters:
                self.tally.attempt(cluster.id, tag_members, self.services, cluster.id)
                self.tally.attempt(cluster.id, attend_members, self.services, cluster.id)
                if view.silent_regions is not None and cluster.id not in view.resting:
                    self.tally.attempt(
                        cluster.id, tell_gone_parts, self.services, cluster.id, view.things, view.silent_regions
                    )
        ids = {cluster.id for cluster in clusters}
        in_scope = [c for c in claims if c.cluster_id in ids or (c.placement and c.placement.provider_id in here)]
        return view, clusters, in_scope

    def _account(self) -> CloudAccount | None:
        prefix = lost_machines.account_scope("")
        number = self.scope.removeprefix(prefix)
        return self.services.store.get(CloudAccount, number) if self.scope.startswith(prefix) else None

    def _name(self, account: CloudAccount | None) -> str:
        scope_text = f"cloud account {account.id}" if account else f"node provider {self.scope}"
        return f"{self.services.tenant} {scope_text}"

    def _environments(
        self, providers: Mapping[str, NodeProvider], here: Mapping[str, NodeProvider], claims: Iterable[NodeClaim]
    ) -> None:
        ids_by_name = {name: provider.id for name, provider in by_name(providers.values()).items()}
        environments = [e for e in every(self.services.store, NodeEnvironment) if e.provider_id in here]
        needed = {name for claim in claims for name in node_environments.needed_by(claim, ids_by_name)}
        for environment in environments:
            if environment.id not in needed or environment.removing:
                self.tally.attempt(environment.id, remove_environment, self.services, environment)
                continue
            source = self.services.node_sources.get(here[environment.provider_id].kind)
            if source is not None and source.tells_stages:
                self.tally.attempt(environment.id, look_at_stages, self.services, environment)

    def _look(self, view: _View, account: CloudAccount | None, here: Mapping[str, NodeProvider]) -> None:
        answered = True
        installation, tenant = self.services.installation, self.services.tenant
        if account is not None and account.provider in self.services.clouds:
            answered = self._look_at_account(view, account)
        for provider in here.values():
            source = self.services.node_sources.get(provider.kind)
            if source is not None:
                things = source.tagged(provider, installation, tenant)
                view.things += things
                discard = partial(source.discard, provider, tenant=tenant)
                view.suspects += sweep_orphans.tagged_suspects(things, discard)
        view.whole = answered

    def _look_at_account(self, view: _View, account: CloudAccount) -> bool:
        silent: list[str] = []

        def skipped(region: str, error: VendorError) -> None:
            silent.append(region)
            self.tally.failures.append(f"{self._name(account)} {region}: {error.error_type}")

        cloud, tenant = self.services.clouds[account.provider], self.services.tenant
        lines = [line for line in every(self.services.store, Resource) if str(line.account_id) == account.id]
        regions = sweep_orphans.regions_of(self.services, account, lines)
        listing = account_listing(self.services, account, lines)
        things = listing.things(regions, skipped)
        view.things += things
        view.resting = listing.resting
        view.silent_regions = silent
        view.suspects += sweep_orphans.tagged_suspects(things, partial(cloud.discard, account, tenant=tenant))
        return not silent

    def _kept_machines(
        self, account: CloudAccount | None, claims: Iterable[NodeClaim], here: Mapping[str, NodeProvider]
    ) -> None:
        """Remove machines that did not come up and were kept for long enough."""
        for cluster in clusters_of(self.services, account.id) if account is not None else ():
            if cluster.kept_until is not None:
                self.tally.attempt(cluster.id, sweep_kept_cluster, self.services, cluster.id)
        for claim in claims:
            if claim.kept_until is not None and claim.placement and claim.placement.provider_id in here:
                self.tally.attempt(claim.id, sweep_kept_claim, self.services, claim.id)

    def _old_snapshots(self, account: CloudAccount | None) -> None:
        for cluster in clusters_of(self.services, account.id) if account is not None else ():
            self.tally.attempt(cluster.id, prune, self.services, cluster.id)

    def _lost_machines(self, view: _View, claims: Iterable[NodeClaim], here: Mapping[str, NodeProvider]) -> None:
        machine_ids = {thing.vendor_id for thing in view.things}
        minute = times.epoch(self.services.clock.now()) // 60
        for claim in lost_machines.missing(claims, here, machine_ids, minute):
            self.tally.attempt(claim.id, look_at_machine, self.services, claim.id)

    def _reservations(self, claims: Iterable[NodeClaim], here: Mapping[str, NodeProvider]) -> None:
        own = (claim for claim in claims if claim.placement is not None and claim.placement.provider_id in here)
        for claim in reservations.to_ask(own, self.services.clock.now()):
            self.tally.attempt(claim.id, reservations.ask, self.services, claim.id)

    def _comparisons(self, claims: Iterable[NodeClaim], here: Mapping[str, NodeProvider]) -> None:
        for claim, fingerprint in comparisons.to_compare(self.services, claims, here):
            self.tally.attempt(claim.id, comparisons.compare_machine, self.services, claim.id, fingerprint)


def look_at_machine(services: Services, claim_id: str) -> str | None:
    """Ask for the machine of a claim that should have one; ``lost`` when it is gone."""
    if not lost_machines.note(services, claim_id):
        return None
    claim = services.store.get(NodeClaim, claim_id)
    if claim is not None and claim.control_plane:
        # Now, and not when the sweep comes by again: the next member that dies may be one too many.
        start_following(services, claim.cluster_id)
    return "lost"


def look_at_nodes(services: Services, cluster_id: str, tally: Tally) -> None:
    """Look for the machines of a cluster whose agent reports nodes that are not ready, and inspect its members."""
    report = pod_state_of(services, cluster_id)
    claims = [claim for claim in claims_of(services, cluster_id) if lost_machines.has_machine(claim)]
    for claim in unready_nodes(report[1].get("nodes") if report is not None else None, claims)[: lost_machines.MOST]:
        tally.attempt(claim.id, look_at_machine, services, claim.id)
    tally.attempt(cluster_id, attend_members, services, cluster_id)
