"""Passes of the product over a simulated cluster, each of which a timer of that name begins."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from stockyard.errors import StockyardError
from stockyard.operations.fleet.disruption.disruptor import Disruptor
from stockyard.operations.fleet.pools.autoscaler import Autoscaler
from stockyard.operations.scheduler.wake import Scheduler
from tests.harness.crash.faults import Crash
from tests.harness.hours.timeline import MINUTE

if TYPE_CHECKING:
    from tests.harness.hours.world import Hours

RETRY_SECONDS = 30.0
"""When a pass that died is run again."""


def attempt(world: Hours, name: str, work: Callable[[], Any]) -> bool:
    """Whether a pass, or what somebody else does, came to its end; a refusal is theirs."""
    with world.within(name):
        try:
            work()
        except (Crash, StockyardError) as error:
            world.passes[f"{name} {type(error).__name__}"] += 1
            return False
    return True


def compare(world: Hours) -> None:
    """Look at claims again whose provider has changed."""
    attempt(world, "scheduler", lambda: _scheduler(world).compare([(world.services.tenant, world.provider.id)]))


def _autoscaler(world: Hours) -> Autoscaler:
    return Autoscaler(world.registry, lambda _: world.services)


def _scheduler(world: Hours) -> Scheduler:
    return Scheduler(world.registry, lambda _: world.services)


def _woken(world: Hours) -> None:
    if not attempt(world, "pools", lambda: _autoscaler(world).woken(world.services.tenant, world.cluster.id)):
        world.time.soon("woken", RETRY_SECONDS)
    world.judge.grown()


def _pools(world: Hours) -> None:
    world.agent.make_up()
    attempt(world, "pools", lambda: _autoscaler(world).due(world.clock.now()))
    world.judge.grown()


def _place(world: Hours) -> None:
    attempt(world, "scheduler", lambda: _scheduler(world).overdue(world.clock.now() + timedelta(milliseconds=1)))
    if any(claim.due_at is not None for claim in world.claims.values()):
        world.time.timer("place", world.clock.now() + MINUTE)


def _look(world: Hours) -> None:
    world.agent.make_up()
    world.going.clear()
    attempt(world, "disruption", lambda: Disruptor(world.registry, lambda _: world.services).due(world.clock.now()))
    if world.going:
        world.judge.depart(world.going)
    world.judge.grown()


def _report(world: Hours) -> None:
    world.agent.report()


def _post(world: Hours) -> None:
    world.agent.post()


TIMERS: Mapping[str, Callable[[Hours], None]] = {
    "woken": _woken,
    "pools": _pools,
    "place": _place,
    "look": _look,
    "report": _report,
    "post": _post,
}
"""What is done when a timer ends, by its name."""
