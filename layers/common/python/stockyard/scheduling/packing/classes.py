"""Classes of equal pods: what each asks for, read once, in the steps in which its preferences are given up."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence, Set
from dataclasses import field, replace
from functools import cached_property

from stockyard.domain.nodes.node_types import CPU, MEMORY
from stockyard.domain.values.frozen import dataclass
from stockyard.domain.values.requirements import HOSTNAME
from stockyard.scheduling.host_ports import NO_PORTS, PortBits, PortTable
from stockyard.scheduling.packing.model import (
    PREFER_NO_SCHEDULE,
    Pod,
    PodGroup,
    PodTerm,
    Preference,
    Problem,
    Term,
)
from stockyard.scheduling.packing.rows import Rows
from stockyard.scheduling.packing.topology import (
    AffinityRule,
    AntiAffinityRule,
    Domain,
    GuardRule,
    NodeFilter,
    Rule,
    SpreadRule,
    Tallies,
    Tally,
    counted_nodes,
)


@dataclass(frozen=True, slots=True, eq=False)
class Level:
    """Requests and rules of a pod once some of its preferences were given up. ``mask`` are the rows that satisfy all of
    them but topology and room; ``domain_mask`` those that satisfy what it requires of labels: domains of others do not
    count."""

    pod: Pod
    terms: tuple[Term, ...]
    mask: int
    domain_mask: int
    rules: Mapping[str, tuple[Rule, ...]]
    """The rules of topology by label."""
    any_taint: bool
    """``PreferNoSchedule`` is tolerated."""
    universes: dict[str, list[Domain]] = field(default_factory=dict)
    """The domains that the pod may use at all, by label, once they are known."""
    masks: dict[tuple[Domain, ...], int] = field(default_factory=dict)
    """``mask`` within domains, once it is known."""
    refusing: set[int] = field(default_factory=set)
    """The numbers of the states whose nodes take none of its pods, whatever comes: by rules of hosts that are part of
    the state."""

    host_rules: tuple[Rule, ...] = ()
    """The rules that hold on one host."""

    def allows_host(self, host: str) -> bool:
        """Whether one more pod may be on the host."""
        return all(rule.allows(host) for rule in self.host_rules)

    def needs(self, key: str) -> bool:
        """Whether the node has to have the label: kube-scheduler lets no pod that spreads over a label, or that is to
        be beside others by it, onto a node without it. To be apart from others asks for no label."""
        return any(isinstance(rule, SpreadRule | AffinityRule) for rule in self.rules.get(key, ()))

    def allowed(self, key: str, universe: Sequence[Domain]) -> Sequence[Domain]:
        """The domains of ``universe``, which are all that the pod may use, in which one more pod may be."""
        domains = universe
        for rule in self.rules.get(key, ()):
            domains = rule.allowed(domains, universe)
        return domains


@dataclass(eq=False)
class PodClass:
    """Equal pods that wait. The first ``placed`` of ``names`` have a place."""

    number: int
    pod: Pod
    names: tuple[str, ...]
    requests: tuple[int, ...]
    levels: tuple[Level, ...]
    counted: tuple[tuple[Tally, NodeFilter], ...] = ()
    held_tallies: tuple[Tally, ...] = ()
    keys: tuple[str, ...] = ()
    """The labels whose domain matters for it, or for others that count it; without the host name."""
    ports: PortBits = NO_PORTS
    placed: int = 0

    @cached_property
    def filtered(self) -> bool:
        """Whether somebody counts it on some nodes only."""
        return any(not where.all for _, where in self.counted)

    @cached_property
    def plain(self) -> bool:
        """Whether only room, labels and taints matter: it counts nowhere, has no rules, ports or preferences."""
        return not (self.counted or self.held_tallies or self.pod.ports or len(self.levels) > 1 or self.levels[0].rules)

    @property
    def refuses_itself(self) -> bool:
        """Whether no two of its pods may be on one host."""
        terms = [term for term in self.pod.anti_affinity if term.key == HOSTNAME and not term.weight]
        return any(_in(self.pod.namespace, term) and term.selector.matches(dict(self.pod.labels)) for term in terms)

    @property
    def waiting_pods(self) -> int:
        """Number of pods without a place."""
        return len(self.names) - self.placed

    @property
    def waiting(self) -> tuple[str, ...]:
        """The pods that have no place."""
        return self.names[self.placed :]

    def next_name(self) -> str:
        """The next pod, which has a place now."""
        self.placed += 1
        return self.names[self.placed - 1]


def preferred_terms(pod: Pod) -> list[Preference]:
    """Preferred node affinity of a pod, the heaviest first."""
    return sorted(pod.preferences, key=lambda preference: -preference.weight)


def relaxed(pod: Pod, *, tolerate: bool, preferences: bool) -> list[tuple[Pod, bool]]:
    """The pod and what is left of it, step by step, as its preferences are given up in Karpenter's order.

    Each comes with whether ``PreferNoSchedule`` is tolerated. ``tolerate`` says that some pool has such a taint.
    The alternatives of the required node affinity are all there in each step: any of them will do.
    """
    if not preferences:
        pod = replace(
            pod,
            preferences=(),
            spreads=tuple(spread for spread in pod.spreads if spread.hard),
            affinity=tuple(term for term in pod.affinity if not term.weight),
            anti_affinity=tuple(term for term in pod.anti_affinity if not term.weight),
        )
        return [(pod, True)]
    steps = [(pod, False)]
    for name in ("affinity", "anti_affinity"):
        while remaining := _without_heaviest(getattr(pod, name)):
            pod = (
                replace(pod, affinity=remaining[0]) if name == "affinity" else replace(pod, anti_affinity=remaining[0])
            )
            steps.append((pod, False))
    while pod.preferences:
        pod = replace(pod, preferences=tuple(preferred_terms(pod)[1:]))
        steps.append((pod, False))
    while soft := [spread for spread in pod.spreads if not spread.hard]:
        spreads = list(pod.spreads)
        spreads.remove(soft[0])
        pod = replace(pod, spreads=tuple(spreads))
        steps.append((pod, False))
    if tolerate:
        steps.append((pod, True))
    return steps


def _without_heaviest(terms: Sequence[PodTerm]) -> list[tuple[PodTerm, ...]]:
    """The terms without the heaviest of those that are only preferred, as the one element; empty when there is none."""
    heaviest = max((term for term in terms if term.weight), key=lambda term: term.weight, default=None)
    if heaviest is None:
        return []
    remaining = list(terms)
    remaining.remove(heaviest)
    return [tuple(remaining)]


def read_classes(
    problem: Problem, rows: Rows, tallies: Tallies, resources: Sequence[str], ports: PortTable
) -> list[PodClass]:
    """The classes of a problem, in the order in which they are placed. Nodes that are there are not counted yet."""
    taints = [*(pool.taints for pool in problem.pools), *(node.taints for node in problem.nodes)]
    tolerate = any(taint.effect == PREFER_NO_SCHEDULE for each in taints for taint in each)
    steps = [
        relaxed(group.pod, tolerate=tolerate, preferences=problem.settings.preferences) for group in problem.groups
    ]
    guarded: set[Tally] = set()
    for pod, _ in (step for steps_of_pod in steps for step in steps_of_pod):
        for spread in pod.spreads:
            tally = tallies.of_spread(pod, spread)
            if spread.key == HOSTNAME and spread.hard:
                guarded.add(tally)
        for term in (*pod.affinity, *pod.anti_affinity):
            tallies.of_term(term)
    for group in problem.groups:
        for term in group.pod.anti_affinity:
            if not term.weight:
                tallies.of_holders(term)
    alike: dict[object, tuple[Level, ...]] = {}
    classes = [
        _class_of(number, group, steps_of_pod, rows, tallies, resources, ports, guarded, alike)
        for number, (group, steps_of_pod) in enumerate(zip(problem.groups, steps, strict=True))
    ]
    seeds = _seeds(classes)
    classes.sort(key=lambda pod_class: (-pod_class.pod.priority, pod_class not in seeds, *_order(pod_class)))
    return classes


def _seeds(classes: Sequence[PodClass]) -> set[PodClass]:
    """The pods of the largest group of which no two may be on one host: they open the nodes that others join."""
    pods: Counter[Tally] = Counter()
    for pod_class in classes:
        for tally in pod_class.held_tallies:
            if tally.key == HOSTNAME and pod_class.refuses_itself:
                pods[tally] += len(pod_class.names)
    largest = pods.most_common(1)
    return {
        pod_class
        for pod_class in classes
        if largest and largest[0][0] in pod_class.held_tallies and pod_class.refuses_itself
    }


def _class_of(
    number: int,
    group: PodGroup,
    steps: Sequence[tuple[Pod, bool]],
    rows: Rows,
    tallies: Tallies,
    resources: Sequence[str],
    ports: PortTable,
    guarded: Set[Tally],
    alike: dict[object, tuple[Level, ...]],
) -> PodClass:
    """One class. ``alike`` are the levels of pods that differ in nothing that levels are made of: not in what they
    request of cores and memory, say."""
    pod = group.pod
    counted = tallies.counting(pod.namespace, pod.labels)
    own = {tally for tally, _ in counted}
    guards = tuple(GuardRule(tally) for tally, _ in counted if tally in guarded)
    extended = tuple([item for item in pod.requests if item[0] not in (CPU, MEMORY)])
    rules = (pod.preferences, pod.spreads, pod.affinity, pod.anti_affinity)
    own_needs = (pod.terms, pod.volumes, pod.tolerations, pod.ports, pod.devices)
    memo_key = (pod.namespace, pod.labels, extended, own_needs, rules)
    levels = alike.get(memo_key)
    if levels is None:
        levels = alike[memo_key] = tuple(
            _level(step, own, guards, rows, tallies, any_taint=any_taint) for step, any_taint in steps
        )
    held_tallies = tuple(tallies.of_holders(term) for term in pod.anti_affinity if not term.weight)
    keys = {tally.key for tally in (*own, *held_tallies)} | {key for level in levels for key in level.rules}
    return PodClass(
        number,
        pod,
        group.names,
        pod.amounts(resources),
        levels,
        counted,
        held_tallies,
        tuple(sorted(keys - {HOSTNAME})),
        ports.of(pod.ports),
    )


def _level(
    pod: Pod, own: Set[Tally], guards: tuple[GuardRule, ...], rows: Rows, tallies: Tallies, *, any_taint: bool
) -> Level:
    preferred = preferred_terms(pod)[0].requirements if pod.preferences else ()
    terms = tuple([(*term, *preferred) for term in pod.terms]) if preferred else pod.terms
    labels = rows.of_terms(pod.terms)
    mask = rows.of_terms(terms) & rows.tolerated(pod, preferred=not any_taint)
    if pod.volumes:
        mask &= rows.of_terms(pod.volumes)
    mask = 0 if pod.devices else mask & rows.without_conflict(pod.ports)
    plain = mask & rows.without_extended(pod.requests)
    rules: defaultdict[str, list[Rule]] = defaultdict(list)
    for tally in tallies.against(pod.namespace, pod.labels):
        rules[tally.key].append(AntiAffinityRule(tally))
    for term in pod.anti_affinity:
        rules[term.key].append(AntiAffinityRule(tallies.of_term(term)))
    for term in pod.affinity:
        tally = tallies.of_term(term)
        rules[term.key].append(AffinityRule(tally, tally in own))
    for spread in pod.spreads:
        tally = tallies.of_spread(pod, spread)
        rules[spread.key].append(SpreadRule(spread, tally, int(tally in own), counted_nodes(pod, spread)))
    if guards:
        rules[HOSTNAME] += guards
    by_key = {key: tuple(listed) for key, listed in rules.items()}
    return Level(pod, terms, plain or mask, labels, by_key, any_taint, host_rules=by_key.get(HOSTNAME, ()))


def _in(namespace: str, term: PodTerm) -> bool:
    return term.namespaces is None or namespace in term.namespaces


def _order(pod_class: PodClass) -> tuple[float, float, tuple[int, ...], int]:
    """Sort key that puts the largest share of a machine of 2 GiB a core first; equal sizes one after the other."""
    amounts = dict(pod_class.pod.requests)
    cpu, memory = amounts.get(CPU, 0) / 1000, amounts.get(MEMORY, 0) / 1000 / 2**31
    return (-max(cpu, memory), -(cpu + memory), pod_class.requests, pod_class.number)
