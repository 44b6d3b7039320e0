"""Faults in simulated hours, and prices that move: each is done to one world at the present moment."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING

from stockyard.domain.models.base import read
from stockyard.domain.models.pools.pools import PoolPatch
from stockyard.domain.records import NodeClaim, NodeProvider
from stockyard.domain.values import times
from stockyard.errors import StockyardError
from stockyard.lifecycle.nodes import interruption
from stockyard.operations.engine.tell import tell
from stockyard.operations.engine.watch import watch
from stockyard.operations.fleet.pools import pools as pool_operations
from stockyard.operations.node_claims import lost_machines
from stockyard.operations.node_claims.delete import give_back
from stockyard.ports import Replace
from tests.harness.crash.faults import Crash
from tests.harness.hours.passes import attempt, compare
from tests.harness.hours.traces import (
    DIED,
    DRIFT,
    NO_CAPACITY,
    RECOMMENDED,
    SILENT_AGENT,
    SILENT_NODE,
    SIZES,
    WARNED,
)

if TYPE_CHECKING:
    from tests.harness.hours.world import Hours

USER = "user:ann"
POST_SECONDS = 5
"""How soon a machine posts again what nobody has taken."""
NOTICE = 120.0
"""Seconds from a spot warning to the end of the machine."""


def strike(world: Hours, kind: str, number: float) -> None:
    """One fault; ``number`` from 0 to 1 says whom it hits, and how hard."""
    world.judge.counts[f"fault {kind}"] += 1
    if kind == SILENT_AGENT:
        world.agent.be_silent(world.clock.now() + timedelta(minutes=2 + 180 * number**2))
    elif kind == NO_CAPACITY:
        refuse(world, number)
    elif kind == DRIFT:
        drift(world, number)
    elif (claim := _victim(world, number)) is not None:
        if kind == DIED:
            die(world, claim, number)
        elif kind == SILENT_NODE:
            world.kube.silence(claim.node_name)
            world.time.later(
                60 + 5000 * number, lambda: world.kube.wake(claim.node_name) if _runs(world, claim) else None
            )
        elif kind == WARNED:
            warn(world, claim)
        elif kind == RECOMMENDED:
            recommend(world, claim)


def _victim(world: Hours, number: float) -> NodeClaim | None:
    nodes = sorted(
        (claim for claim in world.claims.values() if claim.phase == "Available" and not claim.deleting),
        key=lambda claim: (claim.created_at, claim.id),
    )
    return nodes[int(number * len(nodes))] if nodes else None


def _runs(world: Hours, claim: NodeClaim) -> bool:
    return claim.machine_id in world.machines


def die(world: Hours, claim: NodeClaim, number: float) -> None:
    """The machine ends by itself; a sweep finds out some time later."""
    machine = world.machines.get(str(claim.machine_id))
    if machine is None:
        return
    world.kube.silence(claim.node_name)
    world.end_machine(machine)

    def find_out() -> None:
        attempt(world, "others", lambda: lost_machines.note(world.services, claim.id))

    world.time.later(300 + 3000 * number, find_out)


def warn(world: Hours, claim: NodeClaim) -> None:
    """The cloud takes the machine back in two minutes, and its machine tells of it."""
    ends_at = times.to_text(world.clock.now() + timedelta(seconds=NOTICE))

    def post() -> None:
        current = world.claims.get(claim.id)
        news = interruption.interrupt(current, ends_at, world.services.now()) if current is not None else None
        if news is None:
            return
        try:
            with world.within("cloud"):
                give_back(world.services, news[0], f"node:{claim.name}", news[1])
        except (Crash, StockyardError):
            world.time.later(POST_SECONDS, post)

    post()
    machine = world.machines.get(str(claim.machine_id))
    if machine is not None:

        def end() -> None:
            if machine.id in world.machines:
                world.kube.silence(claim.node_name)
                world.end_machine(machine)

        world.time.later(NOTICE, end)


def recommend(world: Hours, claim: NodeClaim) -> None:
    """The cloud says that it may take the machine back soon."""
    news = interruption.recommend(claim, world.services.now())
    if news is None:
        return
    changed = replace(news[0], sequence=news[0].sequence + 1)
    world.services.store.commit(Replace(changed), *tell(world.services, f"node:{claim.name}", changed, news[1]))
    watch(world.services, changed.cluster_id, begin=True)


def refuse(world: Hours, number: float) -> None:
    """Some types cannot be had for a while."""
    ways = {
        ("sim", size.name, zone)
        for index, size in enumerate(SIZES)
        if (index * 7 + int(number * 1000)) % 3 == 0
        for zone in world.trace.zones
    }
    world.refused |= ways
    world.time.later(600 + 7200 * number, lambda: world.refused.difference_update(ways))


def drift(world: Hours, number: float) -> None:
    """Somebody gives a pool another label, so that all of its nodes are out of date."""
    pools = sorted(world.pools.values(), key=lambda pool: pool.id)
    pool = pools[int(number * len(pools))]
    patch = read(PoolPatch, {"labels": {"release": f"r{int(number * 1000)}"}})
    attempt(
        world,
        "others",
        lambda: pool_operations.change_pool(
            world.services, world.cluster, pool, pool.version, patch.apply_to(pool), USER, "request"
        ),
    )


def move_prices(world: Hours, factor: Mapping[str, float]) -> None:
    """From now on spot prices are these parts of what they were at first; the provider's document says so."""
    world.factor = factor
    current = world.services.store.get(NodeProvider, world.provider.id)
    if current is None:
        raise StockyardError("the provider is gone")
    spec = {"simulated": world.block()}
    changed = replace(current, spec=spec, version=current.version + 1, updated_at=world.services.now())
    world.services.store.commit(Replace(changed))
    compare(world)
