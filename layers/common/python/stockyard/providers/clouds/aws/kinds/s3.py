"""The kind of S3: buckets. A name is the identity there, all over the world; the account that owns it is asked for."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any

from botocore.exceptions import ClientError

from stockyard.errors import VendorNotFound
from stockyard.providers.clouds.aws import tags
from stockyard.providers.clouds.aws.calls import Calls
from stockyard.providers.clouds.aws.errors import translated
from stockyard.providers.clouds.aws.kinds.base import Kind, TaggedThing

ENDING = "-etcd"
"""By which our buckets are known in a listing, beside the prefix of names."""
AT_ONCE = 1000
"""Objects that one call deletes."""
NO_TAGS = "NoSuchTagSet"


def bucket_tags(calls: Calls, name: str) -> dict[str, str] | None:
    """Tags of a bucket; None for a bucket without any. ``VendorNotFound`` when there is no such bucket."""
    try:
        return tags.mapping(calls.call("s3", "get_bucket_tagging", Bucket=name)["TagSet"])
    except VendorNotFound as error:
        if error.code == NO_TAGS:
            return None
        raise


def _search(calls: Calls, required_tags: Mapping[str, str], name: str | None) -> Sequence[TaggedThing]:
    things = []
    for bucket in [name] if name else _listed(calls):
        with suppress(VendorNotFound):
            known_tags = None if name else calls.tags_of("bucket", bucket)
            carried = bucket_tags(calls, bucket) if known_tags is None else dict(known_tags)
            if carried is None and name:
                # Cut off between its making and its tags: the name, which holds our ids, says whose it is.
                carried = dict(required_tags)
            if carried is not None and (name or tags.carries(carried, required_tags)):
                things.append(TaggedThing(bucket, carried))
    return things


def _listed(calls: Calls) -> Iterator[str]:
    for item in calls.call("s3", "list_buckets", BucketRegion=calls.region)["Buckets"]:
        if str(item["Name"]).endswith(ENDING):
            yield str(item["Name"])


def _describe(calls: Calls, name: str) -> Mapping[str, Any]:
    return calls.call("s3", "get_bucket_location", Bucket=name)


def _remove(calls: Calls, name: str) -> None:
    for versions in iter(lambda: _versions(calls, name), []):
        _delete(calls, name, versions)
    calls.call("s3", "delete_bucket", Bucket=name)


def _versions(calls: Calls, name: str) -> list[dict[str, str]]:
    """The first versions of objects, and marks of those that were deleted."""
    answer = calls.call("s3", "list_object_versions", Bucket=name, MaxKeys=AT_ONCE)
    items = [*answer.get("Versions", ()), *answer.get("DeleteMarkers", ())]
    return [{"Key": item["Key"], "VersionId": item["VersionId"]} for item in items]


def delete_objects(calls: Calls, name: str, keys: Collection[str]) -> None:
    """Delete these objects. One that is gone is no error."""
    ordered = sorted(keys)
    for first in range(0, len(ordered), AT_ONCE):
        _delete(calls, name, [{"Key": key} for key in ordered[first : first + AT_ONCE]])


def _delete(calls: Calls, name: str, objects: Sequence[Mapping[str, str]]) -> None:
    """Delete these. S3 answers 200 also when it has refused some of them, and names those: the first one is raised."""
    answer = calls.call("s3", "delete_objects", Bucket=name, Delete={"Objects": list(objects), "Quiet": True})
    for refusal in answer.get("Errors", ()):
        text = f"{refusal.get('Message', '')} ({name}/{refusal.get('Key', '')})"
        with translated("s3 delete_objects"):
            raise ClientError({"Error": {"Code": refusal["Code"], "Message": text}}, "DeleteObjects")


BUCKET = Kind("bucket", _search, _describe, _remove, repeatable=True, named=True, later=True)
"""A bucket with all that is in it."""
