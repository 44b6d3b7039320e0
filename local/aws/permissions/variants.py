"""Variants of a tenant's account, as enterprises have them: what AWS checks there besides, and what the account sees.

``new``: nobody has done anything in it. ``shared-network``: VPCs and subnets that are not ours belong to another
account, which shares them. ``central-key``: new volumes are encrypted by a key of another account. ``guardrails``:
policies of its organization demand a tag on what is made and encrypted disks, whatever the account's own policies
allow.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from local.aws.accounts import REGION
from local.aws.corrections.compute.placement_groups import set_volume_key
from local.aws.corrections.compute.shared_networks import share_networks
from local.aws.permissions.account import Settings
from local.fault_plan import Variant

OWNER = "999999999999"
"""The account that shares networks and keys."""
CENTRAL_KEY = f"arn:aws:kms:{REGION}:{OWNER}:key/0a1b2c3d-1111-4222-8333-444455556666"
DEMANDED = "team"
"""The key of the tag that guardrails demand."""
_UNTAGGED = {"Null": {f"aws:RequestTag/{DEMANDED}": "true"}}
GUARDRAILS: tuple[Mapping[str, Any], ...] = (
    {
        "Sid": "TagOnCreate",
        "Effect": "Deny",
        "Action": ["ec2:RunInstances", "ec2:CreateVolume"],
        "Resource": [f"arn:aws:ec2:*:*:{kind}/*" for kind in ("instance", "volume")],
        "Condition": _UNTAGGED,
    },
    {
        "Sid": "TagManaged",
        "Effect": "Deny",
        "Action": [
            "eks:CreateCluster",
            "eks:CreateNodegroup",
            "elasticfilesystem:CreateFileSystem",
            "elasticloadbalancing:CreateLoadBalancer",
        ],
        "Resource": "*",
        "Condition": _UNTAGGED,
    },
    {
        "Sid": "EncryptedOnly",
        "Effect": "Deny",
        "Action": ["ec2:RunInstances", "ec2:CreateVolume"],
        "Resource": "arn:aws:ec2:*:*:volume/*",
        "Condition": {"Bool": {"ec2:Encrypted": "false"}},
    },
)


def settings_of(variant: Variant) -> Settings:
    """Settings that the owner of such an account has made."""
    return Settings(
        volume_key=CENTRAL_KEY if variant == "central-key" else "",
        guardrails=GUARDRAILS if variant == "guardrails" else (),
    )


def begin(account: str, variant: Variant) -> None:
    """Bring the account into the state of its variant; nothing is in it yet."""
    if variant == "shared-network":
        share_networks(account, REGION, OWNER)
    if variant == "central-key":
        set_volume_key(account, REGION, CENTRAL_KEY)
