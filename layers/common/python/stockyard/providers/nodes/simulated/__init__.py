"""Machines that exist in Stockyard alone: the kind ``simulated``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from stockyard.domain.nodes.declared_types import written_zone
from stockyard.domain.nodes.node_types import DEFAULT_ZONE, ON_DEMAND, SPOT, Offering, parse_property
from stockyard.domain.nodes.provider_kinds import Document, ProviderKind
from stockyard.domain.values.requirements import ZONE
from stockyard.providers.descriptors import NodeSourceDescriptor, SourceTools

if TYPE_CHECKING:
    from stockyard.ports.nodes import NodeSource


def offerings(properties: Mapping[str, str], entry: Document) -> tuple[Offering, ...]:
    """On demand, and as spot where the entry has a price of it, in the zones that the entry names.

    ``properties`` are the provider's: they name the zones where the entry does not.
    """
    written = written_zone(entry.get("properties") or {}, properties)
    if entry.get("zones"):
        zones = tuple(entry["zones"])
    elif entry.get("zone") or not written:
        zones = (entry.get("zone") or DEFAULT_ZONE,)
    else:
        zones = parse_property(ZONE, written)
    offerings = [Offering(ON_DEMAND, zones, _money(entry.get("usdPerHour")))]
    if entry.get("spotUsdPerHour") is not None:
        offerings.append(Offering(SPOT, zones, _money(entry["spotUsdPerHour"])))
    return tuple(offerings)


def _money(value: float | None) -> float | None:
    return None if value is None else float(value)


def _make(tools: SourceTools) -> NodeSource:
    from stockyard.providers.nodes.simulated.provider import SimulatedNodes

    return SimulatedNodes(tools.store_of)


KIND = ProviderKind("simulated", f"{__name__}.document:SimulatedBlock", own=True, offerings=offerings)
DESCRIPTOR = NodeSourceDescriptor(KIND, _make)
