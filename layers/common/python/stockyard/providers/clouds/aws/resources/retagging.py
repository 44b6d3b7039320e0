"""Other tags for what stands in the account for a cluster, its nodes' machines, volumes and interfaces included.

What carries which tags is read first, and only what differs is written: a second run writes nothing, and one after a
crash writes what is left. Tags are taken away before others are given, because a thing takes fifty.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from stockyard.errors import NotYetVisible, PermissionDenied, VendorError, VendorNotFound
from stockyard.ports import Outcome
from stockyard.providers.clouds.aws import tags
from stockyard.providers.clouds.aws.calls import Calls
from stockyard.providers.clouds.aws.kinds import ec2 as ec2_kinds
from stockyard.providers.clouds.aws.kinds import efs as efs_kinds
from stockyard.providers.clouds.aws.kinds import eks as eks_kinds
from stockyard.providers.clouds.aws.kinds import elb as elb_kinds
from stockyard.providers.clouds.aws.kinds import iam as iam_kinds
from stockyard.providers.clouds.aws.kinds import s3 as s3_kinds
from stockyard.providers.clouds.aws.kinds.base import Kind, State, TaggedThing
from stockyard.providers.clouds.aws.resources.cluster_building import ClusterBuilder

OF_EC2 = (
    ec2_kinds.INSTANCE,
    ec2_kinds.NETWORK_INTERFACE,
    ec2_kinds.SPOT_REQUEST,
    ec2_kinds.VOLUME,
    ec2_kinds.SNAPSHOT,
    ec2_kinds.LAUNCH_TEMPLATE,
    ec2_kinds.PLACEMENT_GROUP,
    ec2_kinds.VPC_ENDPOINT,
    ec2_kinds.NAT_GATEWAY,
    ec2_kinds.ADDRESS,
    ec2_kinds.SECURITY_GROUP,
    ec2_kinds.ROUTE_TABLE,
    ec2_kinds.SUBNET,
    ec2_kinds.INTERNET_GATEWAY,
    ec2_kinds.VPC,
)
"""Kinds that are found by the tags that everything of a cluster has, and that one call tags many of."""
_BATCH = 200
"""Things that one call of EC2 is asked for; it takes a thousand."""

Builder = ClusterBuilder[Any]
Things = Sequence[tuple[Kind, str]]
"""Kind and vendor id of each."""


@dataclass(frozen=True, slots=True)
class Difference:
    """Tags that a thing lacks, and keys that it has too many."""

    missing: tuple[tuple[str, str], ...]
    surplus: tuple[str, ...]

    def applied(self, carried: Mapping[str, str]) -> dict[str, str]:
        """The tags without it."""
        return {key: value for key, value in carried.items() if key not in self.surplus} | dict(self.missing)


@dataclass(frozen=True, slots=True)
class Writer:
    """Ways to give and take tags of things of one service, by their vendor ids."""

    give: Callable[[Sequence[str], Mapping[str, str]], None]
    take: Callable[[Sequence[str], Sequence[str]], None]


def retag(builder: Builder, stale_keys: Sequence[str], more: Callable[[], int] = lambda: 0) -> Outcome:
    """See ``ports.Retags.retag``. A refusal of the cloud names the thing that it is about, and the cloud's code.
    ``more`` does the same for what only this driver has, and says how many things that are."""
    try:
        count = _ec2(builder, stale_keys) + _by_ledger(builder, stale_keys) + more()
    except VendorError as error:
        code = f" ({error.code})" if error.code and error.code not in error.detail else ""
        raise type(error)(f"{error.detail}{code}", code=error.code, hint=error.hint) from error
    return Outcome(True, f"{count} resources carry the tags.")


def _ec2(builder: Builder, stale_keys: Sequence[str]) -> int:
    """Things of EC2, those that lack the same by one call. How many there are."""
    differing: dict[Difference, list[tuple[Kind, str]]] = defaultdict(list)
    for kind in OF_EC2:
        for thing in kind.tagged(builder.calls, tags.of_cluster(builder.owner)):
            differing[difference(builder, thing.tags, stale_keys)].append((kind, thing.vendor_id))
    for change, things in differing.items():
        for start in range(0, len(things), _BATCH):
            write_tags(builder.calls, _of_ec2(builder.calls), change, things[start : start + _BATCH])
    return sum(len(things) for things in differing.values())


def _by_ledger(builder: Builder, stale_keys: Sequence[str]) -> int:
    """Retag the things of other services on the ledger, as long as they are there and the cluster's. How many there
    are."""
    calls, count = builder.calls, 0
    for line in builder.ledger.lines():
        if line.state != "made" or line.kind not in _WRITERS:
            continue
        kind, look, writer = _WRITERS[line.kind]
        for thing in look(calls, line.vendor_id):
            if tags.carries(thing.tags, tags.of_cluster(builder.owner)):
                count += 1
                write_tags(calls, writer(calls), difference(builder, thing.tags, stale_keys), [(kind, thing.vendor_id)])
    return count


def difference(builder: Builder, carried: Mapping[str, str], stale_keys: Sequence[str]) -> Difference:
    """Change that a thing with these tags needs."""
    own = builder.owner.own_tags
    if carried.get(tags.RESOURCE) != builder.owner.resource_id:
        # A node reads its tags from its metadata, so that it and what belongs to it have fewer.
        own = tags.of_instances(own)
    prefix = builder.owner.prefix
    missing = {k: v for k, v in own.items() if carried.get(k) != v and not tags.is_fixed(k, prefix)}
    surplus = [k for k in stale_keys if k in carried and k not in own and not tags.is_fixed(k, prefix)]
    return Difference(tuple(sorted(missing.items())), tuple(surplus))


def write_tags(calls: Calls, writer: Writer, change: Difference, things: Things) -> None:
    """Give and take what the difference says, of all the things."""

    def write(ids: Sequence[str]) -> None:
        if change.surplus:
            writer.take(ids, change.surplus)
        if change.missing:
            writer.give(ids, dict(change.missing))

    each_thing(calls, things, write)


def each_thing(calls: Calls, things: Things, write: Callable[[Sequence[str]], None]) -> None:
    """Write all the things. One that has gone meanwhile takes the others' answer with it, or is refused because nobody
    knows its tags any more: then they are written by halves."""
    try:
        write([vendor_id for _, vendor_id in things])
    except VendorError as error:
        may_be_gone = isinstance(error, (VendorNotFound, PermissionDenied))
        if may_be_gone and len(things) > 1:
            middle = len(things) // 2
            each_thing(calls, things[:middle], write)
            each_thing(calls, things[middle:], write)
            return
        kind, vendor_id = things[0]
        if may_be_gone and kind.state(calls, vendor_id) is State.ABSENT:
            return
        leaf = NotYetVisible if isinstance(error, VendorNotFound) else type(error)
        more = f" and {len(things) - 1} more" if len(things) > 1 else ""
        text = f"{kind.name} {vendor_id}{more}: {error.detail}"
        raise leaf(text, code=error.code, hint=error.hint) from error


def _of_ec2(calls: Calls) -> Writer:
    def give(ids: Sequence[str], marks: Mapping[str, str]) -> None:
        calls.call("ec2", "create_tags", Resources=list(ids), Tags=tags.pairs(marks))

    def take(ids: Sequence[str], keys: Sequence[str]) -> None:
        # Without a value: whatever the value is.
        calls.call("ec2", "delete_tags", Resources=list(ids), Tags=[{"Key": key} for key in keys])

    return Writer(give, take)


def _by_name(kind: Kind) -> Callable[[Calls, str], Sequence[TaggedThing]]:
    return lambda calls, name: kind.search(calls, {}, name)


def _by_arn(calls: Calls, arn: str) -> Sequence[TaggedThing]:
    return list(elb_kinds.with_tags(calls, [arn]))


def _of_balancing(calls: Calls) -> Writer:
    def give(arns: Sequence[str], marks: Mapping[str, str]) -> None:
        calls.call("elbv2", "add_tags", ResourceArns=list(arns), Tags=tags.pairs(marks))

    def take(arns: Sequence[str], keys: Sequence[str]) -> None:
        calls.call("elbv2", "remove_tags", ResourceArns=list(arns), TagKeys=list(keys))

    return Writer(give, take)


def _of_iam(thing: str) -> Callable[[Calls], Writer]:
    operation = {"Role": "tag_role", "InstanceProfile": "tag_instance_profile"}[thing]

    def writer(calls: Calls) -> Writer:
        def give(names: Sequence[str], marks: Mapping[str, str]) -> None:
            calls.call("iam", operation, **{f"{thing}Name": names[0]}, Tags=tags.pairs(marks))

        def take(names: Sequence[str], keys: Sequence[str]) -> None:
            calls.call("iam", f"un{operation}", **{f"{thing}Name": names[0]}, TagKeys=list(keys))

        return Writer(give, take)

    return writer


_ARNS = {
    eks_kinds.CLUSTER.name: "arn",
    eks_kinds.NODE_GROUP.name: "nodegroupArn",
    eks_kinds.ADDON.name: "addonArn",
    eks_kinds.ACCESS_ENTRY.name: "accessEntryArn",
    eks_kinds.POD_IDENTITY.name: "associationArn",
}
"""Where EKS tells the ARN of a thing, by which it takes tags."""


def _described(kind: Kind) -> Callable[[Calls, str], Sequence[TaggedThing]]:
    """The thing of an id with its tags, which its description tells; nothing when it is gone."""

    def look(calls: Calls, vendor_id: str) -> Sequence[TaggedThing]:
        try:
            item = kind.describe(calls, vendor_id) or {}
        except VendorNotFound:
            return ()
        carried = item.get("tags") or tags.mapping(item.get("Tags"))
        return [TaggedThing(vendor_id, carried)]

    return look


def _of_eks(kind: Kind) -> Callable[[Calls], Writer]:
    def writer(calls: Calls) -> Writer:
        def arn(vendor_id: str) -> str:
            return str((kind.describe(calls, vendor_id) or {})[_ARNS[kind.name]])

        def give(ids: Sequence[str], marks: Mapping[str, str]) -> None:
            calls.call("eks", "tag_resource", resourceArn=arn(ids[0]), tags=dict(marks))

        def take(ids: Sequence[str], keys: Sequence[str]) -> None:
            calls.call("eks", "untag_resource", resourceArn=arn(ids[0]), tagKeys=list(keys))

        return Writer(give, take)

    return writer


def _of_efs(calls: Calls) -> Writer:
    def give(ids: Sequence[str], marks: Mapping[str, str]) -> None:
        calls.call("efs", "tag_resource", ResourceId=ids[0], Tags=tags.pairs(marks))

    def take(ids: Sequence[str], keys: Sequence[str]) -> None:
        calls.call("efs", "untag_resource", ResourceId=ids[0], TagKeys=list(keys))

    return Writer(give, take)


def _of_buckets(calls: Calls) -> Writer:
    """A bucket's tags are written all at once, so that others that somebody has given it are read first."""

    def write(name: str, marks: Mapping[str, str]) -> None:
        calls.call("s3", "put_bucket_tagging", Bucket=name, Tagging={"TagSet": tags.pairs(marks)})

    def give(ids: Sequence[str], marks: Mapping[str, str]) -> None:
        write(ids[0], {**(s3_kinds.bucket_tags(calls, ids[0]) or {}), **marks})

    def take(ids: Sequence[str], keys: Sequence[str]) -> None:
        carried = s3_kinds.bucket_tags(calls, ids[0]) or {}
        write(ids[0], {key: value for key, value in carried.items() if key not in keys})

    return Writer(give, take)


_OF_EKS = (
    eks_kinds.CLUSTER,
    eks_kinds.NODE_GROUP,
    eks_kinds.ADDON,
    eks_kinds.ACCESS_ENTRY,
    eks_kinds.POD_IDENTITY,
)
_WRITERS = {
    kind.name: (kind, look, writer)
    for kind, look, writer in (
        (elb_kinds.LOAD_BALANCER, _by_arn, _of_balancing),
        (elb_kinds.TARGET_GROUP, _by_arn, _of_balancing),
        (iam_kinds.ROLE, _by_name(iam_kinds.ROLE), _of_iam("Role")),
        (iam_kinds.INSTANCE_PROFILE, _by_name(iam_kinds.INSTANCE_PROFILE), _of_iam("InstanceProfile")),
        *((kind, _described(kind), _of_eks(kind)) for kind in _OF_EKS),
        (efs_kinds.FILE_SYSTEM, _described(efs_kinds.FILE_SYSTEM), _of_efs),
        (s3_kinds.BUCKET, _by_name(s3_kinds.BUCKET), _of_buckets),
    )
}
