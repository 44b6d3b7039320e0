"""Steps of a deletion beyond removing what the ledger names: what the cluster's controllers and EKS itself left."""

from __future__ import annotations

from dataclasses import replace

from stockyard.errors import VendorConflict, VendorError
from stockyard.ports import Outcome
from stockyard.providers.clouds.aws import tags
from stockyard.providers.clouds.aws.kinds import ec2 as ec2_kinds
from stockyard.providers.clouds.aws.resources import leftovers as controllers
from stockyard.providers.clusters.eks import control_plane, names, objects
from stockyard.providers.clusters.eks.building import Builder
from stockyard.providers.clusters.eks.nodes import node_groups

LEFTOVERS = "leftovers"


def leftovers(builder: Builder, make_api: objects.MakeApi) -> Outcome:
    """Remove what the cluster's controllers made, while the controllers are there for the removal.

    A deletion does not hang on a cluster that answers no more or refuses: then its load balancers are deleted in the
    cloud, and the phase says why."""
    waiting, unanswered = _load_balancers(builder, make_api)
    if waiting:
        return Outcome(False, waiting)
    outcome = controllers.remove(builder.calls, names.cluster_name(builder.work.cluster))
    return replace(outcome, message="; ".join(filter(None, (outcome.message, unanswered))))


def _load_balancers(builder: Builder, make_api: objects.MakeApi) -> tuple[str | None, str | None]:
    """Tell what is waited for, and why the cluster could not be asked to remove its load balancers."""
    api = objects.of_cluster(builder, make_api)
    if api is None:
        return None, None
    try:
        return objects.remove_balancers(api), None
    except VendorError as error:
        return None, f"the cluster did not remove its load balancers, so they are deleted in the cloud: {error.detail}"
    finally:
        api.close()


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
    if phase == "control_plane":
        protected = control_plane.without_protection(builder)
        if protected:
            return Outcome(False, protected, control_plane.WAIT_SECONDS)
    outcome = builder.unmake(phase)
    if phase == "control_plane" and outcome.done:
        return controllers.remove_rest(builder.calls, name)
    return outcome


def _interfaces(builder: Builder) -> str | None:
    """Interfaces of pods that outlive a machine which ended without removing them: they would keep security groups and
    subnets for ever. They carry our tags, and are of no instance. What is waited for."""
    for thing in ec2_kinds.NETWORK_INTERFACE.search(builder.calls, tags.of_owner(builder.owner), None):
        described = ec2_kinds.NETWORK_INTERFACE.describe(builder.calls, thing.vendor_id)
        if not described or described.get("Status") != "available":
            continue
        try:
            builder.calls.call("ec2", "delete_network_interface", NetworkInterfaceId=thing.vendor_id)
        except VendorConflict as error:
            return f"network interface {thing.vendor_id}: {error.detail}"
    return None
