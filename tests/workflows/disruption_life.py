"""A decision of disruption from its reason to its end, under at most one fault of the table.

The passes over disruption are the ones that the fault may hit; pools, claims and pods go on around them. A life has one
of the reasons for which nodes leave, and must come to the same end whatever happens.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar
from unittest.mock import patch

from stockyard.domain.pools.disruption_records import IDLE, ClusterDisruption
from stockyard.domain.records import NodeClaim
from stockyard.domain.values.conditions import Condition, with_condition
from stockyard.errors import StockyardError, StoreError, StoreUnavailable
from stockyard.lifecycle.nodes import interruption
from stockyard.lifecycle.nodes.node_phases import NOT_DRIFTED
from stockyard.operations.engine.watch import watch
from stockyard.operations.fleet.disruption import run as passes
from stockyard.operations.fleet.disruption.disruptor import Disruptor
from stockyard.operations.fleet.pools import reconcile
from stockyard.operations.fleet.pools.pools import claims_of
from stockyard.operations.machines import attention
from stockyard.ports import Replace, Write
from tests.harness.crash.faults import Crash, Errors, Fault, Tap
from tests.unit.operations.fleet.disruption.conftest import POOL, pod
from tests.unit.operations.fleet.pools.conftest import make_yard
from tests.workflows.people.acts import ACTS, DAEMON_GROWS, DELETED, DRAIN
from tests.workflows.people.pods import PodsBesideDaemon
from tests.workflows.watched_table import WatchedRegistry, WatchedStore

T = TypeVar("T")
LARGE, SMALL = "sim.large", "sim.small"
NOW: Mapping[str, Any] = {"consolidate_after": "0s", "budgets": []}
MINUTES = 75
"""How long a life may take: a decision may be given up, and the next one comes ten minutes later."""
LAUNCH_MINUTES = 3
"""How often machines come and go."""
REFUSED_MINUTES = 3
"""How long a table refuses what it refuses."""
CALM = 3
"""For how many minutes nothing may change any more."""
GROWN = "1200m"
"""The cores of a DaemonSet's pod when it has grown."""
ERRORS = Errors(lambda: StoreUnavailable("no answer"), lambda: StoreUnavailable("slow down"), lambda: StoreError("no"))


@dataclass(frozen=True, slots=True)
class Story:
    """``begin`` brings about the reason. ``types`` are the nodes of the end, ``fewest`` how many there have to be at
    every moment. ``homeless``: pods may be without a point, as nothing can be moved in order."""

    begin: Callable[[DisruptionLife], None]
    types: tuple[str, ...]
    fewest: int = 1
    homeless: bool = False
    replaced: bool = True
    """None of the nodes of the beginning are there in the end."""


@dataclass
class DisruptionLife:
    """``wrong`` says what went wrong. ``act`` is what a person does to a node as soon as the fault has come, and takes
    back later where that can be: to the first node by name, or ``on_last`` to the last one, which is the youngest."""

    name: str
    fault: Fault | None = None
    act: str = ""
    on_last: bool = False
    pods: PodsBesideDaemon = field(init=False)
    point: str = ""
    wrong: list[str] = field(default_factory=list)
    sites: list[tuple[str, int, int]] = field(default_factory=list)
    """Of each call of the tap: the state of the decision, its number within the pass, and how many writes came before.
    Calls that have these in common are the same call, made again in the same state."""
    most_homeless: int = 0
    """The most pods that were without a point after a pass."""
    number_in_pass: int = 0
    writes: int = 0
    acted_at: int = -1
    """The minute of the person's act."""
    acted_on: str = ""
    """The node of the act."""
    act_over: bool = False

    def __post_init__(self) -> None:
        yard = make_yard()
        self.pods = PodsBesideDaemon(yard)
        self.tap = Tap(lambda: self.point, faults=[self.fault] if self.fault else [])
        self.plain = yard.nodes.services.store
        yard.nodes.services = replace(yard.nodes.services, store=WatchedStore(self.plain, self))
        registry: Any = WatchedRegistry(yard.nodes.registry, self)
        self._disruptor = Disruptor(registry, lambda _: yard.nodes.services)
        self.pods.look = self._look

    def called(self, name: str, work: Callable[[], T]) -> T:
        """Does a call to the table, or what the fault makes of it."""
        if self.point:
            self.sites.append((self.point, self.number_in_pass, self.writes))
            self.number_in_pass += 1
        return self.tap.around(f"dynamodb.{name}", work, ERRORS)

    def written(self, writes: tuple[Write, ...]) -> None:
        """Counts what passes over disruption write."""
        self.writes += bool(self.point and writes)

    def _look(self) -> Any:
        record = self.plain.get(ClusterDisruption, self.pods.yard.cluster.id)
        self.point, self.number_in_pass = record.state if record is not None else IDLE, 0
        try:
            with suppress(Crash, StockyardError):
                return self._disruptor.due(self.pods.yard.nodes.clock.now())
        finally:
            self.point = ""
            # Pods of a node that leaves are evicted at once: what takes them has to be there by now.
            self.pods.bind()
            self.most_homeless = max(self.most_homeless, len(self.pods.waiting))
        return {}

    def run(self) -> list[str]:
        """The life to its end. What is wrong; empty when nothing is."""
        with ExitStack() as stack:
            for module in (passes, reconcile):
                stack.enter_context(patch.object(module, "workload_of", lambda *_: self.pods.workload()))
            stack.enter_context(patch.object(attention, "report_age", lambda *_: 0.0))
            logging.disable(logging.CRITICAL)
            stack.callback(logging.disable, logging.NOTSET)
            self._live(STORIES[self.name])
        if self.fault is not None and not self.fault.fired:
            self.wrong.append("the fault never came")
        return self.wrong

    def _live(self, story: Story) -> None:
        look, self.pods.look = self.pods.look, dict
        story.begin(self)
        self.pods.look = look
        before = {claim.id for claim in self.pods.claims()}
        self.pods.fewest = 10**6
        calm = spoilt = 0
        for minute in range(MINUTES):
            self._pass_minute(minute)
            self._person(minute)
            if self.most_homeless and not (story.homeless or (self.moves and self.acted_at >= 0)):
                self.wrong.append(f"minute {minute}: {self.most_homeless} pods have lost their place")
                return
            spoilt += self.fault is not None and self.fault.fired
            if spoilt == REFUSED_MINUTES:
                self.tap.lift()
            over = self._is_at_rest() if self.act else self._is_over(story, before)
            calm = calm + 1 if over else 0
            if calm > CALM and (self.fault is None or self.fault.fired):
                break
        else:
            record = self.pods.record()
            self.wrong.append(f"hangs: {record.state}, {record.message} {self.pods.types()}")
        if self.pods.fewest < story.fewest and not self.moves:
            self.wrong.append(f"only {self.pods.fewest} nodes were ready")

    def _pass_minute(self, number: int) -> None:
        """As ``Pods.run``, but nodes take some minutes to come and to go."""
        pods, nodes = self.pods, self.pods.yard.nodes
        nodes.clock.advance(60)
        pods.tell()
        pods.yard.look()
        pods.look()
        if number % LAUNCH_MINUTES == 0:
            nodes.schedule()
            nodes.relay()
        pods.bind()
        pods.fewest = min(pods.fewest, len(pods.claims()))

    def _person(self, minute: int) -> None:
        """The act on a node that is there, once the fault has come; and its end."""
        if not self.act or self.fault is None or not self.fault.fired:
            return
        pods = self.pods
        if self.acted_at < 0 and pods.claims():
            self.acted_at = minute
            names = sorted(claim.node_name for claim in pods.claims())
            self._act(names[-1 if self.on_last else 0])
        elif self.acted_at >= 0 and minute == self.acted_at + ACTS[self.act].minutes:
            pods.facts.pop(self.acted_on, None)
            pods.daemon, self.act_over = None, True

    def _act(self, node: str) -> None:
        pods = self.pods
        self.acted_on = node
        if self.act == DAEMON_GROWS:
            pods.daemon = pod(GROWN, app="proxy")
            return
        pods.facts[node] = ACTS[self.act].facts(pods.yard.nodes.services.now())
        # A node that has shrunk takes what it has room for.
        closed = "allocatable" not in pods.facts[node]
        pods.refuses = lambda _, name: closed and name == node and node in pods.facts
        if self.act == DRAIN:
            pods.waiting += pods.on.pop(node, [])
        if self.act == DELETED:
            pods.gone_names.add(node)

    @property
    def moves(self) -> bool:
        """Whether pods wait for another node after the act, whatever is decided."""
        return bool(self.act) and ACTS[self.act].moves

    def _is_at_rest(self) -> bool:
        """Whether nothing is decided and no pod waits, after the person's act is over."""
        record = self.plain.get(ClusterDisruption, self.pods.yard.cluster.id)
        idle = record is None or record.state == IDLE
        return idle and not self.pods.waiting and self.act_over

    def _is_over(self, story: Story, before: set[str]) -> bool:
        claims = claims_of(self.pods.yard.nodes.services, self.pods.yard.cluster.id)
        if tuple(self.pods.types()) != story.types or len(claims) != len(story.types) or self.pods.waiting:
            return False
        record = self.plain.get(ClusterDisruption, self.pods.yard.cluster.id)
        idle = record is None or record.state == IDLE
        return idle and not (story.replaced and before & {claim.id for claim in claims})

    def change(self, claim: NodeClaim, **fields: Any) -> None:
        """Write something of a claim, and tell of it."""
        self.plain.commit(Replace(replace(claim, version=claim.version + 1, **fields)))
        watch(self.pods.yard.nodes.services, self.pods.yard.cluster.id, begin=True)


def _filled(life: DisruptionLife, *pods: str, **fields: Any) -> list[NodeClaim]:
    """A dynamic pool with a node for each of the pods, given by their cores."""
    life.pods.yard.dynamic_pool(POOL, disruption=NOW, **fields)
    life.pods.waiting = [pod(cpu, app=f"app-{number}") for number, cpu in enumerate(pods)]
    life.pods.run(4)
    claims = life.pods.claims()
    assert len(claims) == len(pods)
    return claims


def _shrunk(life: DisruptionLife, *pods: str) -> None:
    """Large nodes whose pods need little now: a core each, or nothing."""
    only_large = [{"key": "vcluster.com/node-type", "values": [LARGE]}]
    requirements = {} if len(pods) == 1 else {"requirements": only_large}
    _filled(life, *["7500m"] * len(pods), **requirements)
    for number, (name, cpu) in enumerate(zip(sorted(life.pods.on), pods, strict=True)):
        life.pods.on[name] = [pod(cpu, app=f"app-{number}")] if cpu else []


def _drifted(life: DisruptionLife) -> None:
    life.pods.yard.pool("fixed", quantity=3)
    life.pods.run(4)
    for claim in life.pods.claims():
        now = life.pods.yard.nodes.services.now()
        condition = Condition(NOT_DRIFTED, "False", "TemplateChanged", "Changed since the launch: template.", now)
        life.change(claim, conditions=with_condition(claim.conditions, condition))


def _expired(life: DisruptionLife) -> None:
    _filled(life, "1500m", expire_after="1h")
    life.pods.yard.nodes.clock.advance(3600)
    # What comes in its point is young enough for all of the life.


def _interrupted(life: DisruptionLife) -> None:
    (claim,) = _filled(life, "1500m")
    news = interruption.recommend(claim, life.pods.yard.nodes.services.now())
    assert news is not None
    life.plain.commit(Replace(replace(news[0], sequence=news[0].sequence + 1)))
    watch(life.pods.yard.nodes.services, life.pods.yard.cluster.id, begin=True)


def _unready(life: DisruptionLife) -> None:
    (claim,) = _filled(life, "1500m")
    since = life.pods.yard.nodes.services.now()
    life.pods.facts[claim.node_name] = {"ready": "False", "ready_since": since}
    life.pods.yard.nodes.clock.advance(1900)


STORIES: Mapping[str, Story] = {
    "a cheaper node comes": Story(lambda life: _shrunk(life, "1"), (SMALL,)),
    "pods move together": Story(lambda life: _shrunk(life, "1", "1", "1"), (LARGE,), replaced=False),
    "empty nodes": Story(lambda life: _shrunk(life, "", "7500m"), (LARGE,), replaced=False),
    "a static pool that drifted": Story(_drifted, (SMALL,) * 3, fewest=3),
    "a node that is too old": Story(_expired, (SMALL,)),
    "a node that may be taken back": Story(_interrupted, (SMALL,)),
    "a node that is not ready": Story(_unready, (SMALL,), fewest=0, homeless=True),
}
