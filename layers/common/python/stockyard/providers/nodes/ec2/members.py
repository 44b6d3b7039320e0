"""Machines that become members of their cluster's control plane: they stand where its nodes do, with the role and the
security groups of control planes."""

from __future__ import annotations

from dataclasses import replace

from stockyard.domain.clusters import overlay
from stockyard.domain.records import Cluster
from stockyard.machines import control_plane
from stockyard.providers.clouds.aws import tags
from stockyard.providers.clouds.aws.calls import Calls
from stockyard.providers.clouds.aws.kinds import dlm as dlm_kinds
from stockyard.providers.nodes.ec2 import node_class
from stockyard.providers.nodes.ec2.configuration import Ec2NodesConfig
from stockyard.providers.nodes.ec2.node_class import NodeClass

GROUP = "security_group/control-plane"
"""What the cluster's own tags call the group that lets the balancer in."""


def member_class(calls: Calls, there: NodeClass, cluster: Cluster, owner: tags.Owner) -> NodeClass:
    """The node class as one for members. ``NotYetVisible`` while the control plane's group is not shown."""
    group = str(node_class.group_of(calls, cluster, owner, GROUP)["GroupId"])
    kind = "ctrl-instance-profile" if cluster.settings.get("cloud_controllers") else "instance-profile"
    node_groups = tuple(other for other in there.security_groups if other != group)
    return replace(
        there, security_groups=(group, *node_groups), instance_profile=f"{owner.prefix}-{cluster.client_id}-{kind}"
    )


def marks(cluster: Cluster) -> dict[str, str]:
    """Tags of such a machine besides those of each.

    By the first the cluster's policy takes daily snapshots of its root disk, which has etcd's data. By the second the
    cloud controller, which runs on members, knows its cluster; it ends on a machine without it.
    """
    return {**dlm_kinds.target(cluster.id), tags.CLUSTER_OF_MEMBER: cluster.client_id}


def user_data(config: Ec2NodesConfig, cluster: Cluster, owner: tags.Owner) -> bytes:
    """User data of such a machine. The same for all members: which claim it is for it reads from its tags."""
    controllers = bool(cluster.settings.get("cloud_controllers"))
    return (
        control_plane.ControlPlaneMachine(
            api_url=config.api_url,
            cluster_id=cluster.id,
            client_id=cluster.client_id,
            kubernetes_version=cluster.kubernetes_version,
            issuer=config.issuer,
            tenant=owner.tenant,
            volume_tags=tags.of_tenant(owner.installation, owner.tenant) if controllers else None,
            joins=True,
            overlay=bool(cluster.settings.get(overlay.SETTING)),
            sources=config.sources,
        )
        .first_boot()
        .cloud_config()
    )
