"""The kind of the Data Lifecycle Manager: a policy by which AWS itself takes snapshots of a volume each day."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from typing import Any

from stockyard.domain.records import CloudAccount
from stockyard.errors import VendorNotFound
from stockyard.providers.clouds.aws import tags
from stockyard.providers.clouds.aws.calls import Calls
from stockyard.providers.clouds.aws.kinds import ec2 as ec2_kinds
from stockyard.providers.clouds.aws.kinds.base import Kind, State, TaggedThing
from stockyard.providers.clouds.aws.sessions import account_number, partition

TARGET = "stockyard:snapshots"
"""The tag that a cluster's policy takes snapshots by. Its value is the cluster's id, so that no other volume has it."""


def target(cluster_id: str) -> dict[str, str]:
    """The tag of the volumes with etcd's data of this cluster, for the selection by its policy."""
    return {TARGET: cluster_id}


def role_name(account: CloudAccount, prefix: str) -> str:
    """The role of the tenant's template that the Data Lifecycle Manager works with; each registration has its own."""
    return f"{prefix}-snapshots-{hashlib.sha256(account.external_id.encode()).hexdigest()[:8]}"


def role_arn(account: CloudAccount, prefix: str) -> str:
    """The ARN of that role."""
    return f"arn:{partition(account)}:iam::{account_number(account)}:role/{role_name(account, prefix)}"


def _search(calls: Calls, required_tags: Mapping[str, str], name: str | None) -> Sequence[TaggedThing]:
    # A region has at most a hundred policies, and the answer has no pages.
    policies = calls.call("dlm", "get_lifecycle_policies")["Policies"]
    things = (TaggedThing(policy["PolicyId"], policy.get("Tags") or {}) for policy in policies)
    snapshots = ec2_kinds.SNAPSHOT.search(calls, required_tags, name)
    return [*(thing for thing in things if tags.carries(thing.tags, required_tags)), *snapshots]


def _is_snapshot(vendor_id: str) -> bool:
    return vendor_id.startswith("snap-")


def _describe(calls: Calls, vendor_id: str) -> Mapping[str, Any] | None:
    if _is_snapshot(vendor_id):
        return ec2_kinds.SNAPSHOT.describe(calls, vendor_id)
    policies = calls.call("dlm", "get_lifecycle_policies", PolicyIds=[vendor_id])["Policies"]
    return next(iter(policies), None)


def policy(calls: Calls, policy_id: str) -> Mapping[str, Any] | None:
    """A policy with ARN, tags and details; a listing has only some of them; None when it is gone."""
    try:
        described: dict[str, Any] = calls.call("dlm", "get_lifecycle_policy", PolicyId=policy_id)["Policy"]
    except VendorNotFound:
        return None
    return {**described, "Tags": described.get("Tags") or {}}


def _remove(calls: Calls, vendor_id: str) -> None:
    if _is_snapshot(vendor_id):
        ec2_kinds.SNAPSHOT.remove(calls, vendor_id)
    else:
        calls.call("dlm", "delete_lifecycle_policy", PolicyId=vendor_id)


def _state_of(thing: Mapping[str, Any]) -> State:
    return State.FAILED if thing.get("State") == "ERROR" else State.PRESENT


SNAPSHOT_POLICY = Kind("snapshot_policy", _search, _describe, _remove, _state_of)
"""A policy, and the snapshots that it has taken: they carry the policy's tags and outlive it. Ids tell them apart, and
a policy's id comes first, so that no new snapshot is taken while the others are deleted."""
