"""Promises of a claim and of the catalogue about a node that its cluster has not reported yet: labels and
allocatable."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Protocol

from stockyard.domain.clusters.control_plane import ROLE
from stockyard.domain.nodes.disks import of_catalogue, with_disk
from stockyard.domain.nodes.manifests import is_planned, matched
from stockyard.domain.nodes.node_types import NodeType, read_resources
from stockyard.domain.nodes.properties import node_labels
from stockyard.domain.nodes.zone_ids import by_name, is_zone_id
from stockyard.domain.pools.bids import Bid
from stockyard.domain.pools.records import POOL_LABEL
from stockyard.domain.records import NodeClaim
from stockyard.domain.values.requirements import NODE_POOL, Requirements
from stockyard.operations.fleet.state.members import is_stand_in
from stockyard.operations.node_claims.delete import is_member
from stockyard.operations.node_providers.catalog import Catalog
from stockyard.scheduling.match import Availability, choose
from stockyard.scheduling.reading import Reader


class Stock(Protocol):
    """Supply of nodes, as ``pools.templates.Supply`` has it."""

    @property
    def catalog(self) -> Catalog:
        """The node types of all providers."""

    @property
    def availability(self) -> Availability:
        """Availability of limited types and of offerings now."""

    @property
    def allowed(self) -> tuple[str, ...] | None:
        """Names of types and ``provider.*`` that the tenant may use; None: all."""

    @property
    def zone_ids(self) -> Mapping[str, Mapping[str, str]]:
        """The ids of a provider's zones by name, where prices go by them."""

    def beyond(self, provider: str) -> frozenset[str]:
        """The providers that a claim which names ``provider`` cannot get a machine of."""

    def ids_of(self, provider: str) -> Mapping[str, str]:
        """The ids of zones by name for what names ``provider``."""


class Promises:
    """Reads claims and the catalogue."""

    def __init__(self, stock: Stock) -> None:
        self._stock = stock
        self._reader = Reader()

    def allocatable(self, claim: NodeClaim) -> Mapping[str, int]:
        """Thousandths of a unit by resource: of the claim's type, or what it asks for while nobody knows one."""
        node_type = self._type_of(claim)
        if node_type is None:
            return read_resources(claim.resources)
        return with_disk(node_type, claim.properties).allocatable

    def labels(self, claim: NodeClaim) -> Mapping[str, str]:
        """The labels that the node will have, as far as they are certain."""
        placed = claim.placement
        if is_stand_in(claim):
            labels = dict(claim.node_labels)
        elif placed is not None:
            ids = {key: value for key, value in _certain_labels(claim).items() if is_zone_id(key)}
            labels = {**node_labels(self._type_of(claim), claim, placed), **ids, **claim.node_labels}
        else:
            labels = _certain_labels(claim)
        labels |= claim.labels
        if is_member(claim):
            labels[ROLE] = ""
        if claim.pool and not is_stand_in(claim):
            labels |= {NODE_POOL: claim.pool, POOL_LABEL: claim.pool}
        return labels

    def _type_of(self, claim: NodeClaim) -> NodeType | None:
        if is_stand_in(claim):
            return None
        if claim.placement is not None:
            return self._stock.catalog.node_types.get(claim.placement.type)
        return self._next_type(claim)

    def _next_type(self, claim: NodeClaim) -> NodeType | None:
        try:
            request = self._reader.request(
                matched(claim),
                of_catalogue(claim.resources, claim.properties),
                claim.provider_ref or None,
                self._stock.allowed,
                self._stock.beyond(claim.provider_ref),
                is_planned(claim),
                Bid.of(claim.max_price),
                self._stock.zone_ids,
            )
        except ValueError:
            return None
        named = by_name(request.requirements, self._stock.ids_of(claim.provider_ref))
        best = choose(self._stock.catalog.index, replace(request, requirements=named), self._stock.availability)
        return best.node_type if best is not None else None


def _certain_labels(claim: NodeClaim) -> dict[str, str]:
    """The labels that the node has wherever it is placed: what the claim asks for has one value."""
    requirements = Requirements.of(claim.requirements)
    return {
        key: min(requirement.values)
        for key, requirement in requirements.items()
        if not requirement.complement and len(requirement.values) == 1
    }
