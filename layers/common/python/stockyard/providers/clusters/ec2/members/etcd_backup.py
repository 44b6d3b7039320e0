"""Snapshots of etcd in S3: the bucket that they are in, and the rights of the members that put them there.

The bucket is the tenant's own, or one that is made for the cluster. Objects are known by the cluster's id, so that
clusters may share a bucket. Who removes old ones is Stockyard, by their number: a rule of the bucket by their age would
remove the last good one of a cluster that takes none any more.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection, Iterator, Mapping
from functools import partial
from typing import Any

from stockyard.domain.clusters.snapshots import ID, SETTING
from stockyard.domain.records import CloudAccount, Cluster, Resource
from stockyard.domain.values.times import to_text
from stockyard.errors import PermissionDenied, VendorNotFound
from stockyard.ports import Finding
from stockyard.ports.snapshots import Snapshot, SnapshotStore
from stockyard.providers.clouds.aws import tags
from stockyard.providers.clouds.aws.calls import Calls
from stockyard.providers.clouds.aws.errors import accepting
from stockyard.providers.clouds.aws.kinds import iam as iam_kinds
from stockyard.providers.clouds.aws.kinds import s3 as s3_kinds
from stockyard.providers.clouds.aws.policies import template_versions
from stockyard.providers.clouds.aws.policies.backup import FOLDER, KEY_ACTIONS, VIA_S3
from stockyard.providers.clouds.aws.policies.statements import policy
from stockyard.providers.clouds.aws.sessions import account_number, partition
from stockyard.providers.clusters.ec2.building import Builder, DesiredResource
from stockyard.providers.clusters.ec2.configuration import region

KEY, ROLE_KEY = "etcd", "control-plane"
POLICY = "etcd-snapshots"
"""The inline policy of the control plane's role."""
APPLIED = "etcd_snapshots"
"""On the ledger's line of that role: the digest of the policy that it has, so that a second run writes nothing."""
KEEP, REMOVE = "keep", "remove"
DELETED_DAYS = 7
"""For how long our bucket still has what was deleted or written over."""
RELEASE = "release"
"""What an object's metadata call the release of Kubernetes that its control plane had."""
_ALREADY_OURS = "BucketAlreadyOwnedByYou"
_POINTER = f"/settings/{SETTING}"


def backup_of(cluster: Cluster) -> Mapping[str, Any] | None:
    """The cluster's settings of snapshots in S3; None where there are to be none."""
    return cluster.settings.get(SETTING) or None


def bucket_name(cluster: Cluster, prefix: str) -> str:
    """The bucket of the cluster's snapshots: the one that is named, else our own."""
    backup = backup_of(cluster) or {}
    return str(backup.get("bucket") or f"{prefix}-{cluster.client_id}{s3_kinds.ENDING}")


def store(cluster: Cluster, prefix: str) -> SnapshotStore | None:
    """See ``ports.snapshots.KeepsSnapshots.snapshot_store``."""
    if backup_of(cluster) is None:
        return None
    bucket, folder = bucket_name(cluster, prefix), f"{FOLDER}{cluster.id}/"
    return SnapshotStore(bucket, region(cluster), folder, f"s3://{bucket}/{folder}")


def ensure(builder: Builder) -> None:
    """The bucket, where it is ours, and the right to write to it. Without the setting the right goes; what is there
    stays until the cluster is deleted."""
    backup = backup_of(builder.work.cluster)
    if backup is not None and not backup.get("bucket"):
        name = builder.name(KEY)
        builder.want(DesiredResource(s3_kinds.BUCKET, KEY, name, partial(_create, builder, name), identity=True))
    grant(builder)


def _create(builder: Builder, name: str, _line: Resource, marks: dict[str, str]) -> str:
    """Each of the calls may be done again: a bucket that an earlier try has made is the same one."""
    calls = builder.calls
    bucket_options = (
        {} if calls.region == "us-east-1" else {"CreateBucketConfiguration": {"LocationConstraint": calls.region}}
    )
    with accepting(_ALREADY_OURS):
        calls.call("s3", "create_bucket", Bucket=name, **bucket_options)
    owner = {"Bucket": name, "ExpectedBucketOwner": account_number(builder.work.account)}
    calls.call("s3", "put_bucket_tagging", **owner, Tagging={"TagSet": tags.pairs(marks)})
    closed = dict.fromkeys(("BlockPublicAcls", "IgnorePublicAcls", "BlockPublicPolicy", "RestrictPublicBuckets"), True)
    calls.call("s3", "put_public_access_block", **owner, PublicAccessBlockConfiguration=closed)
    by_default = {"ApplyServerSideEncryptionByDefault": {"SSEAlgorithm": "AES256"}}
    calls.call("s3", "put_bucket_encryption", **owner, ServerSideEncryptionConfiguration={"Rules": [by_default]})
    calls.call("s3", "put_bucket_versioning", **owner, VersioningConfiguration={"Status": "Enabled"})
    rule = {
        "ID": "former-versions",
        "Status": "Enabled",
        "Filter": {"Prefix": ""},
        "NoncurrentVersionExpiration": {"NoncurrentDays": DELETED_DAYS},
        "Expiration": {"ExpiredObjectDeleteMarker": True},
    }
    calls.call("s3", "put_bucket_lifecycle_configuration", **owner, LifecycleConfiguration={"Rules": [rule]})
    return name


def grant(builder: Builder, readable: str = "") -> None:
    """Let members put snapshots there and, while it is being restored, read the one that is ``readable``."""
    kind = iam_kinds.ROLE.name
    line = builder.ledger.find(kind, ROLE_KEY)
    if line is None or line.state != "made":
        return
    document = _document(builder, readable)
    text = json.dumps(document, sort_keys=True)
    digest = hashlib.sha256(text.encode()).hexdigest() if document else ""
    if str(line.detail.get(APPLIED) or "") == digest:
        return
    role = {"RoleName": line.vendor_id, "PolicyName": POLICY}
    if document:
        builder.calls.call("iam", "put_role_policy", **role, PolicyDocument=text)
    else:
        with accepting("NoSuchEntity"):
            builder.calls.call("iam", "delete_role_policy", **role)
    builder.ledger.made(line, line.vendor_id, {**line.detail, APPLIED: digest})


def _document(builder: Builder, readable: str) -> dict[str, Any] | None:
    work = builder.work
    there = store(work.cluster, builder.config.name_prefix)
    if there is None:
        return None
    stem = f"arn:{partition(work.account)}:s3:::{there.bucket}/"
    own = {"StringEquals": {"aws:ResourceAccount": account_number(work.account)}}
    allowed = {"PutSnapshots": ("s3:PutObject", f"{there.folder}*")}
    if readable:
        allowed["ReadOne"] = ("s3:GetObject", there.key(readable))
    statements = [
        {"Sid": sid, "Effect": "Allow", "Action": action, "Resource": f"{stem}{key}", "Condition": own}
        for sid, (action, key) in allowed.items()
    ]
    if (backup_of(work.cluster) or {}).get("bucket"):
        statements.append(_key_of_bucket(builder, stem, there.folder))
    return policy(statements)


def _key_of_bucket(builder: Builder, stem: str, folder: str) -> dict[str, Any]:
    """The right of members to use the key of a bucket of the tenant's, for objects of this cluster alone. The
    bucket may get another key at any time, and former objects keep theirs, so that the policy names none. S3 says the
    bucket or, where that has no key of its own, the object as the context of encryption."""
    account = builder.work.account
    context = [stem.removesuffix("/"), f"{stem}{folder}*"]
    return {
        "Sid": "KeyOfBucket",
        "Effect": "Allow",
        "Action": list(KEY_ACTIONS),
        "Resource": f"arn:{partition(account)}:kms:*:*:key/*",
        "Condition": {"StringLike": {**VIA_S3["StringLike"], "kms:EncryptionContext:aws:s3:arn": context}},
    }


def release(builder: Builder) -> None:
    """Before the cluster's roles and bucket go: keep the snapshots where that is asked for, else remove those in a
    bucket of the tenant's own. Ours goes by its line on the ledger, or is the tenant's from now on."""
    cluster = builder.work.cluster
    backup = backup_of(cluster)
    if backup is None:
        return
    keeps = backup.get("on_deletion") == KEEP and cluster.status == "deleting"
    line = builder.ledger.find(s3_kinds.BUCKET.name, KEY)
    if keeps and line is not None and line.state == "made":
        name, calls = line.vendor_id, builder.calls
        carried = s3_kinds.bucket_tags(calls, name) or {}
        # Without our tags the sweep does not take it for something that was left behind.
        marks = {key: value for key, value in carried.items() if not key.startswith("stockyard:")}
        calls.call("s3", "put_bucket_tagging", Bucket=name, Tagging={"TagSet": tags.pairs(marks)})
        builder.ledger.gone(line)
    if backup.get("bucket") and not keeps:
        remove(builder, [snapshot.id for snapshot in listed(builder)])


def remaining_things(cluster: Cluster, prefix: str) -> list[str]:
    """Things that a deletion leaves, because the settings ask for it."""
    there, backup = store(cluster, prefix), backup_of(cluster) or {}
    if there is None or backup.get("on_deletion") != KEEP:
        return []
    return [f"snapshots of etcd in {there.url}"]


def listed(builder: Builder) -> list[Snapshot]:
    """See ``ports.snapshots.KeepsSnapshots.snapshots``."""
    there = store(builder.work.cluster, builder.config.name_prefix)
    if there is None:
        return []
    number = account_number(builder.work.account)
    snapshots = []
    try:
        pages = builder.calls.pages(
            "s3", "list_objects_v2", "Contents", Bucket=there.bucket, Prefix=there.folder, ExpectedBucketOwner=number
        )
        for item in pages:
            name = str(item["Key"]).removeprefix(there.folder).removesuffix(".tar.gz")
            if ID.fullmatch(name):
                snapshots.append(Snapshot(name, int(item["Size"]), to_text(item["LastModified"])))
    except VendorNotFound:
        return []
    return sorted(snapshots, key=lambda snapshot: snapshot.id, reverse=True)


def described(builder: Builder, snapshot_id: str) -> Snapshot | None:
    """See ``ports.snapshots.KeepsSnapshots.snapshot``."""
    there = store(builder.work.cluster, builder.config.name_prefix)
    if there is None:
        return None
    number = account_number(builder.work.account)
    try:
        item = builder.calls.call(
            "s3", "head_object", Bucket=there.bucket, Key=there.key(snapshot_id), ExpectedBucketOwner=number
        )
    except VendorNotFound:
        return None
    minor = ".".join(str(item["Metadata"].get(RELEASE, "")).split(".")[:2])
    return Snapshot(snapshot_id, int(item["ContentLength"]), to_text(item["LastModified"]), minor)


def remove(builder: Builder, ids: Collection[str]) -> None:
    """See ``ports.snapshots.KeepsSnapshots.remove_snapshots``."""
    there = store(builder.work.cluster, builder.config.name_prefix)
    if there is not None:
        s3_kinds.delete_objects(builder.calls, there.bucket, [there.key(name) for name in ids])


def findings(calls: Calls, cluster: Cluster, account: CloudAccount) -> Iterator[Finding]:
    """Findings about the settings: what the account's template lacks, and whether a bucket that is named will do."""
    backup = backup_of(cluster)
    if backup is None:
        return
    version = template_versions.deployed(calls, account).version
    if version < template_versions.BACKUPS:
        text = (
            f"The template of the cloud account is version {version}; snapshots in S3 need"
            f" {template_versions.BACKUPS}. Deploy the account's current template again."
        )
        yield Finding(_POINTER, text)
    elif backup.get("bucket"):
        yield from _named(calls, str(backup["bucket"]), account, version)


def _named(calls: Calls, name: str, account: CloudAccount, version: int) -> Iterator[Finding]:
    pointer = f"{_POINTER}/bucket"
    owner = {"Bucket": name, "ExpectedBucketOwner": account_number(account)}
    try:
        bucket_region = str(calls.call("s3", "get_bucket_location", **owner).get("LocationConstraint") or "us-east-1")
    except VendorNotFound:
        yield Finding(pointer, f"There is no bucket {name}.")
        return
    except PermissionDenied:
        yield Finding(pointer, f"The bucket {name} is of another account, or its policy keeps Stockyard out.")
        return
    if bucket_region != calls.region:
        yield Finding(pointer, f"The bucket {name} is in {bucket_region}, and the cluster in {calls.region}.")
    yield from _encryption(calls, name, account, version)


def _encryption(calls: Calls, name: str, account: CloudAccount, version: int) -> Iterator[Finding]:
    """Findings about a bucket that encrypts by a key which is not S3's own: whether members can use it."""
    pointer, needed = f"{_POINTER}/bucket", template_versions.SNAPSHOT_KEYS
    if version < needed:
        text = (
            f"By which key the bucket {name} encrypts cannot be looked at: the template of the cloud account is version"
            f" {version}, and that needs {needed}. Where it is not S3's own, no snapshot can be written. Deploy the"
            " account's current template again."
        )
        yield Finding(pointer, text, warning=True)
        return
    key = _key_of(calls, name, account)
    number = key.split(":")[4] if key.startswith("arn:") else account_number(account)
    if number != account_number(account):
        text = (
            f"The bucket {name} encrypts by {key} of another account: its policy has to let this account use"
            f" {' and '.join(KEY_ACTIONS)}."
        )
        yield Finding(pointer, text, warning=True)


def _key_of(calls: Calls, name: str, account: CloudAccount) -> str:
    """The key of AWS KMS by which a bucket encrypts, as it was named there; empty for S3's own."""
    owner = {"Bucket": name, "ExpectedBucketOwner": account_number(account)}
    try:
        answer = calls.call("s3", "get_bucket_encryption", **owner)
    except (VendorNotFound, PermissionDenied):
        return ""
    rules = answer["ServerSideEncryptionConfiguration"]["Rules"]
    defaults = (rule.get("ApplyServerSideEncryptionByDefault") or {} for rule in rules)
    return next((str(rule["KMSMasterKeyID"]) for rule in defaults if rule.get("KMSMasterKeyID")), "")
