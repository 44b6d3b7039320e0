"""Changes of a ready cluster in a life that may be crashed: a person sends a patch until it is taken, and resumes what
has failed."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import Any
from unittest.mock import patch

from stockyard import wiring
from stockyard.domain.records import Cluster, Operation
from stockyard.errors import StockyardError
from stockyard.lifecycle.change_phases import CHANGES
from stockyard.operations.fleet.pools.reconcile import reconcile
from tests.harness.crash.faults import Crash
from tests.harness.crash.world import TENANT, CrashWorld

PLACE, RESUME = "change", "resume_change"
ROUNDS = 12
STUCK_SECONDS = 1801


class Unchanged(Exception):
    """A change does not come to its end."""


def make(world: CrashWorld, patches: Sequence[Mapping[str, Any]], carry_on: Callable[[CrashWorld], None]) -> list[str]:
    """Change the ready cluster by these patches, one after the other. What is wrong afterwards."""
    wrong: list[str] = []
    with _passes(world):
        for number, body in enumerate(patches, 1):
            operation_id = _sent(world, body, number)
            wrong += _carried_out(world, operation_id, carry_on)
    return wrong


@contextmanager
def _passes(world: CrashWorld) -> Iterator[None]:
    """While a workflow waits for pools to leave, passes look at them."""
    advance = world.clock.advance

    def looked_at(seconds: float) -> Any:
        moment = advance(seconds)
        executions = world.states.executions.values()
        if any(each.running and each.state.startswith("surplus") for each in executions):
            with suppress(Crash, StockyardError):
                reconcile(wiring.services(TENANT), _cluster(world).id)
        return moment

    with patch.object(world.clock, "advance", looked_at):
        yield


def _sent(world: CrashWorld, body: Mapping[str, Any], number: int) -> str:
    """The operation that carries out the patch. Sent again, it may find that the first one did begin it."""
    for attempt in range(6):
        before = _cluster(world)
        status, answer = world.patch(PLACE, f"/v1/clusters/{before.id}", body, before.version)
        after = _cluster(world)
        if status == 202 or len(_changes(world)) == number:
            return str(after.operation_id)
        if attempt > 2:
            world.tap.lift()
        world.clock.advance(61)
    raise Unchanged(f"the patch is refused: {status} {answer}")


def _carried_out(world: CrashWorld, operation_id: str, carry_on: Callable[[CrashWorld], None]) -> list[str]:
    for _ in range(ROUNDS):
        carry_on(world)
        operation = world.store.get(Operation, operation_id)
        if operation.status == "succeeded":
            return _wrong(world)
        if operation.status == "failed":
            world.repair()
            world.ask(RESUME, "POST", f"/v1/clusters/{_cluster(world).id}/resume", {})
            continue
        world.clock.advance(STUCK_SECONDS)
        world.reap()
    raise Unchanged(f"the change does not end: {operation}")


def _wrong(world: CrashWorld) -> list[str]:
    cluster = _cluster(world)
    conditions = {condition.type: condition.status for condition in cluster.conditions}
    well = cluster.status == "ready" and conditions.get("Degraded") != "True"
    wrong = [] if well else [f"the cluster is {conditions}"]
    return [*wrong, *world.cloud.differences(cluster)]


def _changes(world: CrashWorld) -> list[Operation]:
    return [operation for operation in world.store.list(Operation, limit=200).items if operation.kind in CHANGES]


def _cluster(world: CrashWorld) -> Cluster:
    cluster = world.cluster()
    if cluster is None:
        raise Unchanged("the cluster is gone")
    return cluster
