"""Services for use cases: a tenant's records, the time, the stage's settings, and ports that are made when used."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import field
from datetime import timedelta
from typing import TYPE_CHECKING, Any, ClassVar, Generic, TypeVar

from stockyard import ports
from stockyard.domain import cloud_kinds
from stockyard.domain.records import DONE, AuditRecord
from stockyard.domain.values import ids, times
from stockyard.domain.values.frozen import dataclass
from stockyard.errors import VendorRefused
from stockyard.lifecycle.phases import ANY, PROCEDURES, Procedures, procedure_of
from stockyard.lifecycle.procedure import Procedure
from stockyard.operations.tenant_prices import TenantPrices

if TYPE_CHECKING:
    from stockyard.ports.nodes import NodeSource
    from stockyard.ports.refusals import UnavailableOfferings
    from stockyard.settings import Settings

T = TypeVar("T")


class _NoDocuments:
    """Documents of a process that fetches nothing."""

    def fetch(self, url: str) -> bytes:  # noqa: ARG002 - none is fetched
        raise VendorRefused("manifests are not fetched here", code="NoDocuments")


NO_DOCUMENTS = _NoDocuments()


class _NoRequests:
    """Requests of a process that has no prices fetched."""

    def request(self, region: str) -> None:
        pass

    def wait(self, region: str) -> None:
        pass


NO_REQUESTS = _NoRequests()


class _NoObjects:
    """Object storage of a process that has none."""

    def put(self, name: str, data: bytes) -> None:  # noqa: ARG002 - none is kept
        raise VendorRefused("no object is kept here", code="NoObjectStorage")

    def get(self, name: str) -> bytes | None:  # noqa: ARG002 - none is kept
        return None

    def delete(self, name: str) -> None:
        pass


def no_objects(_tenant: str) -> ports.ObjectStorage:
    """Object storage of a process without any."""
    return _NoObjects()


@dataclass(frozen=True, slots=True)
class Factories:
    """Factories of the ports that all tenants of a process share. A factory may be called often and answers the
    same."""

    identity: Callable[[], ports.Identity]
    secrets: Callable[[], ports.Secrets]
    workflows: Callable[[], ports.Workflows]
    telemetry: Callable[[], ports.Telemetry]
    deployer: Callable[[], ports.Deployer]
    attestor: Callable[[], ports.MachineAttestor]
    clouds: Callable[[], Mapping[str, ports.Cloud]]
    """By the cloud account's provider."""
    cluster_drivers: Callable[[], Mapping[str, ports.ClusterDriver]]
    """By the name on the cluster's record."""
    driver_names: Callable[[], Mapping[tuple[str, str], Sequence[str]]]
    """The driver of a new cluster, by the cloud account's provider and the cluster's type."""
    prices: Callable[[], ports.PublicPrices]
    installation: Callable[[], str]
    """The id of the installation, which the table knows."""
    node_sources: Callable[[], Mapping[str, NodeSource]]
    """By the provider's kind; a kind without one is not built yet."""
    unavailable_offerings: Callable[[], UnavailableOfferings | None]
    token_key: Callable[[], bytes]
    """The installation's key that the tokens of machines are derived from."""
    documents: Callable[[], ports.Documents] = lambda: NO_DOCUMENTS
    """What fetches manifests that are named by their addresses."""
    price_requests: Callable[[], ports.PriceRequests] = lambda: NO_REQUESTS
    """What has the prices of a region fetched."""
    objects_of: Callable[[str], ports.ObjectStorage] = no_objects
    """A tenant's objects that are too large for records."""
    catalogs: dict[Any, Any] = field(default_factory=dict)
    """Catalogues of node types that the process has built, by version; see ``node_providers.catalog``."""


class Lazy(Mapping[str, T]):
    """A mapping whose values are made when first asked for: a vendor's code is loaded only where it is called."""

    def __init__(self, factories: Mapping[str, Callable[[], T]]) -> None:
        self._factories = factories
        self._made: dict[str, T] = {}

    def __getitem__(self, key: str) -> T:
        if key not in self._made:
            self._made[key] = self._factories[key]()
        return self._made[key]

    def __iter__(self) -> Iterator[str]:
        return iter(self._factories)

    def __len__(self) -> int:
        return len(self._factories)


class LazyPort(Generic[T]):
    """An attribute of ``Services`` that is had from the factory of the same name each time it is read."""

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    def __get__(self, services: Services, owner: type) -> T:
        factory: Callable[[], T] = getattr(services.factories, self._name)
        return factory()


@dataclass(frozen=True, slots=True)
class Services:
    """Everything a tenant's use case may touch. ``store`` is bound to the tenant; a port is made when it is read."""

    store: ports.Store
    clock: ports.Clock
    settings: Settings
    factories: Factories
    services_of: Callable[[str], Services] | None = None
    """Another tenant's services. Only the platform has it: a tenant is by itself."""
    procedures: Procedures = field(default_factory=lambda: PROCEDURES)
    """What each kind of operation does, for which driver."""

    identity: ClassVar[LazyPort[ports.Identity]] = LazyPort()
    secrets: ClassVar[LazyPort[ports.Secrets]] = LazyPort()
    workflows: ClassVar[LazyPort[ports.Workflows]] = LazyPort()
    telemetry: ClassVar[LazyPort[ports.Telemetry]] = LazyPort()
    deployer: ClassVar[LazyPort[ports.Deployer]] = LazyPort()
    attestor: ClassVar[LazyPort[ports.MachineAttestor]] = LazyPort()
    clouds: ClassVar[LazyPort[Mapping[str, ports.Cloud]]] = LazyPort()
    cluster_drivers: ClassVar[LazyPort[Mapping[str, ports.ClusterDriver]]] = LazyPort()
    driver_names: ClassVar[LazyPort[Mapping[tuple[str, str], Sequence[str]]]] = LazyPort()
    installation: ClassVar[LazyPort[str]] = LazyPort()
    node_sources: ClassVar[LazyPort[Mapping[str, NodeSource]]] = LazyPort()
    unavailable_offerings: ClassVar[LazyPort[UnavailableOfferings | None]] = LazyPort()
    token_key: ClassVar[LazyPort[bytes]] = LazyPort()
    documents: ClassVar[LazyPort[ports.Documents]] = LazyPort()
    price_requests: ClassVar[LazyPort[ports.PriceRequests]] = LazyPort()

    @property
    def objects(self) -> ports.ObjectStorage:
        """The tenant's objects that are too large for records."""
        return self.factories.objects_of(self.tenant)

    @property
    def tenant(self) -> str:
        """The tenant that everything here belongs to."""
        return self.store.tenant

    @property
    def prices(self) -> ports.PriceList:
        """Prices of machines for everybody, and of what the tenant's own accounts were offered."""
        return TenantPrices(self.factories.prices(), self.store)

    def procedure(self, kind: str, driver: str = ANY) -> Procedure:
        """The phases of a kind of operation. Raises ``KeyError`` for a kind that is not known."""
        return procedure_of(self.procedures, kind, driver, cloud_kinds.rows_of(driver))

    def new_id(self, prefix: str) -> str:
        """A fresh identifier of that prefix."""
        return ids.make(prefix, self.clock.now(), self.clock.randomness(10))

    def audit_record(self, actor: str, action: str, subject: str, request_id: str, detail: str = "") -> AuditRecord:
        """The audit record of a successful call, where the edge does not write one."""
        return AuditRecord(self.new_id(ids.AUDIT), self.now(), actor, action, subject, DONE, request_id, detail)

    def seconds_since(self, moment: str) -> float:
        """Seconds since a moment of a record."""
        return (self.clock.now() - times.from_text(moment)).total_seconds()

    def expires_in(self, seconds: float) -> Callable[[], bool]:
        """A question that is answered with yes once so many seconds have passed. Who searches by steps asks it besides:
        one machine is slower than another, and a caller waits only so long."""
        ends_at = self.clock.now() + timedelta(seconds=seconds)
        return lambda: self.clock.now() >= ends_at

    def now(self) -> str:
        """The current moment as the API shows it."""
        return times.to_text(self.clock.now())
