"""Findings of the catalogue about a cluster on EKS: versions that AWS supports, and instance types that fit their
groups. No call is made."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import date

from stockyard.domain.clusters.kubernetes_minors import number
from stockyard.domain.nodes.offers import EXTENDED, STANDARD, ClusterVersion
from stockyard.domain.pools.group_mapping import Group
from stockyard.domain.records import Cluster
from stockyard.domain.values.pointers import pointer
from stockyard.ports import Finding, PriceList
from stockyard.providers.clouds.aws.catalog.offerings import tag_findings
from stockyard.providers.clusters.eks import addresses
from stockyard.providers.clusters.eks.configuration import EFA, has_placement_group
from stockyard.providers.clusters.eks.groups import node_taints

SOON_DAYS = 60
"""How long before a version's support ends people are warned: as long as AWS tells it before."""
ARCHITECTURE = "x86_64"
"""What the images of the nodes are made for."""
SERVING_EFA, WITH_EFA = "1.34", "1.35"
"""The first minor that serves the kinds of what EFA's driver consists of, and the first that it is made for."""
USUAL_NODES = 450
"""Nodes of a managed node group in an account whose quota nobody has raised."""
_VERSION, _SUPPORT = "/kubernetes_version", "/settings/support"


def findings(cluster: Cluster, prices: PriceList) -> Iterator[Finding]:
    """See ``ports.ClusterDriver.validate``."""
    # Of a cluster that is to change, what counts is what AWS supports now.
    region, day = str(cluster.settings["region_name"]), cluster.updated_at[:10]
    versions = prices.versions(region)
    of_version = version_findings(cluster.kubernetes_version, str(cluster.settings["support"]), versions, day)
    # One that stands must be able to change whatever else, an upgrade first of all: AWS has told it what comes.
    stands = cluster.status == "ready"
    yield from (replace(f, warning=True) if stands and f.pointer == _SUPPORT else f for f in of_version)
    yield from tag_findings(cluster.tags)
    for group_pointer, group in sent_groups(cluster):
        yield from _type_findings(group, region, prices, group_pointer)
        if group["max_size"] > USUAL_NODES:
            text = (
                f"AWS lets a managed node group have {USUAL_NODES} nodes unless the account's quota for it (L-BD136A63"
                " of eks) was raised: until then the group grows no further."
            )
            yield Finding(f"{group_pointer}/max_size", text, warning=True)
        if group["fabric"] == EFA and number(cluster.kubernetes_version) < number(WITH_EFA):
            text = f"EFA's driver, by which pods get its interfaces, needs Kubernetes {WITH_EFA} or newer."
            is_served = number(cluster.kubernetes_version) >= number(SERVING_EFA)
            yield Finding(f"{group_pointer}/fabric", text, warning=is_served)
        if group["fabric"] == EFA and not group.get("capacity_reservation_id") and not has_placement_group(group):
            text = "Machines of several zones do not stand close to each other: only with one zone they can."
            yield Finding(f"{group_pointer}/zones", text, warning=True)
    # What stands had its addresses before: it must be able to change whatever else.
    of_addresses = addresses.findings(cluster, sent_groups(cluster))
    yield from (replace(finding, warning=finding.warning or stands) for finding in of_addresses)
    if not stands and not any(map(_has_room_at_first, cluster.settings["node_groups"])):
        text = "One group must have a node at first that takes every pod: what a cluster consists of runs on it."
        yield Finding("/settings/node_groups", text)


def _has_room_at_first(group: Group) -> bool:
    """Whether pods without tolerations have a node of the group from the first moment on."""
    is_closed = any(taint["effect"] != "PreferNoSchedule" for taint in node_taints(group))
    return group["count"] > 0 and not is_closed and not group.get("capacity_reservation_id")


def sent_groups(cluster: Cluster) -> Iterator[tuple[str, Group]]:
    """The groups that somebody has named, each with the pointer to it in what was sent."""
    groups = [group for group in cluster.settings["node_groups"] if not group.get("builtin")]
    return ((pointer("settings", "node_groups", number), group) for number, group in enumerate(groups))


def version_findings(version: str, support: str, versions: Sequence[ClusterVersion], day: str) -> Iterator[Finding]:
    """Findings about a version for a cluster on that day, with ``support`` from its settings."""
    offered = next((offer for offer in versions if offer.version == version), None)
    if offered is None or not offered.support(day):
        supported = ", ".join(offer.version for offer in versions if offer.support(day))
        yield Finding(_VERSION, f"must be a version that EKS supports now: {supported}")
    elif offered.support(day) == EXTENDED:
        if support == STANDARD:
            text = f"must be extended: standard support of {version} ended on {offered.standard_until}"
            yield Finding(_SUPPORT, text)
        end = f"and is not supported from {offered.extended_until} on"
        text = f"{version} is in extended support, which costs more, {end}."
        yield Finding(_VERSION, text, warning=True)
    elif _days(day, offered.standard_until) <= SOON_DAYS:
        then = "AWS upgrades the cluster then" if support == STANDARD else "extended support costs more"
        text = f"Standard support of {version} ends on {offered.standard_until}: {then}."
        yield Finding(_VERSION, text, warning=True)


def _days(day: str, later: str) -> int:
    return (date.fromisoformat(later) - date.fromisoformat(day)).days


def _type_findings(group: Group, region: str, prices: PriceList, pointer: str) -> Iterator[Finding]:
    """Findings about a group whose machines could not do what it is for. What an unknown type can do, AWS says
    later."""
    name = group["instance_type"]
    if prices.offered(region, name) is False:
        yield Finding(f"{pointer}/instance_type", f"{name} is not offered in {region}.")
        return
    offer = prices.instance(region, name)
    if offer is None:
        return
    if offer["architecture"] != ARCHITECTURE:
        text = f"{name} has {offer['architecture']} processors; the images of the nodes are for {ARCHITECTURE}."
        yield Finding(f"{pointer}/instance_type", text)
    elif group["role"] == "gpu" and not any(gpu["manufacturer"] == "NVIDIA" for gpu in offer["gpus"]):
        yield Finding(f"{pointer}/instance_type", f"{name} has no NVIDIA GPU, which a group with the role gpu needs.")
    if group["fabric"] == EFA and not offer["fabric_interfaces"]:
        yield Finding(f"{pointer}/fabric", f"{name} has no EFA.")
