"""Every kind by its name in the ledger, in an order in which deletion succeeds."""

from __future__ import annotations

from stockyard.providers.clusters.ec2 import ec2_kinds, elb_kinds, iam_kinds
from stockyard.providers.clusters.ec2.kinds import GIVEN_NETWORK, Kind

DELETION_ORDER: tuple[Kind, ...] = (
    ec2_kinds.INSTANCE,
    elb_kinds.LOAD_BALANCER,
    elb_kinds.TARGET_GROUP,
    ec2_kinds.VOLUME,
    iam_kinds.INSTANCE_PROFILE,
    iam_kinds.ROLE,
    ec2_kinds.NAT_GATEWAY,
    ec2_kinds.ADDRESS,
    ec2_kinds.SECURITY_GROUP,
    ec2_kinds.ROUTE_TABLE,
    ec2_kinds.SUBNET,
    ec2_kinds.INTERNET_GATEWAY,
    ec2_kinds.VPC,
)
GLOBAL = frozenset({"role", "instance_profile"})
"""Kinds that belong to no region."""
KINDS: dict[str, Kind] = {kind.name: kind for kind in (*DELETION_ORDER, GIVEN_NETWORK)}
ORDER: tuple[str, ...] = tuple(KINDS)
"""Names of the kinds in the order of deletion."""
