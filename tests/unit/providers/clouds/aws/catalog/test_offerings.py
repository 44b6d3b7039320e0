"""Remarks on a cluster's settings before anything is made: tags that machines lack, regions to be opted into."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from stockyard.providers.clouds.aws.catalog import offerings


def test_tags_that_machines_cannot_carry_are_told() -> None:
    remarks = list(offerings.tag_findings({"team": "a", "Cost Center": "1", "acme/owner": "b", "env:stage": "c"}))
    assert sorted(finding.pointer for finding in remarks) == ["/tags/Cost Center", "/tags/acme~1owner"]
    assert all(finding.warning and "policy that demands it" in finding.detail for finding in remarks)


def test_a_region_of_which_nothing_is_known_may_have_to_be_opted_into() -> None:
    prices: Any = SimpleNamespace(rate=lambda *_: None, why_unknown=lambda region: f"{region} is not known.")
    texts = {
        region: next(iter(offerings.price_remarks(region, prices))).detail for region in ("eu-west-1", "eu-central-2")
    }
    assert texts["eu-west-1"] == "eu-west-1 is not known."
    assert "eu-central-2 has to be opted into" in texts["eu-central-2"]
    assert not list(offerings.price_remarks("eu-central-2", SimpleNamespace(rate=lambda *_: 0.1)))
