"""Rights of a cluster's own controllers in the tenant's account: the cloud's node controller, and the EBS driver.

They run on the control plane, with the role of that machine; nodes may only read. The same statements are the role's
policy, which names the cluster, and the boundary of every role that we make, which cannot.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from stockyard.domain.records import CloudAccount
from stockyard.providers.clouds.aws import tags
from stockyard.providers.clouds.aws.policies.statements import Statement, policy
from stockyard.providers.clouds.aws.sessions import account_number, partition

CLUSTER_TAG = "ebs.csi.aws.com/cluster-name"
"""The tag that the EBS driver gives its volumes for policies like this one."""
READS = (
    "ec2:DescribeAvailabilityZones",
    "ec2:DescribeInstanceTopology",
    "ec2:DescribeInstanceTypes",
    "ec2:DescribeInstances",
    "ec2:DescribeSnapshots",
    "ec2:DescribeTags",
    "ec2:DescribeVolumeStatus",
    "ec2:DescribeVolumes",
    "ec2:DescribeVolumesModifications",
)
"""AWS offers no resource narrower than ``*`` for these."""
_ATTACH = ["ec2:AttachVolume", "ec2:DetachVolume"]
VOLUME_KEY = (
    "kms:Decrypt",
    "kms:DescribeKey",
    "kms:GenerateDataKeyWithoutPlaintext",
    "kms:ReEncryptFrom",
    "kms:ReEncryptTo",
)
VIA_EC2 = {"StringLike": {"kms:ViaService": "ec2.*.amazonaws.com"}}
FOR_AWS = {"Bool": {"kms:GrantIsForAWSResource": "true"}}


def volumes(
    arn: Callable[[str, str], Any], key: Any, volume_tags: Mapping[str, str], machine_tags: Mapping[str, str]
) -> list[Statement]:
    """Volumes with these tags, on machines with those. ``arn(service, resource)`` is in the account, ``key`` the ARN of
    the keys that volumes may be encrypted by."""
    volume, machine = arn("ec2", "volume/*"), arn("ec2", "instance/*")
    requested, present = _tags("Request", volume_tags), _tags("Resource", volume_tags)
    tagging = {"StringEquals": {**requested["StringEquals"], "ec2:CreateAction": "CreateVolume"}}
    return [
        _allow("ControllersRead", READS, "*"),
        _allow("CreateVolumes", ["ec2:CreateVolume"], volume, requested),
        _allow("TagNewVolumes", ["ec2:CreateTags"], volume, tagging),
        _allow("ChangeVolumes", [*_ATTACH, "ec2:DeleteVolume", "ec2:ModifyVolume"], volume, present),
        _allow("AttachToMachines", _ATTACH, machine, _tags("Resource", machine_tags)),
        # Where volumes are encrypted by a key that is not AWS's, EC2 asks for these in the caller's name.
        _allow("EncryptedVolumes", VOLUME_KEY, key, VIA_EC2),
        _allow("GrantsOfVolumes", ["kms:CreateGrant"], key, {**VIA_EC2, **FOR_AWS}),
    ]


def of_cluster(account: CloudAccount, owner: tags.Owner, cluster: str) -> dict[str, Any]:
    """The inline policy of a role whose controllers serve one cluster; ``cluster`` is its name to the driver of EBS."""
    name, number = partition(account), account_number(account)
    installation = {tags.INSTALLATION: owner.installation}
    return policy(
        volumes(
            lambda service, resource: f"arn:{name}:{service}:*:{number}:{resource}",
            f"arn:{name}:kms:*:*:key/*",
            {**installation, CLUSTER_TAG: cluster},
            {**installation, f"{owner.prefix}-cluster": owner.client_id},
        )
    )


def _tags(side: str, pairs: Mapping[str, str]) -> dict[str, Any]:
    return {"StringEquals": {f"aws:{side}Tag/{key}": value for key, value in pairs.items()}}


def _allow(sid: str, actions: Any, resource: Any, condition: dict[str, Any] | None = None) -> Statement:
    statement: Statement = {"Sid": sid, "Effect": "Allow", "Action": list(actions), "Resource": resource}
    return statement | ({"Condition": condition} if condition else {})
