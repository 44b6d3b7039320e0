"""The network phase: a private network for all machines of the cluster, and who may reach them from outside of it."""

from __future__ import annotations

from collections.abc import Iterator

from stockyard.domain.clusters import overlay
from stockyard.domain.records import Cluster
from stockyard.ports import Outcome
from stockyard.providers.clouds.cudo.making import POLL_SECONDS, Reconciler
from stockyard.providers.clouds.cudo.names import CONTROL_PLANE, NETWORK, NODE, name
from stockyard.providers.clouds.cudo.values import EVERYWHERE, UDP, Rule
from stockyard.providers.clusters.cudo.configuration import API_PORT, NETWORK_CIDR

_ALL = "PROTOCOL_ALL"
OUTWARD = Rule("", EVERYWHERE, inbound=False, protocol=_ALL)
FROM_NETWORK = Rule("", NETWORK_CIDR, protocol=_ALL)
"""Machines of one cluster trust each other, as pods do; without any group Cudo would let everybody in."""


def ensure(reconciler: Reconciler, cluster: Cluster, data_center: str, prefix: str) -> Outcome:
    """Two security groups with their rules, and the network."""
    control_plane, node = (name(prefix, cluster.client_id, thing) for thing in (CONTROL_PLANE, NODE))
    reconciler.group(control_plane, data_center, [*control_plane_rules(cluster), FROM_NETWORK, OUTWARD])
    reconciler.group(node, data_center, [FROM_NETWORK, OUTWARD])
    network = name(prefix, cluster.client_id, NETWORK)
    if reconciler.network(network, data_center, NETWORK_CIDR) is None:
        return Outcome(False, f"network {network} is being made", POLL_SECONDS)
    return Outcome(True, f"network {network} and two security groups")


def control_plane_rules(cluster: Cluster) -> Iterator[Rule]:
    """Rules for what may come in from outside: to the API for ``api_cidrs``, to port 22 for ``ssh_cidrs`` where there
    is a key to log in with, to the hub of an overlay."""
    for cidr in cluster.settings["api_cidrs"]:
        yield Rule(str(API_PORT), cidr)
    if cluster.settings.get(overlay.SETTING):
        # WireGuard answers nobody whose key it does not know.
        yield Rule(str(overlay.PORT), EVERYWHERE, protocol=UDP)
    for cidr in cluster.settings["ssh_cidrs"] if cluster.settings["ssh_public_key"] else ():
        yield Rule("22", cidr)
