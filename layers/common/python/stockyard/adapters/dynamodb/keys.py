"""The one place that knows how records are laid out in the table.

======== ============================== ===========================================================
where    partition key                  sort key
======== ============================== ===========================================================
table    ``T#{tenant}#{Kind}``          the record's id
due      ``DUE#{Kind}``                 the moment it is due; only unseen clusters
due      ``DUE#Outbox#{shard}``         the moment from which the schedule sends the item, if the stream has not
due      ``DUE#NodeClaim#{shard}``      the moment the scheduler must look at the claim again
due      ``DUE#Pool#{shard}``           the moment a pass must look at the pool again
due      ``DUE#ClusterDisruption#{shard}`` the moment the cluster's nodes must be looked at again
due      ``DUE#BudgetWatch``            the moment a tenant's budgets must be looked at again
due      ``HAND#{cluster id}``          the claim's id; only while a workflow works on the claim
everything ``ALL#{Kind}``               ``{id}#{tenant}``; only cloud accounts, clusters, node providers and
                                        sites
everything ``T#{tenant}#{Kind}#{subject}`` the record's id; only events and audit records
======== ============================== ===========================================================

A tenant's name cannot hold ``#``, so no name reaches another tenant's partition. What belongs to a provider that all
tenants share stands with the platform, through whichever store it is read: see :func:`stockyard.domain.platform.home`.
The names of attributes that the layout needs itself are reserved: a record's field of such a name is stored as
``record_{name}``.
"""

from __future__ import annotations

import hashlib
import re
import zlib
from collections.abc import Collection
from datetime import timedelta
from typing import Any

from stockyard import errors
from stockyard.domain.platform import home
from stockyard.domain.records import (
    DONE,
    UNSEEN,
    AuditRecord,
    BudgetWatch,
    CloudAccount,
    Cluster,
    ClusterDisruption,
    Event,
    Idempotency,
    NodeClaim,
    NodeProvider,
    Outbox,
    Pool,
    ProviderRun,
    Record,
    Refusal,
    Resource,
    RunLog,
    Site,
    SiteAnswer,
    SiteRequest,
    Usage,
)
from stockyard.domain.subject_entries import PREFIXES
from stockyard.domain.values import times

Kind = type[Any]
"""The class of a record. mypy cannot pass a type variable's class on as ``type[Record]``."""

INSTALLATION = "installation"
"""The id of the fact that holds the installation's random id."""

DUE_INDEX = "due"
EVERYTHING_INDEX = "everything"

TTL = "ttl"
"""The attribute DynamoDB expires items by: whole seconds since 1970."""

CLAIM_SHARDS = 16
"""Partitions of the pending claims, by tenant: what one tenant waits for is read without what most others wait for. One
takes a thousand writes a second, and each claim is written to it twice."""
OUTBOX_SHARDS = 8
"""Partitions of the outbox. A claim sends some eight items, each of which comes to the index and leaves it."""
PASS_SHARDS = 8
"""Partitions of the pools, and of the clusters' disruption. Where all of a thousand clusters are due at once, a run of
the schedule begins some three hundred passes a second: each is written to the index when it begins and when it ends,
and leaves its old place there each time."""
_SHARDS = {NodeClaim: CLAIM_SHARDS, Outbox: OUTBOX_SHARDS, Pool: PASS_SHARDS, ClusterDisruption: PASS_SHARDS}
_ONE_BEFORE = frozenset({Pool, ClusterDisruption})
"""Kinds whose records all stood in one partition in earlier releases, ``DUE#{Kind}``: it is their first shard."""

EVENT_DAYS = 90
RUN_LOG_DAYS = 90
"""The bucket's life cycle ends the parts of a log after as many days."""
AUDIT_DAYS = 400
USAGE_DAYS = 400
"""For as long as somebody may ask what the months of the last year have cost."""
REFUSAL_DAYS = 7
"""How long the record of a refused call is kept: anybody with a token can make as many as the gateway lets through."""
GONE_DAYS = 2
"""A line of what is gone names its region to the sweep, which reads all lines: for longer than a call can be late."""

SITE_LIFE = timedelta(hours=1)
"""Requests of sites and their answers are kept for as long as somebody may look why one failed."""

MAX_ID_BYTES = 1024
"""DynamoDB's limit of a sort key."""

_MAX_SUBJECT_BYTES = 1024
"""A partition key may have twice as many; what a caller names may be longer."""

_TENANT = re.compile(r"[a-z0-9][a-z0-9-]{0,62}")
MOVED = "moved"
"""The attribute of a counter that says which way it went last: ``up`` or ``down``. The stream is filtered by it."""
_RESERVED = frozenset({"pk", "sk", "kind", "tenant", "schema", TTL, MOVED, "due_pk", "due_sk", "all_pk", "all_sk"})


def checked_tenant(tenant: str) -> str:
    """``tenant``, if it can be one. Raises ``Forbidden`` otherwise: the name comes from a token."""
    if _TENANT.fullmatch(tenant) is None:
        raise errors.Forbidden("The tenant's name must be 1 to 63 lower-case letters, digits or dashes")
    return tenant


def checked_id(kind: Kind, id: str) -> str:
    """``id``, if it can be a sort key. Raises ``InvalidInput`` when it is empty, too long or not text."""
    try:
        size = len(id.encode())
    except UnicodeEncodeError:
        raise errors.InvalidInput(f"The id of a {kind.__name__} is not Unicode text") from None
    if not 0 < size <= MAX_ID_BYTES:
        raise errors.InvalidInput(f"The id of a {kind.__name__} must have 1 to {MAX_ID_BYTES} bytes")
    return id


def attribute(field: str) -> str:
    """The attribute that holds a record's top-level field."""
    return f"record_{field}" if field in _RESERVED else field


def partition(tenant: str, kind: Kind, id: str) -> str:
    """The partition key of a tenant's record of this id, or of those whose ids begin so."""
    return f"T#{home(tenant, kind, id)}#{kind.__name__}"


def due_partitions(kind: Kind, tenants: Collection[str] | None = None) -> tuple[str, ...]:
    """The partitions of the ``due`` index, for claims those of these tenants. Raises ``ValueError`` for a kind that is
    never due."""
    if kind is NodeClaim and tenants is not None:
        return tuple(sorted({_shard(kind, tenant) for tenant in tenants}))
    if kind in _SHARDS:
        partitions = [f"DUE#{kind.__name__}#{shard}" for shard in range(_SHARDS[kind])]
        return (f"DUE#{kind.__name__}", *partitions[1:]) if kind in _ONE_BEFORE else tuple(partitions)
    if kind not in (Cluster, BudgetWatch):
        raise ValueError(f"{kind.__name__} records are not indexed by due time")
    return (f"DUE#{kind.__name__}",)


def due_partition(tenant: str, record: Record) -> str:
    """The one of ``due_partitions`` that the record stands in while it is due: of a claim by its tenant, else by its
    id. Neither ever changes."""
    return _shard(type(record), tenant if isinstance(record, NodeClaim) else record.id)


def _shard(kind: Kind, name: str) -> str:
    partitions = due_partitions(kind)
    return partitions[zlib.crc32(name.encode()) % len(partitions)]


def in_hand(claim: NodeClaim) -> bool:
    """Whether a workflow works on the claim: its node is being made or given back."""
    return claim.deleting or (claim.phase == "Pending" and claim.placement is not None)


def hand_partition(cluster_id: str) -> str:
    """The partition of the ``due`` index that holds the claims of a cluster that are being worked on."""
    return f"HAND#{cluster_id}"


def everything_partition(kind: Kind) -> str:
    """The partition of the ``everything`` index. Raises ``ValueError`` for a kind that is not listed over tenants."""
    if kind not in (CloudAccount, Cluster, NodeProvider, Site):
        raise ValueError(f"{kind.__name__} records are not indexed over tenants")
    return f"ALL#{kind.__name__}"


def subject_partition(tenant: str, kind: Kind, subject: str) -> str:
    """The partition of the ``everything`` index that holds the tenant's records about this subject. It begins as the
    table's does, so that no name reaches another tenant's."""
    encoded = subject.encode()
    name = subject if len(encoded) <= _MAX_SUBJECT_BYTES else hashlib.sha256(encoded).hexdigest()
    return f"{partition(tenant, kind, '')}#{name}"


def due_at(record: Record) -> str | None:
    """Moment when a schedule must look at the record; None when it need not."""
    if isinstance(record, Outbox | NodeClaim | Pool | ClusterDisruption | BudgetWatch):
        return record.due_at
    if isinstance(record, Cluster) and record.status in UNSEEN:
        return record.lease_expires_at
    return None


def index_keys(tenant: str, record: Record) -> dict[str, str]:
    """The attributes that put the record into the sparse indexes."""
    attributes: dict[str, str] = {}
    due = due_at(record)
    if due:
        attributes["due_pk"], attributes["due_sk"] = due_partition(tenant, record), due
    elif isinstance(record, NodeClaim) and record.cluster_id and in_hand(record):
        attributes["due_pk"], attributes["due_sk"] = hand_partition(record.cluster_id), record.id
    if isinstance(record, CloudAccount | Cluster | NodeProvider | Site):
        attributes["all_pk"], attributes["all_sk"] = everything_partition(type(record)), f"{record.id}#{tenant}"
    elif type(record) in PREFIXES:
        subject: str = record.subject  # type: ignore[union-attr]
        attributes["all_pk"], attributes["all_sk"] = subject_partition(tenant, type(record), subject), record.id
    return attributes


def expiry(record: Record) -> int | None:
    """Moment when DynamoDB may drop the record (epoch seconds); None means never."""
    if isinstance(record, Idempotency | Refusal):
        return record.expires_at or None
    life = _life(record)
    return None if life is None else times.epoch(times.from_text(life[0]) + life[1])


def _life(record: Record) -> tuple[str, timedelta] | None:
    """Since when a record is kept, and for how long; None for ever."""
    if isinstance(record, SiteRequest | SiteAnswer | RunLog | ProviderRun):
        is_of_site = isinstance(record, SiteRequest | SiteAnswer)
        return record.created_at, SITE_LIFE if is_of_site else timedelta(days=RUN_LOG_DAYS)
    if isinstance(record, Event):
        return record.time, timedelta(days=EVENT_DAYS)
    if isinstance(record, AuditRecord):
        return record.time, timedelta(days=AUDIT_DAYS if record.outcome == DONE else REFUSAL_DAYS)
    if isinstance(record, Usage):
        return record.until, timedelta(days=USAGE_DAYS)
    if isinstance(record, Resource) and record.gone_at is not None:
        return record.gone_at, timedelta(days=GONE_DAYS)
    return None
