"""The sweep lists the tagged resources of an account although some of its regions do not answer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from stockyard.errors import CredentialsRevoked, PermissionDenied, VendorError
from stockyard.providers.clouds.aws import tags
from stockyard.providers.clouds.aws.calls import Calls
from stockyard.providers.clouds.aws.kinds.base import Kind, TaggedThing
from stockyard.providers.clouds.aws.resources import sweep

REGIONS = ["ap-south-1", "eu-west-1", "us-east-1"]


@pytest.fixture
def dark(monkeypatch: pytest.MonkeyPatch) -> dict[str, VendorError]:
    """The regions that fail to list VPCs and their errors. Each other region has a VPC, and the account has a role."""
    regions: dict[str, VendorError] = {}

    def kind(name: str) -> Kind:
        def search(calls: Calls, filters: Mapping[str, str], _name: str | None) -> Sequence[TaggedThing]:
            if name == "vpc" and calls.region in regions:
                raise regions[calls.region]
            return [TaggedThing(f"{name}-1", {**filters, tags.RESOURCE: "clu_1", tags.GENERATION: "1"})]

        return Kind(name, search, lambda *_: {}, lambda *_: None)

    monkeypatch.setattr(sweep, "DELETION_ORDER", (kind("role"), kind("vpc")))
    return regions


def look(**more: Any) -> list[tuple[str, str]]:
    clients: Any = object()
    return [(thing.kind, thing.region) for thing in sweep.tagged(clients, "inst-1", "acme", REGIONS, **more)]


@pytest.mark.parametrize("error", [PermissionDenied("no"), CredentialsRevoked("the region is not enabled")])
@pytest.mark.parametrize("region", REGIONS)
def test_failed_region_is_reported_and_hides_no_other(
    dark: dict[str, VendorError], region: str, error: VendorError
) -> None:
    dark[region] = error
    skipped: list[tuple[str, VendorError]] = []
    things = look(skipped=lambda *region_and_error: skipped.append(region_and_error))
    assert skipped == [(region, error)]
    answering = [name for name in REGIONS if name != region]
    # What belongs to no region is seen once, in the first region that answers.
    assert things == [("role", answering[0]), ("vpc", answering[0]), ("vpc", answering[1])]


def test_account_without_answering_region_is_an_error(dark: dict[str, VendorError]) -> None:
    dark.update({region: CredentialsRevoked(region) for region in REGIONS})
    skipped: list[str] = []
    with pytest.raises(CredentialsRevoked, match=REGIONS[0]):
        look(skipped=lambda region, _: skipped.append(region))
    assert skipped == []


def test_failed_region_raises_without_callback(dark: dict[str, VendorError]) -> None:
    assert look() == [("role", "ap-south-1"), *(("vpc", region) for region in REGIONS)]
    dark["eu-west-1"] = PermissionDenied("no")
    with pytest.raises(PermissionDenied):
        look()
