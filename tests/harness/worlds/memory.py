"""Implementations of the smaller ports in memory, for tests of the operations. The contract suites run on them too."""

from __future__ import annotations

import base64
import copy
import random
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

from stockyard.errors import StockyardError, Unauthorized, VendorConflict, VendorNotFound, VendorRefused
from stockyard.metrics import Metric
from stockyard.ports import IdentityClient, MachineIdentity


class FixedClock:
    """A clock that stands still until a test moves it. Its randomness is determined by ``seed``."""

    def __init__(self, moment: datetime | None = None, seed: int = 0) -> None:
        self.moment = moment or datetime(2026, 1, 31, 12, 0, tzinfo=UTC)
        self._random = random.Random(seed)

    def now(self) -> datetime:
        """The moment that the test has set."""
        return self.moment

    def advance(self, seconds: float) -> datetime:
        """Move the clock and return the new moment."""
        self.moment += timedelta(seconds=seconds)
        return self.moment

    def randomness(self, size: int) -> bytes:
        """``size`` bytes, the same for the same seed and order of calls."""
        return self._random.randbytes(size)


class MemoryTelemetry:
    """Keeps what is logged and measured."""

    def __init__(self) -> None:
        self.lines: list[dict[str, Any]] = []
        self.values: dict[str, list[float]] = {}

    def log(self, message: str, **keys: str | int) -> None:
        """Keep the line."""
        self.lines.append({"message": message, **keys})

    def measure(self, message: str, metric: Metric, value: float, **keys: str | int) -> None:
        """Keep the line and the value. A dimension without a value is an error."""
        for dimension in {name for names in metric.dimensions for name in names}:
            assert keys[dimension]
        self.values.setdefault(metric.name, []).append(value)
        self.log(message, **keys)


class MemoryObjectStorage:
    """One tenant's objects, in a dictionary that all tenants share."""

    def __init__(self, objects: dict[tuple[str, str], bytes], tenant: str) -> None:
        self._objects, self._tenant = objects, tenant

    def put(self, name: str, data: bytes) -> None:
        """Create or overwrite."""
        self._objects[self._tenant, name] = data

    def get(self, name: str) -> bytes | None:
        """The object, or None."""
        return self._objects.get((self._tenant, name))

    def delete(self, name: str) -> None:
        """Delete it; one that is not there is no error."""
        self._objects.pop((self._tenant, name), None)


class MemoryObjects:
    """The object storage of every tenant; call it with a tenant's name."""

    def __init__(self) -> None:
        self.objects: dict[tuple[str, str], bytes] = {}

    def __call__(self, tenant: str) -> MemoryObjectStorage:
        return MemoryObjectStorage(self.objects, tenant)


class Faults:
    """Errors to raise on the next calls, by method name. ``pending`` must be empty when a test ends."""

    def __init__(self) -> None:
        self.pending: list[tuple[str, StockyardError, bool]] = []

    def before(self, method: str, error: StockyardError) -> None:
        """The next call of ``method`` fails and does nothing."""
        self.pending.append((method, error, False))

    def after(self, method: str, error: StockyardError) -> None:
        """The next call of ``method`` does its work, then fails: the answer is lost."""
        self.pending.append((method, error, True))

    def raise_planned(self, method: str, *, after: bool = False) -> None:
        """Raises the first error planned for this point, once."""
        for position, (name, error, late) in enumerate(self.pending):
            if name == method and late == after:
                del self.pending[position]
                raise error


@dataclass(slots=True)
class _Client:
    uuid: str
    client_id: str
    owner: str
    tenant: str
    secret: str
    installation: str


class MemoryIdentity:
    """``ports.Identity`` over a dictionary of clients. ``realm``: another installation's identity, to share clients."""

    def __init__(self, installation: str = "inst-1", realm: MemoryIdentity | None = None) -> None:
        self.clients: dict[str, _Client] = realm.clients if realm else {}
        self.faults = Faults()
        self._installation = installation

    def _owner(self, client: _Client) -> str:
        return client.owner if client.installation == self._installation else ""

    def _view(self, client: _Client) -> IdentityClient:
        return IdentityClient(client.uuid, client.client_id, self._owner(client))

    def create_client(
        self, *, client_id: str, owner: str, tenant: str, secret: str, people: bool = True
    ) -> IdentityClient:
        """Creates a client, or adopts one owned by ``owner`` with a new secret. Raises ``VendorConflict`` otherwise."""
        self.faults.raise_planned("create_client")
        client = self.clients.get(client_id)
        if client is None:
            client = _Client(str(uuid.uuid4()), client_id, owner, tenant, secret, self._installation)
            self.clients[client_id] = client
        elif self._owner(client) != owner:
            raise VendorConflict(f"the client {client_id} belongs to someone else", code="409")
        client.secret = secret
        self.faults.raise_planned("create_client", after=True)
        return self._view(client)

    def find_client(self, client_id: str) -> IdentityClient | None:
        """The client, or None."""
        self.faults.raise_planned("find_client")
        client = self.clients.get(client_id)
        return self._view(client) if client else None

    def client_secret(self, client_id: str) -> str:
        """The current secret. Raises ``VendorNotFound`` when the client does not exist."""
        self.faults.raise_planned("client_secret")
        if client_id not in self.clients:
            raise VendorNotFound(f"there is no client {client_id}", code="404")
        return self.clients[client_id].secret

    def delete_client(self, *, client_id: str, owner: str, uuid: str | None = None) -> bool:
        """Deletes the client if ``owner`` owns it and, when ``uuid`` is not None, if it has this ``uuid``."""
        self.faults.raise_planned("delete_client")
        client = self.clients.get(client_id)
        if client is None or not owner or self._owner(client) != owner or uuid not in (None, client.uuid):
            return False
        del self.clients[client_id]
        self.faults.raise_planned("delete_client", after=True)
        return True

    def owned_clients(self) -> Sequence[IdentityClient]:
        """Every client of this installation."""
        self.faults.raise_planned("owned_clients")
        return [self._view(client) for client in self.clients.values() if self._owner(client)]

    def service_token(self) -> str:
        """A fixed text in place of a token."""
        self.faults.raise_planned("service_token")
        return "service-token"


class MemorySecrets:
    """``ports.Secrets`` over a dictionary. ``stage`` has the stage's own secrets by name."""

    def __init__(self, stage: Mapping[str, str] | None = None) -> None:
        self.values: dict[str, str] = {}
        self.stage = dict(stage or {})
        self.faults = Faults()

    def put(self, name: str, value: str) -> None:
        """Create or overwrite."""
        self.faults.raise_planned("put")
        self.values[name] = value
        self.faults.raise_planned("put", after=True)

    def get(self, name: str) -> str | None:
        """The value, or None."""
        self.faults.raise_planned("get")
        return self.values.get(name)

    def delete(self, name: str) -> None:
        """Deletes a secret. A missing secret is no error."""
        self.faults.raise_planned("delete")
        self.values.pop(name, None)
        self.faults.raise_planned("delete", after=True)

    def names(self, prefix: str) -> Sequence[str]:
        """Names that start with ``prefix``, sorted."""
        self.faults.raise_planned("names")
        return sorted(name for name in self.values if name.startswith(prefix))

    def seal(self, name: str, value: bytes) -> str:
        """The value with its name, in base 64: nobody reads it by chance."""
        self.faults.raise_planned("seal")
        return base64.b64encode(name.encode() + b"\x00" + value).decode()

    def unseal(self, name: str, sealed: str) -> bytes:
        """The value again. Raises ``VendorRefused`` under another name."""
        self.faults.raise_planned("unseal")
        sealed_name, _, value = base64.b64decode(sealed).partition(b"\x00")
        if sealed_name != name.encode():
            raise VendorRefused("the secret was changed in the table")
        return value

    def own(self, name: str) -> str:
        """One of the stage's own secrets. Raises ``VendorNotFound`` when it is missing."""
        if name not in self.stage:
            raise VendorNotFound(f"there is no secret {name}", code="ResourceNotFoundException")
        return self.stage[name]


@dataclass(slots=True)
class Execution:
    """One started execution."""

    workflow: str
    name: str
    payload: dict[str, Any]
    running: bool = True


class MemoryWorkflows:
    """``ports.Workflows`` that remembers started executions. A test adds the waiting task tokens to ``waiting``."""

    def __init__(self) -> None:
        self.executions: dict[tuple[str, str], Execution] = {}
        self.waiting: set[str] = set()
        self.answers: dict[str, dict[str, Any]] = {}
        self.faults = Faults()

    def start(self, workflow: str, name: str, payload: Mapping[str, Any]) -> None:
        """Starts an execution. An existing execution of that name is a success."""
        self.faults.raise_planned("start")
        own_payload = copy.deepcopy(dict(payload))
        self.executions.setdefault((workflow, name), Execution(workflow, name, own_payload))
        self.faults.raise_planned("start", after=True)

    def succeed(self, task_token: str, output: Mapping[str, Any]) -> bool:
        """Answer a waiting token, once."""
        self.faults.raise_planned("succeed")
        if task_token not in self.waiting:
            return False
        self.waiting.remove(task_token)
        self.answers[task_token] = copy.deepcopy(dict(output))
        return True

    def running(self, workflow: str, name: str) -> bool:
        """Whether it was started and neither stopped nor finished."""
        self.faults.raise_planned("running")
        execution = self.executions.get((workflow, name))
        return execution is not None and execution.running

    def stop(self, workflow: str, name: str) -> None:
        """Stops an execution. It is no error when it is not running."""
        self.faults.raise_planned("stop")
        execution = self.executions.get((workflow, name))
        if execution is not None:
            execution.running = False


class MemoryBus:
    """``ports.Bus`` that keeps the published events, in order."""

    def __init__(self) -> None:
        self.published: list[tuple[str, dict[str, Any]]] = []
        self.faults = Faults()

    def publish(self, detail_type: str, detail: Mapping[str, Any]) -> None:
        """Keep the event."""
        self.faults.raise_planned("publish")
        self.published.append((detail_type, copy.deepcopy(dict(detail))))

    def publish_all(self, events: Sequence[tuple[str, Mapping[str, Any]]]) -> None:
        """Keep the events."""
        for event in events:
            self.publish(*event)


class MemoryDeployer:
    """``ports.Deployer`` that keeps the calls."""

    def __init__(self, *, configured: bool = True) -> None:
        self._configured = configured
        self.calls: list[tuple[str, dict[str, Any], str]] = []
        self.faults = Faults()

    @property
    def configured(self) -> bool:
        """Whether a deployer is configured: the constructor's argument."""
        return self._configured

    def deploy(self, client_id: str, settings: Mapping[str, Any], token: str) -> None:
        """Keep the call."""
        self.faults.raise_planned("deploy")
        self.calls.append((client_id, copy.deepcopy(dict(settings)), token))
        self.faults.raise_planned("deploy", after=True)


@dataclass(slots=True)
class MemoryAttestor:
    """``ports.MachineAttestor`` with the accepted identities in ``identities``, by the request's ``url``."""

    identities: dict[str, MachineIdentity] = field(default_factory=dict)

    def caller(self, request: Mapping[str, Any]) -> MachineIdentity:
        """The identity registered for the url; ``Unauthorized`` for any other."""
        identity = self.identities.get(str(request.get("url", "")))
        if identity is None:
            raise Unauthorized("the proof of identity is not accepted")
        return identity
