"""Counts of what happens in an hour of virtual time."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from benchmarks.virtual_fleet.limits import PARTITION, Bucket, limit_of

HOTTEST = 6
RAW = "raw"
"""The figures' member that has each value of which another has a spread."""


@dataclass
class Tally:
    """``now`` gives the virtual seconds; ``names`` says what to call a partition so that two runs can be compared."""

    now: Callable[[], float]
    name: Callable[[str], str] = str
    calls: Counter[str] = field(default_factory=Counter)
    counts: Counter[str] = field(default_factory=Counter)
    units: Counter[tuple[str, str]] = field(default_factory=Counter)
    by_function: Counter[tuple[str, str]] = field(default_factory=Counter)
    """Units, by their kind and the function that used them."""
    peaks: dict[tuple[str, str], float] = field(default_factory=dict)
    """The most units of a second, by kind and partition."""
    buckets: dict[tuple[str, str], Bucket] = field(default_factory=dict)
    """By the limit's name and the account."""
    seconds: Counter[str] = field(default_factory=Counter)
    """Of functions, as they are paid for."""
    most: Counter[str] = field(default_factory=Counter)
    """The highest concurrency of each function."""
    longest: dict[str, float] = field(default_factory=dict)
    """The longest invocation of each function."""
    late: defaultdict[str, list[float]] = field(default_factory=lambda: defaultdict(list))
    bound: list[float] = field(default_factory=list)
    examples: dict[str, str] = field(default_factory=dict)
    """The first answer of each kind that refused something."""
    _second: int = -1
    _of_second: Counter[tuple[str, str]] = field(default_factory=Counter)
    _running: Counter[str] = field(default_factory=Counter)

    def used(self, kind: str, partition: str, units: float, function: str) -> None:
        """Units of the table or an index."""
        if int(self.now()) != self._second:
            self._close_second()
        key = (kind, partition)
        self.units[key] += units  # type: ignore[assignment]
        self._of_second[key] += units  # type: ignore[assignment]
        self.by_function[kind, function] += units  # type: ignore[assignment]

    def _close_second(self) -> None:
        for key, units in self._of_second.items():
            if units > self.peaks.get(key, 0.0):
                self.peaks[key] = units
        self._of_second.clear()
        self._second = int(self.now())

    def called(self, call: str, account: str) -> None:
        """A call of a service (``ec2 DescribeInstances``) with an account's credentials."""
        self.calls[call] += 1
        limit = limit_of(call)
        if limit is not None:
            self.buckets.setdefault((limit[0], account), Bucket(limit[1], at=self.now())).take(self.now())

    def begin(self, function: str) -> None:
        """An invocation begins."""
        self._running[function] += 1
        self.most[function] = max(self.most[function], self._running[function])

    def end(self, function: str, seconds: float) -> None:
        """An invocation ends."""
        self._running[function] -= 1
        self.seconds[function] += seconds  # type: ignore[assignment]
        self.counts[f"invocations of {function}"] += 1
        self.longest[function] = max(self.longest.get(function, 0.0), seconds)

    def hour(self) -> dict[str, Any]:
        """The figures since the last call, which begins anew what they count."""
        self._close_second()
        figures = {
            "units": {kind: round(sum(n for (k, _), n in self.units.items() if k == kind)) for kind in PARTITION},
            "units_by_function": _rounded(
                {f"{function} {kind}": units for (kind, function), units in self.by_function.most_common()}
            ),
            "hottest": self._hottest(),
            "invocations": {
                name.removeprefix("invocations of "): n
                for name, n in sorted(self.counts.items())
                if name.startswith("invocations of ")
            },
            "concurrency": dict(sorted(self.most.items())),
            "longest_invocation": _rounded(dict(sorted(self.longest.items()))),
            "function_seconds": _rounded(dict(sorted(self.seconds.items()))),
            "calls": dict(sorted(self.calls.items())),
            "buckets": self._fullest(),
            "late": {name: spread(values) for name, values in sorted(self.late.items())},
            "bind": spread(self.bound),
            RAW: {"late": {name: list(values) for name, values in self.late.items()}, "bind": list(self.bound)},
            "other": {k: n for k, n in sorted(self.counts.items()) if not k.startswith("invocations of ")},
        }
        for each in (self.calls, self.counts, self.units, self.by_function, self.peaks, self.buckets, self.seconds):
            each.clear()
        for more in (self.most, self.longest, self.late, self.bound):
            more.clear()
        self.most.update(self._running)
        return figures

    def _hottest(self) -> list[dict[str, Any]]:
        """The partitions that come closest to their limit in one second."""
        ranked = sorted(self.peaks.items(), key=lambda each: -each[1] / PARTITION[each[0][0]])[:HOTTEST]
        return [
            {
                "partition": self.name(partition),
                "kind": kind,
                "most_a_second": round(units),
                "of_limit": round(units / PARTITION[kind], 3),
                "in_hour": round(self.units[kind, partition]),
            }
            for (kind, partition), units in ranked
        ]

    def _fullest(self) -> dict[str, float]:
        fullest: dict[str, float] = {}
        for (name, _), bucket in self.buckets.items():
            fullest[name] = max(fullest.get(name, 0.0), round(bucket.used, 3))
        return dict(sorted(fullest.items()))


def spread(values: Sequence[float]) -> dict[str, float]:
    """Number, median, 95 of 100 and the most."""
    if not values:
        return {"n": 0}
    ordered = sorted(values)

    def rank(part: int) -> float:
        return round(ordered[math.ceil(part / 100 * len(ordered)) - 1], 2)

    return {"n": len(ordered), "p50": rank(50), "p95": rank(95), "most": round(ordered[-1], 2)}


def _rounded(values: dict[str, float]) -> dict[str, float]:
    return {name: round(value, 1) for name, value in values.items()}


def merged(parts: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Figures of several stretches of time together: sums of counts, and the most of what is a peak."""
    whole = {name: _merged(name, [part[name] for part in parts]) for name in parts[0] if name not in (RAW, *SPREADS)}
    late: dict[str, list[float]] = {}
    for part in parts:
        for name, values in part[RAW]["late"].items():
            late.setdefault(name, []).extend(values)
    bound = [seconds for part in parts for seconds in part[RAW]["bind"]]
    return {**whole, "late": {name: spread(values) for name, values in sorted(late.items())}, "bind": spread(bound)}


SPREADS = ("late", "bind")
PEAKS = frozenset({"concurrency", "longest_invocation", "buckets"})


def _merged(name: str, values: Sequence[Any]) -> Any:
    if name == "hottest":
        ranked = sorted((each for value in values for each in value), key=lambda each: -each["of_limit"])
        return ranked[:HOTTEST]
    if isinstance(values[0], Mapping):
        names = sorted({key for value in values for key in value})
        join = max if name in PEAKS else sum
        return {key: round(join([value[key] for value in values if key in value]), 6) for key in names}
    return round(sum(values), 6)
