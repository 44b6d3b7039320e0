"""Instance types that a region or its zones offer, and what else of the account a cluster's settings may get wrong."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence

from stockyard.domain.records import CloudAccount
from stockyard.domain.values.pointers import pointer
from stockyard.ports import Finding
from stockyard.ports.clouds import PublicPrices
from stockyard.providers.clouds.aws import regions, tags
from stockyard.providers.clouds.aws.calls import Calls
from stockyard.providers.clouds.aws.default_region import DEFAULT_REGION
from stockyard.providers.clouds.aws.policies import template_versions

_NAMES = 100
"""Of types that one call is asked for."""


def region_findings(region: str, account: CloudAccount) -> Iterator[Finding]:
    """A region that is not the account's usual one, or none at all: then there is nobody to ask."""
    usual = str(account.attributes.get("region") or DEFAULT_REGION)
    if region != usual:
        yield Finding("/settings/region_name", f"{region} is not the account's default region {usual}.", warning=True)
    if region not in regions.every():
        yield Finding("/settings/region_name", f"AWS has no region {region}.")


def price_remarks(region: str, prices: PublicPrices) -> Iterator[Finding]:
    """Reasons why a plan cannot tell the region's prices, where it cannot."""
    if prices.rate(region, "gp3") is None:
        text = f"{prices.why_unknown(region)}{regions.opt_in_remark(region)}"
        yield Finding("/settings/region_name", text, warning=True)


def tag_findings(own_tags: Mapping[str, str]) -> Iterator[Finding]:
    """The tags of a cluster that its machines do not carry."""
    for key in own_tags.keys() - tags.of_instances(own_tags).keys():
        text = (
            "Instances and their disks do not carry this tag: machines read their tags by their metadata, for which EC2"
            " takes keys of letters, digits and +-=.,_:@ alone. A policy that demands it when instances are made"
            " refuses them; name the key without spaces and slashes."
        )
        yield Finding(pointer("tags", key), text, warning=True)


def template_findings(calls: Calls, account: CloudAccount, features: Collection[str] = ()) -> Iterator[Finding]:
    """Findings about parts that the account's template lacks, and whether clusters with these features can be made
    without them."""
    shortage = template_versions.shortage(template_versions.deployed(calls, account), features)
    if shortage is not None:
        yield Finding("/cloud_account_id", shortage.text, warning=not shortage.refuses)


def has_key_pair(calls: Calls, name: str) -> bool:
    """Whether the region has a key pair of this name."""
    return bool(calls.described_items("describe_key_pairs", "KeyPairs", KeyNames=[name]))


def offered_locations(calls: Calls, names: Sequence[str], *, zones: bool = False) -> set[tuple[str, str]]:
    """The types that are offered, each with the region or, with ``zones``, with each zone that has it."""
    offers: set[tuple[str, str]] = set()
    for start in range(0, len(names), _NAMES):
        pages = calls.pages(
            "ec2",
            "describe_instance_type_offerings",
            "InstanceTypeOfferings",
            LocationType="availability-zone" if zones else "region",
            Filters=[{"Name": "instance-type", "Values": list(names[start : start + _NAMES])}],
        )
        offers.update((str(offer["InstanceType"]), str(offer["Location"])) for offer in pages)
    return offers
