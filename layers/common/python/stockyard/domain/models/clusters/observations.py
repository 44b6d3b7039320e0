"""Posts of a cluster's agent, the answers, and the joining of a machine."""

from __future__ import annotations

import re
from datetime import datetime
from typing import Annotated, Any, Literal, Self, cast

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, StringConstraints, model_validator

from stockyard.domain.models.base import Input, View, not_null
from stockyard.domain.models.clusters.machines import (
    BootStep,
    CertificateAuthority,
    Kubeconfig,
    MachineProof,
    OverlayPeer,
    OverlayPlace,
    OverlayRequest,
    SignedProof,
)
from stockyard.domain.pools.workload_records import MOST_NODES
from stockyard.domain.values import times
from stockyard.domain.values.states import Truth

MOST_RESULTS = 5_000
Text = Annotated[str, StringConstraints(max_length=1_024)]
Name = Annotated[str, StringConstraints(min_length=1, max_length=253)]
Moment = Annotated[str, StringConstraints(pattern=r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{1,9})?Z$")]


def _real(moment: str) -> str:
    return times.to_text(datetime.fromisoformat(moment))


Time = Annotated[Moment, AfterValidator(_real)]
"""A moment that there is, as ``times.from_text`` reads it."""
Labels = Annotated[dict[str, Text], Field(max_length=512)]
Hash = Annotated[str, StringConstraints(pattern=r"^sha256:[0-9a-f]{64}$")]
"""The SHA-256 of the public key of the cluster's certificate authority, as kubeadm writes it."""
_CLAIM_ID = re.compile(r"ncl_[0-9A-HJKMNP-TV-Z]{26}")
ClusterId = Annotated[str, StringConstraints(pattern=r"^clu_[0-9A-HJKMNP-TV-Z]{26}$")]
"""The id of the cluster that the machine belongs to."""


class ObservedTaint(Input):
    """A taint of a node."""

    key: Name
    """The key of the taint."""
    value: Text = ""
    """The value of the taint; empty for none."""
    effect: Text
    """What the taint does to pods that do not tolerate it."""


def _claim_id(label: str | None) -> str | None:
    """Anybody who may label a node may write anything: what is no claim's id is none."""
    return label if label is not None and _CLAIM_ID.fullmatch(label) else None


class ObservedNode(Input):
    """A node as the cluster has it."""

    name: Name
    """The name of the node."""
    uid: Text
    """The uid that the cluster gave it."""
    provider_id: Text = ""
    """What the node says of its machine; empty for nothing."""
    created_at: Moment
    """When the node came into the cluster."""
    claim: Annotated[Text | None, AfterValidator(_claim_id)] = None
    """The label ``stockyard.dev/claim``, if that is an id; else null."""
    ready: Truth
    """The status of its condition ``Ready``."""
    unschedulable: bool = False
    """Whether it takes no new pods."""
    taints: Annotated[list[ObservedTaint], Field(max_length=100)] = Field(default_factory=list)
    """Its taints."""
    labels: Labels = Field(default_factory=dict)
    """Its labels."""
    capacity: Labels = Field(default_factory=dict)
    """What it has, by the name of the resource."""
    allocatable: Labels = Field(default_factory=dict)
    """What of that is for pods."""
    pods: Annotated[int, Field(ge=0)] = 0
    """How many pods are on it."""
    overlay: Annotated[str, StringConstraints(max_length=4_096)] | None = None
    """What its machine says of its paths in the cluster's overlay; null for nothing."""


class CommandResult(Input):
    """Result of a command."""

    id: Annotated[str, StringConstraints(min_length=1, max_length=64)]
    """The id of the command."""
    status: Literal["done", "running", "failed"]
    """What became of it."""
    message: Annotated[str, StringConstraints(max_length=4_096)] = ""
    """Why it failed, or what it waits for."""
    data: Annotated[dict[str, Any], Field(max_length=64)] = Field(default_factory=dict)
    """What else the command has found; the fields depend on its kind."""


class ReportsOfPods(Input):
    """Progress of the agent's reports of pods."""

    sequence: Annotated[int, Field(ge=0, le=2**53 - 1)]
    """The sequence of the last report of pods that the agent was answered."""
    true_at: Time
    """Until when pods, nodes and budgets are known to be as that report says, by the agent's clock."""


class Observation(Input):
    """One post of the agent: the whole list of nodes, and results of commands."""

    sequence: Annotated[int, Field(ge=0, le=2**53 - 1)]
    """Rises with each post of the agent."""
    observed_at: Time
    """When the agent looked, by its own clock."""
    agent_version: Text
    """The version of the agent."""
    kubernetes_version: Text
    """The version of the cluster's API server."""
    ca_hash: Hash
    nodes: Annotated[list[ObservedNode], Field(max_length=MOST_NODES)]
    """All nodes of the cluster."""
    results: Annotated[list[CommandResult], Field(max_length=MOST_RESULTS)] = Field(default_factory=list)
    """Results of commands, until these are no longer sent."""
    pods: ReportsOfPods | None = None
    """How far the reports of pods are; null before the first."""
    overlay: Annotated[str, StringConstraints(max_length=64)] | None = None
    """The version of the list of the overlay's machines that the agent has written; null for none."""


class OverlayList(View):
    """All machines of the cluster's overlay, for the list in the cluster."""

    version: str
    """The version of the list."""
    peers: list[OverlayPeer]
    """The machines."""


class CommandView(BaseModel):
    """A command; what it has besides depends on its kind."""

    model_config = ConfigDict(extra="allow")

    id: str
    """The id of the command, which its result names."""
    kind: str
    """What is to be done; the further fields depend on it."""
    deadline: str | None = None
    """When it is of no use any more; null for never."""


class ObservationAnswer(View):
    """Work for the agent, and how soon to come again."""

    commands: list[CommandView]
    """What is to be done."""
    interval_seconds: int
    """How soon to come again, in seconds."""
    mirror: str | None = None
    """The version of the pools and claims that the agent mirrors: another one than before means that they may have
    changed, empty that nothing is to be mirrored, null that nobody can say yet."""
    pods_interval_seconds: int | None = None
    """How soon to tell what pods moved while none waits, in seconds; null: as the answers to reports of pods say."""
    kubeconfig_secrets: bool = False
    """Whether there are Secrets with kubeconfigs that the agent keeps, or is to remove."""
    overlay: OverlayList | None = None
    """The machines of the cluster's overlay, where the agent has written another list; else null."""


class MirrorView(View):
    """A part of what the agent mirrors."""

    objects: list[dict[str, Any]]
    """Pools and claims, each with ``kind``, ``name``, ``labels``, ``annotations``, ``spec`` and ``status``, and of
    claims ``pool``."""
    after: str
    """Leads to the next part; empty for the last."""


class JoinProof(MachineProof):
    """The cluster that the machine is to join, and one of two proofs: the same request as of ``/bootstrap``, or the
    token that the machine's user data holds."""

    cluster_id: ClusterId


class JoinRequest(JoinProof, OverlayRequest):
    """Cluster, proof, and key of a machine that is to join."""


class NodeBootReport(JoinProof, BootStep):
    """Report of a node's machine about its first boot, with the proof of ``/join``."""


class Interruption(SignedProof):
    """A cloud's announcement to a node's machine, with the proof of ``/join`` by a signed request."""

    cluster_id: ClusterId
    kind: Literal["interruption", "rebalance", "maintenance"]
    """What was announced: ``interruption``: the machine ends at ``time``. ``rebalance``: it was recommended at ``time``
    to move elsewhere. ``maintenance``: the cloud stops, restarts or retires the machine at ``time`` or later."""
    time: Time
    """The moment that the announcement names."""


_PROOF = cast("dict[str, Any]", MachineProof.model_config["json_schema_extra"])
_TOGETHER: dict[str, Any] = {"kubeconfig": ["certificate_authority"], "certificate_authority": ["kubeconfig"]}


class MemberReport(JoinProof):
    """A member of a control plane has joined, with the proof of ``/join``."""

    model_config = ConfigDict(json_schema_extra={**_PROOF, "dependentRequired": _TOGETHER})

    state: Literal["joined"]
    """What the member says; that it has joined."""
    kubeconfig: Kubeconfig | None = Field(None, json_schema_extra=not_null)
    """A new or renewed kubeconfig, which takes the place of one that ends earlier."""
    certificate_authority: CertificateAuthority | None = Field(None, json_schema_extra=not_null)
    """The certificate of the cluster's certificate authority, as PEM; given with ``kubeconfig``."""
    removed: Annotated[list[Name], Field(max_length=16)] = Field(default_factory=list)
    """The nodes of those members that it has taken out of etcd since."""

    @model_validator(mode="after")
    def _both(self) -> Self:
        if (self.kubeconfig is None) is not (self.certificate_authority is None):
            raise ValueError("must have kubeconfig and certificate_authority, or none of both")
        return self


class MemberReportAnswer(View):
    """Members that are to be taken out of etcd."""

    remove: list[str]
    """The nodes of members that are to be taken out of etcd."""
    done: bool
    """Whether nothing more is to be reported."""
    retry_after: int
    """After how many seconds to report again, when it is not done."""


class SnapshotToRestore(View):
    """Place of a snapshot of etcd, and the programs by which a machine begins a control plane from it."""

    bucket: str
    """The bucket that the snapshot is in."""
    region: str
    """The region of the bucket."""
    key: str
    """The key of the snapshot in the bucket."""
    programs: dict[str, str]
    """The programs that begin a control plane from it, by the name of the file."""


class ControlPlaneJoin(View):
    """Values that a further member of a control plane needs besides."""

    certificate_key: str
    """Opens the sealed authorities of the control plane."""
    kubernetes_version: str
    """The version of Kubernetes that the member has to have."""
    remove_before: list[str]
    """The members that are dead and have to be taken out of etcd before it is added."""
    workloads: bool
    """True: its node has no taint, so that it takes pods like any other."""
    restore: SnapshotToRestore | None = None
    """The snapshot by which it begins the control plane anew, and joins nobody; else null."""


class JoinAnswer(View):
    """Values that a machine needs to join its cluster: its own short-lived token, and by what it knows the cluster."""

    endpoint: str
    """The address of the cluster's API."""
    internal_endpoint: bool
    """Whether only the cluster's own machines know the name in it, by ``addresses``."""
    addresses: list[str]
    """The addresses that the name stands for."""
    token: str
    """The machine's own token to join with, which soon ends."""
    ca_hash: str
    """The SHA-256 of the public key of the cluster's certificate authority."""
    node_name: str
    """The name that the node has to have."""
    labels: dict[str, str]
    """Labels that the kubelet gives the node."""
    taints: list[dict[str, Any]]
    """Taints that the kubelet gives the node."""
    kubelet_args: dict[str, str]
    """Flags of the kubelet with their values."""
    control_plane: ControlPlaneJoin | None = None
    """What a member of a control plane needs besides; null for a worker."""
    overlay: OverlayPlace | None = None
    """The machine's place in the cluster's overlay; null for a cluster without one."""
