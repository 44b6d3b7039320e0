"""The records the product keeps. Plain frozen dataclasses: a change makes a new one, the store guards it by version.

Every record belongs to the tenant of the store that holds it. ``SCHEMA`` is written with each record
so that a later release knows what it reads (``earlier_records``).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field
from typing import Any

from stockyard import kubernetes_versions
from stockyard.domain.cost_records import CostReport, GaugeReport, KeptSums, Usage
from stockyard.domain.manifest_sets import SetMember
from stockyard.domain.month_budgets import BudgetWatch
from stockyard.domain.nodes.os_images import OSImage
from stockyard.domain.nodes.records import (
    LaunchGroup,
    MachineHold,
    NodeClaim,
    NodeEnvironment,
    NodeProvider,
    Placement,
    PlacementOption,
    Refusal,
    SimulatedMachine,
    SpotDay,
    VersionedRecord,
)
from stockyard.domain.operation_records import (
    Operation,
    OperationError,
    OperationRun,
    PhaseRecord,
    RunLog,
    SubjectOperation,
)
from stockyard.domain.outbox_records import MESSAGES, Outbox
from stockyard.domain.pools.disruption_records import ClusterDisruption
from stockyard.domain.pools.records import ClusterClaim, Pool
from stockyard.domain.pools.workload_records import UnusedRoom, WorkloadPart, WorkloadReport
from stockyard.domain.profiles.records import ClusterPacks, ClusterProfile, ProfilePart, ProfileUse
from stockyard.domain.run_records import ProviderRun, RunState
from stockyard.domain.site_records import Site, SiteAnswer, SiteRequest
from stockyard.domain.values.conditions import Condition
from stockyard.domain.values.frozen import dataclass
from stockyard.domain.values.states import ClusterStatus, RequestState, ResourceState, Verification
from stockyard.domain.wait_records import Waiters

SCHEMA = 2

UNSEEN: frozenset[ClusterStatus] = frozenset({"accepting", "undoing"})
"""Statuses of clusters that were not handed over: nobody is shown them, and a schedule looks at them."""


@dataclass(frozen=True, slots=True)
class CloudAccount(VersionedRecord):
    """Credentials of one cloud. ``id`` is the number as text; numbers count up within a tenant."""

    provider: str
    name: str
    description: str
    attributes: dict[str, Any]
    external_id: str
    verification: Verification
    verification_message: str
    created_at: str
    updated_at: str
    verified_at: str | None = None
    warnings: tuple[str, ...] = ()
    """What the last verification warned of."""
    secrets: tuple[str, ...] = ()
    """Names of the attributes that are kept sealed."""
    tags: dict[str, str] = field(default_factory=dict)
    sequence: int = 0
    principal_id: str = ""
    """The id that the cloud gave who we are there, when that was last verified; empty before, and where it has none."""


@dataclass(frozen=True, slots=True)
class TagChange:
    """Tags that were changed, and that what stands in the cloud may not carry yet."""

    version: int
    """The cluster's version that it came with, so that no two are equal."""
    time: str
    stale_keys: tuple[str, ...]
    """Keys of tags that the cluster has no more, and that something in the cloud may still carry."""


@dataclass(frozen=True, slots=True)
class Cluster(VersionedRecord):
    """One Kubernetes cluster.

    ``status`` is ``accepting`` (leased, not yet visible), ``preparing``, ``ready``, ``failed``, ``deleting``, or
    ``undoing`` (an acceptance that is taken back: never visible).
    ``generation`` counts the operations on the cluster; with ``operation_id`` it is the fence of background work.
    """

    name: str
    description: str
    cluster_type: str
    provider: str
    cloud_account_id: int
    client_id: str
    status: ClusterStatus
    settings: dict[str, Any]
    created_at: str
    updated_at: str
    phase: str | None = None
    conditions: tuple[Condition, ...] = ()
    tags: dict[str, str] = field(default_factory=dict)
    operation_id: str | None = None
    generation: int = 1
    attempt: int = 1
    lease_expires_at: str | None = None
    execution: str | None = None
    """Name of the last provisioning execution, so that a deletion can stop it."""
    endpoint: str | None = None
    machine_endpoint: str | None = None
    """The endpoint as the cluster's own machines know it; None: as everybody does."""
    private_address: str | None = None
    """Where the control plane's machine is in its own network."""
    bastion: str = ""
    """The public address of the machine that is the way in for SSH; empty where there is none."""
    certificate_authority: str | None = None
    certificates_expire_at: str | None = None
    """When the certificates of the control plane end, as its last report says."""
    last_snapshot: str = ""
    """The id of the newest snapshot of etcd that a member has put into the cloud; empty for none."""
    instance_id: str | None = None
    place: str = ""
    """Where its machines stand, as its driver tells while it makes the cluster: a data center. Empty for one that its
    settings name."""
    remaining: tuple[str, ...] = ()
    """What a deletion could not remove yet, one line each."""
    created_by: str = ""
    """The actor that asked for it, as in audit records: ``user:ann``."""
    driver: str = ""
    """The name of the cluster driver that makes it; set when it is created, never changed."""
    kubernetes_version: str = kubernetes_versions.DEFAULT
    """The minor, out of ``kubernetes_versions.TESTED`` or what its cloud runs; the stage's setting is only what new
    clusters begin with."""
    keep_failed: int = 0
    """Minutes for which a machine is kept that did not come up."""
    kept_until: str | None = None
    """When such a machine is removed; None when none is kept."""
    document: dict[str, Any] = field(default_factory=dict)
    """What the manifest that it came as says beside its settings; empty for one that came as no manifest."""
    tag_change: TagChange | None = None
    """None when all that stands in the cloud carries ``tags``."""
    nodes_version: str = ""
    """The minor that new nodes get while the control plane is being brought to another; empty: the cluster's."""
    nodes_since: str = ""
    """Nodes of pools that were made before are replaced: they have an older minor or image. Empty: none are."""
    members_since: str = ""
    """Members of the control plane that were made before are replaced. Empty: none are."""
    pools_follow: bool = False
    """Whether pools of groups are as the settings say. Those of a cluster of an earlier release may have been changed
    as pools: its first change takes into the settings what they are."""
    queue: tuple[str, ...] = ()
    """The operations that begin one after the other when the current one has ended."""
    sequence: int = 0
    limits: dict[str, str] = field(default_factory=dict)
    """What the cluster with its nodes may have: ``usd_month``, what a month may cost in USD."""
    cloud_prefix: str = ""
    """How the cluster's name in its cloud begins, so that rights can be given by it. Empty: a cluster of an earlier
    release, whose name there begins with its own."""
    group_prefix: str = ""
    """How the names of the vendor's node groups begin. Empty: a cluster of an earlier release, whose groups are called
    by their own names alone."""
    expires_at: str | None = None
    """When its deletion begins by itself; None for never."""
    kubeconfig_secret: dict[str, str] = field(default_factory=dict)
    """The Secret with the cluster's kubeconfig that an agent keeps fresh: ``cluster_id`` and ``cluster``, the name of
    the cluster that it stands in, ``namespace`` there, and ``role``. Empty for none."""
    expiry_announced: str | None = None
    """The ``expires_at`` that an event has announced; None before."""

    @property
    def node_minor(self) -> str:
        """The minor of Kubernetes that a new node gets."""
        return self.nodes_version or self.kubernetes_version


@dataclass(frozen=True, slots=True)
class Event(VersionedRecord):
    """Event in the life of a resource. ``detail_type`` is the EventBridge detail type; ``sequence`` rises per
    subject."""

    detail_type: str
    subject: str
    sequence: int
    time: str
    actor: str
    before: str | None
    after: str | None
    reason: str
    message: str
    about: dict[str, str] = field(default_factory=dict)
    """Of a claim or a cluster its ``name``, of an operation that of its subject; of a claim also the
    ``cluster_id`` of its cluster, and of one of a pool ``pool`` and, once it is known, ``zone``."""


DONE = "done"
"""The outcome of a call that did what it was for."""


@dataclass(frozen=True, slots=True)
class AuditRecord(VersionedRecord):
    """Record of who did what, when, with what outcome: ``DONE`` or the type of the error. Never holds a body, only the
    changed fields' names."""

    time: str
    actor: str
    action: str
    subject: str
    outcome: str
    request_id: str
    detail: str = ""


@dataclass(frozen=True, slots=True)
class Idempotency(VersionedRecord):
    """The answer to a request with an ``Idempotency-Key``. ``id`` is route and key; the body is kept as a digest.

    The answer is kept as a reference (status and subject), never as text, so that no secret can be replayed from it.
    """

    digest: str
    state: RequestState
    created_at: str
    lease_expires_at: str
    status: int = 0
    headers: dict[str, str] = field(default_factory=dict)
    body: dict[str, Any] = field(default_factory=dict)
    expires_at: int = 0
    salt: str = ""
    """What nobody can guess: identifiers are made from it."""


@dataclass(frozen=True, slots=True)
class Name(VersionedRecord):
    """Holds a name that is unique in a tenant. ``id`` is ``kind/name``; ``owner`` the resource's id."""

    owner: str


@dataclass(frozen=True, slots=True)
class Resource(VersionedRecord):
    """One line of the ledger: something that is about to be, is, or was in a cloud.

    ``id`` is ``cluster id/phase/kind/key``. ``state`` is ``intended`` (written before the call), ``made`` or ``gone``.
    ``token`` is derived from (cluster, generation, attempt, kind, key) and passed as client token, name or tag.
    """

    cluster_id: str
    phase: str
    kind: str
    key: str
    token: str
    state: ResourceState
    region: str
    account_id: int
    intended_at: str
    vendor_id: str = ""
    made_at: str | None = None
    detail: dict[str, Any] = field(default_factory=dict)
    gone_at: str | None = None


@dataclass(frozen=True, slots=True)
class SealedSecret(VersionedRecord):
    """A secret of a cluster, which only the key of KMS opens. ``id`` is ``cluster id/name``."""

    key: str = field(repr=False)
    """The sealed data key, in base 64."""
    sealed: str = field(repr=False)
    """Nonce and sealed value, in base 64."""


@dataclass(frozen=True, slots=True)
class Fact(VersionedRecord):
    """Something a machine or a workflow told us about a cluster or claim. ``id`` is ``cluster or claim id/name``.

    Names of a cluster's: ``reported_ready``, ``task_token``, ``bootstrapped``, ``observed``, ``observed-mirror``,
    ``observed-attended``, ``observed-unclaimed``, ``machine_token``, and those of
    ``observe.KEPT_SECRETS``. Of a claim's: ``node``, those of ``node_commands.done_fact``, and
    ``machine_token-{attempt}``. Of tokens the hash is kept.
    """

    value: str
    time: str


@dataclass(frozen=True, slots=True)
class Counter(VersionedRecord):
    """A number that rises and falls atomically: account numbers, quota use. ``id`` names it."""

    value: int = 0


@dataclass(frozen=True, slots=True)
class Quota(VersionedRecord):
    """A tenant's limit that differs from the default. ``id`` is the quota's name."""

    limit: int
    updated_at: str


@dataclass(frozen=True, slots=True)
class PriceSheet(VersionedRecord):
    """Offers and prices of a cloud, when it was last asked.

    Of the platform: the list of one region for everybody; ``id`` is the region, ``data`` the catalogue adapter's
    compressed JSON. Of a tenant: what one of its cloud accounts was offered; ``id`` is ``ids.account_sheet``, ``data``
    is the cloud's own to read.
    """

    refreshed_at: str
    data: bytes


@dataclass(frozen=True, slots=True)
class PriceRequest(VersionedRecord):
    """Request to fetch the prices of a region, since somebody has named it. Of the platform; ``id`` is the region."""

    requested_at: str
    ended_at: str | None = None
    """When the fetching ended, well or not; None while it has not."""
    failure: str | None = None
    """Why it brought no prices."""


Record = (
    CloudAccount
    | Cluster
    | Operation
    | RunLog
    | Event
    | AuditRecord
    | Idempotency
    | Name
    | Outbox
    | Resource
    | Fact
    | Counter
    | Quota
    | PriceSheet
    | PriceRequest
    | SpotDay
    | NodeProvider
    | NodeClaim
    | NodeEnvironment
    | LaunchGroup
    | MachineHold
    | Refusal
    | SealedSecret
    | SimulatedMachine
    | Pool
    | ClusterClaim
    | WorkloadReport
    | WorkloadPart
    | UnusedRoom
    | ClusterDisruption
    | ClusterProfile
    | ProfilePart
    | ProfileUse
    | ClusterPacks
    | Usage
    | CostReport
    | KeptSums
    | GaugeReport
    | BudgetWatch
    | Waiters
    | Site
    | SiteRequest
    | SiteAnswer
    | ProviderRun
    | RunState
    | OSImage
    | SetMember
    | SubjectOperation
)
