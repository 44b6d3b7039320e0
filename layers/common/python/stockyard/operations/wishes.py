"""What a claim asks of the scheduler, and what keeps it from being asked at all."""

from __future__ import annotations

from dataclasses import dataclass, replace

from stockyard.domain.declared_types import BUILT, NOT_AVAILABLE
from stockyard.domain.manifests import matched
from stockyard.domain.reach import out_of_reach
from stockyard.domain.records import Cluster, NodeClaim, NodeEnvironment, NodeProvider
from stockyard.domain.requirements import ZONE
from stockyard.domain.standing import out_of_zone
from stockyard.errors import NotFound
from stockyard.operations.advance import find
from stockyard.operations.node_catalog import Catalog
from stockyard.operations.node_work import environment_id
from stockyard.operations.services import Services
from stockyard.scheduling.match import Wanted
from stockyard.scheduling.reading import Reader


@dataclass(frozen=True, slots=True)
class Refused:
    """Why a claim has to wait whatever node types there are: ``reason`` is the condition's."""

    reason: str
    message: str


class Wishes:
    """Reads the claims of one batch; clusters are looked up once."""

    def __init__(self, services: Services, catalog: Catalog, allowed: tuple[str, ...] | None) -> None:
        self._services = services
        self._catalog = catalog
        self._allowed = allowed
        self._reader = Reader()
        self._clusters: dict[str, Cluster | None] = {}
        self._out_of_reach: dict[str, frozenset[str]] = {}
        """By the claims' reference to a cluster."""
        self._environments: dict[str, NodeEnvironment | None] = {}

    def read(self, claim: NodeClaim) -> Wanted | Refused:
        """What the claim asks for, or why it waits."""
        return self._cluster(claim) or self._provider(claim) or self._wanted(claim)

    def cluster_id(self, claim: NodeClaim) -> str:
        """The id of the claim's cluster, which may have come after the claim; empty for a node of no cluster."""
        cluster = self._clusters.get(claim.cluster_ref)
        return cluster.id if cluster is not None else claim.cluster_id

    def _cluster(self, claim: NodeClaim) -> Refused | None:
        if not claim.cluster_ref:
            return None
        if claim.cluster_ref not in self._clusters:
            try:
                self._clusters[claim.cluster_ref] = find(self._services, claim.cluster_id or claim.cluster_ref)
            except NotFound:
                self._clusters[claim.cluster_ref] = None
        cluster = self._clusters[claim.cluster_ref]
        if cluster is None:
            return Refused("ClusterNotFound", f"There is no cluster {claim.cluster_ref} yet.")
        if cluster.status != "ready":
            return Refused("ClusterNotReady", f"Cluster {cluster.name} is {cluster.status}.")
        return None

    def _provider(self, claim: NodeClaim) -> Refused | None:
        if not claim.provider_ref:
            return None
        provider = self._catalog.providers.get(claim.provider_ref)
        if provider is None:
            return Refused("ProviderNotFound", f"There is no node provider {claim.provider_ref} yet.")
        if provider.kind not in BUILT:
            return Refused(NOT_AVAILABLE, f"Providers of kind {provider.kind} are not built yet.")
        why = out_of_reach(provider, self._clusters.get(claim.cluster_ref))
        return Refused("ProviderOutOfReach", why) if why else None

    def _unreachable(self, claim: NodeClaim) -> frozenset[str]:
        found = self._out_of_reach.get(claim.cluster_ref)
        if found is None:
            cluster = self._clusters.get(claim.cluster_ref)
            names = (name for name, one in self._catalog.providers.items() if out_of_reach(one, cluster))
            found = self._out_of_reach[claim.cluster_ref] = frozenset(names)
        return found

    def _wanted(self, claim: NodeClaim) -> Wanted | Refused:
        try:
            wanted = self._reader.wanted(
                matched(claim),
                claim.resources,
                claim.provider_ref or None,
                self._allowed,
                self._unreachable(claim),
            )
        except ValueError as error:
            # Checked when the claim came; a claim of an older release may be read more strictly now.
            return Refused("InvalidClaim", f"The claim cannot be read: {error}.")
        return self._in_zone(claim, wanted) if ZONE in wanted.requirements else wanted

    def _in_zone(self, claim: NodeClaim, wanted: Wanted) -> Wanted | Refused:
        """Without the providers whose machines cannot stand in a zone that the claim asks for."""
        providers = self._catalog.providers
        considered = [wanted.provider] if wanted.provider is not None else sorted(providers)
        asked, cluster_id = wanted.requirements[ZONE], self.cluster_id(claim)
        why = {
            name: text
            for name in considered
            if (text := out_of_zone(providers[name], self._environment(cluster_id, providers[name]), asked))
        }
        if wanted.provider in why:
            return Refused("ProviderOutOfReach", why[wanted.provider])
        return replace(wanted, out_of_reach=wanted.out_of_reach.union(why)) if why else wanted

    def _environment(self, cluster_id: str, provider: NodeProvider) -> NodeEnvironment | None:
        if not cluster_id or provider.kind != "ec2":
            return None
        key = environment_id(cluster_id, provider.id)
        if key not in self._environments:
            self._environments[key] = self._services.store.get(NodeEnvironment, key)
        return self._environments[key]
