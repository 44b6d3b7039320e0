"""Input of a packing: pods that wait, the nodes and pods that are there, and the pools that may make nodes.

Values are read already: resources are thousandths of a unit (``domain.values.quantities``), requirements and
selectors are selector entries in a fixed order. All of it is hashable, so that equal pods are found by their value.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import field, fields, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

from stockyard.domain.nodes.node_types import NodeType
from stockyard.domain.values.frozen import dataclass
from stockyard.domain.values.requirements import NODE_POOL, Requirement, Requirements, normal_key
from stockyard.scheduling.host_ports import HostPort

if TYPE_CHECKING:  # who has a problem does not load the search for its price
    from stockyard.scheduling.packing.price import Answers

Resources = tuple[tuple[str, int], ...]
"""Thousandths of a unit by resource, in order of the name."""
Labels = tuple[tuple[str, str], ...]
"""Labels in order of the key."""
Term = tuple[tuple[str, Requirement], ...]
"""Requirements that all hold, in order of the key."""

STEPS, STEPS_A_POD = 5_000_000, 200
"""The budget of a plan where none is given: ten to twenty seconds for hard problems."""
VOLUMES = "attachable-volumes-csi-"
"""What Kubernetes calls the places for volumes of a CSI driver as a resource of a node, before the driver's name."""
NO_SCHEDULE, PREFER_NO_SCHEDULE, NO_EXECUTE = "NoSchedule", "PreferNoSchedule", "NoExecute"


def term(entries: Iterable[Mapping[str, Any]]) -> Term:
    """A term from selector entries that all hold. Raises ``ValueError``; its text names the key.

    Entries of one key stay apart: what excludes a value and what asks for the key are more than their intersection.
    """
    listed = {item for entry in entries for item in Requirements.of([entry]).items()}
    return tuple(sorted(listed, key=lambda item: (item[0], repr(item[1]))))


@dataclass(frozen=True, slots=True)
class Taint:
    """A taint of a node. ``effect`` is ``NoSchedule``, ``PreferNoSchedule`` or ``NoExecute``."""

    key: str
    value: str = ""
    effect: str = NO_SCHEDULE


def whole_number(text: str) -> int | None:
    """The whole number that a text is; None for any other text."""
    return int(text) if re.fullmatch(r"0|-?[1-9][0-9]{0,18}", text) else None


@dataclass(frozen=True, slots=True)
class Toleration:
    """A pod's toleration. An empty key with the operator ``Exists`` tolerates all; an empty effect is each effect.

    ``Gt`` and ``Lt`` tolerate taints whose value is a whole number above, or below, that of the toleration (Kubernetes
    1.35).
    """

    key: str = ""
    operator: str = "Equal"
    value: str = ""
    effect: str = ""

    def tolerates(self, taint: Taint) -> bool:
        """Whether a pod with it may stand the taint."""
        if self.effect and self.effect != taint.effect:
            return False
        if self.key and self.key != taint.key:
            return False
        if self.operator == "Exists":
            return True
        if self.operator in ("Gt", "Lt"):
            amount, bound = whole_number(taint.value), whole_number(self.value)
            if not self.key or amount is None or bound is None:
                return False
            return amount > bound if self.operator == "Gt" else amount < bound
        return bool(self.key) and self.value == taint.value


@dataclass(frozen=True, slots=True)
class Selector:
    """A label selector. ``requirements`` is None where there is none, which selects nothing; empty selects all."""

    requirements: Term | None = None

    def matches(self, labels: Mapping[str, str]) -> bool:
        """Whether pods with these labels are selected."""
        if self.requirements is None:
            return False
        return all(
            requirement.has(labels[key]) if key in labels else requirement.absence_fits
            for key, requirement in self.requirements
        )


NAMESPACE_NAME = "kubernetes.io/metadata.name"
"""The label that each namespace has: its name."""


@dataclass(frozen=True, slots=True)
class SelectedNamespaces:
    """Namespaces by name, and those that a selector of their labels selects.

    ``names`` are named, or selected by the labels that are known of them. Of the ``known_names`` no other is selected;
    any other namespace has the label of its name alone.
    """

    names: frozenset[str]
    known_names: frozenset[str]
    selector: Selector

    def __contains__(self, name: object) -> bool:
        if name in self.names:
            return True
        return name not in self.known_names and self.selector.matches({NAMESPACE_NAME: str(name)})


@dataclass(frozen=True, slots=True)
class CommonNamespaces:
    """The namespaces that are in all of some sets."""

    sets: tuple[frozenset[str] | SelectedNamespaces, ...]

    def __contains__(self, name: object) -> bool:
        return all(name in names for names in self.sets)


Namespaces = frozenset[str] | SelectedNamespaces | CommonNamespaces | None
"""The namespaces whose pods count for a rule; None stands for all of them."""


@dataclass(frozen=True, slots=True)
class Spread:
    """A topology spread constraint. ``hard`` is ``DoNotSchedule``, otherwise ``ScheduleAnyway``."""

    key: str
    max_skew: int
    selector: Selector
    hard: bool = True
    min_domains: int | None = None
    honors_affinity: bool = True
    """``nodeAffinityPolicy``: only domains of nodes that the pod may use are counted."""
    honors_taints: bool = False
    """``nodeTaintsPolicy``: only domains of nodes whose taints the pod tolerates are counted."""


@dataclass(frozen=True, slots=True)
class PodTerm:
    """A term of pod affinity or anti-affinity. ``weight`` 0 is required, otherwise it is preferred."""

    key: str
    selector: Selector
    namespaces: Namespaces
    weight: int = 0


@dataclass(frozen=True, slots=True)
class Preference:
    """A preferred term of node affinity."""

    weight: int
    requirements: Term


@dataclass(frozen=True, slots=True)
class Pod:
    """Everything that decides where a pod may go: two pods with an equal ``Pod`` are the same to the packer.

    ``requests`` has one ``pods`` besides what the containers ask for. ``terms`` are the alternatives of the required
    node affinity, each together with the node selector; one empty term when nothing is required. ``volumes`` are the
    alternatives of where the pod's volumes can be.
    """

    namespace: str
    labels: Labels
    requests: Resources
    terms: tuple[Term, ...] = ((),)
    preferences: tuple[Preference, ...] = ()
    tolerations: tuple[Toleration, ...] = ()
    spreads: tuple[Spread, ...] = ()
    affinity: tuple[PodTerm, ...] = ()
    anti_affinity: tuple[PodTerm, ...] = ()
    ports: tuple[HostPort, ...] = ()
    volumes: tuple[Term, ...] = ()
    priority: int = 0
    gang: str = ""
    """Pods of one gang are placed all or none. Empty: the pod is of no gang."""
    attachments: tuple[tuple[str, int], ...] = ()
    """How many volumes of each CSI driver it attaches to its node, in order of the driver."""
    devices: tuple[str, ...] = ()
    """The names of its claims to devices (``spec.resourceClaims``): nobody knows a node that has them."""
    deletion_cost: int = field(default=0, compare=False)
    """What its controller loses with it beside its other pods. It says nothing of where the pod may go."""
    _hash: list[int] = field(default_factory=list, init=False, repr=False, compare=False)

    def __hash__(self) -> int:
        """Hash that is computed once: a pod may have hundreds of rules and ports, and is looked up again and again."""
        if not self._hash:
            values = (getattr(self, name) for name in _DECIDING)
            self._hash.append(hash(tuple(values)))
        return self._hash[0]

    def amounts(self, resources: Sequence[str]) -> tuple[int, ...]:
        """The amount of each resource, with places for volumes (``VOLUMES``) among them."""
        amounts = dict(self.requests)
        for driver, count in self.attachments:
            amounts[VOLUMES + driver] = count * 1000
        return tuple([amounts.get(name, 0) for name in resources])

    def tolerates(self, taints: Sequence[Taint], *, preferred: bool = True) -> bool:
        """Whether it may stand all of these; ``preferred`` says that ``PreferNoSchedule`` counts as well."""
        return all(
            any(toleration.tolerates(taint) for toleration in self.tolerations)
            for taint in taints
            if preferred or taint.effect != PREFER_NO_SCHEDULE
        )


_DECIDING = tuple(each.name for each in fields(Pod) if each.compare)
"""The fields by which pods are equal."""


@dataclass(frozen=True, slots=True)
class PodGroup:
    """Equal pods. ``names`` tell them apart; their order is kept in what comes out."""

    pod: Pod
    names: tuple[str, ...]


@dataclass(frozen=True)
class Pool:
    """Pool that makes nodes: requirements and labels of its nodes, their taints, and how many of them there may be.

    ``limits`` are thousandths of a unit by resource; ``nodes`` counts nodes. ``used`` is what its nodes have already,
    by capacity. ``money`` is the most that its nodes may cost in USD an hour, ``spent`` what they do. Pools of a larger
    ``weight`` come first. ``node_types`` are those of its provider that it may use. ``unserved`` says of
    extended resources why no node of the types that have them can be made yet. ``refused`` are the types with the
    offerings that their cloud refused of late, which are none of ``node_types``. ``zone_ids`` are the ids of its zones
    by name, where they are known; ``opens_zone_ids`` says that they will be. ``unasked`` are the labels by which its
    other node types have to be asked for, where it has none as nodes are by default.
    """

    name: str
    node_types: tuple[NodeType, ...]
    requirements: Requirements = field(default_factory=Requirements)
    labels: Mapping[str, str] = field(default_factory=dict)
    taints: tuple[Taint, ...] = ()
    weight: int = 0
    limits: Mapping[str, int] = field(default_factory=dict)
    used: Mapping[str, int] = field(default_factory=dict)
    money: float | None = None
    spent: float = 0.0
    unserved: Mapping[str, str] = field(default_factory=dict)
    refused: tuple[NodeType, ...] = ()
    zone_ids: Mapping[str, str] = field(default_factory=dict)
    opens_zone_ids: bool = False
    unasked: tuple[str, ...] = ()

    @cached_property
    def template(self) -> Requirements:
        """The pod's requirements together with the requirements from its labels and its name."""
        template = Requirements(self.requirements)
        for label, value in {**self.labels, NODE_POOL: self.name}.items():
            key, requirement = normal_key(label), Requirement(False, frozenset({value}))
            template[key] = template[key].intersection(requirement) if key in template else requirement
        return template


@dataclass(frozen=True, slots=True)
class PlacedPod:
    """A pod that runs, or is bound, on a node: what topology counts."""

    namespace: str
    labels: Labels
    anti_affinity: tuple[PodTerm, ...] = ()


@dataclass(frozen=True, slots=True)
class Node:
    """A node that is there or on its way. ``free`` is what is left of it, in thousandths by resource.

    ``free`` is after the pods that are bound to it and the daemon sets that are yet to come. Taints that pass by
    themselves while it starts are left out by whoever makes it.
    """

    name: str
    labels: Mapping[str, str]
    free: Mapping[str, int]
    taints: tuple[Taint, ...] = ()
    pods: tuple[PlacedPod, ...] = ()
    ports: tuple[HostPort, ...] = ()
    initialized: bool = True
    attachable: Mapping[str, int] = field(default_factory=dict)
    """How many more volumes of a CSI driver it takes; a driver that is not named has no limit."""

    def less(self, pods: Iterable[tuple[Pod, int]]) -> Node:
        """The node with the room and the places for volumes that so many of these pods leave; a count below zero gives
        back what they have."""
        free, attachable = Counter(self.free), dict(self.attachable)
        for pod, count in pods:
            for name, amount in pod.requests:
                free[name] -= amount * count
            for driver, volumes in pod.attachments:
                if driver in attachable:
                    attachable[driver] = max(0, attachable[driver] - volumes * count)
        return replace(self, free=dict(free), attachable=attachable)


@dataclass(frozen=True, slots=True)
class Settings:
    """Settings of a packing. ``preferences`` says whether preferred rules are tried before they are dropped.

    ``preferred_nodes`` says that a new node is made before a preferred rule is dropped, as Karpenter does. Otherwise a
    pod goes where there is room, by its preferences as far as that goes, and they only choose among new nodes that are
    needed anyway, or cost no more: kube-scheduler puts the pod onto the first node that has room, whatever it prefers.
    """

    preferences: bool = True
    preferred_nodes: bool = True
    split: bool = True
    """A new node is planned where that is cheaper than a larger one. Otherwise a pod joins a node whenever it can."""
    steps: int | None = None
    """How much work a plan may take: steps of two to five microseconds of CPython. No clock is looked at, so the answer
    is the same on every machine. None: ``STEPS`` and ``STEPS_A_POD`` for each pod. To read the problem takes a few
    microseconds for each different pod, row and node besides."""

    expired: Callable[[], bool] | None = field(default=None, compare=False)
    """Says that the caller waits no longer, as one machine is slower than another: the packing ends as if its steps
    were used up, but not before ``plan.PATIENT_STEPS``. None: only the steps count."""

    answers: Answers | None = field(default=None, compare=False)
    """Answers of the search for price that a caller keeps from problem to problem. They change no plan."""

    def budget(self, pods: int) -> int:
        """The steps for so many pods. Raises ``ValueError`` for fewer than one step."""
        steps = STEPS + STEPS_A_POD * pods if self.steps is None else self.steps
        if steps < 1:
            raise ValueError(f"steps: at least 1, not {steps}")
        return steps


@dataclass(frozen=True, slots=True)
class Problem:
    """All that one pass looks at."""

    groups: tuple[PodGroup, ...]
    pools: tuple[Pool, ...]
    nodes: tuple[Node, ...] = ()
    daemons: tuple[Pod, ...] = ()
    settings: Settings = Settings()
    places: Mapping[str, int] = field(default_factory=dict)
    """How many more nodes there can be of a type, whatever pool makes them. Types that are not named have no end."""
