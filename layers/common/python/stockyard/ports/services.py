"""Ports to the services behind the product: time, identity, secrets, workflows, messages."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any, Protocol

from stockyard.domain.values.frozen import dataclass

if TYPE_CHECKING:
    from stockyard.metrics import Metric


class Telemetry(Protocol):
    """Logs and metrics for the people who run the product. ``keys`` are those of the function's log: ``tenant``,
    ``cluster_id`` or ``claim_id``, ``operation_id``, ``attempt``, ``phase``."""

    def log(self, message: str, **keys: str | int) -> None:
        """One line of the log."""
        ...

    def measure(self, message: str, metric: Metric, value: float, **keys: str | int) -> None:
        """One line of the log that is also one value of the metric. ``keys`` has the metric's dimensions."""
        ...


class Documents(Protocol):
    """Public documents that a profile names by their addresses."""

    def fetch(self, url: str) -> bytes:
        """Fetch the document at the address. ``VendorRefused`` for an address of a host that is not known, for what is
        too large, and for any answer but 200; ``VendorUnavailable`` or ``VendorTimeout`` when there is none."""
        ...


class Clock(Protocol):
    """The time and randomness of a request."""

    def now(self) -> datetime:
        """The current moment in UTC."""

    def randomness(self, size: int) -> bytes:
        """``size`` bytes fit for secrets."""


@dataclass(frozen=True, slots=True)
class IdentityClient:
    """A confidential client of the realm. ``owner`` is the ownership attribute (the cluster's id)."""

    uuid: str
    client_id: str
    owner: str


class Identity(Protocol):
    """The clients of the Keycloak realm that belong to this installation. Another one may use the same realm: its
    clients are someone else's, whatever cluster they name."""

    def create_client(
        self, *, client_id: str, owner: str, tenant: str, secret: str, people: bool = True
    ) -> IdentityClient:
        """Make a confidential client with a service account, a hardcoded tenant mapper (``organization``), an
        audience mapper and the attributes ``stockyard.cluster_id`` = ``owner`` and ``stockyard.installation``. When one
        of that ``client_id`` exists: returned (secret set anew) if it is ``owner``'s, else ``VendorConflict``.

        Beside it, with ``people``, a public client that people log in to the cluster with, ``ids.login_client``; it
        goes with the first."""

    def find_client(self, client_id: str) -> IdentityClient | None:
        """The client, or None. ``owner`` is empty when it is not this installation's."""

    def client_secret(self, client_id: str) -> str:
        """The current secret. ``VendorNotFound`` when the client is gone."""

    def delete_client(self, *, client_id: str, owner: str, uuid: str | None = None) -> bool:
        """Delete if owned by ``owner``; with ``uuid`` only that very one, not one made later under the same name.
        False when there was none or it belongs to someone else."""

    def owned_clients(self) -> Sequence[IdentityClient]:
        """Every client of this installation's clusters (for the sweep)."""

    def service_token(self) -> str:
        """An access token of Stockyard's own service account."""


class Secrets(Protocol):
    """Named secrets. Names are ``{tenant}/{cluster id}/{what}``, or those of ``ids.account_secret``.

    Values never reach logs or records."""

    def put(self, name: str, value: str) -> None:
        """Create or overwrite."""

    def get(self, name: str) -> str | None: ...

    def delete(self, name: str) -> None:
        """Delete at once; a missing one is no error."""

    def names(self, prefix: str) -> Sequence[str]: ...


class ObjectStorage(Protocol):
    """Things of one tenant that are too large for a record. Names are paths, and no name reaches another tenant's."""

    def put(self, name: str, data: bytes) -> None:
        """Create or overwrite. An earlier version is kept for thirty days."""

    def get(self, name: str) -> bytes | None:
        """The whole object; None where there is none, or its time is over."""

    def delete(self, name: str) -> None:
        """Delete it; one that is not there is no error."""


class Workflows(Protocol):
    def start(self, workflow: str, name: str, payload: Mapping[str, Any]) -> None:
        """Start an execution. A running or finished one of that name is success."""

    def succeed(self, task_token: str, output: Mapping[str, Any]) -> bool:
        """Wake a waiting task. False when the token is gone."""

    def running(self, workflow: str, name: str) -> bool: ...

    def stop(self, workflow: str, name: str) -> None:
        """Stop an execution; one that is not running is no error."""


EVENTS_AT_ONCE = 10
"""What EventBridge takes in one call."""


class Bus(Protocol):
    def publish(self, detail_type: str, detail: Mapping[str, Any]) -> None:
        """Put one event on the bus. Raises ``VendorError``; at least once."""

    def publish_all(self, events: Sequence[tuple[str, Mapping[str, Any]]]) -> None:
        """Put up to ``EVENTS_AT_ONCE`` events (detail type, detail) on the bus. When it raises, any may be there."""


class Background(Protocol):
    def invoke(self, event: Mapping[str, Any]) -> None:
        """Have this function run on ``event`` in a worker of its own, at least once. Does not wait for it.

        Raises ``VendorError`` leaves when nobody has taken the event.
        """


class Deployer(Protocol):
    """vdeployer of one cluster."""

    @property
    def configured(self) -> bool: ...

    def deploy(self, client_id: str, settings: Mapping[str, Any], token: str) -> None:
        """POST /deploy; 200 and 409 are done. 5xx and time-outs are retryable, other answers ``VendorRefused``."""


class MachineAttestor(Protocol):
    """Identifies the machine of a cloud that signed a request with the keys from its cloud."""

    def caller(self, request: Mapping[str, Any]) -> MachineIdentity:
        """The machine behind the request. ``Unauthorized`` unless the signature covers our host's name and the cloud
        accepts it as a machine's."""


@dataclass(frozen=True, slots=True)
class MachineIdentity:
    """The machine behind a proof of identity, as its cloud names it: nobody can choose any of the three."""

    account: str
    """The cloud's own name of the account that the machine stands in."""
    role: str
    """The name of the role that the machine has there."""
    machine_id: str
    """The cloud's id of the machine."""
