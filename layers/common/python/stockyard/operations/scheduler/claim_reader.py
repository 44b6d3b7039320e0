"""Requests of a claim to the scheduler, and reasons that keep it from being asked at all."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import cache, partial

from stockyard.domain.nodes import provider_kinds
from stockyard.domain.nodes.declared_types import NOT_AVAILABLE
from stockyard.domain.nodes.disks import of_catalogue
from stockyard.domain.nodes.manifests import CLUSTER, is_planned, matched
from stockyard.domain.nodes.zone_ids import by_name, is_zone_id, of_all
from stockyard.domain.pools.bids import Bid
from stockyard.domain.records import Cluster, NodeClaim, NodeEnvironment, NodeProvider
from stockyard.domain.values.frozen import dataclass
from stockyard.domain.values.requirements import ZONE, Requirement
from stockyard.errors import NotFound
from stockyard.operations.engine.find import find_cluster
from stockyard.operations.node_claims.work import environment_id
from stockyard.operations.node_providers.catalog import Catalog
from stockyard.operations.node_providers.images import Architectures, images_of
from stockyard.operations.node_providers.reach import out_of_reach
from stockyard.operations.services import Services
from stockyard.scheduling.match import SchedulingRequest
from stockyard.scheduling.reading import Reader


@dataclass(frozen=True, slots=True)
class Refused:
    """Reason why a claim has to wait whatever node types there are: ``reason`` is the condition's."""

    reason: str
    message: str


def unnamed_cluster(claim: NodeClaim) -> str | None:
    """Advice about a claim that names no cluster, and so gets only nodes of no cluster; None for others."""
    if claim.cluster_ref or claim.pool:
        return None
    remedy = {"karpenter": f"set the label {CLUSTER} or --cluster", "vcluster": "set spec.vClusterRef"}
    return f"No cluster is named: {remedy.get(claim.form, 'set cluster')}."


class ClaimReader:
    """Reads the claims of one batch; clusters are looked up once."""

    def __init__(
        self,
        services: Services,
        catalog: Catalog,
        allowed: tuple[str, ...] | None,
        *,
        ahead: bool = False,
        draft: Cluster | None = None,
    ) -> None:
        """``ahead``: clusters are taken as they will be when they are ready. ``draft``: a cluster that the table may
        not have yet, to which claims refer by its id."""
        self._ahead = ahead
        self._services = services
        self._catalog = catalog
        self._allowed = allowed
        self._reader = Reader()
        self._clusters: dict[str, Cluster | None] = {draft.id: draft} if draft is not None else {}
        self._out_of_reach: dict[str, frozenset[str]] = {}
        """By the claims' reference to a cluster."""
        self._ids_of_zones: dict[str, Mapping[str, Mapping[str, str]]] = {}
        self._images_of: dict[str, tuple[Architectures, Architectures]] = {}
        """By cluster."""
        self._environment = cache(partial(services.store.get, NodeEnvironment))

    def read(self, claim: NodeClaim) -> SchedulingRequest | Refused:
        """Scheduling request of the claim, or why it waits."""
        return self._cluster(claim) or self._provider(claim) or self._request(claim)

    def cluster_id(self, claim: NodeClaim) -> str:
        """The id of the claim's cluster, which may have come after the claim; empty for a node of no cluster. One that
        is being deleted gets no claim any more."""
        cluster = self._clusters.get(claim.cluster_ref)
        return cluster.id if cluster is not None and cluster.status != "deleting" else claim.cluster_id

    def _cluster(self, claim: NodeClaim) -> Refused | None:
        if not claim.cluster_ref:
            return None
        if claim.cluster_ref not in self._clusters:
            try:
                self._clusters[claim.cluster_ref] = find_cluster(self._services, claim.cluster_id or claim.cluster_ref)
            except NotFound:
                self._clusters[claim.cluster_ref] = None
        cluster = self._clusters[claim.cluster_ref]
        if cluster is None:
            return Refused("ClusterNotFound", f"There is no cluster {claim.cluster_ref} yet.")
        if cluster.status != "ready" and not self._ahead:
            return Refused("ClusterNotReady", f"Cluster {cluster.name} is {cluster.status}.")
        return None

    def _provider(self, claim: NodeClaim) -> Refused | None:
        if not claim.provider_ref:
            return None
        provider = self._catalog.providers.get(claim.provider_ref)
        if provider is None:
            return Refused("ProviderNotFound", f"There is no node provider {claim.provider_ref} yet.")
        if not provider_kinds.kind(provider.kind).built:
            return Refused(NOT_AVAILABLE, f"Providers of kind {provider.kind} are not built yet.")
        why = self._out_of_network(provider, self._clusters.get(claim.cluster_ref))
        if not why and not claim.pool and self._serves_groups(provider):
            why = f"Node provider {provider.name} serves the node groups of clusters, and no other claim."
        return Refused("ProviderOutOfReach", why) if why else None

    def _serves_groups(self, provider: NodeProvider) -> bool:
        """Whether only claims that name the provider get its machines: they come out of groups."""
        source = self._services.node_sources.get(provider.kind)
        return source is not None and source.takes_from_groups

    def _unreachable(self, claim: NodeClaim) -> frozenset[str]:
        if claim.cluster_ref not in self._out_of_reach:
            cluster, providers = self._clusters.get(claim.cluster_ref), self._catalog.providers
            self._out_of_reach[claim.cluster_ref] = frozenset(
                name
                for name, provider in providers.items()
                if self._serves_groups(provider) or self._out_of_network(provider, cluster)
            )
        return self._out_of_reach[claim.cluster_ref]

    def _request(self, claim: NodeClaim) -> SchedulingRequest | Refused:
        try:
            request = self._reader.request(
                matched(claim),
                of_catalogue(claim.resources, claim.properties),
                claim.provider_ref or None,
                self._allowed,
                self._unreachable(claim) - {claim.provider_ref},
                is_planned(claim),
                Bid.of(claim.max_price),
                self._zone_ids(claim),
            )
        except ValueError as error:
            # Checked when the claim came; a claim of an older release may be read more strictly now.
            return Refused("InvalidClaim", f"The claim cannot be read: {error}.")
        if any(map(is_zone_id, request.requirements)):
            request = self._by_zone_ids(claim, request)
        images, likely = self._images(claim)
        if images or likely:
            request = replace(request, images=images, likely=likely)
        return self._in_zone(claim, request) if ZONE in request.requirements else request

    def _by_zone_ids(self, claim: NodeClaim, request: SchedulingRequest) -> SchedulingRequest:
        """With zones by name in the place of their ids. Providers whose zones have no ids have no such node."""
        sources, providers = self._services.node_sources, self._catalog.providers.items()
        naming = {kind for kind, source in sources.items() if source.zone_id_label is not None}
        unnamed = {name for name, provider in providers if provider.kind not in naming}
        if claim.provider_ref in unnamed:
            return request
        ids = self._zone_ids(claim)
        known_ids = ids.get(claim.provider_ref, {}) if claim.provider_ref else of_all(ids.values())
        requirements = by_name(request.requirements, known_ids)
        return replace(request, requirements=requirements, out_of_reach=request.out_of_reach | unnamed)

    def _images(self, claim: NodeClaim) -> tuple[Architectures, Architectures]:
        """See ``images_of``, in the claim's cluster."""
        cluster_id = self.cluster_id(claim)
        if not cluster_id:
            return {}, {}
        if cluster_id not in self._images_of:
            self._images_of[cluster_id] = images_of(
                self._services,
                self._catalog.providers.values(),
                lambda provider: self._environment(environment_id(cluster_id, provider.id)),
            )
        return self._images_of[cluster_id]

    def _zone_ids(self, claim: NodeClaim) -> Mapping[str, Mapping[str, str]]:
        """The ids of the zones in which the claim's cluster has subnets, by provider and name."""
        cluster_id = self.cluster_id(claim)
        if cluster_id not in self._ids_of_zones:
            ids_by_provider: dict[str, Mapping[str, str]] = {}
            for name, provider in self._catalog.providers.items():
                source = self._services.node_sources.get(provider.kind)
                if source is not None and source.zone_id_label is not None:
                    environment = self._environment(environment_id(cluster_id, provider.id)) if cluster_id else None
                    ids_by_provider[name] = source.zone_ids(provider, environment)
            self._ids_of_zones[cluster_id] = {name: ids for name, ids in ids_by_provider.items() if ids}
        return self._ids_of_zones[cluster_id]

    def _in_zone(self, claim: NodeClaim, request: SchedulingRequest) -> SchedulingRequest | Refused:
        """Without the providers whose machines cannot stand in a zone that the claim asks for."""
        providers = self._catalog.providers
        considered = [request.provider] if request.provider is not None else sorted(providers)
        requirement, cluster_id = request.requirements[ZONE], self.cluster_id(claim)
        why = {
            name: text for name in considered if (text := self._out_of_zone(providers[name], cluster_id, requirement))
        }
        if request.provider in why:
            return Refused("ProviderOutOfReach", why[request.provider])
        return replace(request, out_of_reach=request.out_of_reach.union(why)) if why else request

    def _out_of_network(self, provider: NodeProvider, cluster: Cluster | None) -> str | None:
        return out_of_reach(self._services.node_sources.get(provider.kind), provider, cluster)

    def _out_of_zone(self, provider: NodeProvider, cluster_id: str, requirement: Requirement) -> str | None:
        source = self._services.node_sources.get(provider.kind)
        if source is None or not source.has_topology:
            return None
        environment = self._environment(environment_id(cluster_id, provider.id)) if cluster_id else None
        current = environment if environment is not None and not environment.is_stale else None
        return source.out_of_zone(provider, current, requirement)
