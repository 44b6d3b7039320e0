"""Delays of AWS in a benchmark: what each is, within which bounds it is drawn, and who says so.

The table of ``docs/scale.md`` is these rows; a test compares both.
"""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace


@dataclass(frozen=True, slots=True)
class Delay:
    """A delay in milliseconds, evenly between ``low`` and ``high``. ``name`` is what ``--delay NAME=LOW-HIGH`` sets."""

    name: str
    low: float
    high: float
    meaning: str
    source: str


ASSUMED = "assumed; AWS publishes none"
DELAYS: tuple[Delay, ...] = (
    Delay("gateway", 10, 30, "API Gateway with its authorizer, on the way to the function", ASSUMED),
    Delay("network", 10, 40, "from a cluster or a machine to API Gateway, on a connection that is there", ASSUMED),
    Delay("watch", 1, 10, "from a change in Kubernetes to the line of a watch", ASSUMED),
    Delay("stream", 0, 250, "until Lambda asks a shard of the stream again", "Lambda's guide: four times a second"),
    Delay("asynchronous", 20, 80, "from an accepted asynchronous invocation to its begin", ASSUMED),
    Delay("bus", 40, 130, "from an accepted event to its target", "AWS: 129 ms at p99 (August 2024)"),
    Delay("execution", 30, 90, "from an accepted start of an execution to its first state", ASSUMED),
    Delay("transition", 15, 35, "into each state of an execution", ASSUMED),
    Delay("invoke", 5, 15, "from a caller that waits into a warm function", ASSUMED),
    Delay("cold", 200, 400, "Lambda's own part of a cold start: place, code, runtime", "AWS: under 100 ms to over 1 s"),
    Delay("read", 3, 8, "GetItem, BatchGetItem", "DynamoDB: milliseconds of one digit"),
    Delay("query", 4, 10, "Query", "DynamoDB: milliseconds of one digit"),
    Delay("write", 10, 25, "TransactWriteItems, UpdateItem, PutItem", "twice and three times a read"),
    Delay("start", 20, 50, "StartExecution and other calls of Step Functions", ASSUMED),
    Delay("events", 10, 30, "PutEvents", ASSUMED),
    Delay("lambda", 10, 25, "Invoke, asynchronously", ASSUMED),
    Delay("secret", 10, 30, "GetSecretValue, KMS", ASSUMED),
    Delay("session", 60, 150, "AssumeRole, GetCallerIdentity", ASSUMED),
    Delay("describe", 80, 250, "EC2: a call that only reads", ASSUMED),
    Delay("change", 150, 400, "EC2: a call that changes something", ASSUMED),
    Delay("fleet", 1500, 3000, "EC2: CreateFleet of the type instant", ASSUMED),
)  # fmt: skip
CLIENT_MS = 1.5
"""Milliseconds of a whole core that botocore takes for a call, which is replaced here."""
FULL_CORE_MB = 1769
"""Memory with which a function has one whole core; it has less of one with less memory (Lambda's guide)."""


@dataclass(slots=True)
class Delays:
    """Draws delays. The same seed draws the same."""

    seed: int
    rows: Mapping[str, Delay] = field(default_factory=lambda: {row.name: row for row in DELAYS})
    _chance: random.Random = field(init=False)

    def __post_init__(self) -> None:
        self._chance = random.Random(self.seed)

    @classmethod
    def switched(cls, seed: int, switches: Sequence[str]) -> Delays:
        """The delays with what ``NAME=LOW-HIGH`` sets. ``ValueError`` for a name that no delay has."""
        rows = {row.name: row for row in DELAYS}
        for switch in switches:
            name, _, bounds = switch.partition("=")
            if name not in rows:
                raise ValueError(f"--delay {switch}: there is no delay {name}; there are {', '.join(rows)}")
            low, _, high = bounds.partition("-")
            rows[name] = replace(rows[name], low=float(low), high=float(high or low))
        return cls(seed, rows)

    def draw(self, name: str) -> float:
        """Seconds of one delay."""
        row = self.rows[name]
        return self._chance.uniform(row.low, row.high) / 1000

    def bytes(self, size: int) -> bytes:
        """Randomness for ids."""
        return self._chance.randbytes(size)

    def between(self, low: float, high: float) -> float:
        """A number between these."""
        return self._chance.uniform(low, high)
