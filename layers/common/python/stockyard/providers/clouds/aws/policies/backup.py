"""What Stockyard may do for snapshots of etcd in a tenant's account, and what a control plane's machines may at most.

S3 has no condition on the tags of a bucket, so ours are known by their names, and objects by our folder: a bucket of
the tenant's own has it too.
"""

from __future__ import annotations

from stockyard.providers.clouds.aws.policies.statements import Statement, allow

FOLDER = "stockyard-etcd/"
"""Where snapshots are, in whichever bucket."""
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


def arn(resource: str) -> str:
    """An ARN of S3, which names neither region nor account, as CloudFormation resolves it."""
    return f"arn:${{AWS::Partition}}:s3:::{resource}"


def backups(account: str, prefix: str) -> list[Statement]:
    """Our buckets, and what is in our folder of any bucket of the account."""
    own = {"StringEquals": {"aws:ResourceAccount": account}}
    folder = {**own, "StringLike": {"s3:prefix": f"{FOLDER}*"}}
    return [
        allow("OurBuckets", list(BUCKET_ACTIONS), [arn(f"{prefix}-*-etcd")], own),
        allow("FindBuckets", ["s3:GetBucketLocation"], [arn("*")], own),
        allow("ListSnapshots", ["s3:ListBucket"], [arn("*")], folder),
        allow("KeepSnapshots", list(OBJECT_ACTIONS), [arn(f"*/{FOLDER}*")], own),
    ]


def of_machines(account: str) -> Statement:
    """The most that a control plane's machines may do with snapshots; a role has it of its own cluster's alone."""
    own = {"StringEquals": {"aws:ResourceAccount": account}}
    return allow("EtcdSnapshots", list(MACHINE_ACTIONS), [arn(f"*/{FOLDER}*")], own)
