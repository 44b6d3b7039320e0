"""Live checks of a new cluster's settings. Nothing is made."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from stockyard.domain.clusters import overlay
from stockyard.domain.records import CloudAccount, Cluster
from stockyard.errors import VendorRefused
from stockyard.ports import Finding
from stockyard.providers.clouds.aws.calls import Calls
from stockyard.providers.clouds.aws.catalog import images, offerings, quotas, volume_keys
from stockyard.providers.clouds.aws.catalog.processor_quotas import MachineNeed
from stockyard.providers.clouds.aws.catalog.quotas import NetworkNeed
from stockyard.providers.clouds.aws.policies import template_versions
from stockyard.providers.clouds.aws.policies.template_parts import KUBEADM
from stockyard.providers.clouds.aws.sessions import account_number
from stockyard.providers.clusters.ec2 import planning
from stockyard.providers.clusters.ec2.building import Builder
from stockyard.providers.clusters.ec2.configuration import (
    control_plane_types,
    named_control_plane_types,
    types_of_groups,
)
from stockyard.providers.clusters.ec2.members import etcd_backup
from stockyard.providers.clusters.ec2.network import named_subnets, network, zones
from stockyard.providers.clusters.ec2.network.network_configuration import (
    RDP_FAULT,
    bastion_of,
    control_plane_size,
    has_nat_in_each_zone,
    is_given,
    nat_count,
)
from stockyard.providers.clusters.ec2.network.tenant_network import TenantNetwork


def findings(calls: Calls, cluster: Cluster, account: CloudAccount, *, is_new: bool) -> Iterator[Finding]:
    """Everything that is wrong or surprising. ``is_new``: nothing of it stands yet, so there has to be room for all."""
    faults = list(offerings.region_findings(calls.region, account))
    yield from faults
    if not all(fault.warning for fault in faults):
        # there is nobody to ask, and each answer would be a time-out
        return
    yield from offerings.template_findings(calls, account, [KUBEADM])
    if key_pair := cluster.settings.get("key_pair"):
        yield from _key_pair(calls, str(key_pair), stands=not is_new)
    yield from _types(calls, cluster)
    yield from _image(calls, cluster.settings.get("image"))
    yield from _architectures(calls, named_control_plane_types(cluster.settings), cluster.settings.get("image"))
    yield from _bastion(calls, cluster)
    yield from etcd_backup.findings(calls, cluster, account)
    yield from volume_keys.findings(calls, account, is_scaled=False)
    if is_given(cluster.settings):
        yield from _given_network(calls, cluster, account)
    else:
        yield from zones.findings(calls, cluster)
    if is_new:
        services = quotas.ServiceNeed.of(planning.creates(cluster, ""))
        yield from quotas.findings(calls, _machines(cluster), _network_need(calls, cluster), services)


def network_findings(builder: Builder) -> Iterator[Finding]:
    """Findings about a ready cluster's network that cannot become what the settings want."""
    settings = builder.work.cluster.settings
    if is_given(settings):
        yield from network.given_faults(builder)
        return
    first = network.first_zone(builder)
    if first in network.leaving_zones(builder.work):
        text = (
            f"{first} is the first zone of the network, and stays: the gateway of all zones and the bastion have their"
            " place there."
        )
        yield Finding("/settings/zones", text)
    fault = network.growth_fault(builder)
    if fault:
        yield Finding("/settings/zones", fault)


def _given_network(calls: Calls, cluster: Cluster, account: CloudAccount) -> Iterator[Finding]:
    settings = cluster.settings
    if settings.get("subnets"):
        yield from named_subnets.findings(calls, cluster)
    choice = network.choose(calls, settings)
    if isinstance(choice, Finding):
        # What is wrong with named subnets has been said, all of it.
        yield from () if settings.get("subnets") else (choice,)
        return
    pointer = "/settings/vpc_id" if settings.get("vpc_id") else "/settings/subnet_id"
    yield from _owner(calls, choice, account, pointer)
    if not choice.public:
        yield Finding(
            pointer, f"{choice.vpc_id} has no public subnet: the API's endpoint will be internal.", warning=True
        )
        if bastion_of(settings):
            yield Finding("/settings/bastion", f"{choice.vpc_id} has no public subnet for a bastion.")
        if settings.get(overlay.SETTING):
            text = f"{choice.vpc_id} has no public subnet, so machines of other networks could not reach the hubs."
            yield Finding(f"/settings/{overlay.SETTING}", text)


def _owner(calls: Calls, network: TenantNetwork, account: CloudAccount, pointer: str) -> Iterator[Finding]:
    """Findings about a VPC that another account shares with this one: whether the account's template reaches it, and
    what we can do for nobody there."""
    if network.owner in ("", account_number(account)):
        return
    version, needed = template_versions.deployed(calls, account).version, template_versions.SHARED_NETWORKS
    if version < needed:
        text = (
            f"{network.vpc_id} is of account {network.owner}, which shares it. The template of the cloud account is"
            f" version {version}; networks of another account need {needed}. Deploy the account's current template"
            " again."
        )
        yield Finding(pointer, text)
    elif not network.shows_routes:
        text = (
            f"{network.vpc_id} is of account {network.owner}, which does not show its routes: whether subnets have a"
            " way out cannot be looked at."
        )
        yield Finding(pointer, text, warning=True)


def _machines(cluster: Cluster) -> list[MachineNeed]:
    """The machines of the cluster from the start: the control plane's, the bastion, and what its pools never go
    below."""
    settings = cluster.settings
    size = control_plane_size(settings)
    needs = [MachineNeed("/settings/control_plane_instance_type", control_plane_types(cluster), size)]
    bastion = bastion_of(settings)
    if bastion:
        needs.append(MachineNeed("/settings/bastion/instance_type", (str(bastion["instance_type"]),)))
    for index, group in enumerate(settings.get("autoscaler_node_groups") or ()):
        if group.get("role") != "control" and int(group.get("min_size") or 0):
            pointer = f"/settings/autoscaler_node_groups/{index}/min_size"
            spot = group.get("capacity_type") == "spot"
            needs.append(MachineNeed(pointer, tuple(group["instance_types"]), int(group["min_size"]), spot))
    return needs


def _network_need(calls: Calls, cluster: Cluster) -> NetworkNeed:
    settings = cluster.settings
    if is_given(settings):
        return NetworkNeed("/settings/vpc_id", own=False, balancers=1)
    count = nat_count(settings)
    try:
        names = zones.cluster_zones(calls, cluster)[:count]
    except VendorRefused:
        names = []
    nat_zones = [*names, *[""] * (count - len(names))]
    nats_at = "/settings/nat_gateways" if has_nat_in_each_zone(settings) else ""
    return NetworkNeed("/settings/vpc_id", balancers=1, nat_zones=nat_zones, nats_at=nats_at)


def _bastion(calls: Calls, cluster: Cluster) -> Iterator[Finding]:
    """Findings about the bastion's image and type."""
    bastion = bastion_of(cluster.settings)
    if bastion is None:
        return
    name = str(bastion["instance_type"])
    if name not in _offered(calls, [name]):
        yield Finding("/settings/bastion/instance_type", f"{name} is not offered in {calls.region}.")
    yield from _image(calls, bastion.get("image"), "/settings/bastion/image")
    yield from _architectures(calls, [("/settings/bastion/instance_type", name)], bastion.get("image"))


def _key_pair(calls: Calls, name: str, *, stands: bool) -> Iterator[Finding]:
    if not offerings.has_key_pair(calls, name):
        more = " Machines are made without one." if stands else ""
        yield Finding("/settings/key_pair", f"There is no key pair {name} in {calls.region}.{more}", dispensable=True)


def _image(calls: Calls, name: str | None, pointer: str = "/settings/image") -> Iterator[Finding]:
    if name is None:
        return
    described = calls.described_items("describe_images", "Images", ImageIds=[name])
    if not described:
        yield Finding(pointer, f"There is no image {name} in {calls.region} that the account may use.")
    elif str(described[0].get("Platform", "")).lower() == "windows":
        yield Finding(pointer, f"{name} is a Windows image. {RDP_FAULT}.")
    elif described[0].get("RootDeviceName") != images.ROOT_DEVICE:
        yield Finding(pointer, f"{name} has its root disk elsewhere than at {images.ROOT_DEVICE}.")


def _architectures(calls: Calls, named_types: Sequence[tuple[str, str]], image: str | None) -> Iterator[Finding]:
    """Findings about machine types without an image for their architecture: the one that is named, else the
    publisher's."""
    names = sorted({name for _, name in named_types})
    if not names:
        return
    filters = [{"Name": "instance-type", "Values": names}]
    described = calls.pages("ec2", "describe_instance_types", "InstanceTypes", Filters=filters)
    supported = {
        str(kind["InstanceType"]): kind.get("ProcessorInfo", {}).get("SupportedArchitectures", ()) for kind in described
    }
    described_images = calls.described_items("describe_images", "Images", ImageIds=[image]) if image else []
    served = [str(described_image.get("Architecture", "x86_64")) for described_image in described_images]
    for pointer, name in named_types:
        own = supported.get(name, ())
        if described_images and own and not set(own).intersection(served):
            yield Finding(pointer, f"{name} is of {', '.join(own)}, and {image} is an image for {', '.join(served)}.")
        elif not image and "arm64" in own and not _has_arm_image(calls):
            yield Finding(pointer, f"{name} is of arm64, for which {calls.region} has no image of Ubuntu.")


def _has_arm_image(calls: Calls) -> bool:
    try:
        return bool(images.current(calls, arm=True))
    except VendorRefused:
        return False


def _types(calls: Calls, cluster: Cluster) -> Iterator[Finding]:
    named_types = [*named_control_plane_types(cluster.settings), *types_of_groups(cluster.settings)]
    types = control_plane_types(cluster)
    offered = _offered(calls, sorted({*types, *(name for _, name in named_types)}))
    for pointer, name in named_types:
        if name not in offered:
            yield Finding(pointer, f"{name} is not offered in {calls.region}.")
    if not named_control_plane_types(cluster.settings) and not offered.intersection(types):
        text = f"{calls.region} offers none of {', '.join(types)}. Name a type that it has."
        yield Finding("/settings/control_plane_instance_type", text)


def _offered(calls: Calls, names: Sequence[str]) -> set[str]:
    return {name for name, _ in offerings.offered_locations(calls, names)}
