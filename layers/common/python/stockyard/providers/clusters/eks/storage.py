"""The storage phase: a file system that pods of all nodes write, with an address in each private subnet."""

from __future__ import annotations

from functools import partial

from stockyard.domain.records import Resource
from stockyard.ports import Outcome
from stockyard.providers.clouds.aws import tags
from stockyard.providers.clouds.aws.kinds import efs as efs_kinds
from stockyard.providers.clusters.eks import names, network
from stockyard.providers.clusters.eks.building import Builder, DesiredResource, vendor_id
from stockyard.providers.clusters.eks.configuration import has_storage

PHASE, KEY = "storage", "efs"
PORT = 2049
STORAGE_CLASS = "modelplane-rwx-efs"
_DESCRIPTION = "NFS access to the ModelCache EFS mount targets"
"""As Modelplane has it."""


def ensure(builder: Builder) -> Outcome:
    """The file system, its security group and its mount targets. Not done while one of them comes up."""
    cluster = builder.work.cluster
    if not has_storage(cluster):
        return Outcome(True, "This cluster has no shared storage.", facts={"skipped": "true"})
    cidrs = [{"CidrIp": network.vpc_cidr(cluster)}]
    rule = {"IpProtocol": "tcp", "FromPort": PORT, "ToPort": PORT, "IpRanges": cidrs}
    name = f"{names.stem(cluster)}-efs"
    group = network.security_group(builder, KEY, name, _DESCRIPTION, [rule])
    desired = DesiredResource(efs_kinds.FILE_SYSTEM, KEY, name, partial(_create, builder))
    system = builder.want(desired)
    if system.pending:
        return Outcome(False, f"file system {system.vendor_id} is coming up")
    pending = [
        subnet.zone
        for subnet in network.subnets_of(builder, network.PRIVATE)
        if _mount_target(builder, system.vendor_id, subnet, group)
    ]
    if pending:
        return Outcome(False, f"mount targets of {system.vendor_id} come up in {', '.join(pending)}")
    return Outcome(True, f"file system {system.vendor_id}")


def file_system(builder: Builder) -> str:
    """The file system that this phase has made."""
    return vendor_id(builder, efs_kinds.FILE_SYSTEM.name, KEY, PHASE)


def _create(builder: Builder, line: Resource, marks: dict[str, str]) -> str:
    answer = builder.calls.call(
        "efs",
        "create_file_system",
        CreationToken=line.token,
        Encrypted=True,
        ThroughputMode="elastic",
        Tags=tags.pairs(marks),
    )
    return str(answer["FileSystemId"])


def _mount_target(builder: Builder, system: str, subnet: network.Subnet, group: str) -> bool:
    """Whether it is still coming up."""

    def create(_line: Resource, _marks: dict[str, str]) -> str:
        answer = builder.calls.call(
            "efs", "create_mount_target", FileSystemId=system, SubnetId=subnet.id, SecurityGroups=[group]
        )
        return str(answer["MountTargetId"])

    name = f"{system} in {subnet.zone}"
    return builder.want(DesiredResource(efs_kinds.MOUNT_TARGET, subnet.zone, name, create)).pending
