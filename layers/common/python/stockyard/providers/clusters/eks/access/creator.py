"""The entry of whoever made the cluster, by which we apply what is in it: EKS keeps the unique id with it that the role
had then. Where the role was deleted and made again under its name, the entry lets nobody in."""

from __future__ import annotations

from collections.abc import Callable

from stockyard.domain.records import Resource
from stockyard.providers.clouds.aws import tags
from stockyard.providers.clouds.aws.errors import accepting
from stockyard.providers.clouds.aws.kinds import eks as eks_kinds
from stockyard.providers.clouds.aws.sessions import principal_arn, principal_id
from stockyard.providers.clusters.eks import names
from stockyard.providers.clusters.eks.building import Builder

CREATOR = "creator"
"""In the cluster's line: the id of who is let in. A line of an earlier release has none."""


def detail(builder: Builder) -> dict[str, object]:
    """Detail that the line of a new cluster keeps: who makes it."""
    return {CREATOR: _own_id(builder)} if _line(builder) is None else {}


def ensure(builder: Builder, without: Callable[[str], None], associate: Callable[[str], None]) -> None:
    """Make the entry anew where our role has another id than the one that it was made for, and once where nobody knows
    that one. ``without`` removes a principal's entry, ``associate`` gives it all rights. A crash in between is mended
    by the next try."""
    line = _line(builder)
    if line is None or line.state != "made":
        return
    own_id = _own_id(builder)
    if line.detail.get(CREATOR) == own_id:
        return
    principal, cluster = principal_arn(builder.work.account), names.cluster_name(builder.work.cluster)
    without(principal)
    with accepting("ResourceInUseException"):
        marks = tags.of_owner(builder.owner)
        builder.calls.call(
            "eks", "create_access_entry", clusterName=cluster, principalArn=principal, type="STANDARD", tags=marks
        )
    associate(principal)
    builder.ledger.made(line, line.vendor_id, {**line.detail, CREATOR: own_id})


def _line(builder: Builder) -> Resource | None:
    return next((line for line in builder.ledger.lines() if line.kind == eks_kinds.CLUSTER.name), None)


def _own_id(builder: Builder) -> str:
    return principal_id(builder.calls.call("sts", "get_caller_identity"))
