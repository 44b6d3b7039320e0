"""In which zones a provider's machines can stand: what is known of that before one is asked for."""

from __future__ import annotations

from stockyard.domain.node_records import NodeEnvironment, NodeProvider
from stockyard.domain.reach import place_of
from stockyard.domain.requirements import Requirement


def zones_of(provider: NodeProvider, environment: NodeEnvironment | None) -> frozenset[str]:
    """The zones in which a cluster has subnets for the provider's machines, as its environment found them.

    Empty while that is not known: there is no environment yet, or the provider's document has changed since.
    """
    outputs = environment.outputs if environment is not None else {}
    if provider.kind != "ec2" or outputs.get("provider_generation") != str(provider.generation):
        return frozenset()
    return frozenset(entry.partition("=")[2] for entry in outputs["subnets"].split(","))


def out_of_zone(provider: NodeProvider, environment: NodeEnvironment | None, asked: Requirement | None) -> str:
    """Why no machine of the provider can stand in a zone that is ``asked`` for; empty when one can, or may.

    While the subnets are not known, the names of zones tell their region.
    """
    if provider.kind != "ec2" or asked is None:
        return ""
    zones = zones_of(provider, environment)
    region, _ = place_of(provider)
    if zones:
        where, can = ", ".join(sorted(zones)), any(asked.has(zone) for zone in zones)
    else:
        where, can = region, asked.complement or any(zone.startswith(region) for zone in asked.values)
    return (
        "" if can else f"Machines of node provider {provider.name} stand in {where}; the claim asks for another zone."
    )
