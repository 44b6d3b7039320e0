"""Present cost of a node that stands: spot at the price of its zone at this moment, all else as it was bound."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from stockyard.domain.nodes import provider_kinds
from stockyard.domain.nodes.disks import price_with_disk
from stockyard.domain.nodes.node_types import ANY, SPOT
from stockyard.domain.nodes.prices import price_in
from stockyard.domain.records import NodeClaim, NodeEnvironment, NodeProvider, Placement
from stockyard.operations.node_claims.work import environment_id
from stockyard.operations.node_providers.catalog import Catalog
from stockyard.operations.services import Services


@dataclass(slots=True)
class PresentPrices:
    """Prices by one version of a tenant's catalogue; what is read of a cluster's zones is read once."""

    services: Services
    catalog: Catalog
    _zone_ids: dict[tuple[str, str], Mapping[str, str]] = field(default_factory=dict)

    def of(self, claim: NodeClaim) -> float | None:
        """USD an hour of a placed claim; None where nobody knows. What is owned and has no price costs nothing."""
        placed = claim.placement
        if placed is None:
            return 0.0
        price = self._of_spot(claim, placed) if placed.capacity_type == SPOT else placed.usd_hour
        return 0.0 if price is None and self.is_owned(placed.type) else price

    def most(self, claim: NodeClaim) -> float | None:
        """The most that it may come to cost: before its machine is there it may become any of its options."""
        placed = claim.placement
        if placed is None or claim.machine_id or not placed.options or claim.phase != "Pending":
            return self.of(claim)
        prices = [
            0.0 if each.usd_hour is None and self.is_owned(each.type) else each.usd_hour for each in placed.options
        ]
        return None if None in prices else max(price for price in prices if price is not None)

    def is_owned(self, type_name: str) -> bool:
        """Whether nodes of the type are machines that their owner has anyway."""
        provider = self.catalog.providers.get(type_name.partition(".")[0])
        return provider is not None and provider_kinds.kind(provider.kind).owned

    def _of_spot(self, claim: NodeClaim, placed: Placement) -> float | None:
        node_type = self.catalog.node_types.get(placed.type)
        if node_type is None:
            return placed.usd_hour
        ids = self._ids(claim.cluster_id, self.catalog.providers.get(node_type.provider))
        of_spot = [offering for offering in node_type.offerings if offering.capacity_type == SPOT]
        there = [
            offering
            for offering in of_spot
            if ANY in (*offering.zones, *placed.zones) or set(offering.zones) & set(placed.zones)
        ]
        prices = [
            price_with_disk(price_in(offering, placed.zones, ids), node_type, claim.properties) for offering in there
        ]
        return min((price for price in prices if price is not None), default=placed.usd_hour)

    def _ids(self, cluster_id: str, provider: NodeProvider | None) -> Mapping[str, str]:
        """The ids of the zones in which the cluster has machines of the provider, by name."""
        source = self.services.node_sources.get(provider.kind) if provider is not None else None
        if provider is None or source is None or source.zone_id_label is None:
            return {}
        memo_key = (cluster_id, provider.id)
        if memo_key not in self._zone_ids:
            key = environment_id(cluster_id, provider.id) if cluster_id else ""
            environment = self.services.store.get(NodeEnvironment, key) if key else None
            self._zone_ids[memo_key] = source.zone_ids(provider, environment)
        return self._zone_ids[memo_key]
