"""The node groups of a cluster on EC2: how they are pools, which provider serves them, and what their floors cost."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from stockyard.domain.nodes.manifests import ProviderDocument
from stockyard.domain.nodes.node_types import ON_DEMAND, SPOT
from stockyard.domain.nodes.offers import SpotPrices
from stockyard.domain.nodes.properties import ALLOCATION_STRATEGY, ROOT_DISK
from stockyard.domain.pools.bids import Bid
from stockyard.domain.pools.group_mapping import Group
from stockyard.domain.pools.node_groups import RESOURCES, WORKER, common_fields, new_pool
from stockyard.domain.pools.records import NewPool, Pool
from stockyard.domain.records import Cluster
from stockyard.domain.values.prices import HOURS_A_MONTH, PriceItem
from stockyard.domain.values.requirements import CAPACITY_TYPE, IN, INSTANCE_TYPE
from stockyard.ports import Finding
from stockyard.providers.clouds.aws.catalog.images import has_gpu_image
from stockyard.providers.clouds.aws.catalog.reserved import DISK_GIB
from stockyard.providers.clusters.ec2.configuration import region
from stockyard.providers.clusters.ec2.node_group_settings import least_disk_gib, written

GPU = "nvidia.com/gpu"
"""The resource of GPUs, as NVIDIA's device plugin gives it to a node."""
ADD_FIRST = "add_first"
"""The usual update strategy, which a pool does not say."""

if TYPE_CHECKING:
    from stockyard.ports import PriceList


def pool_of_group(group: Group, provider: str = "") -> NewPool:
    """See ``group_mapping.GroupMapping``. ``instance_types`` and ``capacity_type`` are requirements,
    ``allocation_strategy`` is a variable of the provider, and so is a ``root_disk_gib`` that is not the usual one."""
    group = written(group)
    disk = group[ROOT_DISK]
    return new_pool(
        group,
        provider,
        requirements=(
            {"key": INSTANCE_TYPE, "operator": IN, "values": list(group["instance_types"])},
            {"key": CAPACITY_TYPE, "operator": IN, "values": [group["capacity_type"]]},
        ),
        properties={
            ALLOCATION_STRATEGY: group[ALLOCATION_STRATEGY],
            **({ROOT_DISK: str(disk)} if disk != DISK_GIB else {}),
        },
        zones=tuple(group["zones"]),
        max_price=_without_nulls(group["max_price"] or {}),
        update_strategy=_strategy(_without_nulls(group["update_strategy"])),
        # Nodes with GPUs are for who asks for them, and so are those of its floor.
        **({"document": {RESOURCES: {GPU: "1"}}} if all(map(has_gpu_image, group["instance_types"])) else {}),
        taints=tuple(
            {name: taint[name] for name in ("key", "value", "effect") if taint.get(name)} for taint in group["taints"]
        ),
    )


def _without_nulls(document: Group) -> dict[str, Any]:
    return {name: value for name, value in document.items() if value is not None}


def _strategy(document: dict[str, Any]) -> dict[str, Any]:
    return {} if document["type"] == ADD_FIRST else document


def group_of_pool(pool: NewPool | Pool) -> dict[str, Any]:
    """See ``group_mapping.GroupMapping``."""
    values = {
        requirement["key"]: list(requirement.get("values", ()))
        for requirement in pool.requirements
        if requirement["operator"] == IN
    }
    return {
        **common_fields(pool),
        "name": pool.name,
        "instance_types": values.get(INSTANCE_TYPE, []),
        "taints": [{"value": "", **taint} for taint in pool.taints],
        ALLOCATION_STRATEGY: pool.properties.get(ALLOCATION_STRATEGY, "lowest-price"),
        "capacity_type": next(iter(values.get(CAPACITY_TYPE, ())), ON_DEMAND),
        "zones": list(pool.zones),
        "max_price": {"percent": None, "usd_hour": None, **pool.max_price} if pool.max_price else None,
        ROOT_DISK: int(pool.properties.get(ROOT_DISK, DISK_GIB)),
        "update_strategy": {"type": ADD_FIRST, "max_surge": None, "max_unavailable": None, **pool.update_strategy},
    }


def remakes(before: NewPool | Pool, after: NewPool | Pool) -> bool:  # noqa: ARG001 - machines are made one by one
    """See ``group_mapping.GroupMapping``."""
    return False


def provider(cluster: Cluster) -> ProviderDocument:
    """The implicit provider of the cluster's account and region: every type that EC2 has there, also for spot."""
    region_name = region(cluster)
    block = {
        "cloudAccount": cluster.cloud_account_id,
        "region": region_name,
        "instanceTypes": ["*"],
        "capacityTypes": ["on-demand", SPOT],
    }
    return ProviderDocument(f"ec2-{cluster.cloud_account_id}-{region_name}", "ec2", block)


def _rate(group: Group, offer: Mapping[str, Any] | None, spot: SpotPrices | None, name: str) -> float | None:
    """USD an hour of a type of the group; None while it is not known."""
    on_demand: float | None = offer["usd_hour"] if offer is not None else None
    if group.get("capacity_type") != SPOT:
        return on_demand
    zones = spot.instances.get(name, {}) if spot is not None else {}
    price = max((zone.now for zone in zones.values()), default=None)
    bid = Bid.of(_without_nulls(written(group)["max_price"] or {}))
    limit = bid.limit(on_demand) if bid is not None else None
    return price if price is None or limit is None else min(price, limit)


def bid_remarks(cluster: Cluster, prices: PriceList) -> Iterator[Finding]:
    """The groups whose bid for spot nobody meets now: their nodes wait for ever at such a price."""
    region_name = region(cluster)
    spot = prices.spot(region_name)
    for number, group in enumerate(cluster.settings.get("autoscaler_node_groups") or ()):
        bid = Bid.of(_without_nulls(written(group)["max_price"] or {})) if group.get("role") == WORKER else None
        if bid is None or group.get("capacity_type") != SPOT or spot is None:
            continue
        offers = {name: prices.instance(region_name, name) for name in group["instance_types"]}
        limits = {name: bid.limit(offer["usd_hour"] if offer else None) for name, offer in offers.items()}
        spot_prices = [
            (price.now, name, zone)
            for name, limit in limits.items()
            for zone, price in spot.instances.get(name, {}).items()
            if limit is not None
        ]
        if not spot_prices or any(price <= (limits[name] or 0.0) for price, name, _ in spot_prices):
            continue
        price, name, zone = min(spot_prices)
        text = (
            f"Nobody sells spot at the bid of group {group['name']}, {bid.text}: the cheapest now is {name} in {zone}"
            f" at {price:g} USD an hour. Its nodes wait until it costs no more than the bid."
        )
        yield Finding(f"/settings/autoscaler_node_groups/{number}/max_price", text, warning=True)


def group_items(cluster: Cluster, prices: PriceList) -> Sequence[PriceItem]:
    """For each worker group with a floor a line of nodes, at the price of its cheapest type: on demand, or as spot what
    it costs now in its dearest zone and at most the bid; no price where that of a type is not known. And their disks.
    """
    items: list[PriceItem] = []
    for group in cluster.settings.get("autoscaler_node_groups") or ():
        count = int(group.get("min_size") or 0)
        if group.get("role") != WORKER or not count:
            continue
        spot = prices.spot(region(cluster)) if group.get("capacity_type") == SPOT else None
        # Types with GPUs are for who asks for them: the floor does so where there are no others.
        names = [name for name in group["instance_types"] if not has_gpu_image(name)] or group["instance_types"]
        rates = [_rate(group, prices.instance(region(cluster), name), spot, name) for name in names]
        known_rates = [each for each in rates if each is not None]
        rate = min(known_rates) if len(known_rates) == len(rates) else None
        of_pool = f"{'node' if count == 1 else 'nodes'} of pool {group['name']}"
        items.append(PriceItem(f"{count} {of_pool}", count, None if rate is None else rate * count))
        gib = max(int(written(group)[ROOT_DISK]), least_disk_gib(names))
        month = prices.rate(region(cluster), "gp3")
        disk = None if month is None else month * gib * count / HOURS_A_MONTH
        items.append(PriceItem(f"disk gp3 {gib} GiB of {count} {of_pool}", count, disk))
    return items
