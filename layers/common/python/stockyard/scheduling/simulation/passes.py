"""Passes of disruption over the cluster of a trace: what is decided, confirmed and carried out, and what rests.

They keep the product's pace and its rests (``consolidation.pace``): a decision has to stand for a while, what comes is
made first, and the nodes are looked at again before they leave.
"""

from __future__ import annotations

from collections.abc import Sequence, Set
from dataclasses import dataclass
from typing import Protocol

from stockyard.domain.pools.budgets import EMPTY, UNDERUTILIZED
from stockyard.scheduling.consolidation.model import Decision, Fleet, RunningNode, Settings
from stockyard.scheduling.consolidation.pace import (
    CAREFUL_NODES,
    CAREFUL_SECONDS,
    CONFIRM_SECONDS,
    LONGEST_SECONDS,
    LOOK_SECONDS,
    MISSED_SECONDS,
    REPLACE_SECONDS,
    REST_SECONDS,
    SOON_SECONDS,
    hold_seconds,
)
from stockyard.scheduling.consolidation.places import homeless_pods
from stockyard.scheduling.consolidation.search import empty_nodes, own_weight
from stockyard.scheduling.packing.plan import Claim
from stockyard.scheduling.packing.price.model import Meter
from stockyard.scheduling.simulation.cluster import Cluster, SimulatedNode
from stockyard.scheduling.simulation.model import Decider, Event

FLEET_STEPS, FLEET_STEPS_A_NODE = 100, 5
"""What it costs to read the fleet of one moment."""
EPSILON = 1e-9


class Yard(Protocol):
    """Actions of passes on the cluster, and the work that is left for them."""

    def launch(self, claim: Claim, now: int) -> SimulatedNode:
        """Ask for a node."""

    def leave(self, node: SimulatedNode, now: int) -> int:
        """Drain a node; how many pods are evicted."""

    def give_back(self, node: SimulatedNode, now: int) -> None:
        """Give a node back that is not there yet."""

    def work(self) -> int:
        """The steps that are left. Raises ``WorkUsedUp`` when there is no time any more."""

    def spend(self, steps: int) -> None:
        """Count work."""


@dataclass(slots=True)
class _Plan:
    """A decision that is carried out since ``begun_at``: its replacements are on their way."""

    decision: Decision
    nodes: tuple[str, ...]
    replacements: tuple[str, ...]
    begun_at: int


class Passes:
    """The disruption of one cluster. ``events`` are the decisions that were carried out."""

    def __init__(self, cluster: Cluster, decider: Decider, yard: Yard) -> None:
        self._cluster, self._decider, self._yard = cluster, decider, yard
        self.events: list[Event] = []
        self.abandoned = 0
        self._plan: _Plan | None = None
        self._proposed: tuple[str, frozenset[str], int] | None = None
        self._last: tuple[Fleet, bool, Decision | None] | None = None
        self._held_until, self._held_times = 0, 0
        self._left_at: int | None = None
        self._missed = False
        self._careful_until = self._rests_until = 0

    @property
    def going(self) -> Set[str]:
        """The nodes that are being replaced: no pod is planned onto them."""
        return frozenset(self._plan.nodes) if self._plan is not None else frozenset()

    def made_for_pods(self, now: int) -> None:
        """Nodes were asked for by pods: soon after others have left for their price, these pods may be theirs."""
        if self._left_at is not None and self._left_at < now <= self._left_at + MISSED_SECONDS:
            self._missed = True

    def look(self, now: int) -> int | None:
        """One look at the cluster; when the next one is due by itself, None for never."""
        if self._plan is not None:
            return self._advance(self._plan, now)
        if self._missed:
            self._take_care(now)
        fleet = self._fleet(now)
        decision = self._decide(fleet, now)
        if decision is None:
            self._proposed = None
            looks = [self._cluster.next_look(now), self._rests_until, self._held_until]
            return min((look for look in looks if look is not None and look > now), default=None)
        names = frozenset(node.name for node in decision.nodes)
        if self._proposed is None or self._proposed[:2] != (decision.reason, names):
            self._proposed = (decision.reason, names, now)
        if now - self._proposed[2] < CONFIRM_SECONDS:
            return now + CONFIRM_SECONDS
        self._proposed = None
        return self._start(decision, now)

    def _fleet(self, now: int) -> Fleet:
        self._yard.spend(FLEET_STEPS + FLEET_STEPS_A_NODE * len(self._cluster.nodes))
        return self._cluster.fleet(now)

    # --- what is decided --------------------------------------------------------------------------------------------

    def _decide(self, fleet: Fleet, now: int) -> Decision | None:
        decision = empty_nodes(fleet)
        if decision is not None or now < max(self._rests_until, self._held_until):
            return decision
        careful = now < self._careful_until or len(fleet.nodes) <= CAREFUL_NODES
        if self._last is None or self._last[:2] != (fleet, careful):
            # The same fleet has the same answer: to confirm a decision costs nothing.
            decision, steps = self._decider(fleet, self._yard.work(), careful)
            self._yard.spend(steps)
            self._last = (fleet, careful, decision)
        return self._last[2]

    def _take_care(self, now: int) -> None:
        """Pods of the last decision have found no place (decision 55)."""
        if now < self._careful_until:
            self._rests_until = now + REST_SECONDS
        self._careful_until = now + CAREFUL_SECONDS
        self._missed, self._left_at = False, None

    # --- how it is carried out --------------------------------------------------------------------------------------

    def _start(self, decision: Decision, now: int) -> int:
        """Make what comes in the place of the nodes that go; when the next look is due."""
        nodes = [self._yard.launch(item.claim, now) for item in decision.replacements]
        names = tuple(node.name for node in decision.nodes)
        self._plan = _Plan(decision, names, tuple(node.name for node in nodes), now)
        if nodes:
            # What is made now is no sign that pods of the decision before have found no place.
            self._left_at, self._missed = None, False
            return now + LOOK_SECONDS
        return self._advance(self._plan, now)

    def _advance(self, plan: _Plan, now: int) -> int:
        """The nodes leave as soon as all that comes in their place is ready, if they may still; when the next look is
        due."""
        coming = [self._cluster.nodes[name] for name in plan.replacements]
        if any(node.ready_at > now for node in coming):
            if now - plan.begun_at <= REPLACE_SECONDS:
                return now + LOOK_SECONDS
            return self._give_up(plan, now, hold=True)
        fleet = self._fleet(now)
        going, hold = self._able(plan, fleet)
        if not going:
            return self._give_up(plan, now, hold=hold)
        self._plan = None
        reason = plan.decision.reason
        if reason == UNDERUTILIZED:
            self._left_at, self._held_until, self._held_times = now, 0, 0
        evicted = [self._yard.leave(self._cluster.nodes[node.name], now) for node in going]
        saving = sum(node.usd_hour for node in going) - sum(node.price for node in coming)
        self.events.append(
            Event(now, reason, tuple(node.name for node in going), plan.replacements, sum(evicted), saving)
        )
        return now + LOOK_SECONDS

    def _able(self, plan: _Plan, fleet: Fleet) -> tuple[Sequence[RunningNode], bool]:
        """Nodes of the plan that may still go; none where some pod would lose its place, or too little is saved. And
        whether the same is held back for a while where none may."""
        running = {node.name: node for node in fleet.nodes}
        reason = plan.decision.reason
        is_empty = reason == EMPTY
        allowed = {name: rules.empty if is_empty else rules.underutilized for name, rules in fleet.rules.items()}
        hold = any(allowed[running[name].pool] >= 1 for name in plan.nodes)
        able: list[RunningNode] = []
        for name in plan.nodes:
            node = running[name]
            if node.blocker or (is_empty and not node.empty) or allowed[node.pool] < 1:
                continue
            allowed[node.pool] -= 1
            able.append(node)
        if reason == UNDERUTILIZED and able and self._is_too_little(plan, fleet, able):
            return (), hold
        meter = Meter(0)
        homeless = homeless_pods(fleet, able, meter)
        self._yard.spend(meter.spent)
        return ([] if homeless else able), hold

    def _is_too_little(self, plan: _Plan, fleet: Fleet, able: Sequence[RunningNode]) -> bool:
        before = sum(node.price for node in able)
        coming = [self._cluster.nodes[name].weight for name in plan.replacements]
        margin = Settings().margin * before if coming and len(able) < len(plan.nodes) else 0.0
        least = max(sum(fleet.rules_of(node).minimum_saving for node in able), margin, EPSILON + own_weight(able))
        return before - sum(coming) < least

    def _give_up(self, plan: _Plan, now: int, *, hold: bool) -> int:
        """Give a decision up: what was made for it goes back, and the same is not tried again at once."""
        self._plan = None
        self.abandoned += 1
        for node in [self._cluster.nodes[name] for name in plan.replacements]:
            if node.ready_at > now:
                self._yard.give_back(node, now)
            elif not (node.pods or node.planned):
                self._yard.leave(node, now)
        if hold and plan.decision.reason in LONGEST_SECONDS:
            # What was long ago does not count any more.
            recent = self._held_until and now < self._held_until + LONGEST_SECONDS[plan.decision.reason]
            times = self._held_times if recent else 0
            self._held_until, self._held_times = now + hold_seconds(plan.decision.reason, times), times + 1
        return now + SOON_SECONDS
