"""Work of a node source: one step of a claim or of an environment, and what it is given for that."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import field
from datetime import datetime
from typing import Any, Protocol

from stockyard.domain.records import CloudAccount, Cluster, LaunchGroup, NodeClaim, NodeEnvironment, NodeProvider
from stockyard.domain.values.frozen import dataclass
from stockyard.domain.values.states import MachineState
from stockyard.errors import InsufficientCapacity
from stockyard.ports.cloud_work import Ledger
from stockyard.ports.clusters import Outcome


class Group(Protocol):
    """The record of the claims that are launched together, as one of them may read and change it.

    Every change is guarded by the version that was read; who is late gets the record as it is.
    """

    @property
    def id(self) -> str: ...

    def read(self) -> LaunchGroup | None:
        """The record; None when its last member has left it."""

    def intend(self, earlier_group: LaunchGroup, template_at: str | None) -> LaunchGroup:
        """Announce one call for all members that still wait for a machine, under a token of its own.

        ``Fenced`` when the claim is no longer this attempt's, ``NotYetVisible`` when another worker was first.
        """

    def made(
        self,
        announced_call: LaunchGroup,
        machines: Sequence[Mapping[str, str]],
        refusal: InsufficientCapacity | None = None,
    ) -> LaunchGroup | None:
        """Record what ``announced_call`` has made, given out in order. The record as it then stands, which is another
        one's when that was first."""

    def opened(self, announced_call: LaunchGroup, pause_seconds: int = 0) -> LaunchGroup | None:
        """The announced call made nothing: another one may be announced, after a pause."""

    def over(self, announced_call: LaunchGroup) -> bool:
        """Whether the announced call can no longer be under way, nor what it made be hidden."""


class MachineHolds(Protocol):
    """The claim that holds each machine of a node group that makes its machines alone, or each host of an inventory."""

    def holders(self) -> Mapping[str, str]:
        """The ids of the claims of the cluster or the inventory that hold a machine, by the machine's id."""

    def take(self, machine_id: str) -> bool:
        """Hold the machine for the claim of the work. False when another claim has it; True again when it is ours."""

    def release(self, machine_id: str) -> None:
        """Hold it no longer. Nothing happens when another claim has it."""

    def count(self, *, own: bool = True) -> int:
        """Number of machines that the claims of the pool hold or still want. ``own``: the one of the work among
        them."""


@dataclass(frozen=True, slots=True)
class TemplateSource:
    """Source of a template that may move, such as a branch of a repository. ``name`` is for people."""

    key: str
    name: str
    interval_seconds: int
    """Between two looks at it."""
    blocker: str | None
    """Reason why nobody of ours may look there, as a clause; None where one may."""


@dataclass(frozen=True, slots=True)
class RunTimes:
    """Minutes of the machines that work for one node, and what a minute of them costs in USD."""

    once: int
    """For its making and its removal, as they usually take."""
    longest: int
    """The same where both need all the time that they may take."""
    daily: int
    """For the comparison of each day."""
    environment: int
    """For what is set up for a cluster before its first node, and is removed after the last; 0 for nothing."""
    usd_a_minute: float


@dataclass(frozen=True, slots=True)
class NewNode:
    """A node that is only planned: the claim with its placement, and what its run would be given."""

    claim: NodeClaim
    provider: NodeProvider
    cluster: Cluster | None
    environment: NodeEnvironment | None


@dataclass(frozen=True, slots=True)
class PlannedRun:
    """The run that would make a node. ``template`` is the one of the provider's document, ``variables`` are by name;
    none of them has a secret."""

    template: Mapping[str, Any]
    variables: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class NodeWork:
    """Description of one step of one claim, for its source. ``ledger`` is the claim's.

    ``cluster`` is None for a node of no cluster, ``account`` for a provider that needs none, ``group`` for a claim
    that is launched alone.
    """

    tenant: str
    installation: str
    claim: NodeClaim
    provider: NodeProvider
    ledger: Ledger
    now: datetime
    session: str
    """Session name for assumed roles: the operation's id."""
    cluster: Cluster | None = None
    account: CloudAccount | None = None
    environment: NodeEnvironment | None = None
    group: Group | None = None
    host: Cluster | None = None
    """The cluster of the tenant's that makes the machine, for a provider that refers to one in place of an account."""
    holds: MachineHolds | None = None
    """Of a source that takes machines from groups, or hosts: see ``TakesFromGroups`` and ``TakesHosts``."""
    secret_outputs: Callable[[], Mapping[str, Any]] = field(default=dict, repr=False)
    """Opens the environment's secret outputs, see ``Prepared``."""
    machine_token: str = field(default="", repr=False)
    """What the machine's user data has to hold, and nothing else may: see ``Attests``. Only a launch is told it."""


@dataclass(frozen=True, slots=True)
class EnvironmentWork:
    """Description of an environment for one cluster, for its source. ``ledger`` is the environment's."""

    tenant: str
    installation: str
    environment: NodeEnvironment
    provider: NodeProvider
    cluster: Cluster
    ledger: Ledger
    now: datetime
    session: str
    account: CloudAccount | None = None
    host: Cluster | None = None
    """As ``NodeWork.host``."""
    secret_outputs: Callable[[], Mapping[str, Any]] = field(default=dict, repr=False)
    """Opens what the last preparation has sealed."""
    kubeconfig: Callable[[], str | None] = field(default=lambda: None, repr=False)
    """Opens the kubeconfig that the cluster's control plane has sent, with a secret in it; None of a cluster that has
    none."""


@dataclass(frozen=True, slots=True)
class Prepared(Outcome):
    """Result of ``NodeSource.prepare`` with outputs that are more than texts.

    ``outputs`` are JSON values by name, with the facts 200 KB at most together; they take the place of all that the
    environment had. Those of ``secret_outputs`` are sealed: no record, log or answer has them, and sources read them by
    ``NodeWork.secret_outputs``.
    """

    outputs: Mapping[str, Any] = field(default_factory=dict, repr=False)
    secret_outputs: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Machine:
    """Machine of a claim, as its vendor describes it.

    ``state`` is ``absent``, ``starting``, ``running``, ``stopped`` or ``gone``. ``node_name`` is there when the vendor
    itself knows that the node has joined; otherwise the cluster's agent says so. ``refresh`` is when to look again,
    in seconds, where the vendor can tell.
    """

    state: MachineState
    machine_id: str = ""
    node_name: str = ""
    zone: str = ""
    refresh: int | None = None
