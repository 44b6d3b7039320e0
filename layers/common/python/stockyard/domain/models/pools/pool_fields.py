"""Common fields of the documents of pools, whoever published them: durations, limits, budgets, labels that are
reserved."""

from __future__ import annotations

from typing import Annotated, Any, Literal, Self

from pydantic import AfterValidator, BeforeValidator, Field, StringConstraints, ValidationInfo, model_validator

from stockyard.domain.models import fields, patterns
from stockyard.domain.models.base import Fault, check
from stockyard.domain.models.nodes.node_fields import Camel, Resources
from stockyard.domain.nodes.provider_kinds import unknown_label
from stockyard.domain.pools import schedules
from stockyard.domain.pools.budgets import DEFAULT_NODES
from stockyard.domain.pools.records import NODES, POOL_LABEL
from stockyard.domain.values import durations
from stockyard.domain.values.quantities import milli
from stockyard.domain.values.requirements import (
    ARCH,
    CAPACITY_TYPE,
    HOSTNAME,
    INSTANCE_TYPE,
    NODE_POOL,
    OS,
    REGION,
    ZONE,
)

MAX_POOLS = 100
"""Pools of one document."""
MAX_NODES = 10_000
MAX_BUDGETS = 50
_RESTRICTED_DOMAINS = ("kubernetes.io", "k8s.io", "karpenter.sh")
_OPEN_DOMAINS = ("node.kubernetes.io", "node-restriction.kubernetes.io", "kops.k8s.io")
"""Parts of restricted domains whose labels anybody may set."""
_OPEN_KEYS = frozenset(
    {
        *(ZONE, REGION, INSTANCE_TYPE, ARCH, OS, CAPACITY_TYPE),
        *("beta.kubernetes.io/instance-type", "beta.kubernetes.io/os", "beta.kubernetes.io/arch"),
        *("failure-domain.beta.kubernetes.io/region", "failure-domain.beta.kubernetes.io/zone"),
    }
)


def restricted_fault(key: str) -> str | None:
    """Reason why Karpenter refuses ``key`` as a label or a requirement of a pool, or None."""
    if key in (NODE_POOL, HOSTNAME):
        return f'label "{key}" is restricted'
    domain = key.rpartition("/")[0]
    if key in _OPEN_KEYS or not domain or _within(domain, _OPEN_DOMAINS):
        return None
    for restricted in _RESTRICTED_DOMAINS:
        if _within(domain, (restricted,)):
            return f'label domain "{restricted}" is restricted'
    return unknown_label(key)


def known_labels(requirements: list[Any]) -> list[Any]:
    """The requirements, unless one asks for a label that its vendor does not know: nothing would ever have it."""
    keys = ((number, unknown_label(requirement.key)) for number, requirement in enumerate(requirements))
    check([((number, "key"), fault) for number, fault in keys if fault])
    return requirements


def _within(domain: str, parents: tuple[str, ...]) -> bool:
    return any(domain == parent or domain.endswith(f".{parent}") for parent in parents)


def _labels(labels: dict[str, str]) -> dict[str, str]:
    faults: list[Fault] = [((key,), fault) for key in labels if (fault := restricted_fault(key))]
    if POOL_LABEL in labels:
        faults.append(((POOL_LABEL,), "is set by Stockyard and cannot be given"))
    check(faults)
    return labels


def _limits(limits: dict[str, Any]) -> dict[str, Any]:
    fault = "must be a whole number of nodes"
    check([((name,), fault) for name, amount in limits.items() if name == NODES and milli(amount) % 1000])
    return limits


def _duration(text: str) -> str:
    durations.seconds(text)
    return text


def _window(text: str) -> str:
    if not durations.seconds(text):
        raise ValueError("must be longer than 0: a window that closes as it opens holds nothing back")
    return text


def _schedule(text: str) -> str:
    schedules.parse(text)
    return text


def _time_zone(zone: str, info: ValidationInfo) -> str:
    schedules.time_zone(zone)
    if "schedule" in info.data:  # else the schedule has a fault of its own
        if info.data["schedule"] is None:
            raise ValueError("must be set with 'schedule'")
        schedules.parse(info.data["schedule"], zone)
    return zone


def _number_as_text(value: Any) -> Any:
    return str(value) if type(value) is int else value


_BUDGET_NODES = patterns.worded(
    r"^((100|[0-9]{1,2})%|[0-9]{1,6})$", "a number of nodes, or a percentage from 0% to 100%"
)
_BUDGET_DURATION = patterns.worded(
    r"^(([0-9]{1,6}(h|m))|([0-9]{1,6}h[0-9]{1,6}m))(0s)?$", "a duration in hours and minutes such as 10m or 1h30m"
)

NodeLabels = Annotated[fields.Labels, AfterValidator(_labels)]
"""Labels of the nodes of a pool."""
Limits = Annotated[Resources, AfterValidator(_limits)]
"""``nodes``, ``usd_hour`` in USD, or a resource, of all nodes together."""
Duration = Annotated[str, StringConstraints(max_length=33, pattern=patterns.DURATION), AfterValidator(_duration)]
"""A duration such as ``30s``, ``5m`` or ``1h30m``."""
DurationOrNever = Annotated[
    str, StringConstraints(max_length=33, pattern=patterns.DURATION_OR_NEVER), AfterValidator(_duration)
]
"""A duration such as ``30s``, ``5m`` or ``1h30m``, or ``Never``."""
Schedule = Annotated[str, StringConstraints(min_length=1, max_length=128), AfterValidator(_schedule)]
"""Five fields of cron, or ``@daily`` and the like; ``CRON_TZ=Europe/Berlin`` before them says the time zone."""
TimeZone = Annotated[str, StringConstraints(max_length=64), AfterValidator(_time_zone)]
"""The time zone of the field ``schedule`` before it, a name of the IANA database; without it and a prefix it is UTC."""
BudgetNodes = Annotated[str, BeforeValidator(_number_as_text), StringConstraints(pattern=_BUDGET_NODES)]
"""How many nodes, or which part of them, may be disrupted at a time."""
BudgetDuration = Annotated[str, StringConstraints(pattern=_BUDGET_DURATION), AfterValidator(_window)]
"""For how long the window of the schedule is open, in hours and minutes."""
Weight = Annotated[int, Field(ge=1, le=100)]


DisruptionReason = Literal["Empty", "Drifted", "Underutilized", "Expired"]


class Budget(Camel):
    """Number of nodes that may be disrupted at a time; with a ``schedule``, only for ``duration`` from then.

    ``timeZone`` is ours, with the name that a CronJob of Kubernetes has for it. So is the reason ``Expired``: a budget
    holds for nodes that have expired only where it names it.
    """

    nodes: BudgetNodes
    reasons: Annotated[list[DisruptionReason], Field(max_length=MAX_BUDGETS)] = Field(default_factory=list)
    schedule: Schedule | None = None
    duration: BudgetDuration | None = None
    time_zone: TimeZone | None = None

    @model_validator(mode="after")
    def _together(self) -> Self:
        if (self.schedule is None) != (self.duration is None):
            raise ValueError("'schedule' must be set with 'duration'")
        return self

    def entry(self) -> dict[str, Any]:
        """The budget as the record keeps it: without what says nothing. No reason means all of them."""
        parts = {
            "reasons": list(self.reasons),
            "schedule": self.schedule,
            "duration": self.duration,
            "timeZone": self.time_zone,
        }
        return {"nodes": self.nodes, **{name: value for name, value in parts.items() if value}}


class Disruption(Camel):
    """Rules for when nodes may be replaced or removed to save money."""

    consolidate_after: DurationOrNever | None = None
    consolidation_policy: Literal["WhenEmpty", "WhenEmptyOrUnderutilized", "Balanced"] = "WhenEmptyOrUnderutilized"
    budgets: Annotated[list[Budget], Field(max_length=MAX_BUDGETS)] | None = None

    def block(self, consolidate_after: str) -> dict[str, Any]:
        """The block as the record keeps it, with the published defaults; ``consolidate_after`` is that of the form.

        Without budgets there is one of 10 %. An empty list of budgets stays one: it limits nothing.
        """
        budgets = [{"nodes": DEFAULT_NODES}] if self.budgets is None else [budget.entry() for budget in self.budgets]
        return {
            "consolidateAfter": self.consolidate_after or consolidate_after,
            "consolidationPolicy": self.consolidation_policy,
            "budgets": budgets,
        }


def texts(amounts: dict[str, Any]) -> dict[str, str]:
    """Quantities as the record keeps them."""
    return {name: str(amount) for name, amount in amounts.items()}
