"""Input and answer of a consolidation: the nodes of a cluster with what runs on them, and the answer that says which of
them go."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import field

from stockyard.domain.pools.budgets import UNBOUNDED
from stockyard.domain.values.frozen import dataclass
from stockyard.scheduling.packing.model import Node, Pod, Pool
from stockyard.scheduling.packing.plan import Claim, Placement
from stockyard.scheduling.packing.price import Answers

WHEN_EMPTY, WHEN_UNDERUTILIZED, BALANCED = "WhenEmpty", "WhenEmptyOrUnderutilized", "Balanced"
"""Policies of a pool."""


@dataclass(frozen=True, slots=True)
class RunningNode:
    """A node that is there and ready.

    ``pods`` are those that would have to move, equal ones together: not those of daemon sets, nor those that stay with
    the node. ``node.free`` is what is left beside them. ``price`` is what it weighs, see ``NodeType.weight``: USD an
    hour of a rented node.
    """

    node: Node
    pods: tuple[tuple[Pod, int], ...]
    pool: str
    price: float
    cost: float = 1.0
    """What it costs to disrupt it: 1, and for each pod between 0 and 10, 1 for an ordinary one."""
    spot: bool = False
    blocker: str | None = None
    """Why it may not be disrupted now, in words; None: it may."""
    drifted: bool = False
    """Whether it is not as it would be made now."""
    own_usd_hour: float | None = None
    """Price that the owner of an owned machine says, 0 where it says none; None for a rented one."""

    @property
    def usd_hour(self) -> float:
        """Price in money."""
        return self.price if self.own_usd_hour is None else self.own_usd_hour

    @property
    def name(self) -> str:
        """The name of the node."""
        return self.node.name

    @property
    def empty(self) -> bool:
        """Whether nothing on it would have to move."""
        return not self.pods


@dataclass(frozen=True, slots=True)
class PoolRules:
    """Rules of a pool for the disruption of its nodes.

    ``empty`` and ``underutilized`` are how many of them may be disrupted now for each of these reasons, as its budgets
    say. Nothing is done that saves less than ``minimum_saving`` in USD an hour for each node that goes.
    """

    policy: str = WHEN_UNDERUTILIZED
    empty: int = UNBOUNDED
    underutilized: int = UNBOUNDED
    minimum_saving: float = 0.0


@dataclass(frozen=True, slots=True)
class Settings:
    """Settings of the search for nodes that can go. ``steps`` is the work as the packer counts it; no clock is looked
    at.

    Of all sets of nodes that save at least ``share`` of what the best of them saves, the one that disrupts least is
    taken. What comes must be cheaper than what goes by at least ``margin`` of its price: prices move, and each move of
    pods costs something. Spot nodes are replaced by spot nodes only when ``spot_choices`` types would do, as too narrow
    a choice is soon interrupted again.

    With ``careful`` only such nodes go whose pods have a place however the cluster's scheduler spreads them
    (``arrivals``), not only as the packing has it.
    """

    steps: int | None = None
    share: float = 0.95
    margin: float = 0.05
    spot_choices: int = 15
    careful: bool = False
    expired: Callable[[], bool] | None = field(default=None, compare=False)
    """Says that the caller waits no longer: the best of what was found by then is the answer. None: only the steps
    count."""

    answers: Answers | None = field(default=None, compare=False)
    """Answers of the search for price that are kept from look to look. They change no decision."""

    def budget(self, pods: int) -> int:
        """The steps for a cluster of so many pods."""
        return LEAST_STEPS + STEPS_A_POD * pods if self.steps is None else self.steps


LEAST_STEPS, STEPS_A_POD = 200_000, 110


@dataclass(frozen=True, slots=True)
class Fleet:
    """All that one decision looks at.

    ``nodes`` are the ready nodes: those with a ``blocker`` only have room. ``pools`` are what may make new nodes, and
    ``rules`` say of each pool by name how its nodes may be disrupted. ``daemons`` run on each new node, and ``places``
    is how many more nodes there can be of a type. ``awaited`` are, by the name of a node, those of its ``pods`` that
    are not on it yet: they wait, or are still on a node that leaves, and nobody but a packing has put them there.
    ``most_new`` is how many nodes may be made at most, whatever their pools would allow.
    """

    nodes: tuple[RunningNode, ...]
    pools: tuple[Pool, ...]
    rules: Mapping[str, PoolRules] = field(default_factory=dict)
    daemons: tuple[Pod, ...] = ()
    places: Mapping[str, int] = field(default_factory=dict)
    awaited: Mapping[str, tuple[tuple[Pod, int], ...]] = field(default_factory=dict)
    most_new: int = UNBOUNDED

    def rules_of(self, node: RunningNode) -> PoolRules:
        """The rules of the node's pool."""
        return self.rules.get(node.pool, _DEFAULT)


_DEFAULT = PoolRules()


@dataclass(frozen=True, slots=True)
class Replacement:
    """A node that comes. It may be launched as any of the claim's ways that cost no more than ``ceiling`` USD an hour:
    then the decision saves what it has to save, whichever way it becomes."""

    claim: Claim
    ceiling: float


@dataclass(frozen=True, slots=True)
class Decision:
    """The nodes to remove, their replacements, and the new places of the pods.

    ``possible`` is what could be saved at best, if every node that may go did and its pods cost what they are worth; it
    is None where that is not known.
    """

    reason: str
    nodes: tuple[RunningNode, ...]
    replacements: tuple[Replacement, ...] = ()
    placements: tuple[Placement, ...] = ()
    possible: float | None = None
    by_pools: bool = False
    """Whether pools make what comes in their place by themselves: then it is taken to cost as much."""

    @property
    def price_before(self) -> float:
        """Price of the nodes that go, in USD an hour."""
        return sum(node.usd_hour for node in self.nodes)

    @property
    def price_after(self) -> float:
        """Price of the nodes that come, in USD an hour."""
        if self.by_pools:
            return self.price_before
        return sum(replacement.claim.usd_hour for replacement in self.replacements)

    @property
    def saving(self) -> float:
        """USD an hour."""
        return self.price_before - self.price_after

    @property
    def cost(self) -> float:
        """Cost of the disruption of the nodes that go; see ``RunningNode.cost``."""
        return sum(node.cost for node in self.nodes)
