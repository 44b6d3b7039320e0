"""The order of minors, and how far apart parts of a cluster may be."""

from __future__ import annotations

import pytest

from stockyard.domain.clusters.kubernetes_minors import following, number, skew_fault, upgrade_fault


def test_minors_are_ordered_as_numbers() -> None:
    assert number("1.9") < number("1.10")
    assert number("v1.35.4-eks-abc") == (1, 35)
    assert following("1.9") == "1.10"
    with pytest.raises(ValueError, match="not enough values"):
        number("35")


@pytest.mark.parametrize(
    ("before", "after", "text"),
    [
        ("1.34", "1.35", None),
        ("1.35", "1.35", None),
        ("1.9", "1.10", None),
        ("1.34", "1.36", "must be 1.35: an upgrade goes one minor at a time"),
        ("1.35", "1.34", "must not be older than 1.35, which the cluster has"),
        ("1.35", "2.0", "must be 1.36: an upgrade goes one minor at a time"),
    ],
)
def test_an_upgrade_goes_one_minor_up(before: str, after: str, text: str | None) -> None:
    assert upgrade_fault(before, after) == text


@pytest.mark.parametrize(
    ("node", "text"),
    [
        ("v1.36.1", None),
        ("1.33", None),
        ("1.32", "has 1.32, more than 3 minors older than 1.36"),
        ("1.37", "has 1.37, newer than the control plane"),
    ],
)
def test_nodes_are_at_most_three_minors_older(node: str, text: str | None) -> None:
    assert skew_fault("1.36", node) == text
