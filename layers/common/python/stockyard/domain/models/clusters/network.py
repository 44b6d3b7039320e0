"""The overlay of a cluster as its machines tell it."""

from __future__ import annotations

from typing import Literal

from stockyard.domain.models.base import View


class OverlayMemberView(View):
    """One machine of an overlay, and how it is reached."""

    name: str
    """The name of its node claim; the cluster's own for the first machine of the control plane."""
    claim: str | None
    """The id of its node claim; null for the first machine of a control plane."""
    node: str | None
    """The name of its node; null while that has told nothing."""
    network: str
    """The network that it stands in: kind of provider, place, cloud account."""
    address: str
    """Its address in the overlay."""
    hub: bool
    """Whether it carries packets between others: a member of the control plane."""
    state: Literal["up", "down", "unknown"]
    """``down`` when no hub hears it; ``unknown`` before a hub has said anything."""
    since: str | None
    """Of what is down, when it was heard last; else since when it sends through its hub. Null while nobody knows."""
    home: str | None
    """The node of the hub that it sends through; null for a hub, and while it has told nothing."""
    handshake_at: str | None
    """The last handshake that it told of, with its hub, or of a hub with anybody. While a machine is up there is one
    each two minutes; it is told with the next change of its paths. Null before the first."""
    direct: int | None
    """How many others it reaches without a hub; null while it has told nothing."""
    relayed: int | None
    """How many others it reaches through a hub; null while it has told nothing."""
    through_hub: list[str]
    """The nodes of these, 20 at most."""


class NetworkView(View):
    """The overlay of a cluster: who is in it, and by which paths."""

    range: str | None
    """The addresses of its machines; null for a cluster without an overlay."""
    observed_at: str | None
    """When the cluster's agent came last, as of when this is so: it comes each few minutes to an idle cluster; null
    before the first time."""
    changed_at: str | None
    """When the last change of paths was kept; null before the first."""
    members: list[OverlayMemberView]
    """Its machines, those first that are down, then hubs."""
