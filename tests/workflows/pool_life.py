"""A life of a cluster's pools under at most one fault of the table: made, filled, scaled, hurt, deleted, with what is
told of them lost or told twice.

Requests come through the real handler, events and the minute's schedule to the real handler of the passes. Claims are
placed by the scheduler and walked through their workflow documents over a simulated provider.
"""

from __future__ import annotations

import logging
from collections import Counter as Tally
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar
from unittest.mock import patch

from functions.autoscaler.handler import lambda_handler as autoscaler_handler
from functions.pools import handler as pools_handler
from stockyard import wiring
from stockyard.domain.nodes.manifests import ProviderDocument
from stockyard.domain.pools.group_mapping import Group
from stockyard.domain.pools.records import ClusterClaim, Pool
from stockyard.domain.records import Cluster, Counter, Name, NodeClaim, NodeProvider, Outbox
from stockyard.edge.idempotency import LEASE
from stockyard.errors import StockyardError, StoreError, StoreUnavailable
from stockyard.lifecycle.pools.pool import PODS_HAVE_ROOM, POOLS_READY, is_ready, living
from stockyard.operations.clusters import nodes as cluster_nodes
from stockyard.operations.clusters.creation.create import create_cluster
from stockyard.operations.fleet.pools import conditions
from stockyard.operations.fleet.pools.autoscaler import Autoscaler
from stockyard.operations.fleet.pools.pools import claims_of, pools_of
from stockyard.operations.idempotency_keys import IdempotencyKeys
from stockyard.operations.listing import every
from stockyard.operations.machines.pending_pods import DETAIL_TYPE, receive
from stockyard.ports import Create, Remove, Replace, Write
from stockyard.wiring import passes
from tests.harness.crash.faults import Crash, Errors, Fault, Tap
from tests.harness.crash.world import _event
from tests.harness.worlds.inprocess import Context
from tests.harness.worlds.ports import with_ports
from tests.unit.operations.conftest import MemoryProvider, make_world
from tests.unit.operations.nodes import Nodes
from tests.workflows.watched_table import WatchedRegistry, WatchedStore

T = TypeVar("T")
TENANT = "acme"
KIND = {"name": "t3.large", "resources": {"cpu": "2", "memory": "4Gi"}, "usdPerHour": 0.1}
GROUP: dict[str, Any] = {
    "name": "workers",
    "role": "worker",
    "min_size": 1,
    "max_size": 4,
    "instance_types": ["t3.large"],
    "labels": {},
    "taints": [],
    "allocation_strategy": "lowest-price",
    "capacity_type": "on-demand",
}
ROUNDS = 9
"""How many rounds a step may take before it counts as hanging."""
PAUSES = (61, 61, 302, 302, 1801)
"""Seconds between rounds; the last is for all further ones."""
ONCE, TWICE, NEVER = "once", "twice", "never"
"""How often events come after the fault. ``NEVER``: neither they nor the queue's retries of a pass that failed."""
TRIES = 3
"""How often an event is given to a pass that fails, as the queue before a function does."""
ERRORS = Errors(lambda: StoreUnavailable("no answer"), lambda: StoreUnavailable("slow down"), lambda: StoreError("no"))
WAKES: Mapping[str, Callable[[Mapping[str, Any]], bool]] = {
    "Pool": lambda detail: detail["reason"] in ("Created", "Changed", "DeletionRequested"),
    "NodeClaim": lambda detail: (
        "pool" in detail and detail["reason"] not in ("Accepted", "Scheduled", "Provisioned", "Joined")
    ),
    "Cluster": lambda detail: detail["phase"]["after"] == "ready",
    DETAIL_TYPE: lambda detail: "pods" in detail,
}


class Hanging(Exception):
    """A step does not come to its end."""


class Grouping(MemoryProvider):
    """A driver that knows the provider of its clusters' groups."""

    def group_provider(self, cluster: Cluster, group: Group) -> ProviderDocument:
        return ProviderDocument("groups-1", "simulated", {"nodeTypes": [KIND]})

    def group_items(self, *_: Any) -> Any:
        return ()


@dataclass
class PoolLife:
    """``claims_by_pool`` are the claims of each pool that were ever made. ``wrong`` says what went wrong."""

    fault: Fault | None = None
    delivery: str = ONCE
    nodes: Nodes = field(init=False)
    point: str = ""
    step: str = ""
    times_told: str = ONCE
    needed: int = 1
    """How many nodes the group is to have: its floor, or what its pods need."""
    events: list[dict[str, Any]] = field(default_factory=list)
    claims_by_pool: dict[str, list[str]] = field(default_factory=dict)
    wrong: list[str] = field(default_factory=list)
    rounds: Tally[str] = field(default_factory=Tally)
    sites: list[tuple[str, int, int]] = field(default_factory=list)
    """Of each call of the tap: its point, its number within the function's run, and how many writes came before it.
    Calls that have these in common are the same call, made again in the same state."""
    number_in_call: int = 0
    writes: int = 0

    def __post_init__(self) -> None:
        world = make_world()
        self.nodes = Nodes.of(world.registry, world.services, world.clock)
        self.nodes.provider("lab", KIND, block={"launchSeconds": 1, "joinSeconds": 2})
        self.tap = Tap(lambda: self.point, faults=[self.fault] if self.fault else [], on_fault=self._on_fault)
        self.plain = self.nodes.services.store
        self.store = WatchedStore(self.plain, self)
        services = with_ports(self.nodes.services, cluster_drivers={"memory": Grouping()})
        self.nodes.services = replace(services, store=self.store)
        new_cluster = world.new_cluster(settings={"autoscaler_node_groups": [GROUP]})
        self.cluster_id = create_cluster(self.nodes.services, new_cluster, "user:ann")[0].id
        # Its own workflow is none of this life: what it does is said by ``_put``.
        for item in list(every(self.plain, Outbox)):
            if any(kind == "workflow" for kind, _ in item.messages):
                self.plain.commit(Remove(Outbox, item.id))

    def _on_fault(self, _: Fault) -> None:
        self.times_told = self.delivery

    def called(self, name: str, work: Callable[[], T]) -> T:
        """Does a call to the table, or what the fault makes of it."""
        if self.point:
            self.sites.append((self.point, self.number_in_call, self.writes))
            self.number_in_call += 1
        return self.tap.around(f"dynamodb.{name}", work, ERRORS)

    # --- the steps --------------------------------------------------------------------------------------------------

    def run(self) -> list[str]:
        """Every step to its end. What is wrong; empty when nothing is."""
        with self._wired():
            try:
                self._live()
            except (Hanging, AssertionError) as error:
                self.wrong.append(f"{self.step}: {type(error).__name__}: {error}")
        if self.fault is not None and not self.fault.fired:
            self.wrong.append("the fault never came")
        return self.wrong

    def _live(self) -> None:
        self.step = "make"
        body = {"name": "base", "quantity": 2, "provider": "lab", "taints": [{"key": "k", "effect": "NoSchedule"}]}
        self._accepted("POST", "pools", 201, body)
        self._deliver()
        self._due()
        self._put(status="ready")
        self.events.append(self._event("Cluster", phase={"before": "preparing", "after": "ready"}))
        self._until(lambda: self._settled(2))
        self.step = "pods"
        self._report(2)
        self.needed = 2
        self._until(lambda: self._settled(2))
        for step, quantity in (("up", 3), ("down", 1)):
            self.step = step
            self._scale(quantity)
            self._until(lambda quantity=quantity: self._settled(quantity))
            self.step = f"lost after {step}"
            self._lose("base")
            self._lose("workers")
            self._until(lambda quantity=quantity: self._settled(quantity))
        self.step = "delete"
        self._accepted("DELETE", "pools/base", 202, may_be_gone=True)
        self._until(lambda: "base" not in self._pools() and self._settled(0))
        self.step = "end"
        self._put(status="deleting")
        self._until(self._released)
        self.wrong += [f"left: {thing}" for thing in self._leftovers()]

    def _until(self, reached: Callable[[], bool]) -> None:
        for number in range(ROUNDS):
            if number > 1:
                self.tap.lift()
            self._relay()
            self._deliver()
            self._due()
            self.nodes.schedule()
            self._relay()
            self._deliver()
            self.rounds[self.step] += 1
            if reached():
                self._count()
                return
            self.nodes.clock.advance(PAUSES[min(number, len(PAUSES) - 1)])
        raise Hanging(f"{[self._words(pool) for pool in self._pools().values()]} {self._conditions()}")

    def _relay(self) -> None:
        """Work off the outbox: workflows run to their end, events are kept for ``_deliver``."""
        for item in list(every(self.plain, Outbox)):
            self.plain.commit(Remove(Outbox, item.id))
            for kind, message in item.messages:
                if kind == "workflow":
                    self.nodes.run(str(message["workflow"]), message["input"])
                elif WAKES.get(message["detail_type"], lambda _: False)(message["detail"]):
                    self.events.append({"detail-type": message["detail_type"], "detail": message["detail"]})

    def _deliver(self) -> None:
        # All of a burst wake the same pass: the first and the last stand for them.
        burst, self.events = [*self.events[:1], *self.events[1:][-1:]], []
        for event in burst:
            for _ in range({ONCE: 1, TWICE: 2, NEVER: 0}[self.times_told]):
                for _ in range(TRIES):
                    if self._call("pass", event) or self.times_told == NEVER:
                        break

    def _due(self) -> None:
        self._call("due", {})

    def _call(self, point: str, event: dict[str, Any]) -> bool:
        try:
            with self._at(point):
                autoscaler_handler(event, Context("autoscaler", "request"))
        except (Crash, StockyardError):
            return False
        return True

    @contextmanager
    def _at(self, point: str) -> Iterator[None]:
        self.point, self.number_in_call = f"{self.step}: {point}", 0
        try:
            yield
        finally:
            self.point = ""

    def _released(self) -> bool:
        """One run of the phase of the cluster's deletion; the workflow repeats it whatever becomes of it."""
        with suppress(Crash, StockyardError), self._at("release"):
            return cluster_nodes.release(self.nodes.services, self._cluster(), "session").done
        return False

    # --- people and machines ----------------------------------------------------------------------------------------

    def _accepted(self, method: str, path: str, status: int, body: Any = None, *, may_be_gone: bool = False) -> None:
        """A request as a patient client sends it: again with the same key after 5xx, 409, 429 or no answer."""
        answers = []
        for number in range(6):
            if number > 2:
                self.tap.lift()
            answers.append(self._ask(method, path, body))
            if answers[-1] == status or (may_be_gone and answers[-1] == 404 and len(answers) > 1):
                return
            self.nodes.clock.advance(LEASE.total_seconds() + 1)
        raise Hanging(f"{method} {path} is answered with {answers}")

    def _ask(self, method: str, path: str, body: Any, **headers: str) -> int:
        event = _event(method, f"/v1/clusters/{self.cluster_id}/{path}", body, {}, f"{method} {path}")
        event["headers"] |= headers
        try:
            with self._at(method):
                return int(pools_handler.lambda_handler(event, Context("pools", "request"))["statusCode"])
        except Crash:
            return 0

    def _scale(self, quantity: int) -> None:
        """A client that reads the pool again after each answer that is none."""
        for number in range(8):
            if number > 2:
                self.tap.lift()
            pool = self._pools()["base"]
            if pool.quantity == quantity:
                return
            patch_headers = {"if-match": f'"{pool.version}"', "content-type": "application/merge-patch+json"}
            status = self._ask("PATCH", "pools/base", {"quantity": quantity}, **patch_headers)
            assert status in (0, 200, 412, 500, 503), status
            self.nodes.clock.advance(1)
        raise Hanging("the pool is not changed")

    def _report(self, count: int) -> None:
        spec = {"containers": [{"resources": {"requests": {"cpu": "1500m", "memory": "512Mi"}}}]}
        group = {"namespace": "default", "labels": {}, "daemon_set": "", "spec": spec, "volumes": []}
        report = {
            "sequence": 1,
            "base": None,
            "observed_at": self.nodes.services.now(),
            "groups": {"g": group},
            "pending": {"g": {"count": count, "names": ["default/web-1"]}},
            "running": {},
            "daemon_sets": {},
            "omitted": 0,
            "nodes": None,
            "budgets": None,
        }
        assert receive(self.nodes.services, self._cluster(), report).woken

    def _lose(self, name: str) -> None:
        """The oldest node of the pool stops for good; its claim says so, and an event."""
        claim = min(living(claims_of(self.nodes.services, self.cluster_id, name)), key=lambda claim: claim.id)
        failed = replace(claim, phase="Failed", due_at=None, version=claim.version + 1)
        self.plain.commit(Replace(failed))
        self.events.append(self._event("NodeClaim", cluster_id=self.cluster_id, pool=name, reason="MachineLost"))

    def _event(self, detail_type: str, **detail: Any) -> dict[str, Any]:
        return {"detail-type": detail_type, "detail": {"tenant": TENANT, "subject": self.cluster_id, **detail}}

    def _put(self, **fields: Any) -> None:
        cluster = self._cluster()
        self.plain.commit(Replace(replace(cluster, version=cluster.version + 1, **fields)))

    # --- looking ----------------------------------------------------------------------------------------------------

    def _cluster(self) -> Cluster:
        cluster = self.plain.get(Cluster, self.cluster_id)
        assert cluster is not None
        return cluster

    def _pools(self) -> dict[str, Pool]:
        return {pool.name: pool for pool in every(self.plain, Pool)}

    def _conditions(self) -> dict[str, str]:
        return {condition.type: condition.message for condition in self._cluster().conditions}

    def _words(self, pool: Pool) -> str:
        claims = claims_of(self.nodes.services, self.cluster_id, pool.name)
        phases = [claim.phase for claim in claims]
        return f"{pool.name}: {phases}, due {pool.due_at} at {self.nodes.services.now()}, {pool.failures} failures"

    def _settled(self, quantity: int) -> bool:
        """Whether each pool has exactly its nodes, and says so, and the cluster does."""
        wanted_counts = {"base": quantity, "workers": self.needed}
        for pool in pools_of(self.nodes.services, self.cluster_id):
            claims = claims_of(self.nodes.services, self.cluster_id, pool.name)
            if not is_ready(pool) or [claim.phase for claim in claims] != ["Available"] * wanted_counts[pool.name]:
                return False
        kinds = (POOLS_READY, PODS_HAVE_ROOM) if self.step not in ("make",) else (POOLS_READY,)
        shown_conditions = [conditions.of(self._cluster(), kind) for kind in kinds]
        return all(condition is not None and condition.status == "True" for condition in shown_conditions)

    def written(self, writes: tuple[Write, ...]) -> None:
        """Judges a transaction that was written: a claim is made only where one is missing."""
        self.writes += 1
        new = [write.record for write in writes if isinstance(write, Create) and isinstance(write.record, NodeClaim)]
        for claim in new:
            self.claims_by_pool.setdefault(claim.pool, []).append(claim.id)
        for name in {claim.pool for claim in new}:
            point, self.point = self.point, ""
            present, pool = living(claims_of(self.nodes.services, self.cluster_id, name)), self._pools()[name]
            self.point = point
            most = pool.quantity if name == "base" else self.needed
            if len(present) > most:
                self.wrong.append(f"{self.step}: {name} has {len(present)} nodes where {most} are needed")

    def _count(self) -> None:
        """Each claim that was made is counted, has one name and one entry."""
        for pool in self._pools().values():
            claim_ids = self.claims_by_pool.get(pool.name, [])
            if pool.claims_made != len(claim_ids) or len(claim_ids) != len(set(claim_ids)):
                self.wrong.append(
                    f"{self.step}: {pool.name} counts {pool.claims_made} claims, {len(claim_ids)} were made"
                )
        claim_ids = sorted(claim.id for claim in every(self.plain, NodeClaim))
        entries = sorted(entry.claim_id for entry in every(self.plain, ClusterClaim))
        names = sorted(name.owner for name in every(self.plain, Name) if name.id.startswith("node-claim/"))
        if not claim_ids == entries == names:
            self.wrong.append(f"{self.step}: claims {claim_ids}, entries {entries}, names {names}")

    def _leftovers(self) -> list[str]:
        left_over = [f"{kind.__name__} {item.id}" for kind in (Pool, NodeClaim) for item in every(self.plain, kind)]
        left_over += [f"machine {machine.id}" for machine in self.nodes.machines()]
        left_over += [f"provider {each.name}" for each in every(self.plain, NodeProvider) if each.implicit]
        counters = [counter for counter in every(self.plain, Counter) if counter.value]
        return left_over + [f"{each.id} {each.value}" for each in counters if each.id != "quota/clusters"]

    @contextmanager
    def _wired(self) -> Iterator[None]:
        """The functions' ports are this life's."""
        clock, services, registry = self.nodes.clock, self.nodes.services, WatchedRegistry(self.nodes.registry, self)
        with ExitStack() as stack:
            logging.disable(logging.CRITICAL)
            stack.callback(logging.disable, logging.NOTSET)
            function = pools_handler.http
            dependencies = replace(
                function._dependencies, clock=clock.now, randomness=clock.randomness, admit=lambda _: None
            )
            parts: dict[str, Any] = {
                "clock": lambda: clock,
                "services": lambda _: services,
                "store": lambda _: self.store,
                "keys_of": lambda _: IdempotencyKeys(self.store),
            }
            for name, part in parts.items():
                stack.enter_context(patch.object(wiring, name, part))
            autoscaler = Autoscaler(registry, lambda _: services)
            stack.enter_context(patch.object(passes, "autoscaler", lambda: autoscaler))
            stack.enter_context(patch.object(function, "_dependencies", replace(dependencies, keys=wiring.keys_of)))
            stack.enter_context(patch.object(function, "_origin", None))
            yield
