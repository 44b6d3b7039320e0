"""Hours with people: pods with all kinds of rules, several zones, and what somebody does, at least once an hour."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from random import Random
from typing import Any

from tests.harness.people.acts import ACTS
from tests.harness.simulated_hours_pods import LATE, App
from tests.harness.simulated_hours_traces import HOUR, Trace

ZONES = ("zone-a", "zone-b", "zone-c")
HOST, ZONE_KEY, RACK = "kubernetes.io/hostname", "topology.kubernetes.io/zone", "example.test/rack"
"""The last is a label that no node has."""
REQUIRED, PREFERRED = (
    "requiredDuringSchedulingIgnoredDuringExecution",
    "preferredDuringSchedulingIgnoredDuringExecution",
)
PORT, PRIORITY = 8080, 1000
PER_HOUR = 1.3
"""Acts an hour, on average."""


def with_people(trace: Trace) -> Trace:
    """The same hours with people in them. The same number gives the same people."""
    chance = Random(f"people {trace.number}")
    apps, steps = list(trace.apps), list(trace.steps)
    kinds = list(RULES)
    first = trace.number * 5 % len(kinds)
    for place, kind in enumerate((kinds + kinds)[first : first + 5]):
        app = App(f"{kind.replace(' ', '-')}-{place}", chance.choice((100, 250, 500)), chance.choice((128, 256, 512)))
        app.grace, app.begin = chance.choice((1, 5, 25)), chance.choice((5, 20, 60))
        RULES[kind](app)
        apps.append(app)
        most = 1 if app.volume and app.volume != LATE else chance.randint(2, 5)
        seconds = chance.uniform(0, 1800)
        while seconds < trace.hours * HOUR:
            steps.append((seconds, app.name, chance.randint(1, most)))
            seconds += chance.expovariate(1 / (5 * HOUR))
    acts, seconds = [], 0.0
    while (seconds := seconds + chance.expovariate(PER_HOUR / HOUR)) < trace.hours * HOUR:
        acts.append((seconds, chance.choice(sorted(ACTS)), chance.random()))
    slots = chance.choice((None, 2, 3))
    return replace(trace, apps=apps, steps=sorted(steps), acts=acts, zones=ZONES, slots=slots, people=True)


def _selecting(app: App) -> dict[str, Any]:
    return {"labelSelector": {"matchLabels": {"app": app.name}}}


def _spread(key: str, *, hard: bool) -> Callable[[App], None]:
    def change(app: App) -> None:
        how = "DoNotSchedule" if hard else "ScheduleAnyway"
        rule = {"maxSkew": 1, "topologyKey": key, "whenUnsatisfiable": how, **_selecting(app)}
        app.spec = {"topologySpreadConstraints": [rule]}

    return change


def _beside(kind: str, key: str, *, hard: bool) -> Callable[[App], None]:
    def change(app: App) -> None:
        term = {"topologyKey": key, **_selecting(app)}
        terms: dict[str, Any] = {REQUIRED: [term]} if hard else {PREFERRED: [{"weight": 10, "podAffinityTerm": term}]}
        app.spec = {"affinity": {kind: terms}}

    return change


def _on_nodes(key: str, value: str, *, hard: bool) -> Callable[[App], None]:
    def change(app: App) -> None:
        term = {"matchExpressions": [{"key": key, "operator": "In", "values": [value]}]}
        wish = {REQUIRED: {"nodeSelectorTerms": [term]}} if hard else {PREFERRED: [{"weight": 10, "preference": term}]}
        app.spec = {"affinity": {"nodeAffinity": wish}}

    return change


def _set(**fields: Any) -> Callable[[App], None]:
    def change(app: App) -> None:
        for name, value in fields.items():
            setattr(app, name, value)

    return change


RULES: Mapping[str, Callable[[App], None]] = {
    "hard spread": _spread(ZONE_KEY, hard=True),
    "soft spread": _spread(HOST, hard=False),
    "unknown spread": _spread(RACK, hard=False),
    "hard anti": _beside("podAntiAffinity", HOST, hard=True),
    "soft anti": _beside("podAntiAffinity", HOST, hard=False),
    "unknown anti": _beside("podAntiAffinity", RACK, hard=False),
    "hard near": _beside("podAffinity", ZONE_KEY, hard=True),
    "soft near": _beside("podAffinity", HOST, hard=False),
    "hard zone": _on_nodes(ZONE_KEY, ZONES[1], hard=True),
    "soft zone": _on_nodes(ZONE_KEY, ZONES[2], hard=False),
    "unknown zone": _on_nodes(RACK, "r1", hard=False),
    "host port": _set(port=PORT),
    "zone volume": _set(volume=ZONES[0]),
    "late volume": _set(volume=LATE),
    "priority": _set(priority=PRIORITY),
}
"""Rules of pods by a name: each makes the pods of an app so."""
