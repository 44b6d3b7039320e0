"""Rules over the other pods: affinity to them, against them, and how pods are spread."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from local.kubernetes.placing.model import Node, Pod, Spread, Term
from local.kubernetes.placing.selectors import Labels, in_terms, selects, untolerated

ANTI_OF_OTHERS = "node(s) didn't satisfy existing pods anti-affinity rules"
ANTI = "node(s) didn't match pod anti-affinity rules"
AFFINITY = "node(s) didn't match pod affinity rules"
NO_LABEL = "node(s) didn't match pod topology spread constraints (missing required label)"
SKEWED = "node(s) didn't match pod topology spread constraints"


def is_wanted(pod: Pod, node: Node) -> bool:
    """Whether the pod's node selector and its required node affinity take the node."""
    return all(node.labels.get(name) == value for name, value in pod.selector.items()) and (
        pod.required is None or in_terms(pod.required, node.name, node.labels)
    )


@dataclass
class Topology:
    """Rules of one pod, applied to these nodes. Made once for all nodes."""

    pod: Pod
    nodes: Sequence[Node]
    spaces: Mapping[str, Labels]
    _closed: set[tuple[str, str]] = field(default_factory=set)
    """Labels and values where pods are that will not have this one beside them."""
    _with: Counter[tuple[str, str]] = field(default_factory=Counter)
    _apart: set[tuple[str, str]] = field(default_factory=set)
    _first: bool = False
    """Whether the pod is the first of those that it wants to be with."""
    _spread: list[tuple[Spread, Counter[str]]] = field(default_factory=list)

    def __post_init__(self) -> None:
        for node in self.nodes:
            for other in node.guards:
                self._closed |= {
                    (term.key, node.labels[term.key])
                    for term in other.apart
                    if term.key in node.labels and term.matches(self.pod, self.spaces)
                }
        if self.pod.affinity or self.pod.apart:
            self._count_others()
        hard = [spread for spread in self.pod.spread if spread.hard]
        self._spread = [(spread, self._counted(spread, hard)) for spread in hard]

    def _count_others(self) -> None:
        pod, has_match = self.pod, False
        for node in self.nodes:
            for other in node.pods:
                if pod.affinity and self._all_match(other):
                    # One on a node that has none of the labels counts for nobody.
                    has_match = has_match or any(term.key in node.labels for term in pod.affinity)
                    self._with.update((t.key, node.labels[t.key]) for t in pod.affinity if t.key in node.labels)
                self._apart |= {
                    (term.key, node.labels[term.key])
                    for term in pod.apart
                    if term.key in node.labels and term.matches(other, self.spaces)
                }
        self._first = not has_match and bool(pod.affinity) and self._all_match(pod)

    def _all_match(self, other: Pod) -> bool:
        return all(term.matches(other, self.spaces) for term in self.pod.affinity)

    def _counted(self, spread: Spread, together: Sequence[Spread]) -> Counter[str]:
        """Number of pods that the rule counts in each of its domains."""
        counts: Counter[str] = Counter()
        for node in self.nodes:
            if not all(each.key in node.labels for each in together):
                continue
            if spread.honors_affinity and not is_wanted(self.pod, node):
                continue
            if spread.honors_taints and untolerated(self.pod.tolerations, node.taints) is not None:
                continue
            counts[node.labels[spread.key]] += sum(self._counts(spread, other) for other in node.pods)
        return counts

    def _counts(self, spread: Spread, other: Pod) -> bool:
        return other.namespace == self.pod.namespace and not other.ending and selects(spread.selector, other.labels)

    def fault(self, node: Node) -> str:
        """Reason why the pod cannot be on the node by these rules; empty when it can."""
        for spread, counts in self._spread:
            if spread.key not in node.labels:
                return NO_LABEL
            least = min(counts.values(), default=0) if len(counts) >= spread.least else 0
            own = selects(spread.selector, self.pod.labels)
            if counts[node.labels[spread.key]] + own - least > spread.skew:
                return SKEWED
        if any(node.labels.get(key) == value for key, value in self._closed):
            return ANTI_OF_OTHERS
        if any(node.labels.get(key) == value for key, value in self._apart):
            return ANTI
        for term in self.pod.affinity:
            value = node.labels.get(term.key)
            if value is None or not (self._first or self._with[term.key, value]):
                return AFFINITY
        return ""


def wished(pod: Pod, nodes: Sequence[Node], all_nodes: Sequence[Node], spaces: Mapping[str, Labels]) -> dict[str, int]:
    """The weight of the pod's wishes about other pods, and of theirs about it, for each of the nodes."""
    values: Counter[tuple[str, str]] = Counter()

    def note(term: Term, node: Node) -> None:
        if term.key in node.labels:
            values[term.key, node.labels[term.key]] += term.weight

    for node in all_nodes:
        for other in node.pods:
            for term in pod.preferences:
                if term.matches(other, spaces):
                    note(term, node)
            for term in other.preferences:
                if term.matches(pod, spaces):
                    note(term, node)
    return {
        node.name: sum(amount for (key, value), amount in values.items() if node.labels.get(key) == value)
        for node in nodes
    }


def crowded(pod: Pod, nodes: Sequence[Node], all_nodes: Sequence[Node]) -> dict[str, int]:
    """Number of pods that the soft rules of spreading count where each of the nodes is. Rules over a label that a node
    has not say nothing of it."""
    result: Counter[str] = Counter()
    for spread in pod.spread:
        if spread.hard:
            continue
        counts: Counter[str] = Counter()
        for node in all_nodes:
            if spread.key in node.labels:
                counts[node.labels[spread.key]] += sum(
                    other.namespace == pod.namespace and not other.ending and selects(spread.selector, other.labels)
                    for other in node.pods
                )
        for node in nodes:
            if spread.key in node.labels:
                result[node.name] += counts[node.labels[spread.key]]
    return {node.name: result[node.name] for node in nodes}
