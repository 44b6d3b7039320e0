"""The environment of one cluster: where its nodes stand, found once; and the end of what its launches made."""

from __future__ import annotations

from stockyard.domain.records import Cluster, NodeProvider
from stockyard.ports import Outcome
from stockyard.ports.node_work import EnvironmentWork
from stockyard.providers.clouds.aws.resources.making import Reconciler
from stockyard.providers.nodes.ec2 import managed, node_class, templates, topology
from stockyard.providers.nodes.ec2.configuration import setting
from stockyard.providers.nodes.ec2.work import NODE_CLASS

KEY = "main"


def prepare(reconciler: Reconciler, work: EnvironmentWork) -> Outcome:
    """Find the node class. Its ledger line stands for launch templates too, which the first launch of a pool makes."""
    topology.check(work.provider, work.cluster)
    if managed.joins(work.cluster) and work.account is not None and not setting(work.provider, "instanceProfile"):
        managed.admit(reconciler, work.account, work.cluster)
    location = find(reconciler, work.provider, work.cluster)
    line = reconciler.ledger.intend(NODE_CLASS.name, KEY)
    if line.state != "made":
        reconciler.ledger.made(line, work.environment.id)
    zones = ", ".join(location.by_zone)
    return Outcome(True, f"Nodes stand in {len(location.zones)} subnets in {zones}.", facts=location.facts())


def find(reconciler: Reconciler, provider: NodeProvider, cluster: Cluster) -> node_class.NodeClass:
    """Node class of the cluster now; see ``node_class.find``."""
    finding = managed.find if managed.joins(cluster) else node_class.find
    return finding(reconciler.calls, provider, cluster, reconciler.owner, reconciler.now)


def clear(reconciler: Reconciler) -> Outcome:
    """Delete the launch templates, then forget the node class. Done when a search finds none."""
    template_ids = templates.remove(reconciler.calls, reconciler.owner)
    if template_ids:
        return Outcome(
            False, f"launch templates {', '.join(template_ids)} are being deleted", 5, remaining=tuple(template_ids)
        )
    return reconciler.unmake()
