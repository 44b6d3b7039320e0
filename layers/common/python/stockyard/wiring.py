"""The composition root: settings to ports to use cases. The only module that knows both adapters and providers.

Everything is made on first use and kept for the life of the process, so that a function pays for what it needs.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cache
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import urlsplit

from stockyard import ports, settings
from stockyard.domain.platform import PLATFORM
from stockyard.domain.records import AuditRecord, NodeClaim, Outbox
from stockyard.operations.services import Rules, Services

if TYPE_CHECKING:
    from stockyard.adapters.catalog import Ec2PriceList
    from stockyard.adapters.secrets import SecretsManagerSecrets
    from stockyard.operations.idempotency_keys import IdempotencyKeys
    from stockyard.operations.reap import Reaper
    from stockyard.operations.refresh_catalog import CatalogRefresh
    from stockyard.operations.relay_outbox import Relay
    from stockyard.operations.wake_scheduler import Changes, Scheduler
    from stockyard.ports.nodes import NodeSource, Scarcity

T = TypeVar("T")


class Lazy(Mapping[str, T]):
    """A mapping whose values are made when first asked for: a vendor's code is loaded only where it is called."""

    def __init__(self, makers: Mapping[str, Callable[[], T]]) -> None:
        self._makers = makers
        self._made: dict[str, T] = {}

    def __getitem__(self, key: str) -> T:
        if key not in self._made:
            self._made[key] = self._makers[key]()
        return self._made[key]

    def __iter__(self) -> Iterator[str]:
        return iter(self._makers)

    def __len__(self) -> int:
        return len(self._makers)


@cache
def configuration() -> settings.Settings:
    """The environment of this process."""
    return settings.read()


def _client(service: str) -> Any:
    import boto3
    from botocore.config import Config

    retries: Any = {"mode": "standard", "total_max_attempts": 4}
    config = Config(retries=retries, connect_timeout=3, read_timeout=15)
    make: Callable[..., Any] = boto3.client
    return make(service, config=config)


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

    return DynamoRegistry(calls.client(), configuration().table)


@cache
def installation() -> str:
    """The id of this installation, made at first use."""
    return registry().installation(clock().randomness(10))


@cache
def secrets() -> SecretsManagerSecrets:
    """Our own Secrets Manager."""
    from stockyard.adapters.secrets import SecretsManagerSecrets

    return SecretsManagerSecrets(_client("secretsmanager"), configuration().secret_prefix)


@cache
def page_key() -> bytes:
    """The key that signs page tokens."""
    return secrets().own(configuration().page_key_secret).encode()


@cache
def identity() -> ports.Identity:
    """The realm's clients."""
    from stockyard.adapters.keycloak import Keycloak

    chosen = configuration()
    return Keycloak(
        chosen.issuer,
        chosen.audience,
        installation=installation(),
        read_secret=lambda name: secrets().own(name),
        admin_secret=chosen.identity_admin_secret,
    )


@cache
def workflows() -> ports.Workflows:
    """Step Functions, by the names that use cases start them by."""
    from stockyard.adapters.workflows import StepFunctionsWorkflows

    chosen = configuration()
    arns = {
        "provision": chosen.provision_workflow,
        "delete": chosen.delete_workflow,
        "provision_node": chosen.provision_node_workflow,
        "delete_node": chosen.delete_node_workflow,
        "power_node": chosen.power_node_workflow,
    }
    return StepFunctionsWorkflows(_client("stepfunctions"), arns)


@cache
def bus() -> ports.Bus:
    """Our event bus."""
    from stockyard.adapters.bus import EventBridgeBus

    return EventBridgeBus(_client("events"), configuration().bus)


@cache
def prices() -> Ec2PriceList:
    """The EC2 catalogue with what the schedule refreshed."""
    from stockyard.adapters.catalog import Ec2PriceList

    return Ec2PriceList(registry().platform())


@cache
def _deployer() -> ports.Deployer:
    from stockyard.adapters.vdeployer import VDeployer

    return VDeployer(configuration().vdeployer_url_template)


@cache
def _prover() -> ports.Prover:
    import os

    from stockyard.adapters.sts_prover import StsProver

    host = urlsplit(configuration().api_url).netloc
    return StsProver(host, endpoint=os.environ.get("AWS_ENDPOINT_URL"))


def _ec2_provider() -> ports.ClusterProvider:
    import boto3

    from stockyard.providers.clusters.ec2.provider import Ec2ClusterProvider, Ec2Config

    chosen = configuration()
    config = Ec2Config(
        name_prefix=chosen.name_prefix,
        kubernetes_version=chosen.kubernetes_version,
        api_url=chosen.api_url,
        issuer=chosen.issuer,
        audience=chosen.cluster_audience,
        visibility_seconds=chosen.visibility_seconds,
    )
    return Ec2ClusterProvider(config, boto3.Session)


def _ec2_verifier() -> ports.AccountVerifier:
    import boto3

    from stockyard.providers.clusters.ec2.verify import Ec2AccountVerifier

    return Ec2AccountVerifier(boto3.Session)


@cache
def _providers() -> Mapping[str, ports.ClusterProvider]:
    return Lazy({"aws": _ec2_provider})


def _simulated_source() -> NodeSource:
    from stockyard.providers.nodes.simulated.provider import SimulatedNodes

    return SimulatedNodes(lambda tenant: registry().store(tenant))


def _ec2_source() -> NodeSource:
    import boto3

    from stockyard.providers.nodes.ec2.provider import Ec2Nodes, Ec2NodesConfig

    chosen = configuration()
    config = Ec2NodesConfig(
        name_prefix=chosen.name_prefix,
        kubernetes_version=chosen.kubernetes_version,
        api_url=chosen.api_url,
        visibility_seconds=chosen.visibility_seconds,
    )
    return Ec2Nodes(config, boto3.Session, prices().region)


@cache
def _sources() -> Mapping[str, NodeSource]:
    return Lazy({"ec2": _ec2_source, "simulated": _simulated_source})


@cache
def _catalogs() -> dict[Any, Any]:
    return {}


@cache
def _scarcity() -> Scarcity:
    from stockyard.adapters.scarcity import StoredScarcity

    return StoredScarcity(registry().platform())


@cache
def _verifiers() -> Mapping[str, ports.AccountVerifier]:
    return Lazy({"aws": _ec2_verifier})


@cache
def rules() -> Rules:
    """The stage's choices that use cases need."""
    chosen = configuration()
    return Rules(
        name_prefix=chosen.name_prefix,
        issuer=chosen.issuer,
        api_url=chosen.api_url,
        in_flight_seconds=chosen.worker_seconds + chosen.visibility_seconds,
        sweep_grace_seconds=chosen.sweep_grace_seconds,
        report_only=chosen.report_only,
        launch_seconds=chosen.launch_seconds,
        register_seconds=chosen.register_seconds,
        agent_busy_seconds=chosen.agent_busy_seconds,
        agent_quiet_seconds=chosen.agent_quiet_seconds,
    )


def store(tenant: str) -> ports.Store:
    """A tenant's records, or the platform's."""
    return registry().platform() if tenant == PLATFORM else registry().store(tenant)


def services(tenant: str) -> Services:
    """A tenant's ports, or the platform's, which has the installation's own records."""
    return Services(
        store=store(tenant),
        clock=clock(),
        identity=identity(),
        secrets=secrets(),
        workflows=workflows(),
        deployer=_deployer(),
        prover=_prover(),
        providers=_providers(),
        verifiers=_verifiers(),
        prices=prices(),
        installation=installation(),
        rules=rules(),
        sources=_sources(),
        scarcity=_scarcity(),
        catalogs=_catalogs(),
        of=services if tenant == PLATFORM else None,
    )


def relay() -> Relay:
    """What sends the outbox."""
    from stockyard.operations.relay_outbox import Relay

    return Relay(registry(), workflows(), bus())


def scheduler() -> Scheduler:
    """What binds claims to node types."""
    from stockyard.operations.wake_scheduler import Scheduler

    return Scheduler(registry(), services)


def reap() -> Reaper:
    """What sweeps."""
    from stockyard.operations.reap import Reaper

    return Reaper(registry(), clock(), services)


def catalog() -> CatalogRefresh:
    """What refreshes the EC2 catalogue."""
    from stockyard.adapters.aws_catalog import connected
    from stockyard.adapters.catalog import StoredPriceSheets
    from stockyard.operations.refresh_catalog import CatalogRefresh

    return CatalogRefresh(registry(), clock(), connected(), StoredPriceSheets(registry().platform()))


def claims_of(records: Iterable[Mapping[str, Any]]) -> list[tuple[str, NodeClaim]]:
    """(tenant, claim) of every stream record of a claim that waits for a node type, as it was written then."""
    from stockyard.adapters.dynamodb import codec

    found: list[tuple[str, NodeClaim]] = []
    for record in records:
        image = record.get("dynamodb", {}).get("NewImage")
        if image and image.get("kind") == {"S": "NodeClaim"}:
            tenant, claim = codec.read(image)
            if isinstance(claim, NodeClaim) and claim.due_at is not None:
                found.append((tenant, claim))
    return found


def changes_of(records: Iterable[Mapping[str, Any]]) -> Changes:
    """What of these stream records may let other claims be placed, and which providers were changed."""
    from stockyard.operations.allowed_types import ID as ALLOWED
    from stockyard.operations.wake_scheduler import Changes

    roomier: set[str] = set()
    providers: set[tuple[str, str]] = set()
    for record in records:
        image = record.get("dynamodb", {}).get("NewImage") or {}
        given = {name: image.get(name, {}).get("S", "") for name in ("kind", "tenant", "sk", "moved", "status")}
        makes_room = (
            (given["kind"] == "Counter" and given["sk"].startswith("capacity/") and given["moved"] == "down")
            or (given["kind"] == "Cluster" and given["status"] == "ready")
            or (given["kind"] == "Fact" and given["sk"] == ALLOWED)
        )
        if given["kind"] == "NodeProvider" and record.get("eventName") != "INSERT":
            providers.add((given["tenant"], given["sk"]))
        if makes_room or given["kind"] == "NodeProvider":
            roomier.add(given["tenant"])
    return Changes(frozenset(roomier), frozenset(providers))


def outbox_of(record: Mapping[str, Any]) -> tuple[str, Outbox] | None:
    """(tenant, item) of a stream record that inserted an outbox item; None for any other record."""
    from stockyard.adapters.dynamodb import codec

    image = record.get("dynamodb", {}).get("NewImage")
    if record.get("eventName") != "INSERT" or not image or image.get("kind") != {"S": "Outbox"}:
        return None
    tenant, item = codec.read(image)
    return (tenant, item) if isinstance(item, Outbox) else None


def tenant_template(account: Any) -> dict[str, Any]:
    """The CloudFormation template for a tenant's AWS account."""
    from stockyard.providers.clusters.ec2 import tenant_template as template

    chosen = configuration()
    document: dict[str, Any] = json.loads(json.dumps(template.render(account, installation(), chosen)))
    return document


def keys_of(tenant: str) -> IdempotencyKeys:
    """The idempotency records of a tenant."""
    from stockyard.operations.idempotency_keys import IdempotencyKeys

    return IdempotencyKeys(store(tenant))


def audit(tenant: str, record: AuditRecord) -> None:
    """Keep an audit record."""
    store(tenant).commit(ports.Create(record))
