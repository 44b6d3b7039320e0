"""Work that a driver is told, with the ledger that it writes each intent to."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field
from datetime import datetime
from typing import Any, Protocol

from stockyard.domain.records import CloudAccount, Cluster, Resource
from stockyard.domain.values.frozen import dataclass


class Ledger(Protocol):
    """Ledger to which a provider writes its intent before each cloud call that makes something (law 3)."""

    def intend(self, kind: str, key: str, detail: Mapping[str, Any] | None = None) -> Resource:
        """The line for (kind, key) of this phase: the made one, or one in state ``intended`` as of now.

        A line that is intended again keeps its token, its detail and, as ``detail["since"]``, its first moment.
        ``NotYetVisible`` when another worker intends the same, ``Fenced`` when the operation does not own the cluster.
        """

    def made(self, resource: Resource, vendor_id: str, detail: Mapping[str, Any] | None = None) -> Resource:
        """Record what the call made."""

    def gone(self, resource: Resource) -> None:
        """Record that it is no longer in the cloud (or never came to be)."""

    def find(self, kind: str, key: str) -> Resource | None:
        """The line of any phase of this cluster that is not ``gone``."""

    def lines(self, phase: str | None = None) -> Sequence[Resource]:
        """Lines that are not ``gone``, in the order they were intended."""


@dataclass(frozen=True, slots=True)
class CloudWork:
    """Description of one phase of one cluster, for its driver."""

    tenant: str
    installation: str
    cluster: Cluster
    account: CloudAccount
    ledger: Ledger
    now: datetime
    session: str
    """Session name for assumed roles: the operation's id."""
    machine_token: str = field(default="", repr=False)
    """What the machine's user data has to hold, and nothing else may: see ``AttestsControlPlane``. Only the phase that
    makes the machine is told it."""
    agent: tuple[Mapping[str, Any], ...] = field(default=(), repr=False)
    """The objects that install the cluster's agent, its client's secret among them, in the order in which they are
    made. Only the phase that applies them is told them."""
    kubeconfig: str = field(default="", repr=False)
    """What the control plane has sent for admins. Only what applies packs is told it."""
    hubs: Mapping[str, int] = field(default_factory=dict)
    """Place of each hub of the cluster's overlay, by machine id; see ``overlay.HUBS``."""
