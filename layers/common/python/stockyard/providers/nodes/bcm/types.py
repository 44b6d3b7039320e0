"""The node types of a head node: as the document names them, with resources that it leaves to the inventory."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from stockyard.domain.nodes.declared_types import choosable, declared
from stockyard.domain.nodes.node_types import Declaration, NodeType, node_type_of
from stockyard.domain.records import NodeProvider
from stockyard.domain.values.quantities import milli
from stockyard.providers.clouds.bcm.sheets import Host, Sheet
from stockyard.providers.nodes.bcm.inventory import counted, hosts_by_type

Resources = dict[str, str | float]


def node_types(provider: NodeProvider, sheet: Sheet | None) -> tuple[NodeType, ...]:
    """The types of the document. What an entry says of resources wins over what its hosts have; a type whose cpu or
    memory nobody tells is not available."""
    hosts = hosts_by_type(provider, sheet) if sheet is not None else {}
    types = []
    for written in declared(provider):
        resources: Resources = {**least(counted(hosts.get(written.name, ()))), **written.resources}
        is_known = {"cpu", "memory"} <= set(resources)
        types.append(
            node_type_of(
                Declaration(
                    provider=provider.name,
                    name=written.name,
                    resources=resources if is_known else {"cpu": 0, "memory": 0, **resources},
                    overhead=written.overhead,
                    provider_properties=choosable(provider.properties),
                    properties=choosable(written.properties),
                    zone=written.zone,
                    cost=written.cost,
                    unit_price=provider.price_per_cost_unit,
                    limited=True,
                    available=is_known,
                    boots=True,
                    owned=True,
                )
            )
        )
    return tuple(types)


def least(hosts: Sequence[Host]) -> Resources:
    """Resources that each of the hosts has at least, of those whose hardware is known: a claim may get any of them."""
    told_resources: list[Mapping[str, str | int]] = [host.resources for host in hosts if host.resources]
    if not told_resources:
        return {}
    names = set(told_resources[0]).intersection(*told_resources[1:])
    return {name: min((each[name] for each in told_resources), key=milli) for name in sorted(names)}
