"""Description of work on one claim, for its node source: its provider, cluster, account, environment and ledger."""

from __future__ import annotations

from functools import partial

from stockyard.domain.nodes import provider_kinds
from stockyard.domain.nodes.declared_types import block_of
from stockyard.domain.records import CloudAccount, Cluster, NodeClaim, NodeEnvironment, NodeProvider
from stockyard.domain.values import ids
from stockyard.errors import CredentialsRevoked, NodeCouldNotBeProvisioned
from stockyard.operations import cluster_secrets
from stockyard.operations.cloud_accounts.of_provider import account_of, host_of, reference_of
from stockyard.operations.engine.advance import Fence
from stockyard.operations.engine.ledger import Owner, StoreLedger
from stockyard.operations.node_claims.environment_outputs import opened
from stockyard.operations.node_claims.launch_groups import StoreGroup
from stockyard.operations.node_claims.machine_holds import StoreHolds
from stockyard.operations.services import Services
from stockyard.ports.node_work import EnvironmentWork, NodeWork
from stockyard.ports.nodes import NodeSource

KUBECONFIG = "kubeconfig"
"""Name of the secret with a cluster's kubeconfig."""


def environment_id(cluster_id: str, provider_id: str) -> str:
    """The one environment of a provider for a cluster."""
    return ids.derive(ids.NODE_ENVIRONMENT, cluster_id, provider_id)


def node_work(services: Services, claim: NodeClaim, phase: str, fence: Fence[NodeClaim]) -> tuple[NodeSource, NodeWork]:
    """The source of a placed claim and what it is told about one phase.

    ``NodeCouldNotBeProvisioned`` when the provider is gone or of a kind that is not built; ``CredentialsRevoked`` when
    its cloud account is gone.
    """
    placed = claim.placement
    provider, cluster, environment = _records(services, claim)
    source = services.node_sources.get(provider.kind) if provider is not None else None
    if placed is None or provider is None or source is None:
        raise NodeCouldNotBeProvisioned("The claim's node provider is gone.")
    account, host = account_of(services, provider), host_of(services, provider)
    if reference_of(provider) is not None and account is None and host is None:
        raise CredentialsRevoked(f"The cloud account of node provider {provider.name} is no longer registered.")
    owner = Owner.of_claim(claim, fence.operation_id, fence.attempt, *_location(provider, account))
    inventory = source.host_inventory(provider, account)
    has_holds = inventory is not None or source.takes_from_groups
    work = NodeWork(
        tenant=services.tenant,
        installation=services.installation,
        claim=claim,
        provider=provider,
        ledger=StoreLedger(services, owner, phase),
        now=services.clock.now(),
        session=fence.operation_id,
        cluster=cluster,
        account=account,
        host=host,
        environment=environment,
        secret_outputs=partial(opened, services, environment) if environment is not None else dict,
        group=StoreGroup(services, placed.group, claim.id, owner.guard) if placed.group else None,
        holds=StoreHolds(services, claim, owner.guard, inventory) if has_holds else None,
    )
    return source, work


def _records(
    services: Services, claim: NodeClaim
) -> tuple[NodeProvider | None, Cluster | None, NodeEnvironment | None]:
    """The provider, the cluster and the environment of a placed claim, as far as it has them and they are there."""
    placed = claim.placement
    if placed is None:
        return None, None, None
    if not claim.cluster_id:
        return services.store.get(NodeProvider, placed.provider_id), None, None
    return services.store.get_together(
        (NodeProvider, placed.provider_id),
        (Cluster, claim.cluster_id),
        (NodeEnvironment, environment_id(claim.cluster_id, placed.provider_id)),
    )


def environment_work(
    services: Services, environment: NodeEnvironment, cluster: Cluster, session: str
) -> tuple[NodeSource, EnvironmentWork]:
    """The source of an environment and what it is told. Raises as ``node_work`` does."""
    provider = services.store.get(NodeProvider, environment.provider_id)
    source = services.node_sources.get(provider.kind) if provider is not None else None
    if provider is None or source is None:
        raise NodeCouldNotBeProvisioned(f"Node provider {environment.provider_name} is gone.")
    account, host = account_of(services, provider), host_of(services, provider)
    owner = Owner.of_environment(environment, *_location(provider, account))
    work = EnvironmentWork(
        tenant=services.tenant,
        installation=services.installation,
        environment=environment,
        provider=provider,
        cluster=cluster,
        ledger=StoreLedger(services, owner, "environment"),
        now=services.clock.now(),
        session=session,
        account=account,
        host=host,
        secret_outputs=partial(opened, services, environment),
        kubeconfig=lambda: services.secrets.get(cluster_secrets.name(services, cluster, KUBECONFIG)),
    )
    return source, work


def _location(provider: NodeProvider, account: CloudAccount | None) -> tuple[str, int]:
    region = provider_kinds.kind(provider.kind).region(block_of(provider))
    return region or "", int(account.id) if account is not None else 0
