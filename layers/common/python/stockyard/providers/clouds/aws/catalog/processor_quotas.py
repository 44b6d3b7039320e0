"""Families of instance types with a quota of their own for vCPUs, and whether a cluster's machines fit in."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from stockyard.ports import Finding
from stockyard.providers.clouds.aws.calls import Calls

_STANDARD, _GRAPHICS, _P = (
    re.compile(r"(?!dl|hpc|inf|mac|trn)[acdhimrtz]"),
    re.compile(r"(g|vt)[0-9]"),
    re.compile(r"p[0-9]"),
)
_FAMILIES = (
    ("standard", _STANDARD, "L-1216C47A", "L-34B43A08"),
    ("G and VT", _GRAPHICS, "L-DB2E81BA", "L-3819A6DF"),
    ("P", _P, "L-417A185B", "L-7212CCBC"),
)
"""The instances, how the names of their types begin, and the codes of the quotas for vCPUs that run on demand and of
spot requests. Those for GPUs are 0 in a new account."""
_RUNNING = [{"Name": "instance-state-name", "Values": ["pending", "running"]}]

Quota = Callable[[Calls, str, str], float]


def family(name: str) -> str:
    """The instances whose vCPUs are counted with those of the type ``name``; the beginning of its name for those whose
    quota we have no code for."""
    for noun, pattern, *_ in _FAMILIES:
        if pattern.match(name):
            return noun
    return name.partition(".")[0]


@dataclass(frozen=True, slots=True)
class MachineNeed:
    """Machines that a cluster has from the start: ``count`` of any of the ``types``, tried in this order."""

    pointer: str
    types: tuple[str, ...]
    count: int = 1
    spot: bool = False


@dataclass(slots=True)
class _Account:
    """Machines that run in the account, and the part of its quotas that the needs before have taken."""

    calls: Calls
    quota: Quota
    sizes: Mapping[str, int]
    running: Counter[tuple[str, bool]]
    claimed_vcpus: Counter[str] = field(default_factory=Counter)
    limits: dict[str, float] = field(default_factory=dict)

    def row(self, name: str, spot: bool) -> tuple[str, str] | None:
        """The code of the type's quota, and what it is for."""
        for noun, pattern, on_demand, of_spot in _FAMILIES:
            if pattern.match(name):
                return (
                    (of_spot, f"vCPUs of {noun} spot instances")
                    if spot
                    else (
                        on_demand,
                        f"vCPUs of {noun} instances",
                    )
                )
        return None

    def limit(self, code: str) -> float:
        if code not in self.limits:
            self.limits[code] = self.quota(self.calls, "ec2", code)
        return self.limits[code]

    def used(self, code: str) -> int:
        """Use of a quota by the machines that run."""
        return sum(
            count * self.sizes.get(name, 0)
            for (name, spot), count in self.running.items()
            if (row := self.row(name, spot)) is not None and row[0] == code
        )


def findings(calls: Calls, needs: Sequence[MachineNeed], quota: Quota) -> Iterator[Finding]:
    """Each need that has no room beside those before it. A warning when another type of it has."""
    if not any(pattern.match(name) for need in needs for name in need.types for _, pattern, *_ in _FAMILIES):
        return
    running: Counter[tuple[str, bool]] = Counter()
    for reservation in calls.pages("ec2", "describe_instances", "Reservations", Filters=_RUNNING):
        for instance in reservation["Instances"]:
            running[str(instance["InstanceType"]), instance.get("InstanceLifecycle") == "spot"] += 1
    names = {name for name, _ in running} | {name for need in needs for name in need.types}
    # A filter, since a list of names is refused when the region does not have one of them.
    named = [{"Name": "instance-type", "Values": sorted(names)}]
    described = calls.pages("ec2", "describe_instance_types", "InstanceTypes", Filters=named)
    sizes = {str(kind["InstanceType"]): int(kind["VCpuInfo"]["DefaultVCpus"]) for kind in described}
    account = _Account(calls, quota, sizes, running)
    for need in needs:
        yield from _of_need(account, need)


def _of_need(account: _Account, need: MachineNeed) -> Iterator[Finding]:
    short: dict[tuple[str, str], list[str]] = {}
    fitting: list[tuple[int, str]] = []
    for name in need.types:
        row, size = account.row(name, need.spot), account.sizes.get(name, 0) * need.count
        if row is None or not size:
            fitting.append((0, ""))
        elif account.used(row[0]) + account.claimed_vcpus[row[0]] + size > account.limit(row[0]):
            short.setdefault(row, []).append(name)
        else:
            fitting.append((size, row[0]))
    for (code, noun), names in short.items():
        times = f" ({need.count} machines)" if need.count > 1 else ""
        needed = ", ".join(f"{account.sizes[name] * need.count} for {name}{times}" for name in names)
        if account.claimed_vcpus[code]:
            needed += f", beside {account.claimed_vcpus[code]} of its machines named before"
        limit = account.limit(code)
        detail = text(account.calls.region, code, limit, noun, account.used(code), needed)
        yield Finding(need.pointer, detail, warning=bool(fitting))
    # The least that it may take; where nothing fits, that is said once, and what comes next is judged for itself.
    size, code = min(fitting, default=(0, ""))
    if code:
        account.claimed_vcpus[code] += size


def text(location: str, code: str, quota: float, noun: str, used: int, needed: str) -> str:
    """Words of a finding about a quota."""
    return (
        f"The account has {used} of {quota:g} {noun} in {location} in use (quota {code}), and the cluster needs"
        f" {needed}. Ask AWS to raise the quota, or use what is there."
    )
