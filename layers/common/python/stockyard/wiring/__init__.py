"""The composition root: settings to ports to use cases. The only module that knows both adapters and providers.

Everything is made on first use and kept for the life of the process, so that a function pays for what it needs.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache, partial
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from stockyard import ports, settings
from stockyard.domain.platform import PLATFORM
from stockyard.domain.records import AuditRecord, Cluster
from stockyard.metrics import namespace
from stockyard.operations.services import Factories, Lazy, Services
from stockyard.providers import registry as provider_registry

if TYPE_CHECKING:
    import httpx
    from botocore.session import Session

    from stockyard.adapters.catalog import Ec2PriceList
    from stockyard.adapters.envelope import EnvelopeSecrets
    from stockyard.adapters.secrets import OwnSecrets
    from stockyard.edge.contract import Request
    from stockyard.edge.fairness import TenantLimits
    from stockyard.edge.route import HttpFunction
    from stockyard.operations.idempotency_keys import IdempotencyKeys
    from stockyard.operations.wait_turns import WaitTurns
    from stockyard.ports.nodes import NodeSource
    from stockyard.ports.refusals import UnavailableOfferings
    from stockyard.ports.runs import Runs
    from stockyard.ports.sites import Seals

provider_registry.introduce()


@cache
def configuration() -> settings.Settings:
    """The environment of this process."""
    import os

    return settings.read(os.environ)


@cache
def _session() -> Session:
    """Session that the clients of our own account's services share in this process."""
    from stockyard.adapters import own_account

    return own_account.make_session()


def _client(service: str) -> Any:
    from stockyard.adapters import own_account

    return own_account.client(service, session=_session(), connect_timeout=3, read_timeout=15)


@cache
def clock() -> ports.Clock:
    """The system's clock."""
    from stockyard.adapters.clock import SystemClock

    return SystemClock()


@cache
def registry() -> ports.Registry:
    """The table, over all tenants."""
    from stockyard.adapters.dynamodb import calls
    from stockyard.adapters.dynamodb.registry import DynamoRegistry

    return DynamoRegistry(calls.client(session=_session()), configuration().table)


@cache
def installation() -> str:
    """The id of this installation, made at first use."""
    return registry().installation(clock().randomness(10))


@cache
def own_secrets() -> OwnSecrets:
    """The stage's own secrets."""
    from stockyard.adapters.secrets import OwnSecrets

    return OwnSecrets(_client("secretsmanager"))


@cache
def _envelope() -> EnvelopeSecrets:
    from stockyard.adapters.envelope import EnvelopeSecrets

    return EnvelopeSecrets(cache(lambda: _client("kms")), configuration().secrets_key, store)


@cache
def secrets() -> ports.Secrets:
    """The secrets of clusters."""
    return _envelope()


@cache
def seals() -> Seals:
    """The seals of what goes to sites and comes from there."""
    return _envelope()


def _site_transport(tenant: str, site: str) -> httpx.BaseTransport:
    import time

    from stockyard.adapters.site_requests import StoredSiteRequests
    from stockyard.providers.sites import SiteTransport

    return SiteTransport(StoredSiteRequests(store(tenant), seals(), clock(), time.sleep), site)


def page_key() -> bytes:
    """The key that signs page tokens."""
    return own_secrets().read(configuration().page_key_secret).encode()


def machine_key() -> bytes:
    """The key that the tokens of machines are derived from."""
    return own_secrets().read(configuration().machine_key_secret).encode()


@cache
def identity() -> ports.Identity:
    """The realm's clients."""
    from stockyard.adapters.keycloak import Keycloak

    settings = configuration()
    return Keycloak(
        settings.issuer,
        settings.audience,
        installation=installation(),
        read_secret=lambda name: own_secrets().read(name),
        admin_secret=settings.identity_admin_secret,
    )


@cache
def workflows() -> ports.Workflows:
    """Step Functions, by the names of the table of phases."""
    from stockyard.adapters.workflows import StepFunctionsWorkflows

    return StepFunctionsWorkflows(_client("stepfunctions"), configuration().workflow_prefix)


@cache
def telemetry() -> ports.Telemetry:
    """The function's log and its metrics."""
    from stockyard.adapters.telemetry import LoggedTelemetry

    return LoggedTelemetry(namespace(configuration().stage))


@cache
def bus() -> ports.Bus:
    """Our event bus."""
    from stockyard.adapters.bus import EventBridgeBus

    return EventBridgeBus(_client("events"), configuration().bus)


@cache
def prices() -> Ec2PriceList:
    """The EC2 catalogue with what the schedule refreshed."""
    from stockyard.adapters.catalog import Ec2PriceList

    return Ec2PriceList(registry().platform(), now=clock().now)


@cache
def _deployer() -> ports.Deployer:
    from stockyard.adapters.vdeployer import VDeployer

    return VDeployer(configuration().vdeployer_url_template)


@cache
def attestor() -> ports.MachineAttestor:
    """Attestor of the machine that signed a request."""
    import os

    from stockyard.adapters.sts_attestor import StsAttestor

    host = urlsplit(configuration().api_url).netloc
    return StsAttestor(host, endpoint=os.environ.get("AWS_ENDPOINT_URL"))


@cache
def _providers(room: str) -> Mapping[str, Any]:
    from stockyard.providers.descriptors import ProviderTools

    tools = ProviderTools(configuration(), secrets, site_transport=_site_transport)

    def make(name: str) -> Any:
        return provider_registry.descriptor(room, name).make(tools)

    return Lazy({name: partial(make, name) for name in provider_registry.names(room)})


def _runs_of(tenant: str) -> Runs:
    from stockyard.operations.runs import StoreRuns

    return StoreRuns(services(tenant), seals())


@cache
def node_sources() -> Mapping[str, NodeSource]:
    from stockyard.providers.descriptors import SourceTools

    tools = SourceTools(
        configuration(),
        secrets,
        lambda tenant: registry().store(tenant),
        lambda region: prices().region(region),
        lambda region: prices().spot(region),
        _runs_of,
        site_transport=_site_transport,
    )
    return Lazy({name: partial(make, tools) for name, make in provider_registry.node_sources().items()})


@cache
def _unavailable_offerings() -> UnavailableOfferings:
    from stockyard.adapters.unavailable_offerings import StoredUnavailableOfferings

    return StoredUnavailableOfferings(registry().platform(), configuration().refusal_seconds)


def store(tenant: str) -> ports.Store:
    """A tenant's records, or the platform's."""
    return registry().platform() if tenant == PLATFORM else registry().store(tenant)


@cache
def price_requests() -> ports.PriceRequests:
    """Requests to fetch the prices of a region that somebody names."""
    from stockyard.adapters.background import LambdaBackground
    from stockyard.adapters.price_requests import connected
    from stockyard.operations.services import NO_REQUESTS

    function = configuration().catalog_function
    if not function:
        return NO_REQUESTS
    invoker = cache(lambda: LambdaBackground(_client("lambda"), function))
    return connected(registry().platform(), prices(), lambda event: invoker().invoke(event), clock().now)


@cache
def _documents() -> ports.Documents:
    from stockyard.adapters.documents import HttpsDocuments

    return HttpsDocuments()


@cache
def _objects_of(tenant: str) -> ports.ObjectStorage:
    from stockyard.adapters.object_storage import S3ObjectStorage
    from stockyard.operations.services import no_objects

    bucket = configuration().bucket
    return S3ObjectStorage(_s3, bucket, tenant) if bucket else no_objects(tenant)


@cache
def _s3() -> Any:
    return _client("s3")


@cache
def _factories() -> Factories:
    return Factories(
        identity=identity,
        secrets=secrets,
        workflows=workflows,
        telemetry=telemetry,
        deployer=_deployer,
        attestor=attestor,
        clouds=partial(_providers, "clouds"),
        cluster_drivers=partial(_providers, "clusters"),
        driver_names=cache(provider_registry.driver_names),
        prices=prices,
        installation=installation,
        node_sources=node_sources,
        unavailable_offerings=_unavailable_offerings,
        token_key=machine_key,
        documents=_documents,
        price_requests=price_requests,
        objects_of=_objects_of,
    )


def services(tenant: str) -> Services:
    """A tenant's ports, or the platform's, which has the installation's own records."""
    tenant_services = services if tenant == PLATFORM else None
    return Services(store(tenant), clock(), configuration(), _factories(), tenant_services)


@cache
def background() -> ports.Background:
    """Workers of their own for this function."""
    import os

    from stockyard.adapters.background import LambdaBackground

    return LambdaBackground(_client("lambda"), os.environ["AWS_LAMBDA_FUNCTION_NAME"])


def _cluster_of_path(request: Request, services: Services) -> Cluster:
    """The cluster that the path names by ``id``. ``NotFound`` where there is none."""
    from stockyard.operations.engine.find import find_cluster

    return find_cluster(services, request.params["id"])


def http(name: str, **finders: Callable[[Request, Services], Any]) -> HttpFunction:
    """The HTTP side of the function ``name``: keys, audit records and page tokens are the caller's tenant's.

    Its handlers are given the caller's ``services``, and what a request is about: a ``cluster`` of the path, and
    what ``finders`` find, by the names of their parameters.
    """
    from stockyard.edge import origin
    from stockyard.edge.route import HttpFunction

    return HttpFunction(
        name,
        keys=keys_of,
        audit=audit,
        page_key=page_key,
        admit=lambda tenant: _limits().admit(tenant),
        origin=lambda event: origin.check(event, configuration().origin_key_hashes),
        turns=lambda tenant, seconds: wait_turns().take(tenant, seconds),
        questions=lambda tenant, seconds: _question_turns().take(tenant, seconds),
        services=lambda request: services(request.caller.tenant),
        finders={"cluster": _cluster_of_path, **finders},
    )


@cache
def wait_turns() -> WaitTurns:
    """Turns to hold a function while somebody waits for news."""
    from stockyard.operations.wait_turns import WaitTurns

    return WaitTurns(store, clock(), configuration().tenant_waits, configuration().waits)


@cache
def _question_turns() -> WaitTurns:
    from stockyard.domain.wait_records import QUESTIONS
    from stockyard.operations.wait_turns import WaitTurns

    return WaitTurns(store, clock(), configuration().tenant_questions, configuration().questions, QUESTIONS)


@cache
def _limits() -> TenantLimits:
    from stockyard.edge.fairness import TenantLimits

    return TenantLimits(configuration().tenant_rate_limit, configuration().tenant_burst_limit)


def keys_of(tenant: str) -> IdempotencyKeys:
    """The idempotency records of a tenant."""
    from stockyard.operations.idempotency_keys import IdempotencyKeys

    return IdempotencyKeys(store(tenant))


def audit(tenant: str, record: AuditRecord) -> None:
    """Keep an audit record."""
    store(tenant).commit(ports.Create(record))
