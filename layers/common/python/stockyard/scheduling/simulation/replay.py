"""A trace, event by event: pods come and go, nodes are made for them, and each minute a pass may let some leave.

The order of what the trace lists does not matter, and nothing is random: the same trace has the same outcome. At one
moment pods go before others come, the cluster's scheduler binds what has room, what is left is packed together, and the
pass comes last. No clock is looked at but the caller's, which only ends a replay that takes too long.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from functools import partial
from heapq import heappop, heappush
from math import fsum

from stockyard.scheduling.consolidation.model import Decision, Fleet, Settings
from stockyard.scheduling.consolidation.pace import SETTLING_SECONDS
from stockyard.scheduling.consolidation.search import Search
from stockyard.scheduling.packing.model import Problem
from stockyard.scheduling.packing.model import Settings as PackingSettings
from stockyard.scheduling.packing.plan import Claim, LeftOut, grouped, pack
from stockyard.scheduling.packing.reasons import BUDGET
from stockyard.scheduling.packing.rows import most_rows
from stockyard.scheduling.simulation.cluster import Cluster, SimulatedNode, SimulatedPod
from stockyard.scheduling.simulation.model import (
    Arrival,
    Decider,
    Departure,
    Homeless,
    Outcome,
    Trace,
    Waits,
)
from stockyard.scheduling.simulation.passes import Passes
from stockyard.scheduling.simulation.scheduler import KubeScheduler

PASS_SECONDS = 60
"""Passes of disruption come at whole minutes of the trace."""
PLACE_STEPS, PLACE_STEPS_A_POD = 100_000, 100
"""The packer's work to plan nodes for pods that wait."""
_HOUR = 3600
_REMOVE, _DEPART, _ARRIVE, _READY, _PASS = range(5)


PACKING_STEPS, STEPS_A_NODE, STEPS_A_ROW = 500, 5, 6
"""What each packing costs besides, to read the problem: measured in processor time, a step being three microseconds."""
MOST_SEARCH_STEPS = 600_000
"""The most work of one search. Below it a search has the product's own budget: that of a cluster of some 3,600 pods."""


class WorkUsedUp(Exception):
    """There are not the steps for the next piece of work."""


def search(
    fleet: Fleet, steps: int, careful: bool, expired: Callable[[], bool] | None = None
) -> tuple[Decision | None, int]:
    """The product's own decider. It never looks for less than at other moments: whoever counts the work finds that it
    was too much. Raises ``WorkUsedUp`` when there is none left to begin with. Where ``expired`` ends it, whoever waits
    no longer must not carry out what it says."""
    if steps <= 0:
        raise WorkUsedUp
    pods = sum(count for node in fleet.nodes for _, count in node.pods)
    budget = min(Settings().budget(pods), MOST_SEARCH_STEPS)
    own_search = Search(fleet, Settings(steps=budget, careful=careful, expired=expired))
    decision = own_search.decide()
    if decision is None and not own_search.candidates:
        return None, len(fleet.nodes)
    pods_there = [pod for node in fleet.nodes for pod, _ in node.pods]
    # Besides the sets that it tried, it reads the nodes one by one, and all pods for what they are worth.
    packings = own_search.tried + 2
    reading = reading_steps(len(fleet.nodes), most_rows(fleet.pools, (*pods_there, *fleet.daemons)))
    return decision, own_search.spent + packings * reading


def reading_steps(nodes: int, rows: int) -> int:
    """Steps that it costs to read one problem."""
    return PACKING_STEPS + STEPS_A_NODE * nodes + STEPS_A_ROW * rows


def replay(
    trace: Trace, steps: int, decider: Decider | None = None, expired: Callable[[], bool] = lambda: False
) -> Outcome:
    """Replay a trace. ``steps`` is the work as the packer counts it: if it is used up, the outcome ends there. It ends
    too when ``expired`` says that the caller waits no longer, which is asked within each piece of work: a piece that is
    cut is not carried out. ``decider`` is the product's own unless another is tried.

    Raises ``ValueError`` when more pods of an application go than there are.
    """
    return _Replay(trace, steps, decider or partial(search, expired=expired), expired).run()


class _Replay:
    def __init__(self, trace: Trace, steps: int, decider: Decider, expired: Callable[[], bool]) -> None:
        self._trace, self._remaining, self._expired = trace, steps, expired
        self._steps = steps
        self._cluster = Cluster(trace)
        self._passes = Passes(self._cluster, decider, self)
        kinds = dict.fromkeys(arrival.kind.pod for arrival in trace.arrivals)
        self._rows = most_rows(trace.pools, (*kinds, *trace.daemons))
        self._pods: dict[str, dict[str, SimulatedPod]] = {}
        self._counts: Counter[str] = Counter()
        self._waiting: dict[str, SimulatedPod] = {}
        self._refused: tuple[LeftOut, ...] = ()
        self._may_place = False
        self._heap: list[tuple[int, int, int, Arrival | Departure | str]] = []
        self._due: set[int] = set()
        self._usd: list[float] = []
        self._node_seconds = self._peak = self._nodes = self._evictions = self._pushed = 0
        self._waits: list[int] = []

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
                self.work()
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
            elif kind == _READY:
                self._join(subject, now)
            else:
                passes = True
        self._place(now)
        if passes:
            self._due.discard(now)
            look = self._passes.look(now)
            self._place(now)
            if look is not None:
                self._ask_for_pass(look)
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
            if pod.planned is not None:
                pod.planned.forget(pod)
            if pod.node is not None:
                pod.node.release(pod, now)
            elif now > pod.since:
                self._waits.append(now - pod.since)
        self._may_place = True
        self._ask_for_pass(now + SETTLING_SECONDS)

    def _join(self, name: str, now: int) -> None:
        """A node is ready: the scheduler binds to it whom it likes, not whom it was made for."""
        node = self._cluster.nodes.get(name)
        if node is None:
            return
        for pod in list(node.planned.values()):
            node.forget(pod)
        self._may_place = True
        self._ask_for_pass(now + SETTLING_SECONDS)

    def _remove(self, name: str, now: int) -> None:
        self._pay(self._cluster.nodes.pop(name), now)
        self._may_place = True
        self._ask_for_pass(now + SETTLING_SECONDS)

    def _pay(self, node: SimulatedNode, now: int) -> None:
        seconds = now - node.launched
        self._node_seconds += seconds
        self._usd.append(node.price * seconds / _HOUR)

    # --- where pods go ----------------------------------------------------------------------------------------------

    def _place(self, now: int) -> None:
        """Bind the pods that wait to what is there, as the scheduler does, and plan nodes for the others."""
        if not self._waiting or not self._may_place:
            return
        self._may_place = False
        bound = self._bind(now)
        self._plan(now)
        if bound:
            self._ask_for_pass(now + SETTLING_SECONDS)

    def _queue(self) -> list[SimulatedPod]:
        """The pods that wait, ordered by priority, then by arrival."""
        return sorted(
            self._waiting.values(), key=lambda pod: (-pod.kind.pod.priority, pod.since, pod.kind.app, pod.number)
        )

    def _bind(self, now: int) -> int:
        """Bind what the scheduler finds a node for; how many pods."""
        ready = {node.name: node for node in self._cluster.ready(now)}
        if not ready:
            return 0
        queue = self._queue()
        self.spend(PACKING_STEPS + STEPS_A_NODE * len(ready) + len(queue))
        totals = {name: node.totals for name, node in ready.items()}
        scheduler = KubeScheduler([node.bound() for node in ready.values()], totals, (pod.kind.pod for pod in queue))
        bound = spent = 0
        for pod in queue:
            name = scheduler.place(pod.kind.pod)
            self.spend(scheduler.spent - spent)
            spent = scheduler.spent
            if name is None:
                continue
            if pod.planned is not None:
                pod.planned.forget(pod)
            if now > pod.since:
                self._waits.append(now - pod.since)
            ready[name].take(self._waiting.pop(pod.name), now)
            bound += 1
        return bound

    def _plan(self, now: int) -> None:
        """Plan the pods that still wait and have no node on its way: onto what is there or comes, and new nodes."""
        cluster = self._cluster
        waiting = []
        for pod in self._queue():
            if pod.planned is not None and (pod.planned.leaving or pod.planned.ready_at <= now):
                # The scheduler has not put it there.
                pod.planned.forget(pod)
            if pod.planned is None:
                waiting.append(pod)
        self._refused = ()
        if not waiting:
            return
        steps = PLACE_STEPS + PLACE_STEPS_A_POD * len(waiting)
        if self.work() < steps:
            raise WorkUsedUp
        problem = Problem(
            grouped((pod.name, pod.kind.pod) for pod in waiting),
            cluster.pools(),
            cluster.rooms(now, self._passes.going),
            self._trace.daemons,
            PackingSettings(preferred_nodes=False, steps=steps, expired=self._expired),
            cluster.places(),
        )
        plan = pack(problem)
        self.spend(plan.steps + reading_steps(len(problem.nodes), self._rows))
        if any(reason.rule == BUDGET for item in plan.left_out for reason in item.reasons):
            raise WorkUsedUp
        for placement in plan.placements:
            self._keep(placement.pods, cluster.nodes[placement.node])
        for claim in plan.claims:
            self._keep(claim.pods, self.launch(claim, now))
        if plan.claims:
            self._passes.made_for_pods(now)
        self._refused = plan.left_out

    def _keep(self, names: tuple[str, ...], node: SimulatedNode) -> None:
        for name in names:
            node.plan(self._waiting[name])

    # --- what passes do ---------------------------------------------------------------------------------------------

    def _ask_for_pass(self, moment: int) -> None:
        """A pass at the next whole minute."""
        due = -(-moment // PASS_SECONDS) * PASS_SECONDS
        if self._trace.policies and due not in self._due:
            self._due.add(due)
            self._push(due, _PASS, "")

    def launch(self, claim: Claim, now: int) -> SimulatedNode:
        """Ask for a node."""
        node = self._cluster.launch(claim, now)
        self._nodes += 1
        self._push(node.ready_at, _READY, node.name)
        return node

    def leave(self, node: SimulatedNode, now: int) -> int:
        """Evict the pods of a node; how many there were."""
        node.leaving = True
        pods = list(node.pods.values())
        for pod in pods:
            node.release(pod, now)
            pod.since = now
            self._waiting[pod.name] = pod
        self._evictions += len(pods)
        self._may_place = True
        self._push(now + self._trace.drain, _REMOVE, node.name)
        return len(pods)

    def give_back(self, node: SimulatedNode, now: int) -> None:
        """Give a node back that is not there yet."""
        for pod in list(node.planned.values()):
            node.forget(pod)
        self._pay(self._cluster.nodes.pop(node.name), now)
        self._may_place = True

    def work(self) -> int:
        """The steps that are left. Raises ``WorkUsedUp`` when the caller waits no longer."""
        if self._expired():
            raise WorkUsedUp
        return self._remaining

    def spend(self, steps: int) -> None:
        """Count work. Raises ``WorkUsedUp`` when there was less, or when the caller waits no longer."""
        self._remaining -= steps
        if self._remaining < 0 or self._expired():
            raise WorkUsedUp

    # --- the outcome ------------------------------------------------------------------------------------------------

    def _outcome(self, end: int, *, complete: bool) -> Outcome:
        for node in self._cluster.nodes.values():
            self._pay(node, end)
        for pods in self._pods.values():
            for pod in pods.values():
                if pod.node is None and end > pod.since:
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
            tuple(self._passes.events),
            self._passes.abandoned,
            self._homeless() if complete else (),
            self._steps - self._remaining,
        )

    def _homeless(self) -> tuple[Homeless, ...]:
        whys = {
            name: "; ".join(reason.text for reason in item.reasons[:3]) for item in self._refused for name in item.pods
        }
        counts: Counter[tuple[str, str]] = Counter(
            (pod.kind.app, whys.get(pod.name, "")) for pod in self._waiting.values() if pod.planned is None
        )
        return tuple(Homeless(app, count, why) for (app, why), count in sorted(counts.items()))
