"""What a deletion does beyond removing what the ledger names: what the cluster's controllers and EKS itself left."""

from __future__ import annotations

from stockyard.errors import VendorConflict
from stockyard.ports import Outcome
from stockyard.providers.clouds.aws import ec2_kinds, tags
from stockyard.providers.clouds.aws import leftovers as controllers
from stockyard.providers.clusters.eks import names, node_groups, objects
from stockyard.providers.clusters.eks.building import Builder

LEFTOVERS = "leftovers"


def leftovers(builder: Builder, make_api: objects.MakeApi) -> Outcome:
    """What the cluster's controllers made, while they are there to remove it themselves."""
    waiting = objects.balancers(builder, make_api)
    if waiting:
        return Outcome(False, waiting)
    return controllers.remove(builder.calls, names.cluster_name(builder.work.cluster))


def remove(phase: str, builder: Builder) -> Outcome:
    """See ``ports.ClusterDriver.remove``."""
    name = names.cluster_name(builder.work.cluster)
    if phase == node_groups.PHASE:
        waiting = node_groups.begin_removal(builder)
        if waiting:
            return Outcome(False, waiting, node_groups.WAIT_SECONDS)
        interfaces = _interfaces(builder)
        if interfaces:
            return Outcome(False, interfaces)
    outcome = builder.unmake(phase)
    if phase == "control_plane" and outcome.done:
        return controllers.remove_rest(builder.calls, name)
    return outcome


def _interfaces(builder: Builder) -> str:
    """Interfaces of pods, which outlive their machine where it ended before it could remove them: they would keep
    security groups and subnets for ever. They carry our tags, and are of no instance. What is waited for."""
    for thing in ec2_kinds.NETWORK_INTERFACE.search(builder.calls, tags.of_owner(builder.owner), None):
        described = ec2_kinds.NETWORK_INTERFACE.describe(builder.calls, thing.vendor_id)
        if not described or described.get("Status") != "available":
            continue
        try:
            builder.calls.call("ec2", "delete_network_interface", NetworkInterfaceId=thing.vendor_id)
        except VendorConflict as error:
            return f"network interface {thing.vendor_id}: {error.detail}"
    return ""
