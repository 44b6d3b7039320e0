"""The sweep's look at an account of which some regions do not answer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from stockyard.errors import CredentialsRevoked, PermissionDenied, VendorError
from stockyard.providers.aws import tags
from stockyard.providers.aws.calls import Calls
from stockyard.providers.aws.kinds import Found, Kind, State
from stockyard.providers.clusters.ec2 import sweep

REGIONS = ["ap-south-1", "eu-west-1", "us-east-1"]


@pytest.fixture
def dark(monkeypatch: pytest.MonkeyPatch) -> dict[str, VendorError]:
    """Regions that fail, after the first kind was seen; every other one has a VPC, and the account has a role."""
    regions: dict[str, VendorError] = {}

    def kind(name: str) -> Kind:
        def search(calls: Calls, wanted: Mapping[str, str], _name: str | None) -> Sequence[Found]:
            if name == "vpc" and calls.region in regions:
                raise regions[calls.region]
            return [Found(f"{name}-1", {**wanted, tags.RESOURCE: "clu_1", tags.GENERATION: "1"})]

        return Kind(name, search, lambda *_: State.PRESENT, lambda *_: None)

    monkeypatch.setattr(sweep, "DELETION_ORDER", (kind("role"), kind("vpc")))
    return regions


def look(**more: Any) -> list[tuple[str, str]]:
    clients: Any = object()
    return [(thing.kind, thing.region) for thing in sweep.tagged(clients, "inst-1", "acme", REGIONS, **more)]


@pytest.mark.parametrize("error", [PermissionDenied("no"), CredentialsRevoked("the region is not enabled")])
@pytest.mark.parametrize("region", REGIONS)
def test_a_region_that_fails_is_told_and_hides_no_other(
    dark: dict[str, VendorError], region: str, error: VendorError
) -> None:
    dark[region] = error
    told: list[tuple[str, VendorError]] = []
    found = look(skipped=lambda *one: told.append(one))
    assert told == [(region, error)]
    others = [name for name in REGIONS if name != region]
    # What belongs to no region is seen once, in the first region that answers.
    assert found == [("role", others[0]), ("vpc", others[0]), ("vpc", others[1])]


def test_an_account_of_which_no_region_answers_is_a_failure(dark: dict[str, VendorError]) -> None:
    dark.update({region: CredentialsRevoked(region) for region in REGIONS})
    told: list[str] = []
    with pytest.raises(CredentialsRevoked, match=REGIONS[0]):
        look(skipped=lambda region, _: told.append(region))
    assert told == []


def test_who_does_not_want_to_be_told_gets_the_error(dark: dict[str, VendorError]) -> None:
    assert look() == [("role", "ap-south-1"), *(("vpc", region) for region in REGIONS)]
    dark["eu-west-1"] = PermissionDenied("no")
    with pytest.raises(PermissionDenied):
        look()
