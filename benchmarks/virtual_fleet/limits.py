"""Published limits of AWS, with their sources: of DynamoDB's partitions, and of calls by token bucket."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

PARTITION = {"read": 3000.0, "write": 1000.0}
"""Units a second of one partition (DynamoDB's guide, burst capacity left out)."""


@dataclass(frozen=True, slots=True)
class Limit:
    """A bucket of ``tokens``, refilled by so many a second, of an account and region."""

    tokens: float
    refill: float
    source: str


_EC2 = "EC2's guide, request throttling"
_GUESS = "EC2's guide names no bucket of it: that of calls which change something"
LIMITS: Mapping[str, Limit] = {
    "ec2 Describe": Limit(100, 20, _EC2),
    "ec2 CreateFleet": Limit(50, 5, _GUESS),
    "ec2 CreateLaunchTemplate": Limit(50, 5, _GUESS),
    "ec2 TerminateInstances": Limit(50, 5, _GUESS),
    "ec2": Limit(50, 5, _GUESS),
    "sts": Limit(600, 600, "IAM's guide, quotas of STS: 600 requests a second"),
    "stepfunctions StartExecution": Limit(1300, 300, "Step Functions' guide, quotas of us-east-1"),
    "stepfunctions": Limit(200, 15, "Step Functions' guide, quotas: StopExecution has the least"),
    "events": Limit(10_000, 10_000, "EventBridge's guide, quotas of us-east-1"),
    "lambda": Limit(10_000, 10_000, "Lambda's guide: ten times a concurrency of 1,000"),
    "secretsmanager": Limit(10_000, 10_000, "Secrets Manager's guide, quotas"),
    "kms": Limit(100_000, 100_000, "KMS's guide, quotas of us-east-1"),
    "transitions": Limit(5_000, 1_500, "Step Functions' guide, quotas of us-east-1"),
}
"""By the service and the beginning of a call; the longest that fits counts."""


def limit_of(call: str) -> tuple[str, Limit] | None:
    """The limit of a call (``ec2 DescribeInstances``) with its name; None where AWS publishes none."""
    names = [name for name in LIMITS if call.startswith(name)]
    return max(((name, LIMITS[name]) for name in names), key=lambda each: len(each[0]), default=None)


@dataclass(slots=True)
class Bucket:
    """The tokens of an account. ``least`` is the fewest there were."""

    limit: Limit
    tokens: float = field(init=False)
    least: float = field(init=False)
    at: float = 0.0

    def __post_init__(self) -> None:
        self.tokens = self.least = self.limit.tokens

    def take(self, now: float, tokens: float = 1.0) -> None:
        """A call."""
        self.tokens = min(self.limit.tokens, self.tokens + (now - self.at) * self.limit.refill) - tokens
        self.at, self.least = now, min(self.least, self.tokens)

    @property
    def used(self) -> float:
        """The largest part of the bucket that was empty: above 1 calls would have been refused."""
        return 1 - self.least / self.limit.tokens
