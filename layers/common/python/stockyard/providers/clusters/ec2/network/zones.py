"""Zones of the region in which a cluster stands."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from stockyard.domain.records import Cluster
from stockyard.errors import VendorRefused
from stockyard.ports import Finding
from stockyard.providers.clouds.aws.calls import Calls
from stockyard.providers.clouds.aws.catalog import offerings
from stockyard.providers.clouds.aws.network import own_network
from stockyard.providers.clusters.ec2.configuration import control_plane_types
from stockyard.providers.clusters.ec2.network.network_configuration import USUAL_ZONES, zone_count


def cluster_zones(calls: Calls, cluster: Cluster, present: Sequence[str] = ()) -> list[str]:
    """The zones that the settings name; else as many as the control plane wants, the same ones each time.

    ``present`` are those that the cluster has. Where it has as many as are wanted, nobody is asked.
    """
    named = [str(zone) for zone in cluster.settings.get("zones") or ()]
    count = zone_count(cluster.settings)
    if named or len(present) >= count:
        return named or list(present)
    ordered = by_offers(calls, control_plane_types(cluster))
    return [*present, *(zone for zone in ordered if zone not in present)][:count]


def by_offers(calls: Calls, types: Sequence[str]) -> list[str]:
    """The zones of the region, those that offer more of the control plane's types first.

    Raises ``VendorRefused`` where none offers any, or there are too few.
    """
    offering = Counter(zone for _, zone in offerings.offered_locations(calls, list(types), zones=True))
    here = [str(zone["ZoneName"]) for zone in own_network.available_zones(calls)]
    if not any(offering[zone] for zone in here):
        names = " or ".join(types)
        raise VendorRefused(f"no zone of {calls.region} offers {names}", hint="Choose another instance type or region.")
    if len(here) < USUAL_ZONES:
        raise VendorRefused(f"{calls.region} has fewer than {USUAL_ZONES} zones", hint="Choose another region.")
    # The control plane's first machine stands in the first if it can; the others need not offer a type.
    return sorted(here, key=lambda zone: (-offering[zone], zone))


def findings(calls: Calls, cluster: Cluster) -> Iterator[Finding]:
    """Findings about the zones that the settings name: those that are not there, and where no member of the control
    plane can be."""
    named = [str(zone) for zone in cluster.settings.get("zones") or ()]
    if not named:
        return
    here = {str(zone["ZoneName"]) for zone in own_network.available_zones(calls)}
    types = control_plane_types(cluster)
    offering = {zone for _, zone in offerings.offered_locations(calls, list(types), zones=True)}
    usable = [zone for zone in named if zone in here and zone in offering]
    for index, zone in enumerate(named):
        pointer = f"/settings/zones/{index}"
        if zone not in here:
            yield Finding(pointer, f"{calls.region} has no zone {zone} that the account may use.")
        elif zone not in offering:
            text = f"{zone} offers none of {', '.join(types)}, so no control plane can stand there."
            yield Finding(pointer, text, warning=bool(usable))
