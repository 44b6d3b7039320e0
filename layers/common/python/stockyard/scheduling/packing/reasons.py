"""Reasons why a pod has no place: for each pool the first rule that leaves it no way to make a node for the pod."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from functools import reduce
from operator import or_

from stockyard.domain.nodes.provider_kinds import unknown_label
from stockyard.domain.values.frozen import dataclass
from stockyard.domain.values.quantities import resource_text
from stockyard.domain.values.requirements import HOSTNAME, Requirement
from stockyard.scheduling.host_ports import conflict
from stockyard.scheduling.packing.classes import Level, PodClass
from stockyard.scheduling.packing.known import volumes_of
from stockyard.scheduling.packing.model import Pool
from stockyard.scheduling.packing.rows import Rows
from stockyard.scheduling.packing.solve import Solver

NO_NODE_TYPES, TAINT, REQUIREMENT, VOLUME = "NoNodeTypes", "Taint", "Requirement", "Volume"
RESOURCE, TOPOLOGY, LIMIT, MIN_VALUES, GANG = "Resource", "Topology", "Limit", "MinValues", "Gang"
BUDGET, HOST_PORT, DEVICES = "Budget", "HostPort", "ResourceClaims"
UNAVAILABLE = "UnavailableOfferings"
SHOWN_TYPES = 5
OUT_OF_STEPS = "The plan's steps of work were used up before the pod had its turn."


@dataclass(frozen=True, slots=True)
class Reason:
    """One pool and the rule that refused the pod there; no pool where the rule holds everywhere. ``subject`` is the
    rule's taint, label, resource or limit."""

    pool: str
    rule: str
    subject: str
    message: str

    @property
    def text(self) -> str:
        """The reason for people, with its pool."""
        return f"{self.pool}: {self.message}" if self.pool else self.message


def reasons(solver: Solver, pod_class: PodClass) -> tuple[Reason, ...]:
    """Reasons why the waiting pods of the class got no new node, pool by pool, in the order in which pools are tried.

    Where the steps were used up before the pods had their turn, that is the reason in pools that could take them; of no
    pool where a node that is there could.
    """
    level, claimed = pod_class.levels[-1], ", ".join(pod_class.pod.devices)
    if claimed:
        message = f"The pod's spec.resourceClaims ask for devices ({claimed}); no node is known or made for these."
        return (Reason("", DEVICES, claimed, message),)
    by_pool = tuple(_reason(solver, pod_class, level, number, pool) for number, pool in enumerate(solver.rows.pools))
    if pod_class in solver.refused or not solver.known_nodes.candidates(pod_class.requests, level):
        return by_pool
    return Reason("", BUDGET, "steps", OUT_OF_STEPS), *by_pool


def _reason(solver: Solver, pod_class: PodClass, level: Level, number: int, pool: Pool) -> Reason:
    rule, subject, message = next(_refusals(solver, pod_class, level, number, pool))
    return Reason(pool.name, rule, subject, message)


def _refusals(
    solver: Solver, pod_class: PodClass, level: Level, number: int, pool: Pool
) -> Iterator[tuple[str, str, str]]:
    """The rules that refuse the pod, the first of which tells why."""
    yield from _by_unavailable(solver, pod_class, level, number, pool)
    yield from _by_labels(solver, level, number, pool)
    yield from _by_ports(solver, level, number)
    mask = solver.rows.of_pool[number] & level.mask
    yield from _by_room(solver, pod_class, mask, pool)
    if pod_class not in solver.refused:
        yield BUDGET, "steps", OUT_OF_STEPS
    mask &= solver.rows.holding(solver.resources, pod_class.requests)
    for key in pod_class.keys:
        domains = level.allowed(key, level.universes.get(key, ()))
        mask &= reduce(or_, [solver.rows.column(key).get(domain, 0) for domain in domains], 0)
        if not mask:
            where = ", ".join("no value" if domain is None else str(domain) for domain in domains) or "none"
            yield TOPOLOGY, key, f"Spread or affinity allows it in these values of {key}: {where}."
    if not level.allows_host(""):
        yield TOPOLOGY, HOSTNAME, "It has to be beside pods that are on no node with room."
    for name in solver.limits.remaining[number]:
        if not mask & solver.limits.within_one(number, name):
            yield LIMIT, name, f"The pool's limit of {name} is reached."
    if not mask & ~solver.limits.full:
        yield LIMIT, "capacity", "No node type of the pool that would take it has a place left."
    for key, requirement in pool.template.items():
        if requirement.min_values:
            yield MIN_VALUES, key, f"Fewer than {requirement.min_values} values of {key} are left to choose from."
    yield LIMIT, "", "The pool's limits together leave no node type."


def _by_unavailable(
    solver: Solver, pod_class: PodClass, level: Level, number: int, pool: Pool
) -> Iterator[tuple[str, str, str]]:
    """The types that alone could have the pod, where their cloud refused all of them of late."""
    if not pool.refused or _could_have(solver, solver.rows, solver.rows.of_pool[number], pod_class, level):
        return
    if not level.pod.tolerates(pool.taints, preferred=not level.any_taint):
        return
    daemons, volumes = solver.problem.daemons, volumes_of(solver.problem)
    rows = Rows([replace(pool, node_types=pool.refused)], [level.pod], daemons, solver.problem.nodes, volumes)
    mask = _could_have(solver, rows, rows.every, pod_class, level)
    names = list(dict.fromkeys(row.node_type.name for number, row in enumerate(rows.rows) if mask >> number & 1))
    if names:
        listed = ", ".join(names[:SHOWN_TYPES]) + (
            f" and {more} more" if (more := len(names) - SHOWN_TYPES) > 0 else ""
        )
        text = (
            f"The pod fits only on node types that their cloud refused a moment ago ({listed}); they are tried again."
        )
        yield UNAVAILABLE, names[0], text


def _could_have(solver: Solver, rows: Rows, mask: int, pod_class: PodClass, level: Level) -> int:
    """The rows of ``mask`` that are a node for the pod by all but taints and limits."""
    pod = level.pod
    mask &= rows.of_terms(pod.terms) & rows.without_conflict(pod.ports)
    mask &= rows.of_terms(pod.volumes) if pod.volumes else -1
    mask &= rows.holding(solver.resources, pod_class.requests)
    for key in pod_class.keys:
        domains = level.allowed(key, level.universes.get(key, ()))
        mask &= reduce(or_, [rows.column(key).get(domain, 0) for domain in domains], 0)
    return mask


def _by_labels(solver: Solver, level: Level, number: int, pool: Pool) -> Iterator[tuple[str, str, str]]:
    mask = solver.rows.of_pool[number]
    if not mask:
        text = "The pool has no node type that its requirements and daemon sets allow."
        hint = f" Others have to be asked for by {' and '.join(pool.unasked)}." if pool.unasked else ""
        yield NO_NODE_TYPES, "", text + (hint or _unserved(pool.unserved.values()))
    for taint in pool.taints:
        if not level.pod.tolerates((taint,), preferred=not level.any_taint):
            text = f"{taint.key}={taint.value}:{taint.effect}" if taint.value else f"{taint.key}:{taint.effect}"
            yield TAINT, taint.key, f"The pod does not tolerate the taint {text}."
    if not mask & solver.rows.of_terms(level.pod.terms):
        yield _requirement(solver, level, mask)
    mask &= solver.rows.of_terms(level.pod.terms)
    if level.pod.volumes and not mask & solver.rows.of_terms(level.pod.volumes):
        yield VOLUME, "", "None of the pool's zones has the pod's volumes."


def _by_ports(solver: Solver, level: Level, number: int) -> Iterator[tuple[str, str, str]]:
    """The port that daemon sets take on each node of the pool which the pod could have otherwise."""
    rows, pod = solver.rows, level.pod
    mask = rows.of_pool[number] & rows.of_terms(pod.terms) & (rows.of_terms(pod.volumes) if pod.volumes else -1)
    if not mask & rows.without_conflict(pod.ports):
        taken_ports = rows.first(mask).ports
        port = next(port for port in pod.ports if conflict((port,), taken_ports))
        yield HOST_PORT, str(port), f"A daemon set takes the host port {port} on each node of the pool."


def _by_room(solver: Solver, pod_class: PodClass, mask: int, pool: Pool) -> Iterator[tuple[str, str, str]]:
    for name, amount in zip(solver.resources, pod_class.requests, strict=True):
        if not mask & solver.rows.holding((name,), (amount,)):
            asked_text = resource_text(name, amount)
            text = f"No node type of the pool has room for {name} {asked_text} beside its daemon sets."
            yield RESOURCE, name, text + _unserved([pool.unserved[name]] if name in pool.unserved else [])
    if not mask & solver.rows.holding(solver.resources, pod_class.requests):
        yield RESOURCE, "", "No node type of the pool has room for all that the pod asks for together."


def _unserved(reasons_why: Iterable[str]) -> str:
    """Text about types of which no node can be made yet; empty where there are none."""
    return next((f" Of others no node can be made yet: {why}." for why in reasons_why), "")


def _requirement(solver: Solver, level: Level, mask: int) -> tuple[str, str, str]:
    """The first requirement of the first alternative that no row of the pool satisfies."""
    if not level.pod.terms:
        return REQUIREMENT, "", "The pod's required node affinity has no term that selects a node."
    key, requirement = level.pod.terms[0][0]
    for key, requirement in level.pod.terms[0]:
        mask &= solver.rows.of_requirement(key, requirement)
        if not mask:
            break
    hint = unknown_label(key)
    return REQUIREMENT, key, f"No node of the pool has {_words(key, requirement)}{f' ({hint})' if hint else ''}."


def _words(key: str, requirement: Requirement) -> str:
    entries = [
        f"{entry['key']} {entry['operator']} {', '.join(entry.get('values', ()))}".rstrip()
        for entry in requirement.entries(key)
    ]
    return " and ".join(entries)
