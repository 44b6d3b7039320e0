"""The nodes of a cluster as the packer reads them: what is there, what is on its way, and what is free on each."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from itertools import chain, repeat

from stockyard.domain.control_plane import ROLE
from stockyard.domain.manifests import is_planned, matched
from stockyard.domain.node_disks import of_catalogue, with_disk
from stockyard.domain.node_properties import node_labels
from stockyard.domain.node_types import NodeType, read_resources
from stockyard.domain.pool_records import POOL_LABEL
from stockyard.domain.records import NodeClaim
from stockyard.domain.requirements import HOSTNAME, NODE_POOL, Requirements
from stockyard.operations.node_claims.delete import is_member
from stockyard.operations.pools.member_room import is_stand_in
from stockyard.operations.pools.templates import Supply
from stockyard.operations.pools.workload import Workload
from stockyard.scheduling.match import choose
from stockyard.scheduling.packing import model
from stockyard.scheduling.reading import Reader


def nodes_there(stock: Supply, claims: Iterable[NodeClaim], workload: Workload) -> tuple[model.Node, ...]:
    """A node for each claim that is one or may become one; those on their way out are none.

    A claim in flight counts as the node that it will be: of its type once it is placed, before that of the type that it
    would be bound to now. What runs on a node is what the cluster's agent told last.
    """
    reader = Reader()
    placed_pods = _PlacedPods()
    present = (claim for claim in claims if not claim.deleting and claim.phase != "Failed")
    nodes = (_node(stock, reader, claim, workload, placed_pods) for claim in present)
    return tuple(node for node in nodes if node is not None)


class _PlacedPods(dict[int, model.PlacedPod]):
    """Pods of nodes by the identity of their ``Pod``: equal ones share one object, however many run."""

    def of(self, pod: model.Pod) -> model.PlacedPod:
        """The pod as topology counts it."""
        placed_pod = self.get(id(pod))
        if placed_pod is None:
            placed_pod = self[id(pod)] = model.PlacedPod(pod.namespace, pod.labels, pod.anti_affinity)
        return placed_pod


def _node(
    stock: Supply, reader: Reader, claim: NodeClaim, workload: Workload, placed_pods: _PlacedPods
) -> model.Node | None:
    name = claim.node_name or claim.name
    placed = claim.placement
    node_type: NodeType | None = None
    if is_stand_in(claim):
        labels = claim.node_labels
    elif placed is not None:
        node_type = stock.catalog.node_types.get(placed.type)
        labels = {**node_labels(node_type, claim, placed), **claim.node_labels}
    else:
        node_type = _next_type(stock, reader, claim)
        labels = _certain_labels(claim)
    if node_type is not None:
        node_type = with_disk(node_type, claim.properties)
    allocatable = node_type.allocatable if node_type is not None else read_resources(claim.resources)
    if not allocatable:
        return None
    labels = {**labels, **claim.labels, HOSTNAME: name}
    if is_member(claim):
        labels[ROLE] = ""
    if claim.pool and not is_stand_in(claim):
        labels |= {NODE_POOL: claim.pool, POOL_LABEL: claim.pool}
    taints = tuple(model.Taint(taint["key"], taint.get("value") or "", taint["effect"]) for taint in claim.taints)
    running = workload.running.get(name, ())
    free = defaultdict(int, allocatable)
    for pod, count in running:
        for resource, amount in pod.requests:
            free[resource] -= amount * count
    for pod in _daemons_to_come(workload, name, labels, taints):
        for resource, amount in pod.requests:
            free[resource] -= amount
    return model.Node(
        name,
        labels,
        dict(free),
        taints,
        tuple(chain.from_iterable(repeat(placed_pods.of(pod), count) for pod, count in running)),
        tuple(port for pod, _ in running for port in pod.ports),
        initialized=claim.phase == "Available",
    )


def _next_type(stock: Supply, reader: Reader, claim: NodeClaim) -> NodeType | None:
    try:
        request = reader.request(
            matched(claim),
            of_catalogue(claim.resources, claim.properties),
            claim.provider_ref or None,
            stock.allowed,
            stock.beyond(claim.provider_ref),
            is_planned(claim),
        )
    except ValueError:
        return None
    best = choose(stock.catalog.index, request, stock.availability)
    return best.node_type if best is not None else None


def _certain_labels(claim: NodeClaim) -> dict[str, str]:
    """The labels that the node has wherever it is placed: what the claim asks for has one value."""
    requirements = Requirements.of(claim.requirements)
    return {
        key: min(requirement.values)
        for key, requirement in requirements.items()
        if not requirement.complement and len(requirement.values) == 1
    }


def _daemons_to_come(
    workload: Workload, name: str, labels: Mapping[str, str], taints: Sequence[model.Taint]
) -> Iterable[model.Pod]:
    there = workload.daemons_running.get(name, frozenset())
    for daemon_set, pod in workload.daemons.items():
        if daemon_set not in there and _fits(pod, labels) and pod.tolerates(taints, preferred=False):
            yield pod


def _fits(pod: model.Pod, labels: Mapping[str, str]) -> bool:
    return any(
        all(requirement.has(labels[key]) if key in labels else requirement.absence_fits for key, requirement in term)
        for term in pod.terms
    )
