"""A trace, event by event: pods come and go, nodes are made for them, and each minute a pass may let some leave.

The order of what the trace lists does not matter, no clock is looked at, and nothing is random: the same trace has the
same outcome. At one moment pods go before others come, all that wait are packed together, and the pass comes last.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from heapq import heappop, heappush
from math import fsum

from stockyard.domain.budgets import EMPTY
from stockyard.scheduling.consolidation.model import Decision, Fleet, RunningNode, Settings
from stockyard.scheduling.consolidation.places import homeless_pods
from stockyard.scheduling.consolidation.search import Search, empty_nodes
from stockyard.scheduling.packing.model import Problem
from stockyard.scheduling.packing.model import Settings as PackingSettings
from stockyard.scheduling.packing.plan import LeftOut, grouped, pack
from stockyard.scheduling.packing.reasons import BUDGET
from stockyard.scheduling.packing.rows import ways
from stockyard.scheduling.simulation.cluster import Cluster, SimulatedNode, SimulatedPod
from stockyard.scheduling.simulation.model import (
    Arrival,
    Decider,
    Departure,
    Event,
    Homeless,
    Outcome,
    Trace,
    Waits,
)

PASS_SECONDS = 60
"""Passes of disruption come at whole minutes of the trace."""
PAUSE_SECONDS = 600
"""After a decision that was given up nothing is decided for so long."""
PLACE_STEPS, PLACE_STEPS_A_POD = 100_000, 100
"""The packer's work to place pods that wait."""
_HOUR = 3600
_REMOVE, _DEPART, _ARRIVE, _READY, _PASS = range(5)


PACKING_STEPS, STEPS_A_NODE, STEPS_A_ROW = 500, 5, 6
"""What each packing costs besides, to read the problem: measured in processor time, a step being three microseconds."""
SEARCH_STEPS, SEARCH_STEPS_A_POD = 10_000, 50
"""The work of one search. It is less than the product's own, so that a trace can have many: it finds nearly the same
saving, and sometimes moves more pods for it."""


class WorkUsedUp(Exception):
    """There are not the steps for the next piece of work."""


def search(fleet: Fleet, steps: int) -> tuple[Decision | None, int]:
    """The product's own decider. Raises ``WorkUsedUp`` rather than to look for less than at other moments."""
    pods = sum(count for node in fleet.nodes for _, count in node.pods)
    budget = SEARCH_STEPS + SEARCH_STEPS_A_POD * pods
    if steps < budget:
        raise WorkUsedUp
    own_search = Search(fleet, Settings(steps=budget))
    decision = own_search.decide()
    if decision is None and not own_search.candidates:
        return None, len(fleet.nodes)
    pods_there = [pod for node in fleet.nodes for pod, _ in node.pods]
    # Besides the sets that it tried, it reads the nodes one by one, and all pods for what they are worth.
    packings = own_search.tried + 2
    reading = reading_steps(len(fleet.nodes), ways(fleet.pools, (*pods_there, *fleet.daemons)))
    return decision, own_search.meter.spent + packings * reading


def reading_steps(nodes: int, rows: int) -> int:
    """What it costs to read one problem."""
    return PACKING_STEPS + STEPS_A_NODE * nodes + STEPS_A_ROW * rows


def replay(trace: Trace, steps: int, decider: Decider = search) -> Outcome:
    """What comes of a trace. ``steps`` is the work as the packer counts it: if it is used up, the outcome ends there.

    Raises ``ValueError`` when more pods of an application go than there are.
    """
    return _Replay(trace, steps, decider).run()


@dataclass(slots=True)
class _Plan:
    """A decision whose replacements are on their way."""

    decision: Decision
    nodes: tuple[str, ...]
    replacements: tuple[str, ...]


class _Replay:
    def __init__(self, trace: Trace, steps: int, decider: Decider) -> None:
        self._trace, self._remaining, self._decider = trace, steps, decider
        self._steps = steps
        self._cluster = Cluster(trace)
        kinds = dict.fromkeys(arrival.kind.pod for arrival in trace.arrivals)
        self._rows = ways(trace.pools, (*kinds, *trace.daemons))
        self._pods: dict[str, dict[str, SimulatedPod]] = {}
        self._counts: Counter[str] = Counter()
        self._waiting: dict[str, SimulatedPod] = {}
        self._refused: tuple[LeftOut, ...] = ()
        self._may_place = False
        self._heap: list[tuple[int, int, int, Arrival | Departure | str]] = []
        self._passes: set[int] = set()
        self._plan: _Plan | None = None
        self._paused_until = 0
        self._usd: list[float] = []
        self._node_seconds = self._peak = self._nodes = self._evictions = self._abandoned = self._pushed = 0
        self._waits: list[int] = []
        self._events: list[Event] = []

    def run(self) -> Outcome:
        """See ``replay``."""
        trace = self._trace
        arrivals = sorted(trace.arrivals, key=lambda item: (item.at, item.kind.app, repr(item.kind), item.count))
        for arrival in arrivals:
            self._push(arrival.at, _ARRIVE, arrival)
        # At one moment those that say how many go come before those that let all go.
        for departure in sorted(trace.departures, key=lambda item: (item.at, item.app, item.count is None)):
            self._push(departure.at, _DEPART, departure)
        end, complete = trace.until, True
        while self._heap and self._heap[0][0] < trace.until:
            now = self._heap[0][0]
            try:
                self._at(now)
            except WorkUsedUp:
                end, complete = now, False
                break
        return self._outcome(end, complete=complete)

    def _push(self, at: int, kind: int, subject: Arrival | Departure | str) -> None:
        self._pushed += 1
        heappush(self._heap, (at, kind, self._pushed, subject))

    def _at(self, now: int) -> None:
        """All that happens at one moment."""
        passes = False
        while self._heap and self._heap[0][0] == now:
            _, kind, _, subject = heappop(self._heap)
            if isinstance(subject, Arrival):
                self._arrive(subject, now)
            elif isinstance(subject, Departure):
                self._depart(subject, now)
            elif kind == _REMOVE:
                self._remove(subject, now)
            else:
                passes = passes or kind == _PASS
        self._place(now)
        self._advance(now)
        if passes:
            self._passes.discard(now)
            self._decide(now)
        self._peak = max(self._peak, len(self._cluster.nodes))

    def _arrive(self, arrival: Arrival, now: int) -> None:
        app = arrival.kind.app
        for _ in range(arrival.count):
            number = self._counts[app]
            self._counts[app] += 1
            pod = SimulatedPod(f"{app}/{number}", arrival.kind, number, now)
            self._pods.setdefault(app, {})[pod.name] = pod
            self._waiting[pod.name] = pod
        self._may_place = True

    def _depart(self, departure: Departure, now: int) -> None:
        """Pods go as a ReplicaSet lets them: those that wait first, then those of nodes with most of them, then the
        youngest."""
        pods = self._pods.get(departure.app, {})
        count = len(pods) if departure.count is None else departure.count
        if count > len(pods):
            raise ValueError(f"{count} pods of {departure.app} go, and there are {len(pods)}")
        crowds = Counter(pod.node.name for pod in pods.values() if pod.node is not None)

        def order(pod: SimulatedPod) -> tuple[int, int, int]:
            if pod.node is None:
                return (0, 0, -pod.number)
            return (1, -crowds[pod.node.name], -pod.number)

        for pod in sorted(pods.values(), key=order)[:count]:
            del pods[pod.name]
            self._waiting.pop(pod.name, None)
            if pod.node is not None:
                self._count_wait(pod, now)
                pod.node.release(pod, now)
            elif now > pod.since:
                self._waits.append(now - pod.since)
        self._may_place = True
        self._ask_for_pass(now)

    def _count_wait(self, pod: SimulatedPod, now: int) -> None:
        """How long the pod waited for the node that it is on, up to now."""
        if pod.runs_from is not None and (waited := min(pod.runs_from, now) - pod.since) > 0:
            self._waits.append(waited)

    def _remove(self, name: str, now: int) -> None:
        self._pay(self._cluster.nodes.pop(name), now)
        self._may_place = True
        self._ask_for_pass(now)

    def _pay(self, node: SimulatedNode, now: int) -> None:
        seconds = now - node.launched
        self._node_seconds += seconds
        self._usd.append(node.price * seconds / _HOUR)

    def _place(self, now: int) -> None:
        """Put the pods that wait onto what is there or on its way, and ask for nodes for the others."""
        if not self._waiting or not self._may_place:
            return
        self._may_place = False
        waiting = sorted(self._waiting.values(), key=lambda pod: (pod.kind.app, pod.number))
        steps = PLACE_STEPS + PLACE_STEPS_A_POD * len(waiting)
        self._need(steps)
        cluster = self._cluster
        problem = Problem(
            grouped((pod.name, pod.kind.pod) for pod in waiting),
            cluster.pools(),
            cluster.rooms(now),
            self._trace.daemons,
            PackingSettings(steps=steps),
            cluster.places(),
        )
        plan = pack(problem)
        self._remaining -= plan.steps + reading_steps(len(problem.nodes), self._rows)
        if any(reason.rule == BUDGET for item in plan.left_out for reason in item.reasons):
            raise WorkUsedUp
        for placement in plan.placements:
            self._put(placement.pods, cluster.nodes[placement.node], now)
        for claim in plan.claims:
            node = cluster.launch(claim, now)
            self._launched(node)
            self._put(claim.pods, node, now)
        self._refused = plan.left_out
        self._ask_for_pass(now)

    def _put(self, names: tuple[str, ...], node: SimulatedNode, now: int) -> None:
        for name in names:
            node.take(self._waiting.pop(name), now)

    def _launched(self, node: SimulatedNode) -> None:
        self._nodes += 1
        self._push(node.ready_at, _READY, node.name)
        self._ask_for_pass(node.ready_at)

    def _need(self, steps: int) -> None:
        if self._remaining < steps:
            raise WorkUsedUp

    # --- disruption -------------------------------------------------------------------------------------------------

    def _ask_for_pass(self, moment: int) -> None:
        """A pass at the next whole minute."""
        due = -(-max(moment, self._paused_until) // PASS_SECONDS) * PASS_SECONDS
        if self._trace.policies and due not in self._passes:
            self._passes.add(due)
            self._push(due, _PASS, "")

    def _decide(self, now: int) -> None:
        if self._plan is not None or now < self._paused_until:
            return
        fleet = self._cluster.fleet(now)
        decision = empty_nodes(fleet)
        if decision is None:
            decision, steps = self._decider(fleet, self._remaining)
            self._remaining -= steps
        if decision is None:
            look = self._cluster.next_look(now)
            if look is not None:
                self._ask_for_pass(look)
            return
        replacements = [self._cluster.launch(item.claim, now) for item in decision.replacements]
        for node in replacements:
            self._launched(node)
        names = tuple(node.name for node in decision.nodes)
        self._plan = _Plan(decision, names, tuple(node.name for node in replacements))
        self._advance(now)

    def _advance(self, now: int) -> None:
        """The nodes of the decision leave as soon as all that comes in their place is ready, if they may still."""
        plan = self._plan
        if plan is None or any(self._cluster.nodes[name].ready_at > now for name in plan.replacements):
            return
        self._plan = None
        going = self._able(plan, self._cluster.fleet(now))
        self._remaining -= reading_steps(len(self._cluster.nodes), 0)
        if not going:
            self._abandoned += 1
            self._paused_until = now + PAUSE_SECONDS
            self._ask_for_pass(now)
            return
        evicted = [self._leave(self._cluster.nodes[node.name], now) for node in going]
        saving = sum(node.price for node in going) - plan.decision.price_after
        names = tuple(node.name for node in going)
        self._events.append(Event(now, plan.decision.reason, names, plan.replacements, sum(evicted), saving))
        self._paused_until = now + PASS_SECONDS
        self._place(now)
        self._ask_for_pass(now)

    def _able(self, plan: _Plan, fleet: Fleet) -> list[RunningNode]:
        """Those of the nodes that may still go. None where some pod would lose its place."""
        running = {node.name: node for node in fleet.nodes}
        is_empty = plan.decision.reason == EMPTY
        allowed = {name: rules.empty if is_empty else rules.underutilized for name, rules in fleet.rules.items()}
        able = []
        for name in plan.nodes:
            node = running[name]
            if node.hindrance or (is_empty and not node.empty) or allowed[node.pool] < 1:
                continue
            allowed[node.pool] -= 1
            able.append(node)
        return [] if homeless_pods(fleet, able) else able

    def _leave(self, node: SimulatedNode, now: int) -> int:
        """Evict the pods of a node; how many there were."""
        node.leaving = True
        pods = list(node.pods.values())
        for pod in pods:
            self._count_wait(pod, now)
            node.release(pod, now)
            pod.since = now
            self._waiting[pod.name] = pod
        self._evictions += len(pods)
        self._may_place = True
        self._push(now + self._trace.drain, _REMOVE, node.name)
        return len(pods)

    # --- the outcome ------------------------------------------------------------------------------------------------

    def _outcome(self, end: int, *, complete: bool) -> Outcome:
        for node in self._cluster.nodes.values():
            self._pay(node, end)
        for pods in self._pods.values():
            for pod in pods.values():
                if pod.node is not None:
                    self._count_wait(pod, end)
                elif end > pod.since:
                    self._waits.append(end - pod.since)
        waits = self._waits
        return Outcome(
            end,
            complete,
            fsum(self._usd),
            self._node_seconds,
            self._peak,
            self._nodes,
            sum(self._counts.values()),
            self._evictions,
            Waits(len(waits), max(waits, default=0), sum(waits) / len(waits) if waits else 0.0),
            tuple(self._events),
            self._abandoned,
            self._homeless() if complete else (),
            self._steps - self._remaining,
        )

    def _homeless(self) -> tuple[Homeless, ...]:
        whys = {
            name: "; ".join(f"{reason.pool}: {reason.message}" for reason in item.reasons[:3])
            for item in self._refused
            for name in item.pods
        }
        counts: Counter[tuple[str, str]] = Counter(
            (pod.kind.app, whys.get(pod.name, "")) for pod in self._waiting.values()
        )
        return tuple(Homeless(app, count, why) for (app, why), count in sorted(counts.items()))
