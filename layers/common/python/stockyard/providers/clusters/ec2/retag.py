"""Other tags for what stands for a cluster on EC2: as everywhere, and the policy of its daily snapshots."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial

from stockyard.ports import Outcome
from stockyard.providers.clouds.aws import tags
from stockyard.providers.clouds.aws.kinds import dlm as dlm_kinds
from stockyard.providers.clouds.aws.resources import retagging
from stockyard.providers.clouds.aws.resources.retagging import Writer, difference, each_thing, write_tags
from stockyard.providers.clusters.ec2.building import Builder
from stockyard.providers.clusters.ec2.members import etcd_volume


def retag(builder: Builder, stale_keys: Sequence[str]) -> Outcome:
    """See ``ports.Retags.retag``."""
    return retagging.retag(builder, stale_keys, partial(_policies, builder, stale_keys))


def _policies(builder: Builder, stale_keys: Sequence[str]) -> int:
    """The policy of daily snapshots: its own tags, and before them those that it gives to new snapshots. How many."""
    kind, calls = dlm_kinds.SNAPSHOT_POLICY, builder.calls
    line = builder.ledger.find(kind.name, etcd_volume.KEY)
    policy = dlm_kinds.policy(calls, line.vendor_id) if line is not None and line.state == "made" else None
    if policy is None or not tags.carries(policy["Tags"], tags.of_cluster(builder.owner)):
        return 0
    policy_id, arn = str(policy["PolicyId"]), str(policy["PolicyArn"])

    def give(_ids: Sequence[str], marks: Mapping[str, str]) -> None:
        calls.call("dlm", "tag_resource", ResourceArn=arn, Tags=dict(marks))

    def take(_ids: Sequence[str], keys: Sequence[str]) -> None:
        calls.call("dlm", "untag_resource", ResourceArn=arn, TagKeys=list(keys))

    def schedule(_ids: Sequence[str]) -> None:
        calls.call("dlm", "update_lifecycle_policy", PolicyId=policy_id, PolicyDetails=details)

    details = dict(policy["PolicyDetails"])
    schedules = []
    for entry in details["Schedules"]:
        former = tags.mapping(entry.get("TagsToAdd"))
        marks = difference(builder, former, stale_keys).applied(former)
        schedules.append({**entry, "TagsToAdd": etcd_volume.of_snapshots(marks, builder.owner)})
    if schedules != details["Schedules"]:
        details["Schedules"] = schedules
        each_thing(calls, [(kind, policy_id)], schedule)
    write_tags(calls, Writer(give, take), difference(builder, policy["Tags"], stale_keys), [(kind, policy_id)])
    return 1
