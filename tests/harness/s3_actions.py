"""S3's operations as IAM names their permissions, by its Service Authorization Reference: many differ."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from tests.harness.policies import Ask

ACTIONS: Mapping[str, str] = {
    "DeleteObjects": "DeleteObject",
    "HeadObject": "GetObject",
    "ListBuckets": "ListAllMyBuckets",
    "ListObjectVersions": "ListBucketVersions",
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


def asks(account: str, operation: str, parameters: Mapping[str, Any]) -> Iterator[Ask]:
    """The checks that AWS does for a call, on the bucket or on each of the objects."""
    action = action_of(operation)
    if operation == "ListBuckets":
        yield Ask(action, "*")
        return
    own = {"aws:ResourceAccount": account}
    bucket = f"arn:aws:s3:::{parameters['Bucket']}"
    if operation == "DeleteObjects":
        for item in parameters["Delete"]["Objects"]:
            yield Ask(VERSIONS if "VersionId" in item else action, f"{bucket}/{item['Key']}", own)
        return
    if "Key" in parameters:
        yield Ask(action, f"{bucket}/{parameters['Key']}", own)
        return
    prefix = {"s3:prefix": parameters["Prefix"]} if "Prefix" in parameters else {}
    yield Ask(action, bucket, {**own, **prefix})
