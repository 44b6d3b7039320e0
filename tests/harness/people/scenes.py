"""Scenes of a few hours, each made to show one fault."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Any

from tests.harness.hours.pods import App, Daemon
from tests.harness.hours.traces import ANY_ARCHITECTURE, CAPACITY, SIZES, Trace
from tests.harness.hours.world import Hours
from tests.harness.people import vendor
from tests.harness.people.scheduler import SPREAD
from tests.harness.people.traces import RULES, ZONES

START = datetime(2026, 11, 27, 8, tzinfo=UTC)
Act = Callable[[Hours], None]
POOL: Mapping[str, Any] = {
    "name": "pool",
    "limits": {"nodes": 40},
    "requirements": [{"key": CAPACITY, "operator": "In", "values": ["on-demand"]}, ANY_ARCHITECTURE],
    "disruption": {"consolidate_after": "30s", "budgets": [{"nodes": "100%"}]},
}


@dataclass(frozen=True)
class Scene:
    """``steps`` are (minutes, deployment, replicas), ``acts`` (minutes, what is done)."""

    apps: Sequence[App]
    steps: Sequence[tuple[float, str, int]]
    acts: Sequence[tuple[float, Act]] = ()
    hours: float = 1
    in_vain: int = 0
    """How many nodes may come and go in vain."""
    slots: int | None = None
    nodes_later: tuple[float, int] | None = None
    """After how many minutes there may be only so many nodes; None: any number."""

    def play(self) -> Hours:
        """The hours, when they are over."""
        trace = Trace(1, START, self.hours, SPREAD, people=True, zones=ZONES, slots=self.slots)
        trace.pools = [dict(POOL)]
        trace.apps = [replace(app) for app in self.apps]
        trace.steps = [(60 * minutes + 1, app, replicas) for minutes, app, replicas in self.steps]
        world = Hours(trace)
        world.waits.most_in_vain = self.in_vain
        for minutes, act in self.acts:
            world.time.at(START + timedelta(minutes=minutes), lambda act=act: act(world))  # type: ignore[misc]
        if self.nodes_later is not None:
            world.time.at(START + timedelta(minutes=self.nodes_later[0]), lambda: self._count(world))
        return world.run()

    def _count(self, world: Hours) -> None:
        names, (_, most) = sorted(world.kube.nodes), self.nodes_later or (0.0, 0)
        if len(names) > most:
            world.judge.fault("idle", f"{names} are there, and {most} are enough")


def on_all(act: Callable[[Hours, str, float], None], number: float = 0.7) -> Act:
    def on_each(world: Hours) -> None:
        for name in list(world.kube.nodes):
            act(world, name, number)
            if name in world.kube.nodes:
                world.kube.touch(name)

    return on_each


def daemon(**fields: Any) -> Act:
    def install(world: Hours) -> None:
        world.kube.daemons["metrics"] = Daemon("metrics", **fields)

    return install


def bar(world: Hours) -> None:
    """A webhook refuses the pods of the first app on each node."""
    world.kube.barred.add("a")


def spoil(world: Hours) -> None:
    """A webhook refuses all pods on the nodes of now."""
    world.kube.spoilt |= world.kube.nodes.keys()


def bind_slowly(world: Hours) -> None:
    """Volumes take a quarter of an hour."""
    world.kube.storage.binding = (900.0, 900.0)


def refuse_types(world: Hours) -> None:
    """No type can be had any more."""
    world.refused |= {("sim", size.name, zone) for size in SIZES for zone in ZONES}


def refuse_launches(*names: str) -> Act:
    """The vendor refuses launches of these types for good; of all where none is named."""

    def refuse(world: Hours) -> None:
        vendor.deny(world, frozenset(names or (size.name for size in SIZES)))

    return refuse


def delete_young(seconds: float) -> Act:
    """Somebody deletes the first node so soon after its pods have begun."""

    def look(world: Hours) -> None:
        names = [name for name in world.kube.nodes if world.kube.on(name)]
        if names:
            world.time.later(seconds, lambda: world.kube.remove(names[0]))
        else:
            world.time.later(1.0, lambda: look(world))

    return look


def app(name: str, cpu: int = 700, rule: str = "", **fields: Any) -> App:
    app = App(name, cpu, 256, **fields)
    if rule:
        RULES[rule](app)
    return app
