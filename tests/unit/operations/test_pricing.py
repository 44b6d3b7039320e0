"""Lists of prices, and what the plan of a deletion says first."""

from __future__ import annotations

import pytest

from stockyard.domain.models.prices import PriceView
from stockyard.domain.nodes.offers import InstanceOffer, RegionOffers
from stockyard.domain.values.prices import PriceItem
from stockyard.operations.pricing import list_prices, removal_verdict

TYPES = {
    name: InstanceOffer(name, 2, 4096, "x86_64", 3, 10, usd) for name, usd in (("t3.large", 0.08), ("m5.xl", None))
}
OFFERS = RegionOffers("us-east-1", "2026", TYPES, {"nat_gateway": 0.045, "gp3": 0.08, "nat_gateway_gb": 0.04})


@pytest.mark.parametrize(
    ("name", "kind", "listed"),
    [
        ("*", "", ["gp3", "m5.xl", "nat_gateway", "nat_gateway_gb", "t3.large"]),
        ("t3.*", "", ["t3.large"]),
        ("t3", "", []),
        ("*", "rate", ["gp3", "nat_gateway", "nat_gateway_gb"]),
        ("nat*", "instance", []),
        ("*large", "instance", ["t3.large"]),
    ],
)
def test_prices_are_filtered_by_name_and_kind(name: str, kind: str, listed: list[str]) -> None:
    assert [item["name"] for item in list_prices(OFFERS, name, kind)] == listed


def test_units_are_told_apart() -> None:
    views = [PriceView.model_validate(item) for item in list_prices(OFFERS)]
    assert {view.name: (view.kind, view.unit) for view in views} == {
        "gp3": ("rate", "GB-month"),
        "m5.xl": ("instance", "hour"),
        "nat_gateway": ("rate", "hour"),
        "nat_gateway_gb": ("rate", "GB"),
        "t3.large": ("instance", "hour"),
    }


def test_a_deletion_says_first_what_it_saves() -> None:
    items = [PriceItem("a", 1, 0.1), PriceItem("b", 2, 0.2)]
    location = "us-east-1 of cloud account 1"
    assert removal_verdict(3, location, items) == (
        "3 things, in us-east-1 of cloud account 1, would be removed; it saves 219.00 USD a month."
    )
    assert removal_verdict(1, "", [*items, PriceItem("c", 1, None)]) == (
        "1 thing would be removed; it saves at least 219.00 USD a month."
    )
    assert removal_verdict(2, "", []) == "2 things would be removed."
