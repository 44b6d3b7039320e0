"""What the account's quotas leave for a new cluster: asked before anything is made, because a new account has few.

The codes are those of the Service Quotas console, where a person asks for more.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from stockyard.errors import PermissionDenied, VendorNotFound, VendorRefused
from stockyard.ports import Finding
from stockyard.providers.clouds.aws.calls import Calls

_NETWORK = (
    ("vpc", "L-F678F1CE", "VPCs", "describe_vpcs", "Vpcs"),
    ("ec2", "L-0263D0A3", "Elastic IP addresses", "describe_addresses", "Addresses"),
)
"""Service, code, what is counted, and how."""
_STANDARD = "L-1216C47A"
"""vCPUs of running on-demand instances of the standard families."""
_STANDARD_FAMILIES = tuple("acdhimrtz")
_RUNNING = [{"Name": "instance-state-name", "Values": ["pending", "running"]}]


def findings(calls: Calls, instance_type: str, *, own_network: bool) -> Iterator[Finding]:
    """Each quota that has no room for the cluster; a warning when our role may not look."""
    try:
        if own_network:
            for service, code, noun, operation, key in _NETWORK:
                yield from _full(calls, service, code, noun, len(calls.call("ec2", operation)[key]), 1)
        if instance_type.startswith(_STANDARD_FAMILIES):
            yield from _processors(calls, instance_type)
    except PermissionDenied:
        yield Finding(
            "/cloud_account_id",
            "The quotas of the AWS account could not be looked at. Deploy the account's current template again.",
            warning=True,
        )


def _processors(calls: Calls, instance_type: str) -> Iterator[Finding]:
    running: Counter[str] = Counter()
    for reservation in calls.pages("ec2", "describe_instances", "Reservations", Filters=_RUNNING):
        for instance in reservation["Instances"]:
            name = str(instance["InstanceType"])
            if "InstanceLifecycle" not in instance and name.startswith(_STANDARD_FAMILIES):
                running[name] += 1
    names = sorted({*running, instance_type})
    described = calls.pages("ec2", "describe_instance_types", "InstanceTypes", InstanceTypes=names)
    sizes = {str(kind["InstanceType"]): int(kind["VCpuInfo"]["DefaultVCpus"]) for kind in described}
    used = sum(count * sizes.get(name, 0) for name, count in running.items())
    yield from _full(calls, "ec2", _STANDARD, "vCPUs of standard instances", used, sizes.get(instance_type, 0))


def _full(calls: Calls, service: str, code: str, noun: str, used: int, needed: int) -> Iterator[Finding]:
    try:
        quota = calls.call("service-quotas", "get_service_quota", ServiceCode=service, QuotaCode=code)["Quota"]
    except (VendorNotFound, VendorRefused):
        # Not every region of every partition has every quota.
        return
    if used + needed > quota["Value"]:
        yield Finding(
            "/settings/vpc_id" if code != _STANDARD else "/settings/control_plane_instance_type",
            f"The account has {used} of {quota['Value']:g} {noun} in {calls.region} in use (quota {code}), and the"
            f" cluster needs {needed}. Ask AWS to raise the quota, or use what is there.",
        )
