"""Live checks of a new cluster's settings. Nothing is made."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from stockyard.domain.records import CloudAccount, Cluster
from stockyard.errors import VendorNotFound
from stockyard.ports import Finding
from stockyard.providers.aws.calls import Calls
from stockyard.providers.clusters.ec2 import given
from stockyard.providers.clusters.ec2.configuration import DEFAULT_REGION, DEFAULT_TYPE
from stockyard.providers.clusters.ec2.network import is_given


def findings(calls: Calls, cluster: Cluster, account: CloudAccount) -> Iterator[Finding]:
    """Everything that is wrong or surprising."""
    usual = str(account.attributes.get("region") or DEFAULT_REGION)
    if calls.region != usual:
        yield Finding(
            "/settings/region_name", f"{calls.region} is not the account's default region {usual}.", warning=True
        )
    if not calls.clients.knows(calls.region):
        # there is nobody to ask, and each answer would be a time-out
        yield Finding("/settings/region_name", f"AWS has no region {calls.region}.")
        return
    yield from _key_pair(calls, str(cluster.settings.get("key_pair") or ""))
    yield from _types(calls, cluster)
    if is_given(cluster.settings):
        chosen = given.choose(calls, cluster.settings)
        if isinstance(chosen, Finding):
            yield chosen
        elif not chosen.public:
            yield Finding(
                "/settings/vpc_id" if cluster.settings.get("vpc_id") else "/settings/subnet_id",
                f"{chosen.vpc_id} has no public subnet: the API's endpoint will be internal.",
                warning=True,
            )


def _key_pair(calls: Calls, name: str) -> Iterator[Finding]:
    try:
        found = calls.call("ec2", "describe_key_pairs", KeyNames=[name])["KeyPairs"]
    except VendorNotFound:
        found = []
    if not found:
        yield Finding("/settings/key_pair", f"There is no key pair {name} in {calls.region}.")


def _types(calls: Calls, cluster: Cluster) -> Iterator[Finding]:
    wanted: list[tuple[str, str]] = [
        (
            "/settings/control_plane_instance_type",
            str(cluster.settings.get("control_plane_instance_type") or DEFAULT_TYPE),
        )
    ]
    for i, group in enumerate(cluster.settings.get("autoscaler_node_groups") or ()):
        for j, name in enumerate(group.get("instance_types") or ()):
            wanted.append((f"/settings/autoscaler_node_groups/{i}/instance_types/{j}", str(name)))
    offered = _offered(calls, sorted({name for _, name in wanted}))
    for pointer, name in wanted:
        if name not in offered:
            yield Finding(pointer, f"{name} is not offered in {calls.region}.")


def _offered(calls: Calls, names: Sequence[str]) -> set[str]:
    found: set[str] = set()
    for start in range(0, len(names), 100):
        chosen = [{"Name": "instance-type", "Values": list(names[start : start + 100])}]
        offers = calls.pages(
            "ec2",
            "describe_instance_type_offerings",
            "InstanceTypeOfferings",
            LocationType="region",
            Filters=chosen,
        )
        found.update(str(offer["InstanceType"]) for offer in offers)
    return found
