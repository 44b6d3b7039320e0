"""Savings by asking for what nodes are not by default: spot, or another architecture."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from stockyard.domain.nodes.defaults import DEFAULTS
from stockyard.domain.nodes.disks import price_with_disk
from stockyard.domain.nodes.node_types import ANY, NodeType
from stockyard.domain.pools.bids import Bid
from stockyard.domain.pools.records import Pool
from stockyard.domain.values.requirements import CAPACITY_TYPE, Requirements
from stockyard.operations.fleet.priced_types import PodRequests
from stockyard.operations.fleet.templates import Supply, node_types
from stockyard.scheduling.index import Index
from stockyard.scheduling.match import Availability, SchedulingRequest, choose
from stockyard.scheduling.opt_in import OPT_IN_LABELS
from stockyard.scheduling.packing.plan import Claim

Saving = tuple[str, str, float]
"""A label to ask by, its value, and USD an hour of the cheapest node that has it."""
_LEAST = 1e-9


def of_request(
    index: Index, request: SchedulingRequest, now: Availability, properties: Mapping[str, str], usd_hour: float | None
) -> str:
    """In words by what a request could ask to pay less than ``usd_hour``; empty where it saves nothing. ``properties``
    are those of its claim, which name a disk."""
    savings: list[Saving] = []
    for key in request.defaults if usd_hour is not None else ():
        remaining = {name: value for name, value in request.defaults.items() if name != key}
        row = choose(index, replace(request, defaults=remaining), now)
        price = None if row is None else price_with_disk(row.usd_hour, row.node_type, properties)
        if row is not None and price is not None and usd_hour is not None and price < usd_hour - _LEAST:
            own = (row.capacity_type,) if key == CAPACITY_TYPE else row.node_type.properties.get(key, ())
            savings.append((key, ", ".join(own), price))
    return sentence(savings)


def of_plan(stock: Supply, pools: Mapping[str, Pool], planned: Sequence[Claim]) -> str:
    """In words what the planned nodes would cost together, if their pods asked for more; empty where it saves nothing.
    ``pools`` are records by name; a node of none of them may be of every provider."""
    before = sum(claim.price for claim in planned)
    savings: list[Saving] = []
    for key in DEFAULTS:
        total, values, offered = 0.0, set[str](), dict[str, Sequence[NodeType]]()
        for claim in planned:
            name = claim.pool.name
            if name not in offered:
                offered[name] = _marked(stock, pools.get(name), claim.pool.requirements, key)
            value, price = min(
                _values_with_prices(claim, offered[name], key), key=lambda pair: pair[1], default=("", claim.price)
            )
            total += min(price, claim.price)
            values |= {value} if price < claim.price else set()
        if values and total < before - _LEAST:
            savings.append((key, ", ".join(sorted(values)), total))
    return sentence(savings)


def _marked(stock: Supply, pool: Pool | None, requirements: Requirements, key: str) -> Sequence[NodeType]:
    """The node types that the pool has only for those who ask by the label."""
    bid, provider = (Bid.of(pool.max_price), pool.provider_ref) if pool is not None else (None, "")
    opened = node_types(stock, requirements, provider, PodRequests(frozenset({key})), bid=bid)
    return [node_type for node_type in opened if OPT_IN_LABELS[key] in node_type.properties]


def _values_with_prices(claim: Claim, types: Iterable[NodeType], key: str) -> Iterable[tuple[str, float]]:
    """Value of the label and price of each way that has room for what is packed, beside what runs on each node."""
    row = claim.row
    overhead = {name: amount - row.room.get(name, 0) for name, amount in row.node_type.allocatable.items()}
    needed = {name: amount + max(0, overhead.get(name, 0)) for name, amount in claim.requests.items() if amount > 0}
    for node_type in types:
        if all(node_type.allocatable.get(name, 0) >= amount for name, amount in needed.items()):
            for pair in node_type.offerings:
                price = node_type.money(pair)
                if price is not None and (row.zone == ANY or {row.zone, ANY} & set(pair.zones)):
                    yield node_type.properties[OPT_IN_LABELS[key]][0], price


def sentence(savings: Sequence[Saving]) -> str:
    """The savings in one sentence; empty where there are none."""
    if not savings:
        return ""
    prices = ", ".join(f"{value} from {price:.4f}" for _, value, price in savings)
    return f"Cheaper when asked for: {prices} USD an hour (by {' and '.join(key for key, _, _ in savings)})."
