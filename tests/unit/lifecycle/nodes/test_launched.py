"""Placements after a launch: what the machine became, and why cheaper options were passed over."""

from __future__ import annotations

import json

from stockyard.domain.nodes.records import PASSED_OVER, Placement, PlacementOption
from stockyard.lifecycle.nodes.node_claim import NOT_TO_BE_HAD, launched

NOW = "2026-01-01T00:00:00.000Z"


def option(name: str, usd_hour: float) -> PlacementOption:
    return PlacementOption(f"cloud.{name}", "spot", ("a", "b"), usd_hour, usd_hour)


def test_cheaper_options_have_a_reason_and_dearer_ones_none() -> None:
    options = (option("small", 0.1), option("middle", 0.2), option("large", 0.3), option("huge", 0.4))
    placed = Placement("npr_1", "cloud.small", "spot", ("a", "b"), 0.1, NOW, usd_hour=0.1, options=options)
    reasons_text = json.dumps({"cloud.small": "the cloud had none", "cloud.huge": "was never wanted"})
    cases: tuple[tuple[dict[str, str], str, dict[str, str]], ...] = (
        ({}, "cloud.small", {}),
        ({"type": "cloud.small", PASSED_OVER: reasons_text}, "cloud.small", {}),
        (
            {"type": "cloud.large", "zone": "b", PASSED_OVER: reasons_text},
            "cloud.large",
            {"cloud.small": "the cloud had none", "cloud.middle": NOT_TO_BE_HAD},
        ),
        ({"type": "cloud.middle"}, "cloud.middle", {"cloud.small": NOT_TO_BE_HAD}),
        ({"type": "cloud.other", PASSED_OVER: reasons_text}, "cloud.other", {}),
    )
    for facts, name, reasons in cases:
        placement = launched(placed, {"capacity_type": "spot", **facts})
        assert (placement.type, placement.passed_over) == (name, reasons), facts
    # What one launch has said is nothing to the next one.
    again = launched(launched(placed, {"type": "cloud.large"}), {"type": "cloud.small"})
    assert again.passed_over == {}
