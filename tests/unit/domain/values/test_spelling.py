"""Names that were probably meant."""

from __future__ import annotations

import pytest

from stockyard.domain.values.spelling import closest

NAMES = ("maxCapacity", "displayName", "node_groups", "kubernetes_version")


@pytest.mark.parametrize(
    ("name", "likely"),
    [
        ("maxCapactiy", "maxCapacity"),
        ("max_capacity", "maxCapacity"),
        ("MAXCAPACITY", "maxCapacity"),
        ("kubernetesVersion", "kubernetes_version"),
        ("nodegroup", "node_groups"),
        ("colour", ""),
        ("", ""),
    ],
)
def test_closest(name, likely):
    assert closest(name, NAMES) == likely
