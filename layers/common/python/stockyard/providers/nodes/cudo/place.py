"""Place of the nodes of a cluster in Cudo: its network, the security group of its nodes, and their images."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import date, datetime, timedelta

from stockyard.domain.records import Cluster, NodeProvider
from stockyard.errors import NodeCouldNotBeProvisioned, NotYetVisible, VendorRefused
from stockyard.providers.clouds.cudo import images, names, values
from stockyard.providers.clouds.cudo.client import Cudo
from stockyard.providers.nodes.cudo.configuration import data_center


@dataclass(frozen=True, slots=True)
class Place:
    """Ids of network, security group and images. ``gpu_image`` is empty where Cudo has none with NVIDIA's driver."""

    network: str
    security_group: str
    data_center: str
    image: str
    gpu_image: str
    provider_generation: str
    found_on: str
    """The day on which it was found, ``2026-01-31``."""

    def facts(self) -> dict[str, str]:
        """As an environment's outputs; :func:`of_facts` reads them."""
        return asdict(self)


def of_facts(facts: Mapping[str, str], provider: NodeProvider) -> Place | None:
    """The place that an environment's outputs describe; None where the document has changed since."""
    if facts.get("provider_generation") != str(provider.generation):
        return None
    return Place(**{name: facts[name] for name in Place.__dataclass_fields__})


def is_stale(facts: Mapping[str, str], provider: NodeProvider, now: datetime, image_days: int) -> bool:
    """Whether it has to be found again: the document has changed, or there may be newer images."""
    place = of_facts(facts, provider)
    return place is None or now.date() - date.fromisoformat(place.found_on) >= timedelta(days=image_days)


def find(cudo: Cudo, provider: NodeProvider, cluster: Cluster, prefix: str, now: datetime) -> Place:
    """Look it up. ``NotYetVisible`` while the cluster's network or group is not shown, ``NodeCouldNotBeProvisioned``
    where they stand in another data center, ``VendorRefused`` where there is no image."""
    network_id = names.name(prefix, cluster.client_id, names.NETWORK)
    group_id = names.name(prefix, cluster.client_id, names.NODE)
    network, group = cudo.network(network_id), cudo.security_group(group_id)
    if network is None or network.state != values.READY:
        raise NotYetVisible(f"The cluster's network {network_id} is not shown as ready.")
    if group is None:
        raise NotYetVisible(f"The security group {group_id} of the cluster's nodes is not shown.")
    there = data_center(provider)
    if network.data_center != there:
        raise NodeCouldNotBeProvisioned(
            f"The cluster's network is in {network.data_center}, node provider {provider.name} in {there}. Machines of"
            " another network need an overlay, which is not built yet."
        )
    listed = cudo.images()
    development = bool(cluster.settings.get("dev_mode"))
    return Place(
        network_id,
        group_id,
        there,
        images.choose(listed, gpu=False, development=development),
        _gpu_image(listed, development=development),
        str(provider.generation),
        now.date().isoformat(),
    )


def _gpu_image(listed: Sequence[str], *, development: bool) -> str:
    try:
        return images.choose(listed, gpu=True, development=development)
    except VendorRefused:
        return ""
