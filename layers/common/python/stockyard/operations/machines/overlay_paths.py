"""Paths of a cluster's overlay: what machines tell of them is kept when it changes, and read by who asks.

The reports are one fact. A second one has their digest alone, and is read with the other facts of each post of the
agent, so that a post that says nothing new costs nothing more.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import field
from typing import Any

from stockyard.domain.clusters import overlay, overlay_paths
from stockyard.domain.clusters.overlay import Table
from stockyard.domain.clusters.overlay_paths import UNKNOWN, MachinePaths
from stockyard.domain.records import Cluster, Fact, NodeClaim
from stockyard.domain.values.frozen import dataclass
from stockyard.errors import Conflict
from stockyard.operations.machines.overlay import TABLE
from stockyard.operations.services import Services
from stockyard.ports import Check, Put

REPORTS = "overlay-paths"
"""The cluster's fact of what its machines tell of their paths, by the names of their nodes."""
DIGEST = "observed-overlay-paths"
"""The cluster's fact of the digest of that."""
PLANE = "node-role.kubernetes.io/control-plane"
"""A label that no kubelet may give its own node."""
SMALL_BYTES, MOST_BYTES = 16_000, 300_000
SOON_SECONDS, LATE_SECONDS = 60, 300
"""How soon after the last change the next one is kept, while the same machines tell: what is large costs more to
write."""


@dataclass(frozen=True, slots=True)
class OverlayMember:
    """One machine of the overlay: its owner (a claim, or the cluster for its first machine), address and paths."""

    owner: str
    address: str
    hub: bool
    paths: MachinePaths


@dataclass(frozen=True, slots=True)
class OverlayPaths:
    """All machines of an overlay. ``changed_at``: when the last change of what they tell was kept; None before."""

    range: str
    members: Sequence[OverlayMember] = ()
    changed_at: str | None = None
    names: Mapping[str, str] = field(default_factory=dict)
    """Name of each machine's node or claim, by its address."""


def note(services: Services, cluster: Cluster, nodes: Iterable[Mapping[str, Any]], digest: Fact | None) -> None:
    """Keep what the machines of a post tell of their paths, if it is new."""
    if overlay.range_of(cluster.settings) is None:
        return
    reports: dict[str, dict[str, Any]] = {}
    for node in nodes:
        report = overlay_paths.read(node.get("overlay"))
        if report is not None:
            reports[str(node["name"])] = {**report, "plane": True} if PLANE in node["labels"] else report
    still = json.dumps(overlay_paths.still(reports), sort_keys=True)
    names, value = _hash(json.dumps(sorted(reports))), _hash(still)
    pause = SOON_SECONDS if len(still) <= SMALL_BYTES else LATE_SECONDS
    if digest is None and not reports:
        return
    if digest is not None:
        # A machine that has come or gone cost more than this write does.
        is_early = digest.value.startswith(names) and services.seconds_since(digest.time) < pause
        if is_early or digest.value == f"{names}-{value}":
            return
    text = json.dumps(reports, sort_keys=True, separators=(",", ":"))
    if len(text) > MOST_BYTES:
        for report in reports.values():
            report.pop("relayed", None)
        text = json.dumps(reports, sort_keys=True, separators=(",", ":"))
    now = services.now()
    with suppress(Conflict):  # a cluster that is gone needs none
        services.store.commit(
            Put(Fact(f"{cluster.id}/{REPORTS}", text, now)),
            Put(Fact(f"{cluster.id}/{DIGEST}", f"{names}-{value}", now)),
            Check(Cluster, cluster.id, {}),
        )


def _hash(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def paths_of(services: Services, cluster: Cluster, claims: Iterable[NodeClaim]) -> OverlayPaths | None:
    """Machines of the cluster's overlay with what is known of their paths; None for a cluster without one. ``claims``
    are those of the cluster: by their names the nodes are known, whatever labels these have."""
    span = overlay.range_of(cluster.settings)
    if span is None:
        return None
    fact = services.store.get(Fact, f"{cluster.id}/{TABLE}")
    peers = Table.read(fact.value if fact is not None else None).peers
    reports_fact = services.store.get(Fact, f"{cluster.id}/{REPORTS}")
    by_node: dict[str, dict[str, Any]] = json.loads(reports_fact.value) if reports_fact is not None else {}
    nodes = {claim.id: claim.host_name or claim.node_name or claim.name for claim in claims}
    # The first machine of a control plane belongs to no claim: its node is the one that is left.
    strangers = [name for name in by_node if by_node[name].get("plane") and name not in nodes.values()]
    if len(strangers) == 1:
        nodes[cluster.id] = strangers[0]
    address_of = {owner: str(peer["address"]) for owner, peer in peers.items()}
    reports = {address: by_node.get(nodes.get(owner, "")) for owner, address in address_of.items()}
    hubs = [address_of[owner] for owner, peer in peers.items() if "slot" in peer]
    states = overlay_paths.paths_of(hubs, reports, list(reports))
    members = [
        OverlayMember(owner, address, address in hubs, states.get(address, MachinePaths(UNKNOWN)))
        for owner, address in address_of.items()
    ]
    names = {address: nodes.get(owner, cluster.name) for owner, address in address_of.items()}
    return OverlayPaths(span, members, reports_fact.time if reports_fact is not None else None, names)


def sentence(paths: OverlayPaths, owner: str) -> str | None:
    """Place of an owner's machine in the overlay, in words for people; None for one that is not in it."""
    member = next((each for each in paths.members if each.owner == owner), None)
    if member is None:
        return None
    state = member.paths
    words = f"overlay {member.address}"
    if member.hub:
        words += ", a hub"
    elif state.home:
        words += f", through {paths.names.get(state.home, state.home)}"
    if state.direct is not None:
        words += f", {state.direct} direct, {state.relayed} relayed"
    return f"{words}, down since {state.since}" if state.state == overlay_paths.DOWN else words
