"""S3's operations as IAM names their permissions, by its Service Authorization Reference: many differ."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from local.aws.permissions.account import Account
from local.aws.permissions.calls import Call
from local.aws.permissions.policies import Ask, Context

ACTIONS: Mapping[str, str] = {
    "DeleteObjects": "DeleteObject",
    "GetBucketEncryption": "GetEncryptionConfiguration",
    "HeadBucket": "ListBucket",
    "HeadObject": "GetObject",
    "ListBuckets": "ListAllMyBuckets",
    "ListObjectVersions": "ListBucketVersions",
    "ListObjects": "ListBucket",
    "ListObjectsV2": "ListBucket",
    "PutBucketEncryption": "PutEncryptionConfiguration",
    "PutBucketLifecycleConfiguration": "PutLifecycleConfiguration",
    "PutPublicAccessBlock": "PutBucketPublicAccessBlock",
}
"""Those whose permission is called otherwise."""
VERSIONS = "s3:DeleteObjectVersion"


def action_of(operation: str) -> str:
    """The permission that an operation needs."""
    return f"s3:{ACTIONS.get(operation, operation)}"


def asks(call: Call, account: Account) -> Iterator[Ask]:
    """The checks that AWS does for a call, on the bucket or on each of the objects."""
    action, parameters = action_of(call.operation), call.parameters
    if call.operation == "ListBuckets":
        yield Ask(action, "*")
        return
    # Of a bucket that is not there yet AWS documents no account.
    own: Context = {} if call.operation == "CreateBucket" else {"aws:ResourceAccount": account.number}
    bucket = f"arn:aws:s3:::{parameters['Bucket']}"
    if call.operation == "DeleteObjects":
        for item in parameters["Delete"]["Objects"]:
            yield Ask(VERSIONS if item.get("VersionId") else action, f"{bucket}/{item['Key']}", own)
        return
    if parameters.get("Key"):
        yield Ask(action, f"{bucket}/{parameters['Key']}", own)
        return
    prefix: Context = {"s3:prefix": parameters["Prefix"]} if "Prefix" in parameters else {}
    yield Ask(action, bucket, {**own, **prefix})
