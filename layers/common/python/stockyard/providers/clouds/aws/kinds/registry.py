"""Every kind by its name in the ledger, in an order in which deletion succeeds; nodes' things are among them."""

from __future__ import annotations

from stockyard.providers.clouds.aws.kinds import dlm as dlm_kinds
from stockyard.providers.clouds.aws.kinds import ec2 as ec2_kinds
from stockyard.providers.clouds.aws.kinds import efs as efs_kinds
from stockyard.providers.clouds.aws.kinds import eks as eks_kinds
from stockyard.providers.clouds.aws.kinds import elb as elb_kinds
from stockyard.providers.clouds.aws.kinds import iam as iam_kinds
from stockyard.providers.clouds.aws.kinds import s3 as s3_kinds
from stockyard.providers.clouds.aws.kinds.base import GIVEN_NETWORK, REFUSED_CAPACITY, Kind

DELETION_ORDER: tuple[Kind, ...] = (
    dlm_kinds.SNAPSHOT_POLICY,
    efs_kinds.MOUNT_TARGET,
    efs_kinds.FILE_SYSTEM,
    eks_kinds.ADDON,
    eks_kinds.POD_IDENTITY,
    eks_kinds.NODE_GROUP,
    eks_kinds.ACCESS_ENTRY,
    eks_kinds.CLUSTER,
    ec2_kinds.INSTANCE,
    ec2_kinds.LAUNCH_TEMPLATE,
    ec2_kinds.PLACEMENT_GROUP,
    elb_kinds.LOAD_BALANCER,
    elb_kinds.TARGET_GROUP,
    ec2_kinds.VOLUME,
    s3_kinds.BUCKET,
    iam_kinds.INSTANCE_PROFILE,
    iam_kinds.ROLE,
    ec2_kinds.NAT_GATEWAY,
    ec2_kinds.ADDRESS,
    ec2_kinds.VPC_ENDPOINT,
    ec2_kinds.SECURITY_GROUP,
    ec2_kinds.ROUTE_TABLE,
    ec2_kinds.SUBNET,
    ec2_kinds.INTERNET_GATEWAY,
    ec2_kinds.VPC,
)
GLOBAL = frozenset({"role", "instance_profile"})
"""Kinds that belong to no region."""
INNER = frozenset(
    kind.name
    for kind in (
        efs_kinds.MOUNT_TARGET,
        eks_kinds.ADDON,
        eks_kinds.POD_IDENTITY,
        eks_kinds.NODE_GROUP,
        eks_kinds.ACCESS_ENTRY,
    )
)
"""Kinds that stand within another thing of the same record; see ``ports.clouds.ListsByLedger``."""
KINDS: dict[str, Kind] = {kind.name: kind for kind in (*DELETION_ORDER, REFUSED_CAPACITY, GIVEN_NETWORK)}
