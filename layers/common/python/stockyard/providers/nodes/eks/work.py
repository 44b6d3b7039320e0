"""Tools of one step: the calls of the account, whose things they are, and the claims' holds."""

from __future__ import annotations

from stockyard.domain.records import Cluster
from stockyard.errors import NodeCouldNotBeProvisioned
from stockyard.ports.node_work import EnvironmentWork, MachineHolds, NodeWork
from stockyard.providers.clouds.aws import tags
from stockyard.providers.clouds.aws.calls import Calls
from stockyard.providers.clouds.aws.kinds import ec2 as ec2_kinds
from stockyard.providers.clouds.aws.kinds.base import Kind, borrowed
from stockyard.providers.clouds.aws.policies import session
from stockyard.providers.clouds.aws.resources.making import Reconciler
from stockyard.providers.clouds.aws.sessions import Sessions
from stockyard.providers.nodes.eks.configuration import EksNodesConfig, region
from stockyard.providers.nodes.eks.topology import check

REBOOT = borrowed("reboot")
"""That an operation has rebooted a machine."""
KINDS: dict[str, Kind] = {kind.name: kind for kind in (ec2_kinds.INSTANCE, REBOOT)}
_LOST = "Delete the claim; another one gets another machine."


def claim_reconciler(work: NodeWork, sessions: Sessions, config: EksNodesConfig) -> Reconciler:
    """Makes and removes what is a claim's own."""
    cluster = cluster_of(work)
    owner = tags.Owner(
        installation=work.installation,
        tenant=work.tenant,
        resource_id=work.claim.id,
        generation=str(work.claim.generation),
        client_id=cluster.client_id,
        prefix=config.name_prefix,
        own_tags=tags.of_instances(cluster.tags),
    )
    return Reconciler(
        calls(work, sessions, cluster, config), work.ledger, owner, work.now, config.visibility_seconds, KINDS, _LOST
    )


def calls(work: NodeWork | EnvironmentWork, sessions: Sessions, cluster: Cluster, config: EksNodesConfig) -> Calls:
    """The calls of the provider's account, in its region, for that cluster alone."""
    if work.account is None:
        raise NodeCouldNotBeProvisioned(f"The cloud account of node provider {work.provider.name} is gone.")
    limit = session.only(work.account, config.name_prefix, cluster.client_id)
    return Calls(sessions.of(work.account, work.session, work.tenant, limit), region(work.provider))


def cluster_of(work: NodeWork) -> Cluster:
    """The claim's cluster. ``NodeCouldNotBeProvisioned`` when there is none."""
    if work.cluster is None:
        raise NodeCouldNotBeProvisioned("A node of a node group joins its cluster; the claim names none.")
    return work.cluster


def group_work(work: NodeWork) -> tuple[Cluster, MachineHolds, str]:
    """The cluster, the holds of its machines, and the claim's pool. ``NodeCouldNotBeProvisioned`` for a claim of no
    node group."""
    cluster = check(work.provider, work.cluster)
    if work.holds is None or not work.claim.pool:
        raise NodeCouldNotBeProvisioned("The claim is of no node group; only pools of node groups have such nodes.")
    return cluster, work.holds, work.claim.pool
