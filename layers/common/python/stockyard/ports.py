"""What the product needs from outside, as protocols. A method's docstring is its contract; one suite in
``tests/contracts`` runs on every implementation of a port.

Vendor failures come out as ``stockyard.errors.VendorError`` leaves, store failures as ``StoreError`` leaves.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Generic, Protocol, TypeVar

from stockyard.domain import writes
from stockyard.domain.records import CloudAccount, Cluster, Record, Resource
from stockyard.errors import VendorError

R = TypeVar("R", bound=Record)

# What a transaction is made of belongs to the port, for those who use it.
Add = writes.Add
Check = writes.Check
Create = writes.Create
Put = writes.Put
Remove = writes.Remove
Replace = writes.Replace
Write = writes.Write


class Clock(Protocol):
    """The time and randomness of a request."""

    def now(self) -> datetime:
        """The current moment in UTC."""
        ...

    def randomness(self, size: int) -> bytes:
        """``size`` bytes fit for secrets."""
        ...


# --- the table -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Page(Generic[R]):
    """Some records in order of id, and the id to go on after (None at the end)."""

    items: list[R]
    next_id: str | None


class Store(Protocol):
    """The records of one tenant. There is no way to build one without a tenant, and none to reach another's."""

    @property
    def tenant(self) -> str: ...

    def get(self, kind: type[R], id: str) -> R | None:
        """The record, read consistently, or None."""
        ...

    def list(
        self,
        kind: type[R],
        *,
        prefix: str = "",
        after: str | None = None,
        limit: int = 50,
        newest_first: bool = False,
        where: Mapping[str, Any] | None = None,
    ) -> Page[R]:
        """Records whose id starts with ``prefix``, in order of id, from behind ``after``, at most ``limit``.

        ``where`` keeps those whose top-level attributes equal the given values. Consistent read.
        """
        ...

    def commit(self, *writes: Write) -> None:
        """All writes or none (at most 100). Raises ``Conflict`` with the index of the first write that failed."""
        ...

    def next_number(self, counter: str) -> int:
        """Add 1 to a counter and return it. A number may be skipped, never given twice."""
        ...


class Registry(Protocol):
    """What spans tenants; only for schedules and the relay."""

    def store(self, tenant: str) -> Store: ...

    def due(self, kind: type[R], before: datetime, limit: int = 100) -> Sequence[tuple[str, R]]:
        """(tenant, record) of outbox items, and of ``accepting`` and ``undoing`` clusters, due ``before`` then."""
        ...

    def all(self, kind: type[R]) -> Iterator[tuple[str, R]]:
        """(tenant, record) of every cloud account or cluster, read as the caller goes on. Consistency is eventual."""
        ...

    def tenant_of(self, kind: type[R], id: str) -> str | None:
        """The tenant that has a cluster of this id; None also while the index does not show it yet."""
        ...

    def table_id(self) -> str:
        """What tells this table from a restored copy of it."""
        ...

    def installation(self, randomness: bytes) -> str:
        """The installation's id; made of ``randomness`` at first use."""
        ...

    def platform(self) -> Store:
        """The records of the installation itself, which belong to no tenant."""
        ...


# --- identity, secrets, messages -------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class IdentityClient:
    """A confidential client of the realm. ``owner`` is the ownership attribute (the cluster's id)."""

    uuid: str
    client_id: str
    owner: str


class Identity(Protocol):
    """The clients of the Keycloak realm that belong to this installation. Another one may use the same realm: its
    clients are someone else's, whatever cluster they name."""

    def create_client(self, *, client_id: str, owner: str, tenant: str, secret: str) -> IdentityClient:
        """Make a confidential client with a service account, a hardcoded tenant mapper (``organization``), an
        audience mapper and the attributes ``stockyard.cluster_id`` = ``owner`` and ``stockyard.installation``. When one
        of that ``client_id`` exists: returned (secret set anew) if it is ``owner``'s, else ``VendorConflict``."""
        ...

    def find_client(self, client_id: str) -> IdentityClient | None:
        """The client, or None. ``owner`` is empty when it is not this installation's."""
        ...

    def client_secret(self, client_id: str) -> str:
        """The current secret. ``VendorNotFound`` when the client is gone."""
        ...

    def delete_client(self, *, client_id: str, owner: str, uuid: str | None = None) -> bool:
        """Delete if owned by ``owner``; with ``uuid`` only that very one, not one made later under the same name.
        False when there was none or it belongs to someone else."""
        ...

    def owned_clients(self) -> Sequence[IdentityClient]:
        """Every client of this installation's clusters (for the sweep)."""
        ...

    def service_token(self) -> str:
        """An access token of Stockyard's own service account."""
        ...


class Secrets(Protocol):
    """Named secrets. Names are ``{tenant}/{cluster id}/{what}``; values never reach logs or records."""

    def put(self, name: str, value: str) -> None:
        """Create or overwrite."""
        ...

    def get(self, name: str) -> str | None: ...

    def delete(self, name: str) -> None:
        """Delete at once; a missing one is no error."""
        ...

    def names(self, prefix: str) -> Sequence[str]: ...


class Workflows(Protocol):
    def start(self, workflow: str, name: str, payload: Mapping[str, Any]) -> None:
        """Start an execution. A running or finished one of that name is success."""
        ...

    def succeed(self, task_token: str, output: Mapping[str, Any]) -> bool:
        """Wake a waiting task. False when the token is gone."""
        ...

    def running(self, workflow: str, name: str) -> bool: ...

    def stop(self, workflow: str, name: str) -> None:
        """Stop an execution; one that is not running is no error."""
        ...


class Bus(Protocol):
    def publish(self, detail_type: str, detail: Mapping[str, Any]) -> None:
        """Put one event on the bus. Raises ``VendorError``; at least once."""
        ...


class Deployer(Protocol):
    """vdeployer of one cluster."""

    @property
    def configured(self) -> bool: ...

    def deploy(self, client_id: str, settings: Mapping[str, Any], token: str) -> None:
        """POST /deploy; 200 and 409 are done. 5xx and time-outs are retryable, other answers ``VendorRefused``."""
        ...


class Prover(Protocol):
    """Says who signed a presigned STS GetCallerIdentity request."""

    def caller(self, request: Mapping[str, Any]) -> MachineIdentity:
        """The identity behind the request. ``Unauthorized`` unless it is for STS, signs our host, and is accepted."""
        ...


@dataclass(frozen=True, slots=True)
class MachineIdentity:
    """``arn`` is an assumed-role ARN whose session name is the instance id."""

    account: str
    arn: str
    user_id: str


# --- clouds ----------------------------------------------------------------------------------------------------------


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
