"""The level ``hours``: hours of a cluster under the product's own passes in virtual time, with acts of people."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

from stockyard.domain.values.quantities import milli
from tests.conformance.bug_levels.reading import Json, Unreadable, check_fields, counts, judge, names_of
from tests.harness.hours.cluster import STYLES
from tests.harness.hours.pods import App
from tests.harness.hours.traces import CAPACITY, Trace
from tests.harness.hours.world import Hours

FIELDS = frozenset({"trace"})
START = datetime(2026, 11, 27, 8, tzinfo=UTC)
LOST_AFTER = timedelta(minutes=10)
"""Longer than a node takes to come. A pod that was evicted and has no place by then has lost it."""
ALL = "all nodes"
_TRACE = frozenset({"hours", "pool", "pools", "apps", "steps", "style"})
_POOL = frozenset(
    {"name", "capacity_type", "consolidate_after", "consolidation_policy", "budget", "budgets", "limits", "floor"}
)
_APP = frozenset({"name", "cpu", "memory", "alone", "least"})
_MIB = 1000 * 2**20
_OWN_DISTURBANCE = ("", "fault")
"""Pods that are new, or that came in the place of those that were lost with their machine."""


def play(case: Mapping[str, Json]) -> None:
    """Play one case. Raises ``Different`` or ``Unreadable``."""
    played = Played(case["trace"])
    played.hours.run()
    judge(
        case["expected"],
        {
            "pods_pending_at_end": counts(lambda: len(played.hours.kube.pending())),
            "running_pods_lost": counts(lambda: len(played.lost)),
            "nodes_at_end": counts(lambda: len(played.hours.kube.nodes)),
        },
    )


class Played:
    """The hours of a trace, in which people act."""

    def __init__(self, document: Mapping[str, Json]) -> None:
        check_fields("trace", document, _TRACE)
        pools = document.get("pools") or [document.get("pool", {})]
        trace = Trace(1, START, document["hours"], document.get("style", STYLES[0]))
        trace.pools = [_pool(pool, number) for number, pool in enumerate(pools)]
        trace.apps = [_app(app) for app in document["apps"]]
        self.lost: set[str] = set()
        self.hours = Hours(trace)
        for step in document["steps"]:
            self._plan(step)
        for minute in range(document["hours"] * 60):
            self.hours.time.at(START + timedelta(minutes=minute, seconds=59), self._count)

    def _plan(self, step: Mapping[str, Json]) -> None:
        (kind, value), *more = [(kind, value) for kind, value in step.items() if kind != "at_minutes"] or [("", None)]
        if more or (kind != "replicas" and kind not in ACTS):
            raise Unreadable(f"unknown step {', '.join(step)}")
        seconds = 60.0 * step["at_minutes"]
        if kind == "replicas":
            self.hours.trace.steps += [(seconds, app, count) for app, count in value.items()]
            return
        self.hours.time.at(START + timedelta(seconds=seconds), lambda: self._act(kind, value))

    def _act(self, kind: str, value: Json) -> None:
        kube = self.hours.kube
        details = dict(value) if isinstance(value, Mapping) else {"node": value}
        for name in self._nodes(details.pop("node", ALL)):
            ACTS[kind](self.hours, name, details)
        kube.changed = True
        kube.schedule()

    def _nodes(self, selection: Json) -> list[str]:
        kube = self.hours.kube
        if selection == ALL:
            return list(kube.nodes)
        node_names = []
        for text in names_of(selection):
            app = text.removeprefix("node of ")
            nodes = [pod["spec"]["nodeName"] for pod in kube.of(app) if "nodeName" in pod["spec"]]
            if app == text or not nodes:
                raise Unreadable(f"{text!r} is not {ALL!r} and no node of a pod that runs")
            node_names.append(nodes[0])
        return node_names

    def _count(self) -> None:
        now = self.hours.clock.now()
        for pod in self.hours.kube.pending():
            if pod["disturbed"] not in _OWN_DISTURBANCE and now - pod["created"] > LOST_AFTER:
                self.lost.add(pod["metadata"]["uid"])


def _cordon(hours: Hours, name: str, _: Mapping[str, Json]) -> None:
    hours.kube.nodes[name]["spec"]["unschedulable"] = True


def _uncordon(hours: Hours, name: str, _: Mapping[str, Json]) -> None:
    hours.kube.nodes[name]["spec"].pop("unschedulable", None)


def _taint(hours: Hours, name: str, details: Mapping[str, Json]) -> None:
    taint = {"key": "maintenance", "effect": "NoSchedule", **details}
    hours.kube.nodes[name]["spec"]["taints"] = [*hours.kube.nodes[name]["spec"]["taints"], taint]


def _untaint(hours: Hours, name: str, details: Mapping[str, Json]) -> None:
    spec = hours.kube.nodes[name]["spec"]
    spec["taints"] = [taint for taint in spec["taints"] if taint["key"] != details.get("key", "maintenance")]


def _silence(hours: Hours, name: str, _: Mapping[str, Json]) -> None:
    hours.kube.silence(name)


def _wake(hours: Hours, name: str, _: Mapping[str, Json]) -> None:
    hours.kube.wake(name)


def _delete(hours: Hours, name: str, _: Mapping[str, Json]) -> None:
    hours.kube.remove(name)


ACTS: Mapping[str, Callable[[Hours, str, Mapping[str, Json]], None]] = {
    "cordon": _cordon,
    "uncordon": _uncordon,
    "taint": _taint,
    "untaint": _untaint,
    "not_ready": _silence,
    "ready": _wake,
    "delete_node": _delete,
}
"""What people do to a node, by the name of the step."""


def _pool(document: Mapping[str, Json], number: int) -> dict[str, Any]:
    check_fields("pool", document, _POOL)
    kinds = document.get("capacity_type", "on-demand")
    budgets = document.get("budgets", [{"nodes": document["budget"]}] if "budget" in document else None)
    disruption = {
        "consolidate_after": document.get("consolidate_after", "0s"),
        "consolidation_policy": document.get("consolidation_policy", "WhenEmptyOrUnderutilized"),
    }
    return {
        "name": document.get("name", f"pool-{number}"),
        "floor": document.get("floor", 0),
        "limits": document.get("limits", {"nodes": 40}),
        "requirements": [{"key": CAPACITY, "operator": "In", "values": names_of(kinds)}],
        "disruption": disruption if budgets is None else {**disruption, "budgets": budgets},
    }


def _app(document: Mapping[str, Json]) -> App:
    check_fields("app", document, _APP)
    app = App(document["name"], milli(document["cpu"]), milli(document["memory"]) // _MIB)
    app.alone, app.least = bool(document.get("alone", False)), document.get("least")
    return app
