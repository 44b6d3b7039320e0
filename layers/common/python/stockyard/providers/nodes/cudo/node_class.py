"""Node class of a cluster in Cudo: its network, the security group of its nodes, and their images. Nodes of a
cluster that stands elsewhere have no network of their own, and a group that is made for them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import date, datetime, timedelta

from stockyard.domain.clusters import overlay
from stockyard.domain.records import Cluster, NodeProvider
from stockyard.errors import NodeCouldNotBeProvisioned, NotYetVisible, VendorRefused
from stockyard.providers.clouds.cudo import images, names, values
from stockyard.providers.clouds.cudo.client import Cudo
from stockyard.providers.clouds.cudo.making import Reconciler
from stockyard.providers.clouds.cudo.values import Rule
from stockyard.providers.nodes.cudo import topology
from stockyard.providers.nodes.cudo.configuration import data_center

_SUFFIX = 8
"""Characters at the end of a provider's id that its group is named by."""


@dataclass(frozen=True, slots=True)
class NodeClass:
    """Ids of network, security group and images. ``network`` is empty outside of the cluster's own. ``gpu_image`` is
    empty where Cudo has none with NVIDIA's driver."""

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


def of_facts(facts: Mapping[str, str], provider: NodeProvider) -> NodeClass | None:
    """The node class that an environment's outputs describe; None where the document has changed since."""
    if facts.get("provider_generation") != str(provider.generation):
        return None
    return NodeClass(**{name: facts[name] for name in NodeClass.__dataclass_fields__})


def is_stale(facts: Mapping[str, str], provider: NodeProvider, now: datetime, image_days: int) -> bool:
    """Whether it has to be found again: the document has changed, or there may be newer images."""
    known_class = of_facts(facts, provider)
    return known_class is None or now.date() - date.fromisoformat(known_class.found_on) >= timedelta(days=image_days)


def find(cudo: Cudo, provider: NodeProvider, cluster: Cluster, prefix: str, now: datetime) -> NodeClass:
    """Look it up. ``NotYetVisible`` while the cluster's network or group is not shown, ``NodeCouldNotBeProvisioned``
    where they stand in another data center, ``VendorRefused`` where there is no image."""
    there = data_center(provider)
    network_id, group_id = "", foreign_group(prefix, provider, cluster)
    if topology.is_at_home(provider, cluster):
        network_id, group_id = (names.name(prefix, cluster.client_id, thing) for thing in (names.NETWORK, names.NODE))
        _check_network(cudo, network_id, provider, there)
    if cudo.security_group(group_id) is None:
        raise NotYetVisible(f"The security group {group_id} of the cluster's nodes is not shown.")
    listed = cudo.images()
    development = bool(cluster.settings.get("dev_mode"))
    return NodeClass(
        network_id,
        group_id,
        there,
        images.choose(listed, gpu=False, development=development),
        _gpu_image(listed, development=development),
        str(provider.generation),
        now.date().isoformat(),
    )


def _check_network(cudo: Cudo, network_id: str, provider: NodeProvider, there: str) -> None:
    network = cudo.network(network_id)
    if network is None or network.state != values.READY:
        raise NotYetVisible(f"The cluster's network {network_id} is not shown as ready.")
    if network.data_center != there:
        raise NodeCouldNotBeProvisioned(
            f"The cluster's network is in {network.data_center}, node provider {provider.name} in {there}. Machines of"
            " another network need an overlay, which a cluster has from its creation."
        )


def foreign_group(prefix: str, provider: NodeProvider, cluster: Cluster) -> str:
    """The id of the security group of the provider's machines outside of the cluster's network."""
    return names.name(prefix, cluster.client_id, f"{names.NODE}-{provider.id.rpartition('_')[2][-_SUFFIX:].lower()}")


def make_foreign(reconciler: Reconciler, prefix: str, provider: NodeProvider, cluster: Cluster) -> str:
    """Make that group: what answers comes in, and the overlay, which answers nobody whose key it does not know."""
    rules = [
        Rule(str(overlay.PORT), values.EVERYWHERE, protocol=values.UDP),
        Rule("", values.EVERYWHERE, inbound=False, protocol="PROTOCOL_ALL"),
    ]
    return reconciler.group(foreign_group(prefix, provider, cluster), data_center(provider), rules)


def _gpu_image(listed: Sequence[str], *, development: bool) -> str:
    try:
        return images.choose(listed, gpu=True, development=development)
    except VendorRefused:
        return ""
