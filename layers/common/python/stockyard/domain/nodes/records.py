"""The records of nodes: where they can come from, who wants one, and what a provider set up for a cluster.

Node types have no record of their own: declared ones stand in their provider's record, discovered ones come from the
provider's catalogue. What is counted for them is a ``Counter`` that exists only where capacity is limited.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import field, fields
from typing import Any

from stockyard.domain.values.conditions import Condition
from stockyard.domain.values.frozen import dataclass
from stockyard.domain.values.states import DesiredPower, LaunchGroupState, Power, ReadyPhase


@dataclass(frozen=True, slots=True)
class VersionedRecord:
    """Fields that every record but a node claim inherits. ``version`` is 1 on creation, plus 1 with each change."""

    id: str
    version: int = field(default=1, kw_only=True)


@dataclass(frozen=True, slots=True)
class NodeProvider(VersionedRecord):
    """A source of nodes. ``kind`` names the block of ``spec`` that configures it.

    ``spec`` is the document's spec as it was sent, less ``properties`` and ``displayName``; its node types are below
    ``spec[kind]["nodeTypes"]``. ``generation`` counts changes of it: a catalogue that was built from an older one is
    out of date.
    """

    name: str
    kind: str
    """``ec2``, ``simulated``, ``terraform``, ``kubeVirt``, ``bcm``, ``metal3``, ``clusterAPI``."""
    spec: dict[str, Any]
    created_at: str
    updated_at: str
    display_name: str = ""
    properties: dict[str, str] = field(default_factory=dict)
    price_per_cost_unit: float | None = None
    """USD an hour of one unit of cost: what makes a cost comparable with another provider's price."""
    phase: ReadyPhase = "Available"
    reason: str = ""
    message: str = ""
    conditions: tuple[Condition, ...] = ()
    labels: dict[str, str] = field(default_factory=dict)
    annotations: dict[str, str] = field(default_factory=dict)
    generation: int = 1
    created_by: str = ""
    implicit: bool = False
    """It was made for the node groups of clusters, and goes with the last of them."""
    removing_until: str = ""
    """Until this moment it is on its way out, and no claim begins with it. Empty when nobody removes it."""
    sequence: int = 0
    template_revisions: dict[str, str] = field(default_factory=dict)
    """Revision, such as a commit, that each moving place of its templates is at, by the place; none of one that does
    not answer, or is not followed."""

    def is_leaving(self, now: str) -> bool:
        """Whether somebody removes it at this moment."""
        return now < self.removing_until


PASSED_OVER = "passed_over"
"""The fact of a launch that took another option than the cheapest: a JSON object with the vendor's reason for each
type that it passed over, by the type's canonical name."""


@dataclass(frozen=True, slots=True)
class PlacementOption:
    """One way to launch a claim's machine. ``type`` is the canonical name of the node type."""

    type: str
    capacity_type: str
    zones: tuple[str, ...]
    """Any of them will do; ``*`` stands for all."""
    usd_hour: float | None
    """None when no price is known."""
    cost: float

    def type_of(self, provider: str) -> str:
        """The type as the provider of that name calls it; empty when it is another provider's."""
        prefix = f"{provider}."
        return self.type.removeprefix(prefix) if self.type.startswith(prefix) else ""


@dataclass(frozen=True, slots=True)
class Placement:
    """Decision of the scheduler for a claim, and the facts behind it.

    ``options`` are the ways that may be launched: the selected one first, then the others, the cheapest first.
    ``considered`` counts the node types by the first rule that ruled them out. ``counted`` says that one of the type's
    places is taken.
    """

    provider_id: str
    type: str
    capacity_type: str
    zones: tuple[str, ...]
    cost: float
    decided_at: str
    usd_hour: float | None = None
    counted: bool = False
    options: tuple[PlacementOption, ...] = ()
    considered: dict[str, int] = field(default_factory=dict)
    attempt: int = 1
    group: str = ""
    """The launch group that the claim was placed with; empty: it is launched alone."""
    owned: bool = False
    """Whether its machine is one that its owner has anyway."""
    passed_over: dict[str, str] = field(default_factory=dict)
    """Reasons why the launch did not take options that cost less, by their types."""

    def may_be_in(self, zones: Sequence[str]) -> bool:
        """Whether the node's zone is one of these, as far as it is known; ``*`` is any zone."""
        zone = self.zones[0] if len(self.zones) == 1 else "*"
        return "*" in (zone, *zones) or zone in zones


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeClaimSpec:
    """Specification of a node claim: part of its record and of the request for it, in whatever form that comes."""

    cluster_ref: str = ""
    """The cluster as the claim names it: id or name; empty for a node of no cluster."""
    provider_ref: str = ""
    """Name of the provider; empty: the cheapest of all."""
    display_name: str = ""
    requirements: tuple[dict[str, Any], ...] = ()
    """Selector requirements: ``key``, ``operator``, ``values``, ``minValues``."""
    resources: dict[str, str] = field(default_factory=dict)
    """Desired capacity as Kubernetes quantities."""
    properties: dict[str, str] = field(default_factory=dict)
    taints: tuple[dict[str, Any], ...] = ()
    startup_taints: tuple[dict[str, Any], ...] = ()
    kubelet_args: dict[str, str] = field(default_factory=dict)
    control_plane: bool = False
    power: Power = "On"
    priority: int = 0
    keep_failed: int = 0
    """Minutes for which a machine is kept that did not come up."""
    termination_grace_period: str = ""
    """How long its deletion waits for pods that cannot go, as a duration of Go; ``Never``: as long as it takes. Empty:
    as long as the stage or the provider says."""
    form: str = "stockyard"
    """Which document it came as: ``stockyard``, ``vcluster`` or ``karpenter``."""
    document: dict[str, Any] = field(default_factory=dict)
    """What a foreign document has besides, so that it can be shown as it came."""
    labels: dict[str, str] = field(default_factory=dict)
    annotations: dict[str, str] = field(default_factory=dict)
    max_price: dict[str, float] = field(default_factory=dict)
    """The most that its node may cost as spot: ``percent`` of on-demand or ``usd_hour``; empty: whatever it costs."""

    def spec(self) -> dict[str, Any]:
        """The fields of the specification by name."""
        return {part.name: getattr(self, part.name) for part in fields(NodeClaimSpec)}


@dataclass(frozen=True, slots=True, kw_only=True)
class NewClaim(NodeClaimSpec):
    """A claim that is asked for and whose form was checked."""

    name: str = ""
    """Empty: one is made."""
    type_ref: str = ""
    """The one node type that will do; empty: any that fits."""
    strict: bool = True
    """What it refers to must exist; otherwise the claim waits until it does."""
    keeps_power: bool = False
    """The manifest does not say whether the machine runs: a claim that is there stays as it is."""


@dataclass(frozen=True, slots=True)
class NodeClaim(NodeClaimSpec):
    """One wanted, promised or existing node.

    ``deleting`` says that it is on its way out, whatever the phase. ``attempt`` rises with each placement,
    ``generation`` with each operation; with ``operation_id`` they are the fence of background work. ``due_at`` is
    there while the scheduler has to look at the claim.
    """

    id: str
    name: str
    created_at: str
    updated_at: str
    cluster_id: str = ""
    """The cluster that ``cluster_ref`` was resolved to; empty until then."""
    pool: str = ""
    """Name of the cluster's pool that made it; empty for none."""
    pod_groups: tuple[str, ...] = ()
    """The groups of equal pods that its node was planned for, as reports name them; a few of them."""
    pool_generation: int = 0
    """The pool's generation that it was made from."""
    type_ref: str = ""
    """Canonical name of the node type; filled by the scheduler unless the claim asked for it."""
    environment_ref: str = ""
    power_observed: str = ""
    desired_power: DesiredPower | None = None
    """What an operation is bringing about; None when none does."""
    phase: ReadyPhase = "Pending"
    reason: str = ""
    message: str = ""
    conditions: tuple[Condition, ...] = ()
    deleting: bool = False
    kept_until: str | None = None
    """When a machine is removed that did not come up and is kept; None when none is."""
    due_at: str | None = None
    placement: Placement | None = None
    machine_id: str = ""
    """The vendor's id of the machine."""
    node_name: str = ""
    host_name: str = ""
    """What the cloud calls the machine, where its node has that name; empty: the node is called as the claim."""
    node_labels: dict[str, str] = field(default_factory=dict)
    """What the joined node is labelled with: the resolved properties."""
    drift_hash: str = ""
    """Of type, template and properties at launch; another one now means drift."""
    pool_hash: str = ""
    """Of its pool's template when it was made; another one now means drift. Empty: it is not compared."""
    expire_after: str = ""
    """After what age its node is replaced, as its pool said when it was made. Empty: the pool is asked."""
    kubernetes_version: str = ""
    """The minor that its machine was to install. Empty: it was launched by an earlier release, or names none."""
    drift_reasons: tuple[str, ...] = ()
    """By what the node differs from what its provider and its pool would make now."""
    compared_at: str | None = None
    """When the source was last asked whether the machine is as it would be made; None: never, or of a source that says
    nothing of it."""
    compared_as: str | None = None
    """The mark of the template that it was compared with."""
    machine_drift: str | None = None
    """What differed then, in words; None: nothing did."""
    ends_at: str | None = None
    """When the claim's cloud takes the machine back, as the machine was told; None: it was told nothing."""
    reserved_until: str | None = None
    """When its cloud ends the machine, since the room that was bought for it is over then; None: never for that, or
    nobody has asked yet."""
    deletion_timestamp: str | None = None
    """When its deletion was first asked for; a drain's grace counts from here."""
    drain_until: str | None = None
    """Until when somebody who deletes it lets pods wait at most; None: as long as the claim's own grace says."""
    operation_id: str | None = None
    execution: str | None = None
    generation: int = 1
    attempt: int = 1
    last_refusal: str | None = None
    """What was said when the last machine could not be had that the claim was placed on; None: none was refused."""
    launch_refused: bool = False
    """It has failed because its cloud refused the launch for good; other claims become other types for a while."""
    remaining: tuple[str, ...] = ()
    created_by: str = ""
    sequence: int = 0
    version: int = 1


@dataclass(frozen=True, slots=True)
class LaunchGroup(VersionedRecord):
    """Equal claims that were placed in one transaction, so that one call launches them all.

    ``state`` is ``open`` (no call has made anything yet), ``intended`` (one may be under way, for ``asked``) or
    ``made``. ``machines`` are by claim: ``id``, and ``type`` and ``zone`` where the call's answer told them. The record
    lives until its last member has nothing more of it: its machines carry its id as their resource.
    """

    cluster_id: str
    members: tuple[str, ...]
    """Ids of the claims that may have something of it, in the order in which machines are given out."""
    created_at: str
    state: LaunchGroupState = "open"
    asked: tuple[str, ...] = ()
    """The members that the last call was made for."""
    token: str = ""
    intended_at: str | None = None
    made_at: str | None = None
    machines: dict[str, dict[str, str]] = field(default_factory=dict)
    refusal: dict[str, Any] = field(default_factory=dict)
    """Why there are fewer machines than were asked for: ``detail``, ``code``, ``refused``, ``own``."""
    template_at: str | None = None
    """When a member made the launch template: AWS may not know that everywhere yet."""
    pause_until: str | None = None
    """When it may be tried again after a call that came too early."""


@dataclass(frozen=True, slots=True)
class MachineHold(VersionedRecord):
    """Says which claim has a machine that a node group made by itself. ``id`` is ``{cluster id}/{machine id}``, so that
    a machine has one holder at most. It goes when the machine has gone."""

    claim_id: str
    taken_at: str

    @property
    def machine_id(self) -> str:
        """The machine that is held."""
        return self.id.partition("/")[2]


@dataclass(frozen=True, slots=True)
class NodeEnvironment(VersionedRecord):
    """Environment that a provider set up once for one cluster. ``id`` is derived from both, so that there is never a
    second."""

    cluster_id: str
    provider_id: str
    provider_name: str
    created_at: str
    updated_at: str
    properties: dict[str, str] = field(default_factory=dict)
    phase: ReadyPhase = "Pending"
    reason: str = ""
    message: str = ""
    conditions: tuple[Condition, ...] = ()
    outputs: dict[str, Any] = field(default_factory=dict)
    """JSON values by name, whole as the last preparation found them."""
    secret_outputs: tuple[str, ...] = ()
    """Names of further outputs, which are sealed."""
    sealed_as: str | None = None
    """The mark of the preparation that has sealed them; None where nothing is."""
    removing: bool = False
    """Nobody needs it, and it is on its way out: no claim may begin to use it."""
    is_stale: bool = False
    """The cluster's network has changed since: what it knows of that is not all any more, until the next claim that
    uses it has it found again."""
    sequence: int = 0


@dataclass(frozen=True, slots=True)
class Refusal(VersionedRecord):
    """A way to get a machine that a cloud refused a moment ago. Kept for all tenants, by the platform.

    ``id`` is ``{scope}/{type}/{capacity type}/{zone}``; the scope is ``ec2/{region}`` or ``provider/{provider id}``,
    the type the provider's own name of it, the zone ``*`` for all.
    """

    refused_at: str
    expires_at: int
    """Epoch seconds; the table drops it then."""
    reason: str = ""
    until: int | None = None
    """Until when it counts, in epoch seconds; the record is kept longer, so that the next refusal soon after counts for
    longer. None: until it expires."""


@dataclass(frozen=True, slots=True)
class SpotDay(VersionedRecord):
    """Spot prices of the last day, of the platform. ``id`` is ``{region}/{part}``: a part holds some of the types, so
    that one read is enough for one of them. ``data`` is the catalogue adapter's compressed JSON."""

    refreshed_at: str
    data: bytes


@dataclass(frozen=True, slots=True)
class SimulatedMachine(VersionedRecord):
    """A machine of the simulated provider. ``id`` is its launch token, so that a second launch is the same one."""

    claim_id: str
    provider_id: str
    type: str
    capacity_type: str
    zone: str
    launched_at: str
    joins_at: str | None
    """When its node joins; None: never."""
    power: Power = "On"
    tags: dict[str, str] = field(default_factory=dict)
