"""The setting of a cluster that has an overlay."""

from __future__ import annotations

from ipaddress import IPv4Network
from typing import Annotated, Literal

from pydantic import AfterValidator, BeforeValidator, Field

from stockyard.domain.clusters.control_plane import POD_CIDR, SERVICE_CIDR
from stockyard.domain.clusters.overlay import DEFAULT_RANGE, LEAST_PREFIX, MOST_PREFIX
from stockyard.domain.models.base import Input

_PRIVATE = [IPv4Network(text) for text in ("10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "100.64.0.0/10")]


def _range(text: str) -> str:
    try:
        network = IPv4Network(text)
    except ValueError as error:
        raise ValueError("must be a range of IPv4 addresses such as 100.64.0.0/16") from error
    if not LEAST_PREFIX <= network.prefixlen <= MOST_PREFIX:
        raise ValueError(f"must be between /{LEAST_PREFIX} and /{MOST_PREFIX}")
    if not any(network.subnet_of(private) for private in _PRIVATE):
        raise ValueError(f"must be within {', '.join(str(private) for private in _PRIVATE)}")
    if fault := overlap_fault(text, POD_CIDR, SERVICE_CIDR):
        raise ValueError(fault)
    return str(network)


def overlap_fault(text: str, *ranges: str) -> str | None:
    """Fault of a range that overlaps others of its cluster; None where it overlaps none."""
    for other in ranges:
        if IPv4Network(text).overlaps(IPv4Network(other)):
            return f"overlaps {other}, which the cluster uses already"
    return None


def _between(value: object) -> object:
    if value is False:
        raise ValueError("must be true: without it pods of nodes in two networks would not reach each other")
    return value


class OverlayNetwork(Input):
    """A network of WireGuard tunnels between all machines of a cluster, so that nodes of other networks can be in it.
    The members of the control plane are its hubs."""

    range: Annotated[str, Field(min_length=9, max_length=18), AfterValidator(_range)] = DEFAULT_RANGE
    """The addresses of its machines. No network that a machine is in may have them."""
    node_to_node: Annotated[Literal[True], BeforeValidator(_between)] = True
    """Nodes reach each other, not the control plane alone."""
