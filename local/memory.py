"""Implementations of the smaller ports in memory, for tests of the operations. The contract suites run on them too."""

from __future__ import annotations

import copy
import random
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

from stockyard.errors import StockyardError, Unauthorized, VendorConflict, VendorNotFound
from stockyard.ports import IdentityClient, MachineIdentity


class FixedClock:
    """A clock that stands still until told otherwise; its randomness is that of ``seed``."""

    def __init__(self, moment: datetime | None = None, seed: int = 0) -> None:
        self.moment = moment or datetime(2026, 1, 31, 12, 0, tzinfo=UTC)
        self._random = random.Random(seed)

    def now(self) -> datetime:
        """The moment the test has set."""
        return self.moment

    def advance(self, seconds: float) -> datetime:
        """Move the clock and return the new moment."""
        self.moment += timedelta(seconds=seconds)
        return self.moment

    def randomness(self, size: int) -> bytes:
        """``size`` bytes, the same for the same seed and order of calls."""
        return self._random.randbytes(size)


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

    def strike(self, method: str, *, after: bool = False) -> None:
        """Raise the first fault planned for this point, once."""
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
    """``ports.Identity`` over a dictionary of clients. ``realm`` is another installation's, to share its clients."""

    def __init__(self, installation: str = "inst-1", realm: MemoryIdentity | None = None) -> None:
        self.clients: dict[str, _Client] = realm.clients if realm else {}
        self.faults = Faults()
        self._installation = installation

    def _owner(self, client: _Client) -> str:
        return client.owner if client.installation == self._installation else ""

    def _view(self, client: _Client) -> IdentityClient:
        return IdentityClient(client.uuid, client.client_id, self._owner(client))

    def create_client(self, *, client_id: str, owner: str, tenant: str, secret: str) -> IdentityClient:
        """Make, or adopt when owned by ``owner`` with the secret set anew; else ``VendorConflict``."""
        self.faults.strike("create_client")
        found = self.clients.get(client_id)
        if found is None:
            made = _Client(str(uuid.uuid4()), client_id, owner, tenant, secret, self._installation)
            found = self.clients[client_id] = made
        elif self._owner(found) != owner:
            raise VendorConflict(f"the client {client_id} belongs to someone else", code="409")
        found.secret = secret
        self.faults.strike("create_client", after=True)
        return self._view(found)

    def find_client(self, client_id: str) -> IdentityClient | None:
        """The client, or None."""
        self.faults.strike("find_client")
        found = self.clients.get(client_id)
        return self._view(found) if found else None

    def client_secret(self, client_id: str) -> str:
        """The current secret; ``VendorNotFound`` when the client is gone."""
        self.faults.strike("client_secret")
        if client_id not in self.clients:
            raise VendorNotFound(f"there is no client {client_id}", code="404")
        return self.clients[client_id].secret

    def delete_client(self, *, client_id: str, owner: str, uuid: str | None = None) -> bool:
        """Delete if owned by ``owner`` and, when given, of that ``uuid``."""
        self.faults.strike("delete_client")
        found = self.clients.get(client_id)
        if found is None or not owner or self._owner(found) != owner or uuid not in (None, found.uuid):
            return False
        del self.clients[client_id]
        self.faults.strike("delete_client", after=True)
        return True

    def owned_clients(self) -> Sequence[IdentityClient]:
        """Every client of this installation."""
        self.faults.strike("owned_clients")
        return [self._view(client) for client in self.clients.values() if self._owner(client)]

    def service_token(self) -> str:
        """A fixed text in place of a token."""
        self.faults.strike("service_token")
        return "service-token"


class MemorySecrets:
    """``ports.Secrets`` over a dictionary. ``stage`` holds the stage's own secrets."""

    def __init__(self, stage: Mapping[str, str] | None = None) -> None:
        self.values: dict[str, str] = {}
        self.stage = dict(stage or {})
        self.faults = Faults()

    def put(self, name: str, value: str) -> None:
        """Create or overwrite."""
        self.faults.strike("put")
        self.values[name] = value
        self.faults.strike("put", after=True)

    def get(self, name: str) -> str | None:
        """The value, or None."""
        self.faults.strike("get")
        return self.values.get(name)

    def delete(self, name: str) -> None:
        """Delete; a missing one is no error."""
        self.faults.strike("delete")
        self.values.pop(name, None)
        self.faults.strike("delete", after=True)

    def names(self, prefix: str) -> Sequence[str]:
        """Names that start with ``prefix``, sorted."""
        self.faults.strike("names")
        return sorted(name for name in self.values if name.startswith(prefix))

    def own(self, name: str) -> str:
        """One of the stage's own secrets; ``VendorNotFound`` when it is missing."""
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
    """``ports.Workflows`` that remembers what was started. Add to ``waiting`` the task tokens that still wait."""

    def __init__(self) -> None:
        self.executions: dict[tuple[str, str], Execution] = {}
        self.waiting: set[str] = set()
        self.answers: dict[str, dict[str, Any]] = {}
        self.faults = Faults()

    def start(self, workflow: str, name: str, payload: Mapping[str, Any]) -> None:
        """Start; one of that name is success."""
        self.faults.strike("start")
        given = copy.deepcopy(dict(payload))
        self.executions.setdefault((workflow, name), Execution(workflow, name, given))
        self.faults.strike("start", after=True)

    def succeed(self, task_token: str, output: Mapping[str, Any]) -> bool:
        """Answer a waiting token, once."""
        self.faults.strike("succeed")
        if task_token not in self.waiting:
            return False
        self.waiting.remove(task_token)
        self.answers[task_token] = copy.deepcopy(dict(output))
        return True

    def running(self, workflow: str, name: str) -> bool:
        """Whether it was started and neither stopped nor finished."""
        self.faults.strike("running")
        execution = self.executions.get((workflow, name))
        return execution is not None and execution.running

    def stop(self, workflow: str, name: str) -> None:
        """Stop; one that is not running is no error."""
        self.faults.strike("stop")
        execution = self.executions.get((workflow, name))
        if execution is not None:
            execution.running = False


class MemoryBus:
    """``ports.Bus`` that keeps what was published, in order."""

    def __init__(self) -> None:
        self.published: list[tuple[str, dict[str, Any]]] = []
        self.faults = Faults()

    def publish(self, detail_type: str, detail: Mapping[str, Any]) -> None:
        """Keep the event."""
        self.faults.strike("publish")
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
        """As given to the constructor."""
        return self._configured

    def deploy(self, client_id: str, settings: Mapping[str, Any], token: str) -> None:
        """Keep the call."""
        self.faults.strike("deploy")
        self.calls.append((client_id, copy.deepcopy(dict(settings)), token))
        self.faults.strike("deploy", after=True)


@dataclass(slots=True)
class MemoryProver:
    """``ports.Prover`` that knows the identities in ``known`` by the request's ``url``."""

    known: dict[str, MachineIdentity] = field(default_factory=dict)

    def caller(self, request: Mapping[str, Any]) -> MachineIdentity:
        """The identity registered for the url; ``Unauthorized`` for any other."""
        identity = self.known.get(str(request.get("url", "")))
        if identity is None:
            raise Unauthorized("the proof of identity is not accepted")
        return identity
