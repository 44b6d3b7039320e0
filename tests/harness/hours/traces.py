"""Events of a cluster in some hours, from a number: its pools, pods that come and go, faults, prices.

The same number gives the same hours, whatever the policy is under which they pass.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from random import Random
from typing import Any
from zoneinfo import ZoneInfo

from tests.harness.hours.cluster import STYLES
from tests.harness.hours.pods import App

CHANGES: Mapping[str, Sequence[str]] = {
    "Europe/Berlin": ("2026-03-29T01:00", "2026-10-25T01:00"),
    "America/New_York": ("2026-03-08T07:00", "2026-11-01T06:00"),
    "Australia/Lord_Howe": ("2026-04-04T15:00", "2026-10-03T15:30"),
    "Asia/Kolkata": ("2026-03-29T01:00", "2026-10-25T01:00"),
    "America/Santiago": ("2026-04-05T03:00", "2026-09-06T04:00"),
}
"""Five zones, and when their clocks are changed, in UTC. In Kolkata they never are."""
CAPACITY = "karpenter.sh/capacity-type"
ANY_ARCHITECTURE = {"key": "kubernetes.io/arch", "operator": "NotIn", "values": ["none"]}
"""Also types that tell none; without it a pool has those of amd64."""
HOUR = 3600.0
ZONE = "zone-a"
DIED, WARNED, RECOMMENDED, SILENT_NODE, SILENT_AGENT, NO_CAPACITY, DRIFT = (
    "died", "warned", "recommended", "silent node", "silent agent", "no capacity", "drift"
)  # fmt: skip
"""Faults, and a change of a pool that makes all of its nodes drift."""


@dataclass(frozen=True)
class Size:
    """A node type: thousandths of a core, MiB, USD an hour on demand and as spot."""

    name: str
    cpu: int
    mib: int
    usd: float
    spot: float

    def entry(self, factor: Mapping[str, float], zones: Sequence[str]) -> dict[str, Any]:
        """As a provider's document has it; ``factor`` are those of spot prices by type."""
        return {
            "name": self.name,
            "resources": {"cpu": f"{self.cpu}m", "memory": f"{self.mib}Mi"},
            "usdPerHour": self.usd,
            "spotUsdPerHour": round(self.spot * factor.get(self.name, 1.0), 6),
            "zones": list(zones),
        }


SIZES = tuple(
    Size(f"{family}-{cores}", 1000 * cores, 1024 * gib * cores, round(usd * cores * (1.04 if cores == 2 else 1.0), 4),
         round(spot * cores, 4))
    for family, gib, usd, spot in (("c", 2, 0.0425, 0.017), ("m", 4, 0.048, 0.0165))
    for cores in (2, 4, 8)
)  # fmt: skip
SHAPES = ((100, 256), (250, 512), (500, 512), (500, 2048), (1000, 1024), (1000, 4096), (2000, 6144), (3000, 4096))
"""Requests of pods: thousandths of a core, MiB."""
WINDOWS = (
    ("0 9 * * mon-fri", "8h"), ("30 1 * * *", "2h"), ("0 0 * * *", "3h"), ("15 2 * * *", "45m"), ("0 */4 * * *", "1h"),
    ("@hourly", "10m"), ("0 22 * * *", "6h30m"), ("30 2 * * sun", "3h"), ("*/20 1-3 * * *", "15m"),
)  # fmt: skip
"""Schedules and durations of budgets. Many are in the hours in which clocks are changed."""


@dataclass
class Trace:
    """``steps`` are (seconds from the start, deployment, replicas), ``faults`` (seconds, what, a number from 0 to 1
    that says whom), ``prices`` (seconds, factor of spot prices by type). ``writes`` is the share of writes of passes
    and workflows that fail."""

    number: int
    start: datetime
    hours: float
    style: str
    pools: list[dict[str, Any]] = field(default_factory=list)
    apps: list[App] = field(default_factory=list)
    steps: list[tuple[float, str, int]] = field(default_factory=list)
    faults: list[tuple[float, str, float]] = field(default_factory=list)
    prices: list[tuple[float, Mapping[str, float]]] = field(default_factory=list)
    writes: float = 0.0
    launch_seconds: int = 40
    zones: tuple[str, ...] = (ZONE,)
    slots: int | None = None
    """How many volumes each node takes; None: any number."""
    acts: list[tuple[float, str, float]] = field(default_factory=list)
    """What people do, as faults are written."""
    people: bool = False
    """Whether pods that wait are judged too."""


def trace_of(number: int, hours: int, *, troubled: bool = True, size: float = 1.0) -> Trace:
    """The hours of that number; ``troubled``: with faults and prices that move. ``size`` says how many pods there are:
    with 1 some 20 to 80."""
    chance = Random(f"hours {number}")
    zone = sorted(CHANGES)[number % len(CHANGES)]
    change = datetime.fromisoformat(chance.choice(CHANGES[zone])).replace(tzinfo=UTC)
    start = change - timedelta(hours=chance.choice((2, 6, 12, 20, 30, 50)), minutes=chance.randint(0, 59))
    trace = Trace(number, start, hours, STYLES[number // len(CHANGES) % len(STYLES)])
    trace.launch_seconds = chance.choice((20, 40, 90))
    trace.pools = [_dynamic(chance, f"burst-{index}", zone) for index in range(chance.choice((1, 1, 2)))]
    if chance.random() < 0.4:
        trace.pools.append(_static(chance, zone))
    trace.apps = [_app(chance, index) for index in range(max(2, round(chance.randint(3, 5) * size)))]
    for app in trace.apps:
        trace.steps += _demand(chance, app, start, hours, zone, size)
    trace.steps.sort()
    if troubled:
        trace.faults = sorted(_faults(chance, hours, trace.pools))
        trace.prices = _prices(chance, hours)
        trace.writes = chance.choice((0.0, 0.0, 0.01, 0.04))
    return trace


def _budget(chance: Random, zone: str) -> dict[str, Any]:
    entry: dict[str, Any] = {"nodes": chance.choice(("0", "1", "1", "2", "10%", "25%", "50%", "100%"))}
    if chance.random() < 0.4:
        entry["reasons"] = chance.sample(("Empty", "Drifted", "Underutilized", "Expired"), chance.randint(1, 2))
    if entry["nodes"] == "0" or chance.random() < 0.6:
        entry["schedule"], entry["duration"] = chance.choice(WINDOWS)
        entry["time_zone"] = chance.choice((zone, zone, *sorted(CHANGES)))
    return entry


def _dynamic(chance: Random, name: str, zone: str) -> dict[str, Any]:
    disruption: dict[str, Any] = {
        "consolidate_after": chance.choice(("0s", "30s", "2m", "15m")),
        "consolidation_policy": chance.choice(("WhenEmptyOrUnderutilized",) * 4 + ("WhenEmpty", "Balanced")),
    }
    if chance.random() < 0.8:
        disruption["budgets"] = [_budget(chance, zone) for _ in range(chance.randint(0, 3))]
    pool: dict[str, Any] = {"name": name, "disruption": disruption, "floor": chance.choice((0, 0, 1, 2))}
    kinds = chance.choice((["spot", "on-demand"], ["on-demand"], ["spot"]))
    pool["requirements"] = [{"key": CAPACITY, "operator": "In", "values": kinds}, ANY_ARCHITECTURE]
    pool["limits"] = {"nodes": 40}
    if chance.random() < 0.3:
        pool["termination_grace_period"] = chance.choice(("5m", "1h", "Never"))
    if chance.random() < 0.3:
        pool["expire_after"] = chance.choice(("8h", "24h", "49h"))
    return pool


def _static(chance: Random, zone: str) -> dict[str, Any]:
    pool: dict[str, Any] = {"name": "fixed", "quantity": chance.randint(2, 4), "requirements": [
        {"key": CAPACITY, "operator": "In", "values": ["on-demand"]},
        {"key": "node.kubernetes.io/instance-type", "operator": "In", "values": ["sim.m-4"]},
    ]}  # fmt: skip
    if chance.random() < 0.4:
        pool["expire_after"] = chance.choice(("12h", "30h"))
    return pool


def _app(chance: Random, index: int) -> App:
    cpu, mib = chance.choice(SHAPES)
    app = App(f"app-{index}", cpu, mib)
    app.grace, app.begin = chance.choice((1, 5, 25)), chance.choice((5, 20, 60))
    fate = chance.random()
    if fate < 0.2:
        app.least = chance.choice((1, 2, 3))
    elif fate < 0.3:
        app.protection = chance.choice(("true", "45m", "3h", "soon"))
    if chance.random() < 0.15:
        app.alone = True
    if chance.random() < 0.15:
        app.cost = chance.choice((-(2**27), 2**27, 2**30))
    return app


def _demand(
    chance: Random, app: App, start: datetime, hours: int, zone: str, size: float
) -> list[tuple[float, str, int]]:  # fmt: skip
    """A level that follows the day of the zone, with noise, and bursts above it."""
    most = max(2, min(24, round(size * chance.uniform(3000, 9000) / app.cpu)))
    if app.alone:
        most = min(most, 5)
    swing, peak = chance.choice((0.0, 0.5, 0.8)), chance.uniform(9, 20)
    steps, seconds, level = [(chance.uniform(0, 60), app.name, max(1, round(most * 0.6)))], 0.0, -1
    pace = chance.choice((3.0, 6.0, 9.0))
    while (seconds := seconds + chance.expovariate(1 / (pace * HOUR))) < hours * HOUR:
        local = (start + timedelta(seconds=seconds)).astimezone(ZoneInfo(zone))
        day = 0.5 + 0.5 * math.cos((local.hour + local.minute / 60 - peak) / 24 * 2 * math.pi)
        target = round(most * (1 - swing + swing * day) * chance.uniform(0.75, 1.1))
        if target != level:
            level = max(1, target)
            steps.append((seconds, app.name, level))
        if chance.random() < 0.08:
            steps.append((seconds + 1, app.name, level + most))
            steps.append((seconds + chance.uniform(300, 5400), app.name, level))
    return [step for step in steps if step[0] < hours * HOUR]


def _faults(chance: Random, hours: int, pools: Sequence[Mapping[str, Any]]) -> list[tuple[float, str, float]]:
    kinds = (DIED, WARNED, RECOMMENDED, SILENT_NODE, SILENT_AGENT, SILENT_AGENT, NO_CAPACITY, DRIFT)
    amount = chance.choice((0, hours // 20, hours // 8))
    return [(chance.uniform(1, hours) * HOUR, chance.choice(kinds), chance.random()) for _ in range(amount)]


def _prices(chance: Random, hours: int) -> list[tuple[float, Mapping[str, float]]]:
    """A few large moves, and in some hours a price that flickers."""
    moves: list[tuple[float, Mapping[str, float]]] = []
    for _ in range(chance.choice((0, hours // 25))):
        factor = {size.name: chance.choice((0.7, 1.0, 1.0, 1.4, 2.2)) for size in SIZES}
        moves.append((chance.uniform(1, hours) * HOUR, factor))
    return sorted(moves, key=lambda move: move[0])
