"""What the account's quotas leave for a new cluster: asked before anything is made, because a new account has few.

The codes are those of the Service Quotas console, where a person asks for more.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterator, Sequence

from stockyard.errors import PermissionDenied, VendorNotFound, VendorRefused
from stockyard.ports import Finding
from stockyard.providers.clouds.aws.calls import Calls

_NETWORK = (
    ("vpc", "L-F678F1CE", "VPCs", "describe_vpcs", "Vpcs"),
    ("ec2", "L-0263D0A3", "Elastic IP addresses", "describe_addresses", "Addresses"),
)
"""Service, code, what is counted, and how."""
_PROCESSORS = (
    ("L-1216C47A", "standard", re.compile(r"(?!dl|hpc|inf|mac|trn)[acdhimrtz]")),
    ("L-DB2E81BA", "G and VT", re.compile(r"(g|vt)[0-9]")),
    ("L-417A185B", "P", re.compile(r"p[0-9]")),
)
"""Code of a quota for vCPUs of running on-demand instances, the instances, and how the names of their types begin. That
for GPUs is 0 in a new account."""
_RUNNING = [{"Name": "instance-state-name", "Values": ["pending", "running"]}]


def findings(
    calls: Calls, instance_types: Sequence[str], types_at: str, *, addresses: int, network: str
) -> Iterator[Finding]:
    """Each quota that has no room for the cluster, with the pointers ``types_at`` and ``network``. A warning when only
    some of the types have no room, and when our role may not look.

    ``addresses`` are those of a network of its own, 0 where it has none.
    """
    try:
        if addresses:
            yield from _network(calls, network, addresses)
        yield from _processors(calls, instance_types, types_at)
    except PermissionDenied:
        yield Finding(
            "/cloud_account_id",
            "The quotas of the AWS account could not be looked at. Deploy the account's current template again.",
            warning=True,
        )


def _network(calls: Calls, pointer: str, addresses: int) -> Iterator[Finding]:
    for (service, code, noun, operation, key), count in zip(_NETWORK, (1, addresses), strict=True):
        used = len(calls.call("ec2", operation)[key])
        quota = _quota(calls, service, code)
        if used + count > quota:
            yield Finding(pointer, _text(calls.region, code, quota, noun, used, str(count)))


def _processors(calls: Calls, instance_types: Sequence[str], pointer: str) -> Iterator[Finding]:
    asked_for = [(row, names) for row in _PROCESSORS if (names := [n for n in instance_types if row[2].match(n)])]
    if not asked_for:
        return
    running: Counter[str] = Counter()
    for reservation in calls.pages("ec2", "describe_instances", "Reservations", Filters=_RUNNING):
        for instance in reservation["Instances"]:
            if "InstanceLifecycle" not in instance:
                running[str(instance["InstanceType"])] += 1
    # A filter, since a list of names is refused when the region does not have one of them.
    named = [{"Name": "instance-type", "Values": sorted({*running, *instance_types})}]
    described = calls.pages("ec2", "describe_instance_types", "InstanceTypes", Filters=named)
    sizes = {str(kind["InstanceType"]): int(kind["VCpuInfo"]["DefaultVCpus"]) for kind in described}
    for (code, noun, pattern), names in asked_for:
        used = sum(count * sizes.get(name, 0) for name, count in running.items() if pattern.match(name))
        quota = _quota(calls, "ec2", code)
        full = [name for name in names if used + sizes.get(name, 0) > quota]
        if full:
            needed = ", ".join(f"{sizes[name]} for {name}" for name in full)
            text = _text(calls.region, code, quota, f"vCPUs of {noun} instances", used, needed)
            yield Finding(pointer, text, warning=len(full) < len(instance_types))


def _quota(calls: Calls, service: str, code: str) -> float:
    """What the account may have; without end where the region does not have the quota."""
    try:
        answer = calls.call("service-quotas", "get_service_quota", ServiceCode=service, QuotaCode=code)
    except (VendorNotFound, VendorRefused):
        # Not every region of every partition has every quota.
        return math.inf
    return float(answer["Quota"]["Value"])


def _text(region: str, code: str, quota: float, noun: str, used: int, needed: str) -> str:
    return (
        f"The account has {used} of {quota:g} {noun} in {region} in use (quota {code}), and the cluster needs {needed}."
        " Ask AWS to raise the quota, or use what is there."
    )
