"""Scenes of a few hours, each made to show one fault, and the mends without which it shows."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Any
from unittest.mock import patch

from agent.stockyard_agent import pod_picture
from stockyard.lifecycle.waiting.unused import GroupMemory
from stockyard.operations.fleet.state import Workload, picture, reported
from stockyard.operations.machines.pending_pods import DETAIL_TYPE
from stockyard.scheduling.packing import row_source
from tests.harness.hours import world
from tests.harness.hours.pods import App, Daemon
from tests.harness.hours.traces import CAPACITY, Trace
from tests.harness.hours.world import Hours
from tests.harness.people import acts
from tests.harness.people.scheduler import SPREAD
from tests.harness.people.traces import PORT, RULES, ZONES

START = datetime(2026, 11, 27, 8, tzinfo=UTC)
Act = Callable[[Hours], None]
POOL: Mapping[str, Any] = {
    "name": "pool",
    "limits": {"nodes": 40},
    "requirements": [{"key": CAPACITY, "operator": "In", "values": ["on-demand"]}],
    "disruption": {"consolidate_after": "30s", "budgets": [{"nodes": "100%"}]},
}


@dataclass(frozen=True)
class Scene:
    """``steps`` are (minutes, deployment, replicas), ``acts`` (minutes, what is done)."""

    apps: Sequence[App]
    steps: Sequence[tuple[float, str, int]]
    acts: Sequence[tuple[float, Act]] = ()
    hours: int = 3
    in_vain: int = 0
    """How many nodes may come and go in vain."""
    slots: int | None = None

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
        return world.run()


def _on_all(act: Callable[[Hours, str, float], None], number: float = 0.7) -> Act:
    def on_all(world: Hours) -> None:
        for name in list(world.kube.nodes):
            act(world, name, number)
            if name in world.kube.nodes:
                world.kube.touch(name)

    return on_all


def _daemon(**fields: Any) -> Act:
    def install(world: Hours) -> None:
        world.kube.daemons["metrics"] = Daemon("metrics", **fields)

    return install


def _bar(world: Hours) -> None:
    world.kube.barred.add("a")


def _delete_young(seconds: float) -> Act:
    """Somebody deletes the first node so soon after its pods have begun."""

    def look(world: Hours) -> None:
        names = [name for name in world.kube.nodes if world.kube.on(name)]
        if names:
            world.time.later(seconds, lambda: world.kube.remove(names[0]))
        else:
            world.time.later(1.0, lambda: look(world))

    return look


def _app(name: str, cpu: int = 700, rule: str = "", **fields: Any) -> App:
    app = App(name, cpu, 256, **fields)
    if rule:
        RULES[rule](app)
    return app


TWO = (_app("a"), _app("b"))
COUNTED_ON = [(0.0, "a", 4), (10.0, "b", 3), (60.0, "a", 1)]
"""The first node is closed when the second app comes, and has room when pods of the first one go."""


def _closed(act: Callable[[Hours, str, float], None]) -> Scene:
    return Scene(TWO, COUNTED_ON, [(10.0, _on_all(act))], hours=4)


@contextmanager
def _without(*patches: Any) -> Iterator[None]:
    with ExitStack() as stack:
        for each in patches:
            stack.enter_context(each)
        yield


def _taints_but(keep: Callable[[Any], bool]) -> Callable[..., Any]:
    real = reported.taints_of
    return lambda claim, facts, *, initialized: tuple(filter(keep, real(claim, facts, initialized=initialized)))


def _promised(self: Any, claim: Any, _facts: Any, *, initialized: bool) -> Any:
    return self.promises.allocatable(claim)


MUTANTS: Mapping[str, tuple[Scene, Callable[[], Any]]] = {
    "a cordoned node is room": (
        _closed(acts._cordon),
        lambda: patch.object(picture, "taints_of", _taints_but(lambda taint: taint.key != reported.UNSCHEDULABLE)),
    ),
    "a tainted node is room": (
        _closed(acts._taint),
        lambda: patch.object(picture, "taints_of", _taints_but(lambda taint: taint.key != "maintenance")),
    ),
    "a smaller node has its room": (
        _closed(acts._shrink),
        lambda: patch.object(picture._Reading, "_allocatable", _promised),
    ),
    "nobody holds back a third node": (
        Scene([_app("a")], [(5.0, "a", 1)], [(1.0, _bar)], in_vain=2),
        lambda: patch.object(GroupMemory, "is_held", property(lambda _: False)),
    ),
    "ports of daemon sets are free": (
        Scene([_app("a", port=PORT)], [(5.0, "a", 1)], [(1.0, _daemon(port=PORT))]),
        lambda: patch.object(row_source, "replace", lambda row, **_: row),
    ),
    "slots for volumes are not counted": (
        Scene([_app("a", cpu=100, rule="late volume")], [(0.0, "a", 1), (10.0, "a", 3)], slots=1),
        lambda: patch.object(picture, "attachable_of", lambda *_: {}),
    ),
    "daemon sets are as large as their templates": (
        Scene([_app("a", cpu=1500)], [(5.0, "a", 1)], [(1.0, _daemon(cpu=1200, template_cpu=100))], in_vain=1),
        lambda: patch.object(pod_picture, "current_pods", lambda *_: {}),
    ),
    "only a report that says something new shows that a node is gone": (
        Scene([_app("a")], [(0.0, "a", 2)], [(0.0, _delete_young(5.0))]),
        lambda: patch.object(Workload, "true_at", property(lambda workload: workload.observed_at)),
    ),
    "reports wake nobody": (
        Scene(TWO, [(0.0, "a", 2), (20.0, "b", 3)]),
        lambda: patch.dict(world._WAKE, {DETAIL_TYPE: lambda _: False}),
    ),
}
