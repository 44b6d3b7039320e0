"""What the product needs of clouds: clusters made and removed, accounts proven, prices."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Protocol

from stockyard.domain.records import CloudAccount, Cluster, Resource
from stockyard.errors import VendorError


class Ledger(Protocol):
    """Where a provider writes its intent before each cloud call that makes something (law 3)."""

    def intend(self, kind: str, key: str, detail: Mapping[str, Any] | None = None) -> Resource:
        """The line for (kind, key) of this phase: the made one, or one in state ``intended`` as of now.

        A line that is intended again keeps its token, its detail and, as ``detail["since"]``, its first moment.
        ``NotYetVisible`` when another worker intends the same, ``Fenced`` when the operation does not own the cluster.
        """
        ...

    def made(self, resource: Resource, vendor_id: str, detail: Mapping[str, Any] | None = None) -> Resource:
        """Record what the call made."""
        ...

    def gone(self, resource: Resource) -> None:
        """Record that it is no longer in the cloud (or never came to be)."""
        ...

    def find(self, kind: str, key: str) -> Resource | None:
        """The line of any phase of this cluster that is not ``gone``."""
        ...

    def lines(self, phase: str | None = None) -> Sequence[Resource]:
        """Lines that are not ``gone``, in the order they were intended."""
        ...


@dataclass(frozen=True, slots=True)
class CloudWork:
    """What a provider is told about one phase of one cluster."""

    tenant: str
    installation: str
    cluster: Cluster
    account: CloudAccount
    ledger: Ledger
    now: datetime
    session: str
    """Session name for assumed roles: the operation's id."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a phase reached. Not ``done``: come again after ``wait_seconds``. ``facts`` are stored on the cluster."""

    done: bool
    message: str = ""
    wait_seconds: int = 15
    facts: Mapping[str, str] = field(default_factory=dict)
    remaining: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Finding:
    """One fault found by a live check, at a JSON pointer. ``warning`` ones do not refuse."""

    pointer: str
    detail: str
    warning: bool = False


@dataclass(frozen=True, slots=True)
class Tagged:
    """Something in a cloud that carries our four tags."""

    kind: str
    vendor_id: str
    region: str
    tenant: str
    resource_id: str
    generation: str
    created_at: str | None = None


Skipped = Callable[[str, VendorError], None]
"""Is told a region that a sweep could not look at, and why."""


class ClusterProvider(Protocol):
    """One way to make clusters. Phase names are those of the workflow documents."""

    def inspect(self, work: CloudWork) -> Sequence[Finding]:
        """Live checks of the settings (key pair, types, VPC, subnet). ``CredentialsRevoked`` when not reachable."""
        ...

    def ensure(self, phase: str, work: CloudWork) -> Outcome:
        """Bring the phase's resources about. Run twice, the second run changes nothing."""
        ...

    def remove(self, phase: str, work: CloudWork) -> Outcome:
        """Remove what the phase made, found by ledger line or, for lines that are only intended, by token and tags."""
        ...

    def tagged(
        self,
        account: CloudAccount,
        installation: str,
        tenant: str,
        regions: Sequence[str],
        skipped: Skipped | None = None,
    ) -> Sequence[Tagged]:
        """Everything in the account that carries our tags (for the sweep).

        A region that cannot be asked is told to ``skipped`` and left out; without ``skipped``, or when no region
        answers, its error is raised.
        """
        ...

    def discard(self, account: CloudAccount, thing: Tagged, tenant: str) -> bool:
        """Remove one orphan; True when it is gone."""
        ...


class AccountVerifier(Protocol):
    def verify(self, account: CloudAccount, tenant: str) -> str | None:
        """None when the role works and cannot be assumed without the external id; else why not."""
        ...


class PriceList(Protocol):
    """The EC2 catalogue: offline data, refreshed by a schedule."""

    def instance(self, region: str, name: str) -> Mapping[str, Any] | None:
        """vcpu, memory_mib, architecture, usd_hour (None when unknown); None when the type is not known."""
        ...

    def offered(self, region: str, name: str) -> bool | None:
        """Whether the region offers the type; None when the catalogue has no data of the region."""
        ...

    def rate(self, region: str, item: str) -> float | None:
        """USD an hour of ``nat_gateway``, ``network_load_balancer``, ``public_ipv4``, or a month and GB of ``gp3``."""
        ...
