"""What a cluster's agent posts and is answered, and how a machine joins."""

from __future__ import annotations

import re
from datetime import datetime
from typing import Annotated, Any, Literal, Self, cast

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, StringConstraints, model_validator

from stockyard.domain import times
from stockyard.domain.models.base import Input, View, not_null
from stockyard.domain.models.machines import BootStep, CertificateAuthority, Kubeconfig, MachineProof, SignedProof
from stockyard.domain.workload_records import MOST_NODES

MOST_RESULTS = 5_000
Text = Annotated[str, StringConstraints(max_length=1_024)]
Name = Annotated[str, StringConstraints(min_length=1, max_length=253)]
Moment = Annotated[str, StringConstraints(pattern=r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{1,9})?Z$")]


def _real(moment: str) -> str:
    return times.to_text(datetime.fromisoformat(moment))


Time = Annotated[Moment, AfterValidator(_real)]
"""A moment that there is, as ``times.from_text`` reads it."""
Truth = Literal["True", "False", "Unknown"]
Labels = Annotated[dict[str, Text], Field(max_length=512)]
Hash = Annotated[str, StringConstraints(pattern=r"^sha256:[0-9a-f]{64}$")]
_CLAIM_ID = re.compile(r"ncl_[0-9A-HJKMNP-TV-Z]{26}")
ClusterId = Annotated[str, StringConstraints(pattern=r"^clu_[0-9A-HJKMNP-TV-Z]{26}$")]


class ObservedTaint(Input):
    """A taint of a node."""

    key: Name
    value: Text = ""
    effect: Text


def _claim_id(label: str | None) -> str | None:
    """Anybody who may label a node may write anything: what is no claim's id is none."""
    return label if label is not None and _CLAIM_ID.fullmatch(label) else None


class ObservedNode(Input):
    """A node as the cluster has it; ``claim`` is its label ``stockyard.dev/claim``, if that is an id."""

    name: Name
    uid: Text
    provider_id: Text = ""
    created_at: Moment
    claim: Annotated[Text | None, AfterValidator(_claim_id)] = None
    ready: Truth
    unschedulable: bool = False
    taints: Annotated[list[ObservedTaint], Field(max_length=100)] = Field(default_factory=list)
    labels: Labels = Field(default_factory=dict)
    capacity: Labels = Field(default_factory=dict)
    allocatable: Labels = Field(default_factory=dict)
    pods: Annotated[int, Field(ge=0)] = 0


class CommandResult(Input):
    """What became of a command."""

    id: Annotated[str, StringConstraints(min_length=1, max_length=64)]
    status: Literal["done", "running", "failed"]
    message: Annotated[str, StringConstraints(max_length=4_096)] = ""
    data: Annotated[dict[str, Any], Field(max_length=64)] = Field(default_factory=dict)


class ReportsOfPods(Input):
    """How far the agent's reports of pods are: the sequence of the last one that it was answered, and until when it
    knows that pods, nodes and budgets are as that says. The time is of the agent's clock, as ``observed_at``."""

    sequence: Annotated[int, Field(ge=0, le=2**53 - 1)]
    true_at: Time


class Observation(Input):
    """One post of the agent: the whole list of nodes, and results until their commands are no longer sent. ``pods`` is
    null before the first report of pods."""

    sequence: Annotated[int, Field(ge=0, le=2**53 - 1)]
    observed_at: Time
    agent_version: Text
    kubernetes_version: Text
    ca_hash: Hash
    nodes: Annotated[list[ObservedNode], Field(max_length=MOST_NODES)]
    results: Annotated[list[CommandResult], Field(max_length=MOST_RESULTS)] = Field(default_factory=list)
    pods: ReportsOfPods | None = None


class CommandView(BaseModel):
    """A command; what it has besides depends on its kind."""

    model_config = ConfigDict(extra="allow")

    id: str
    kind: str
    deadline: str | None = None


class ObservationAnswer(View):
    """What is to be done, and how soon to come again.

    ``mirror`` is the version of the pools and claims that the agent mirrors: another one means that they may have
    changed, empty that nothing is to be mirrored, null that nobody can say yet. ``pods_interval_seconds`` is how soon
    to tell what pods moved while none waits; null: as the answers to reports of pods say.
    """

    commands: list[CommandView]
    interval_seconds: int
    mirror: str | None = None
    pods_interval_seconds: int | None = None


class MirrorView(View):
    """A part of what the agent mirrors; ``after`` leads to the next one, empty for the last. Objects have ``kind``,
    ``name``, ``labels``, ``annotations``, ``spec``, ``status``, and ``pool`` where they are claims."""

    objects: list[dict[str, Any]]
    after: str


class JoinProof(MachineProof):
    """The cluster that the machine is to join, and one of two proofs: the same request as of ``/bootstrap``, or the
    token that the machine's user data holds."""

    cluster_id: ClusterId


class NodeBootReport(JoinProof, BootStep):
    """What a node's machine says of its first boot, with the proof of ``/join``."""


class Interruption(SignedProof):
    """A cloud's announcement to a node's machine, with the proof of ``/join`` by a signed request.

    ``interruption``: the machine ends at ``time``. ``rebalance``: it was recommended at ``time`` to move elsewhere.
    ``maintenance``: the cloud stops, restarts or retires the machine at ``time`` or later.
    """

    cluster_id: ClusterId
    kind: Literal["interruption", "rebalance", "maintenance"]
    time: Time


_PROOF = cast("dict[str, Any]", MachineProof.model_config["json_schema_extra"])
_TOGETHER: dict[str, Any] = {"kubeconfig": ["certificate_authority"], "certificate_authority": ["kubeconfig"]}


class MemberReport(JoinProof):
    """A member of a control plane has joined, with the proof of ``/join``. ``removed`` are the nodes of those members
    that it has taken out of etcd since. Its kubeconfig, new or renewed, takes the place of one that ends earlier."""

    model_config = ConfigDict(json_schema_extra={**_PROOF, "dependentRequired": _TOGETHER})

    state: Literal["joined"]
    kubeconfig: Kubeconfig | None = Field(None, json_schema_extra=not_null)
    certificate_authority: CertificateAuthority | None = Field(None, json_schema_extra=not_null)
    removed: Annotated[list[Name], Field(max_length=16)] = Field(default_factory=list)

    @model_validator(mode="after")
    def _both(self) -> Self:
        if (self.kubeconfig is None) is not (self.certificate_authority is None):
            raise ValueError("must have kubeconfig and certificate_authority, or none of both")
        return self


class MemberReportAnswer(View):
    """The nodes of members that are to be taken out of etcd. Not ``done``: report again after ``retry_after`` seconds,
    with those in ``removed``."""

    remove: list[str]
    done: bool
    retry_after: int


class SnapshotToRestore(View):
    """Where a snapshot of etcd is, and the programs by which a machine begins a control plane from it."""

    bucket: str
    region: str
    key: str
    programs: dict[str, str]


class ControlPlaneJoin(View):
    """What a further member of a control plane needs besides: the key of the sealed authorities, and which members are
    dead and have to be taken out of etcd before it is added. ``workloads``: its node has no taint. ``restore``: it
    joins nobody, and begins the control plane anew from that snapshot."""

    certificate_key: str
    kubernetes_version: str
    remove_before: list[str]
    workloads: bool
    restore: SnapshotToRestore | None = None


class JoinAnswer(View):
    """What a machine needs to join its cluster: its own short-lived token, and by what it knows the cluster.

    ``internal_endpoint``: only the cluster's own machines know the endpoint's name, by ``addresses``.
    ``control_plane`` is null for a worker.
    """

    endpoint: str
    internal_endpoint: bool
    addresses: list[str]
    token: str
    ca_hash: str
    node_name: str
    labels: dict[str, str]
    taints: list[dict[str, Any]]
    kubelet_args: dict[str, str]
    control_plane: ControlPlaneJoin | None = None
