"""Pods that ask for nodes which are not as nodes are by default, and what keeps such nodes from all other pods.

A pool that says nothing of it makes nodes on demand and of amd64. Where a pod asks for spot, the pool has ways to make
spot nodes too. Each of them bears a label that no node has, and pods that do not ask exclude the mark.
So the packer needs no rule of its own, and a pool that asks itself has none of these labels.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

from stockyard.domain.nodes.defaults import DEFAULTS, asked_keys, unasked
from stockyard.domain.nodes.node_types import NodeType, Offering
from stockyard.domain.values.requirements import ARCH, CAPACITY_TYPE, Requirement
from stockyard.scheduling.consolidation.model import Fleet
from stockyard.scheduling.packing.model import Pod, Pool, Problem, Term
from stockyard.scheduling.packing.plan import Plan, pack
from stockyard.scheduling.packing.reasons import Reason

OPT_IN_LABELS: Mapping[str, str] = {key: f"{key} (where it is asked for)" for key in DEFAULTS}
"""By label of ``DEFAULTS`` the label of offerings that have another value. No label of a pod is called so."""
_ABSENT = Requirement(complement=False)


def opt_in_labels(
    defaults: Mapping[str, str], node_type: NodeType, offering: Offering
) -> Mapping[str, tuple[str, ...]]:
    """The properties by which an offering is kept from pods that do not ask for it; none for one as nodes are by
    ``defaults``."""
    values = {CAPACITY_TYPE: (offering.capacity_type,), ARCH: node_type.properties.get(ARCH, ())}
    return {OPT_IN_LABELS[key]: values[key] for key in sorted(unasked(defaults, node_type, offering))}


def asked_by(pods: Iterable[Pod]) -> frozenset[str]:
    """The labels by which some of the pods ask for another node than is made by default."""
    return frozenset(key for pod in pods for key in _asked_by_pod(pod) | _preferred_by(pod))


def packed(problem: Problem) -> Plan:
    """The packing of a problem in which pods exclude the marked ways that they do not ask for."""
    guard = Guard(problem.pools)
    if not guard.keys:
        return pack(problem)
    groups = tuple(replace(group, pod=guard.of(group.pod)) for group in problem.groups)
    plan = pack(replace(problem, groups=groups))
    return replace(plan, left_out=tuple(replace(each, reasons=_readable(each.reasons)) for each in plan.left_out))


def _readable(reasons: Iterable[Reason]) -> tuple[Reason, ...]:
    """The reasons, in which these labels are told in words."""
    keys = {label: key for key, label in OPT_IN_LABELS.items()}
    return tuple(
        replace(reason, subject=keys[reason.subject], message=_NOT_ASKED.format(DEFAULTS[key], key))
        if (key := keys.get(reason.subject)) is not None
        else reason
        for reason in reasons
    )


_NOT_ASKED = "The nodes that would do are not {}, and neither pod nor pool asks for others by {}."


def guarded_fleet(fleet: Fleet) -> Fleet:
    """The fleet in which pods exclude the marked ways that they do not ask for."""
    guard = Guard(fleet.pools)
    if not guard.keys:
        return fleet
    nodes = tuple(replace(node, pods=tuple((guard.of(pod), n) for pod, n in node.pods)) for node in fleet.nodes)
    awaited = {name: tuple((guard.of(pod), n) for pod, n in pods) for name, pods in fleet.awaited.items()}
    return replace(fleet, nodes=nodes, awaited=awaited)


class Guard:
    """Pods as they are packed for some pools; equal ones stay one object. ``keys`` are the labels asked for there."""

    def __init__(self, pools: Iterable[Pool]) -> None:
        own = {label for pool in pools for each in (*pool.node_types, *pool.refused) for label in each.properties}
        self.keys = [key for key, label in OPT_IN_LABELS.items() if label in own]
        self._pods: dict[int, tuple[Pod, Pod]] = {}

    def of(self, pod: Pod) -> Pod:
        """The pod, excluding what is marked and what it does not ask for."""
        known_pod = self._pods.get(id(pod))
        if known_pod is None:
            preferred = _preferred_by(pod)
            terms = tuple(self._guarded(term, preferred) for term in pod.terms)
            known_pod = self._pods[id(pod)] = (pod, pod if terms == pod.terms else replace(pod, terms=terms))
        return known_pod[1]

    def _guarded(self, term: Term, preferred: frozenset[str]) -> Term:
        asked_keys_here = _keys_of_term(term) | preferred
        excluded = [(OPT_IN_LABELS[key], _ABSENT) for key in self.keys if key not in asked_keys_here]
        return tuple(sorted([*term, *excluded], key=lambda item: (item[0], repr(item[1])))) if excluded else term


def _keys_of_term(term: Term) -> frozenset[str]:
    return frozenset(key for name, requirement in term for key in asked_keys({name: requirement}))


def _asked_by_pod(pod: Pod) -> frozenset[str]:
    return frozenset(key for term in pod.terms for key in _keys_of_term(term))


def _preferred_by(pod: Pod) -> frozenset[str]:
    """The labels by which the pod prefers another node than is made by default."""
    return frozenset(
        key
        for preference in pod.preferences
        for name, requirement in preference.requirements
        for key in asked_keys({name: requirement})
        if name != key or _goes_beyond(requirement, DEFAULTS[key])
    )


def _goes_beyond(requirement: Requirement, default: str) -> bool:
    return not requirement.has(default) or bool(not requirement.complement and requirement.values - {default})
