"""Live checks of a new cluster's settings. Nothing is made."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from stockyard.domain.records import CloudAccount, Cluster
from stockyard.ports import Finding
from stockyard.providers.clouds.aws import DEFAULT_REGION, images, regions, template_versions
from stockyard.providers.clouds.aws.calls import Calls
from stockyard.providers.clusters.ec2 import quotas, tenant_network
from stockyard.providers.clusters.ec2.configuration import (
    control_plane_types,
    named_control_plane_types,
    types_of_groups,
)
from stockyard.providers.clusters.ec2.network import is_given


def findings(calls: Calls, cluster: Cluster, account: CloudAccount) -> Iterator[Finding]:
    """Everything that is wrong or surprising."""
    usual = str(account.attributes.get("region") or DEFAULT_REGION)
    if calls.region != usual:
        yield Finding(
            "/settings/region_name", f"{calls.region} is not the account's default region {usual}.", warning=True
        )
    if calls.region not in regions.every():
        # there is nobody to ask, and each answer would be a time-out
        yield Finding("/settings/region_name", f"AWS has no region {calls.region}.")
        return
    shortage = template_versions.shortage(template_versions.deployed(calls, account))
    if shortage is not None:
        yield Finding("/cloud_account_id", shortage.text, warning=not shortage.refuses)
    yield from _key_pair(calls, str(cluster.settings.get("key_pair") or ""))
    yield from _types(calls, cluster)
    yield from _image(calls, cluster.settings.get("image"))
    yield from quotas.findings(calls, control_plane_types(cluster), own_network=not is_given(cluster.settings))
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
    offered: set[str] = set()
    for start in range(0, len(names), 100):
        filters = [{"Name": "instance-type", "Values": list(names[start : start + 100])}]
        offers = calls.pages(
            "ec2",
            "describe_instance_type_offerings",
            "InstanceTypeOfferings",
            LocationType="region",
            Filters=filters,
        )
        offered.update(str(offer["InstanceType"]) for offer in offers)
    return offered
