"""Topology: how many pods of a kind are in each domain, and in which domains the next pod may be.

A domain is the value of a label that nodes have, such as a zone; each node is a domain of its own for the host name.
The rules are those of kube-scheduler for placed pods. Where it would count only what is placed already, pods of the
same plan count as placed in the order of the plan.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field
from operator import itemgetter
from typing import Any, Generic, TypeVar

from stockyard.domain.values.frozen import dataclass
from stockyard.domain.values.requirements import EXISTS, HOSTNAME, ZONE, Requirement
from stockyard.scheduling.packing.model import (
    Labels,
    Namespaces,
    PlacedPod,
    Pod,
    PodTerm,
    Selector,
    Spread,
    Taint,
    Term,
)

Domain = Any
"""The value of the label; for the host name the node's name. None: the node does not have the label."""
_EXISTS = Requirement.of(EXISTS)


@dataclass(slots=True, eq=False)
class Tally:
    """Pods by domain: those that a selector matches, or those that hold a term of anti-affinity."""

    key: str
    by_domain: defaultdict[Domain, int] = field(default_factory=lambda: defaultdict(int))
    total: int = 0
    most: dict[Domain, int] = field(default_factory=dict)
    """For hosts with pods that spread: how many pods may be there in the end, whoever comes later."""

    def guard(self, host: Domain, most: int) -> None:
        """A pod is on the host that wants at most so many there."""
        self.most[host] = min(most, self.most.get(host, most))

    def add(self, domain: Domain, count: int = 1) -> None:
        """More pods in the domain."""
        self.by_domain[domain] += count
        self.total += count


@dataclass(frozen=True, slots=True)
class NodeFilter:
    """Filter of the nodes that a spread constraint counts, by what the pod asks of nodes."""

    terms: tuple[Term, ...]
    taints_of: Pod | None
    """The pod whose tolerations decide; None: taints do not matter."""

    @property
    def all(self) -> bool:
        """Whether the pods of all nodes count."""
        return self.terms == ((),) and self.taints_of is None

    def passes(self, labels: Mapping[str, str], taints: Iterable[Taint]) -> bool:
        """Whether the pods of such a node count."""
        if self.taints_of is not None and not self.taints_of.tolerates(tuple(taints), preferred=False):
            return False
        return any(fits(term, labels) for term in self.terms)


ALL_NODES = NodeFilter(((),), None)


def fits(term: Term, labels: Mapping[str, str]) -> bool:
    """Whether a node with these labels satisfies all requirements."""
    return all(requirement.has(labels[key]) if key in labels else requirement.absence_fits for key, requirement in term)


def counted_nodes(pod: Pod, constraint: Spread) -> NodeFilter:
    """The nodes that a spread constraint of the pod counts: those of its policies that have every label over which the
    pod has to be spread. Zone and host name are taken to be there."""
    terms = pod.terms if constraint.honors_affinity else ALL_NODES.terms
    other_keys = {spread.key for spread in pod.spreads if spread.hard} - {constraint.key, HOSTNAME, ZONE}
    if constraint.hard and other_keys:
        needed = tuple((key, _EXISTS) for key in sorted(other_keys))
        terms = tuple((*term, *needed) for term in terms)
    return NodeFilter(terms, pod if constraint.honors_taints else None)


@dataclass(slots=True, eq=False)
class SpreadRule:
    """A spread constraint of a pod. ``own`` is 1 when the selector matches the pod itself, ``where`` are the nodes that
    it counts."""

    constraint: Spread
    tally: Tally
    own: int
    where: NodeFilter
    universe: Sequence[Domain] | None = None
    """The domains of the nodes that it counts, where they are others than those that the pod may use."""

    def allowed(self, domains: Sequence[Domain], universe: Sequence[Domain]) -> Sequence[Domain]:
        """The domains in which one more pod may be. ``universe`` are all that the pod may use."""
        counts = self.tally.by_domain
        if self.universe is not None:
            universe = self.universe
        enough = self.constraint.min_domains is None or len(universe) >= self.constraint.min_domains
        smallest = min([counts.get(domain, 0) for domain in universe], default=0) if enough else 0
        most = self.constraint.max_skew + smallest - self.own
        return [domain for domain in domains if counts.get(domain, 0) <= most]

    def allows(self, host: Domain) -> bool:
        """Whether one more pod may be on the host. There can always be an empty one."""
        return self.tally.by_domain.get(host, 0) + self.own <= self.constraint.max_skew


@dataclass(frozen=True, slots=True, eq=False)
class AffinityRule:
    """A term of pod affinity. ``own`` says that the term matches the pod itself, so that it may be the first."""

    tally: Tally
    own: bool

    def allowed(self, domains: Sequence[Domain], _: Sequence[Domain]) -> Sequence[Domain]:
        """The domains that have a pod to be with; all of them while nobody is anywhere yet."""
        if self.own and not self.tally.total:
            return domains
        counts = self.tally.by_domain
        return [domain for domain in domains if counts.get(domain, 0)]

    def allows(self, host: Domain) -> bool:
        """Whether the host has a pod to be with, or nobody is anywhere yet."""
        return self.tally.by_domain.get(host, 0) > 0 or (self.own and not self.tally.total)


@dataclass(frozen=True, slots=True, eq=False)
class AntiAffinityRule:
    """Pods that must not be in the domain: those that a term of the pod matches, or those with a term that matches
    the pod."""

    tally: Tally

    def allowed(self, domains: Sequence[Domain], _: Sequence[Domain]) -> Sequence[Domain]:
        """The domains that have none of them."""
        counts = self.tally.by_domain
        return [domain for domain in domains if not counts.get(domain, 0)]

    def allows(self, host: Domain) -> bool:
        """Whether none of them is there."""
        return not self.tally.by_domain.get(host, 0)


@dataclass(frozen=True, slots=True, eq=False)
class GuardRule:
    """A pod that others count: it goes to no host where it would be one more than a pod there wants. The scheduler
    would let it, if it came later; but it may as well come first."""

    tally: Tally

    def allowed(self, domains: Sequence[Domain], _: Sequence[Domain]) -> Sequence[Domain]:
        """Allow all domains, as the rule holds for hosts alone."""
        return domains

    def allows(self, host: Domain) -> bool:
        """Whether one more is still as all pods there want it."""
        most = self.tally.most.get(host)
        return most is None or self.tally.by_domain.get(host, 0) < most


Rule = SpreadRule | AffinityRule | AntiAffinityRule | GuardRule


Item = TypeVar("Item")


class SelectorIndex(Generic[Item]):
    """Items with a selector, found by the labels of a pod: most selectors ask for a value that few pods have."""

    def __init__(self) -> None:
        self._by_label: defaultdict[tuple[str, str], list[tuple[int, Selector, Item]]] = defaultdict(list)
        self._others: list[tuple[int, Selector, Item]] = []
        self._count = 0

    def add(self, selector: Selector, item: Item) -> None:
        """One more item."""
        entry = (self._count, selector, item)
        self._count += 1
        for key, requirement in selector.requirements or ():
            if requirement.values and not requirement.complement:
                for value in requirement.values:
                    self._by_label[key, value].append(entry)
                return
        self._others.append(entry)

    def matching(self, labels: Labels) -> list[Item]:
        """The items that select a pod with these labels, in their original order."""
        by_key = dict(labels)
        entries = [*self._others, *(entry for label in by_key.items() for entry in self._by_label.get(label, ()))]
        return [item for _, selector, item in sorted(entries, key=itemgetter(0)) if selector.matches(by_key)]


class Tallies:
    """All tallies of one problem, shared by pods with equal constraints."""

    def __init__(self) -> None:
        self._selecting: dict[tuple[str, Namespaces, Selector, NodeFilter], Tally] = {}
        self._holding: dict[PodTerm, Tally] = {}
        self._selectors: SelectorIndex[tuple[Namespaces, NodeFilter, Tally]] = SelectorIndex()
        self._holders: SelectorIndex[tuple[Namespaces, Tally]] = SelectorIndex()
        self._counting: dict[tuple[str, Labels], tuple[tuple[Tally, NodeFilter], ...]] = {}
        self._against: dict[tuple[str, Labels], tuple[Tally, ...]] = {}

    @property
    def is_empty(self) -> bool:
        """Whether nobody counts any pod."""
        return not (self._selecting or self._holding)

    def of_spread(self, pod: Pod, constraint: Spread) -> Tally:
        """The tally of the pods that the constraint counts."""
        where = counted_nodes(pod, constraint)
        return self._of(constraint.key, frozenset({pod.namespace}), constraint.selector, where)

    def of_term(self, term: PodTerm) -> Tally:
        """The tally of the pods that a term of affinity or anti-affinity matches."""
        return self._of(term.key, term.namespaces, term.selector, ALL_NODES)

    def of_holders(self, term: PodTerm) -> Tally:
        """The tally of the pods that hold this required term of anti-affinity."""
        if term not in self._holding:
            self._holding[term] = Tally(term.key)
            self._holders.add(term.selector, (term.namespaces, self._holding[term]))
        return self._holding[term]

    def _of(self, key: str, namespaces: Namespaces, selector: Selector, node_filter: NodeFilter) -> Tally:
        memo_key = (key, namespaces, selector, node_filter)
        if memo_key not in self._selecting:
            self._selecting[memo_key] = Tally(key)
            self._selectors.add(selector, (namespaces, node_filter, self._selecting[memo_key]))
        return self._selecting[memo_key]

    def counting(self, namespace: str, labels: Labels) -> tuple[tuple[Tally, NodeFilter], ...]:
        """The tallies that count a pod, each with the nodes on which it does. All tallies are there by now."""
        memo_key = (namespace, labels)
        if memo_key not in self._counting:
            self._counting[memo_key] = tuple(
                (tally, node_filter)
                for namespaces, node_filter, tally in self._selectors.matching(labels)
                if namespaces is None or namespace in namespaces
            )
        return self._counting[memo_key]

    def against(self, namespace: str, labels: Labels) -> tuple[Tally, ...]:
        """The tallies of the pods that do not want to be with a pod like this. All tallies are there by now."""
        memo_key = (namespace, labels)
        if memo_key not in self._against:
            self._against[memo_key] = tuple(
                tally
                for namespaces, tally in self._holders.matching(labels)
                if namespaces is None or namespace in namespaces
            )
        return self._against[memo_key]

    def record(
        self, pod: PlacedPod, count: int, labels: Mapping[str, str], taints: Iterable[Taint], name: str, host: str
    ) -> None:
        """Count equal pods that are on a node already."""
        taints = tuple(taints)
        for tally, node_filter in self.counting(pod.namespace, pod.labels):
            if node_filter.passes(labels, taints):
                _count(tally, count, labels, name, host)
        for term in pod.anti_affinity:
            if term.weight:
                continue  # What it only prefers keeps nobody away.
            _count(self.of_holders(term), count, labels, name, host)


def _count(tally: Tally, count: int, labels: Mapping[str, str], name: str, host: str) -> None:
    domain = name if tally.key == host else labels.get(tally.key)
    if domain is not None:
        tally.add(domain, count)
