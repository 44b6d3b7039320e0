"""The mends without which the judge of hours with people finds something, each with the scene that shows it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from typing import Any
from unittest.mock import patch

from agent.stockyard_agent.cluster import daemon_sets, pod_state, pods
from stockyard.domain.pools.disruption_records import ClusterDisruption, hold_key
from stockyard.lifecycle.disruption import vanished
from stockyard.lifecycle.pools import pool
from stockyard.lifecycle.waiting.unused import GroupMemory
from stockyard.operations.fleet import explain, templates
from stockyard.operations.fleet.disruption import carry_out, hopeless
from stockyard.operations.fleet.disruption.give_up import HOLD_SECONDS
from stockyard.operations.fleet.pools import plan, unused_room
from stockyard.operations.fleet.state import PendingGroup, Workload, fleet_nodes, reported
from stockyard.operations.machines import pending_pods
from stockyard.operations.node_claims import phases
from stockyard.operations.scheduler import claim_reader
from stockyard.scheduling.packing import model, row_source
from stockyard.scheduling.packing import reasons as packing_reasons
from stockyard.scheduling.packing.classes import Level
from stockyard.scheduling.packing.model import Settings
from tests.harness.hours.world import Hours
from tests.harness.people import acts
from tests.harness.people.scenes import (
    POOL,
    Scene,
    app,
    bar,
    bind_slowly,
    daemon,
    delete_young,
    on_all,
    refuse_launches,
    refuse_types,
    spoil,
)
from tests.harness.people.traces import PORT

TWO = (app("a"), app("b"))
COUNTED_ON = [(0.0, "a", 4), (10.0, "b", 3), (60.0, "a", 1)]
"""The first node is closed when the second app comes, and has room when pods of the first one go."""


def _closed(act: Callable[[Hours, str, float], None]) -> Scene:
    return Scene(TWO, COUNTED_ON, [(10.0, on_all(act))], hours=1.2)


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


def _silence(world: Hours, name: str, _: float) -> None:
    world.kube.silence(name, "False")


def _reading_without_nominated(workload: Workload, *more: Any) -> Any:
    return _READING(replace(workload, nominated={}), *more)


def _holds_of_all(record: ClusterDisruption, _types: Iterable[str] = ()) -> dict[str, int]:
    return {hold_key(record.reason, str(POOL["name"])): HOLD_SECONDS}


def _preferring(**fields: Any) -> Settings:
    return Settings(**{**fields, "preferred_nodes": True})


_READING = fleet_nodes._Reading
FAILED = Scene(
    (app("a", cpu=7500), app("b", cpu=7500), app("c", cpu=300), app("d", cpu=150)),
    [(0.0, "a", 1), (1.5, "c", 1), (5.0, "b", 1), (6.5, "d", 1), (20.0, "a", 0), (24.0, "b", 0)],
    [(15.0, refuse_types)],
    nodes_later=(29.0, 1),
)
"""A node could be replaced by a smaller one, but none can be had; later another node could leave without."""
REFUSED_REPLACEMENT = replace(FAILED, acts=[(15.0, refuse_launches())], nodes_later=(39.0, 1))
"""The same where the vendor refuses the launch for good."""
FOUR_REFUSED = Scene([app("a")], [(2.0, "a", 2)], [(1.0, refuse_launches("c-2", "m-2", "c-4", "m-4"))], hours=0.5)
"""The fifth type can be had."""


def _hopeless(*arguments: Any, **fields: Any) -> Any:
    return _CHEAPEST(*arguments, **{**fields, "ahead": False})


_CHEAPEST = explain.cheapest

MUTANTS: Mapping[str, tuple[Scene, Callable[[], Any]]] = {
    "a cordoned node is room": (
        _closed(acts._cordon),
        lambda: patch.object(fleet_nodes, "taints_of", _taints_but(lambda taint: taint.key != reported.UNSCHEDULABLE)),
    ),
    "a tainted node is room": (
        _closed(acts._taint),
        lambda: patch.object(fleet_nodes, "taints_of", _taints_but(lambda taint: taint.key != "maintenance")),
    ),
    "a smaller node has its room": (
        _closed(acts._shrink),
        lambda: patch.object(fleet_nodes._Reading, "_allocatable", _promised),
    ),
    "nobody holds back a third node": (
        Scene([app("a")], [(5.0, "a", 1)], [(1.0, bar)], hours=0.4, in_vain=2),
        lambda: patch.object(GroupMemory, "is_held", property(lambda _: False)),
    ),
    "ports of daemon sets are free": (
        Scene([app("a", port=PORT)], [(5.0, "a", 1)], [(1.0, daemon(port=PORT))]),
        lambda: patch.object(row_source, "replace", lambda row, **_: row),
    ),
    "slots for volumes are not counted": (
        Scene([app("a", cpu=100, rule="late volume")], [(0.0, "a", 1), (10.0, "a", 3)], slots=1),
        lambda: patch.object(fleet_nodes, "attachable_of", lambda *_: {}),
    ),
    "daemon sets are as large as their templates": (
        Scene([app("a", cpu=1500)], [(5.0, "a", 1)], [(1.0, daemon(cpu=1200, template_cpu=100))], in_vain=1),
        lambda: patch.object(pod_state, "current_pods", lambda *_: {}),
    ),
    "a daemon set is as small again as before when its newest pod is gone": (
        Scene(
            (app("a", cpu=7500), app("b")),
            [(2.0, "b", 1), (15.0, "a", 1)],
            [(1.0, daemon(cpu=100)), (10.0, daemon(cpu=1200, template_cpu=100))],
            in_vain=1,
        ),
        lambda: patch.object(daemon_sets.NewestPods, "with_gone_pods", lambda _, daemons, *__: daemons),
    ),
    "only a report that says something new shows that a node is gone": (
        Scene([app("a")], [(0.0, "a", 2)], [(0.0, delete_young(5.0))]),
        lambda: patch.object(Workload, "true_at", property(lambda workload: workload.observed_at)),
    ),
    "reports wake nobody": (
        Scene(TWO, [(0.0, "a", 2), (20.0, "b", 3)]),
        lambda: patch.object(pending_pods, "_more_wait", lambda *_: False),
    ),
    "a node that is not ready counts": (
        Scene(TWO, [(0.0, "a", 2), (10.5, "b", 1)], [(10.0, on_all(_silence))]),
        lambda: patch.object(fleet_nodes, "_unschedulable_reason", lambda *_, **__: None),
    ),
    "a deleted node is room": (
        Scene(TWO, [(0.0, "a", 2), (10.2, "b", 1)], [(10.0, on_all(acts._delete))]),
        lambda: _without(
            patch.object(fleet_nodes, "has_vanished", lambda *_: False), patch.object(vanished, "to_end", lambda *_: ())
        ),
    ),
    "a claim whose node is deleted stays": (
        Scene([app("a")], [(0.0, "a", 2)], [(10.0, on_all(acts._delete))]),
        lambda: patch.object(vanished, "to_end", lambda *_: ()),
    ),
    "nominated pods keep no room": (
        Scene(
            (*TWO, app("late", cpu=2000, rule="late volume")),
            [(0.0, "a", 4), (10.0, "b", 3), (60.0, "late", 1), (60.0, "a", 1)],
            [(10.0, on_all(acts._cordon)), (50.0, bind_slowly)],
            hours=1.2,
        ),
        lambda: patch.object(fleet_nodes, "_Reading", _reading_without_nominated),
    ),
    "preferred rules over unknown label keys keep pods out": (
        Scene([app("a", rule="unknown spread")], [(5.0, "a", 2)]),
        lambda: patch.object(Level, "needs", lambda *_: True),
    ),
    "room that pods do not use is believed": (
        Scene(TWO, [(0.0, "a", 1), (10.0, "b", 1)], [(9.0, spoil)]),
        lambda: patch.object(GroupMemory, "distrusted", lambda *_: ()),
    ),
    "nothing is said of room that pods do not use": (
        Scene(TWO, [(0.0, "a", 2), (5.0, "a", 3)], [(1.0, bar)], in_vain=2),
        lambda: patch.object(unused_room, "remarks", lambda *_: unused_room.Remarks()),
    ),
    "what the scheduler says is not told": (
        Scene(TWO, [(0.0, "a", 2), (5.0, "a", 3)], [(1.0, bar)], in_vain=2),
        lambda: patch.object(PendingGroup, "scheduler_text", property(lambda _: "")),
    ),
    "gated pods make nodes": (
        Scene((app("a"), app("b", gated=True)), [(0.0, "a", 1), (5.0, "b", 4)], hours=0.15, nodes_later=(7.0, 1)),
        lambda: patch.object(pods, "waits", lambda pod: "nodeName" not in pod["spec"]),
    ),
    "preferences buy nodes": (
        Scene([app("a", cpu=100, rule="soft spread")], [(0.0, "a", 4)], nodes_later=(2.0, 1)),
        lambda: patch.object(model, "Settings", _preferring),
    ),
    "a decision waits for a replacement that has failed": (
        FAILED,
        lambda: patch.object(hopeless, "_lost_replacement", lambda *_: None),
    ),
    "a failed replacement holds the pool": (
        FAILED,
        lambda: patch.object(carry_out, "failed_holds", _holds_of_all),
    ),
    "a refused replacement holds the pool": (
        REFUSED_REPLACEMENT,
        lambda: patch.object(carry_out, "failed_holds", _holds_of_all),
    ),
    "a decision waits for a replacement that the vendor refuses": (
        REFUSED_REPLACEMENT,
        lambda: patch.object(hopeless, "_lost_replacement", lambda *_: None),
    ),
    "types without an image are placed": (
        Scene([app("a")], [(0.0, "a", 1)], hours=0.02),
        lambda: _without(
            patch.object(templates, "images_of", lambda *_: ({}, {})),
            patch.object(claim_reader, "images_of", lambda *_: ({}, {})),
        ),
    ),
    "a type whose launch is refused is not remembered": (
        FOUR_REFUSED,
        lambda: patch.object(phases, "_remember_refusal", lambda *_: None),
    ),
    "a pool pauses longer after each other type that is refused": (
        FOUR_REFUSED,
        lambda: patch.object(pool, "OTHER_TYPES", 1),
    ),
    "refused types are not named": (
        Scene([app("a", cpu=6000)], [(2.0, "a", 1)], [(1.0, refuse_launches("c-8", "m-8"))], hours=0.2),
        lambda: patch.object(packing_reasons, "_by_unavailable", lambda *_: iter(())),
    ),
    "a pool that is made while its cluster is prepared is hopeless": (
        Scene([app("a")], [(0.0, "a", 1)], hours=0.05),
        lambda: patch.object(plan, "cheapest", _hopeless),
    ),
}
