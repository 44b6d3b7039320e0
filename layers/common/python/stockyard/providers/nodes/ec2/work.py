"""Tools of one step: the calls of the account, whose things they are, and the stage's names."""

from __future__ import annotations

from stockyard.domain.records import Cluster
from stockyard.errors import NodeCouldNotBeProvisioned
from stockyard.ports.node_work import EnvironmentWork, NodeWork
from stockyard.providers.clouds.aws import tags
from stockyard.providers.clouds.aws.calls import Calls
from stockyard.providers.clouds.aws.kinds import ec2 as ec2_kinds
from stockyard.providers.clouds.aws.kinds import iam as iam_kinds
from stockyard.providers.clouds.aws.kinds.base import Kind, borrowed
from stockyard.providers.clouds.aws.policies import session
from stockyard.providers.clouds.aws.resources.making import Reconciler
from stockyard.providers.clouds.aws.sessions import Sessions
from stockyard.providers.nodes.ec2.configuration import Ec2NodesConfig, region
from stockyard.providers.nodes.ec2.managed import ACCESS

NODE_CLASS, REBOOT = borrowed("node_place"), borrowed("reboot")
"""Where a cluster's nodes stand, as found once; and that an operation has rebooted a machine."""
_ALL = (ec2_kinds.INSTANCE, NODE_CLASS, REBOOT, ACCESS, iam_kinds.INSTANCE_PROFILE)
KINDS: dict[str, Kind] = {kind.name: kind for kind in _ALL}
_LOST = "Delete the claim; another one gets another machine."


def claim_reconciler(work: NodeWork, sessions: Sessions, config: Ec2NodesConfig) -> Reconciler:
    """Makes and removes what is a claim's own."""
    return _reconciler(
        work, sessions, _owner(work, work.claim.id, str(work.claim.generation), _cluster(work), config), config
    )


def environment_owner(work: NodeWork, config: Ec2NodesConfig) -> tags.Owner:
    """Owner of the launch templates of a claim: its cluster's environment."""
    if work.environment is None:
        raise NodeCouldNotBeProvisioned("The claim's node environment is gone.")
    return _owner(work, work.environment.id, "1", _cluster(work), config)


def group_owner(work: NodeWork, group_id: str, config: Ec2NodesConfig) -> tags.Owner:
    """Owner of machines that were launched together: their group. A group has one generation."""
    return _owner(work, group_id, "1", _cluster(work), config)


def environment_reconciler(work: EnvironmentWork, sessions: Sessions, config: Ec2NodesConfig) -> Reconciler:
    """Finds and removes what is an environment's. An environment has one generation."""
    return _reconciler(work, sessions, _owner(work, work.environment.id, "1", work.cluster, config), config)


def _cluster(work: NodeWork) -> Cluster:
    if work.cluster is None:
        raise NodeCouldNotBeProvisioned("A node of EC2 joins a cluster; the claim names none.")
    return work.cluster


def _reconciler(
    work: NodeWork | EnvironmentWork, sessions: Sessions, owner: tags.Owner, config: Ec2NodesConfig
) -> Reconciler:
    if work.account is None:
        raise NodeCouldNotBeProvisioned(f"The cloud account of node provider {work.provider.name} is gone.")
    limit = session.only(work.account, owner.prefix, owner.client_id)
    calls = Calls(sessions.of(work.account, work.session, work.tenant, limit), region(work.provider))
    return Reconciler(calls, work.ledger, owner, work.now, config.visibility_seconds, KINDS, _LOST)


def _owner(
    work: NodeWork | EnvironmentWork, resource_id: str, generation: str, cluster: Cluster, config: Ec2NodesConfig
) -> tags.Owner:
    return tags.Owner(
        installation=work.installation,
        tenant=work.tenant,
        resource_id=resource_id,
        generation=generation,
        client_id=cluster.client_id,
        prefix=config.name_prefix,
        own_tags=tags.of_instances(cluster.tags),
    )
