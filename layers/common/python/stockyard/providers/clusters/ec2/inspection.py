"""Live checks of a new cluster's settings. Nothing is made."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from stockyard.domain.records import CloudAccount, Cluster
from stockyard.ports import Finding
from stockyard.providers.clouds.aws import images, offerings, quotas
from stockyard.providers.clouds.aws.calls import Calls
from stockyard.providers.clouds.aws.template_parts import KUBEADM
from stockyard.providers.clusters.ec2 import tenant_network
from stockyard.providers.clusters.ec2.configuration import (
    control_plane_types,
    named_control_plane_types,
    types_of_groups,
)
from stockyard.providers.clusters.ec2.network import is_given


def findings(calls: Calls, cluster: Cluster, account: CloudAccount) -> Iterator[Finding]:
    """Everything that is wrong or surprising."""
    faults = list(offerings.region_findings(calls.region, account))
    yield from faults
    if not all(fault.warning for fault in faults):
        # there is nobody to ask, and each answer would be a time-out
        return
    yield from offerings.template_findings(calls, account, [KUBEADM])
    yield from _key_pair(calls, str(cluster.settings.get("key_pair") or ""))
    yield from _types(calls, cluster)
    yield from _image(calls, cluster.settings.get("image"))
    types = control_plane_types(cluster)
    pointer = "/settings/control_plane_instance_type"
    yield from quotas.findings(
        calls, types, pointer, addresses=0 if is_given(cluster.settings) else 1, network="/settings/vpc_id"
    )
    if is_given(cluster.settings):
        network = tenant_network.choose(calls, cluster.settings)
        if isinstance(network, Finding):
            yield network
        elif not network.public:
            yield Finding(
                "/settings/vpc_id" if cluster.settings.get("vpc_id") else "/settings/subnet_id",
                f"{network.vpc_id} has no public subnet: the API's endpoint will be internal.",
                warning=True,
            )


def _key_pair(calls: Calls, name: str) -> Iterator[Finding]:
    if not calls.described_items("describe_key_pairs", "KeyPairs", KeyNames=[name]):
        yield Finding("/settings/key_pair", f"There is no key pair {name} in {calls.region}.")


def _image(calls: Calls, name: str | None) -> Iterator[Finding]:
    if name is None:
        return
    described = calls.described_items("describe_images", "Images", ImageIds=[name])
    if not described:
        yield Finding("/settings/image", f"There is no image {name} in {calls.region} that the account may use.")
    elif described[0].get("RootDeviceName") != images.ROOT_DEVICE:
        yield Finding("/settings/image", f"{name} has its root disk elsewhere than at {images.ROOT_DEVICE}.")


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
    return {name for name, _ in offerings.places(calls, names)}
