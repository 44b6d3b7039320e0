"""Hours with people: pods with all kinds of rules, several zones, and what somebody does, at least once an hour."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from random import Random
from typing import Any

from tests.harness.hours.pods import LATE, App
from tests.harness.hours.traces import HOUR, Trace
from tests.harness.people import vendor
from tests.harness.people.acts import ACTS, CLAIMING, URGENT

ZONES = ("zone-a", "zone-b", "zone-c")
HOST, ZONE_KEY, RACK = "kubernetes.io/hostname", "topology.kubernetes.io/zone", "example.test/rack"
"""The last is a label that no node has."""
REQUIRED, PREFERRED = (
    "requiredDuringSchedulingIgnoredDuringExecution",
    "preferredDuringSchedulingIgnoredDuringExecution",
)
PORT, PRIORITY = 8080, 1000
SECOND_ACT = 0.4
"""In how many of the hours a second act is done, beside the one of each hour."""
KINDS_OF_PODS = 4
"""Of so many rules there are pods in each trace."""


def with_people(trace: Trace) -> Trace:
    """The same hours with people in them. The same number gives the same people."""
    chance = Random(f"people {trace.number}")
    apps, steps = list(trace.apps), list(trace.steps)
    kinds = list(RULES)
    first = trace.number * KINDS_OF_PODS % len(kinds)
    chosen_kinds = (kinds + kinds)[first : first + KINDS_OF_PODS]
    rules = {f"{kind.replace(' ', '-')}-{index}": RULES[kind] for index, kind in enumerate(chosen_kinds)}
    for name, rule in (rules | {URGENT: RULES["priority"], CLAIMING: RULES["late volume"]}).items():
        app = App(name, chance.choice((100, 250, 500)), chance.choice((128, 256, 512)))
        app.grace, app.begin = chance.choice((1, 5, 25)), chance.choice((5, 20, 60))
        rule(app)
        apps.append(app)
        most = 1 if app.volume and app.volume != LATE else chance.randint(2, 5)
        seconds = chance.uniform(0, 1800)
        while seconds < trace.hours * HOUR:
            steps.append((seconds, app.name, chance.randint(1, most)))
            seconds += chance.expovariate(1 / (5 * HOUR))
    slots = chance.choice((None, 2, 3))
    acts = sorted([*_acts(chance, int(trace.hours)), *vendor.refusals(trace.number, trace.hours)])
    return replace(trace, apps=apps, steps=sorted(steps), acts=acts, zones=ZONES, slots=slots, people=True)


def _acts(chance: Random, hours: int) -> Iterator[tuple[float, str, float]]:
    """One or two in each hour; no kind comes again before all others have come."""
    deck: list[str] = []
    for hour in range(hours):
        for _ in range(1 + (chance.random() < SECOND_ACT)):
            if not deck:
                deck = chance.sample(sorted(ACTS), len(ACTS))
            yield (hour + chance.random()) * HOUR, deck.pop(), chance.random()


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
