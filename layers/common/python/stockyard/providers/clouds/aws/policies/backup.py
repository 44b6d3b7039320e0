"""Rights of Stockyard for snapshots of etcd in a tenant's account, and the most that a control plane's machines may do.

S3 has no condition on the tags of a bucket, so ours are known by their names, and objects by our folder: a bucket of
the tenant's own has it too.
"""

from __future__ import annotations

from typing import Any

from stockyard.providers.clouds.aws.policies.statements import Statement, allow

FOLDER = "stockyard-etcd/"
"""Where snapshots are, in whichever bucket."""
FIND_ACTIONS = ("s3:GetBucketLocation", "s3:GetEncryptionConfiguration")
BUCKET_ACTIONS = (
    "s3:CreateBucket",
    "s3:DeleteBucket",
    "s3:GetBucketTagging",
    "s3:ListBucketVersions",
    "s3:PutBucketPublicAccessBlock",
    "s3:PutBucketTagging",
    "s3:PutBucketVersioning",
    "s3:PutEncryptionConfiguration",
    "s3:PutLifecycleConfiguration",
)
OBJECT_ACTIONS = ("s3:DeleteObject", "s3:DeleteObjectVersion", "s3:GetObject")
MACHINE_ACTIONS = ("s3:GetObject", "s3:PutObject")
KEY_ACTIONS = ("kms:Decrypt", "kms:GenerateDataKey")
"""Rights that S3 asks in the caller's name for an object of a bucket with a key of its own."""
VIA_S3 = {"StringLike": {"kms:ViaService": "s3.*.amazonaws.com"}}


def arn(resource: str) -> str:
    """An ARN of S3, which names neither region nor account, as CloudFormation resolves it."""
    return f"arn:${{AWS::Partition}}:s3:::{resource}"


def backups(account: str, prefix: str) -> list[Statement]:
    """Our buckets, and what is in our folder of any bucket of the account."""
    own_account = {"aws:ResourceAccount": account}
    own = {"StringEquals": own_account}
    folder = {**own, "StringLike": {"s3:prefix": f"{FOLDER}*"}}
    return [
        # Whether a bucket that is not there yet has an account, AWS does not say; the name is ours.
        allow("OurBuckets", list(BUCKET_ACTIONS), [arn(f"{prefix}-*-etcd")], {"StringEqualsIfExists": own_account}),
        allow("FindBuckets", list(FIND_ACTIONS), [arn("*")], own),
        allow("ListSnapshots", ["s3:ListBucket"], [arn("*")], folder),
        allow("KeepSnapshots", list(OBJECT_ACTIONS), [arn(f"*/{FOLDER}*")], own),
    ]


def of_machines(account: str, keys: Any) -> list[Statement]:
    """The most that a control plane's machines may do with snapshots; a role has it of its own cluster's alone.
    ``keys``: the ARN of the keys that a bucket may encrypt by."""
    own = {"StringEquals": {"aws:ResourceAccount": account}}
    return [
        allow("EtcdSnapshots", list(MACHINE_ACTIONS), [arn(f"*/{FOLDER}*")], own),
        {"Sid": "SnapshotKeys", "Effect": "Allow", "Action": list(KEY_ACTIONS), "Resource": keys, "Condition": VIA_S3},
    ]
