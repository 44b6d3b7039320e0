"""The setting ``overlay``: what is taken, and what is refused with which reason."""

from __future__ import annotations

from typing import Any

import pytest

from stockyard.domain.models.clusters.clusters import settings_for
from stockyard.errors import InvalidInput

EC2: dict[str, Any] = {"key_pair": "my-key", "cloud_controllers": False}


def _faults(cloud: str, driver: str, settings: dict[str, Any]) -> str:
    with pytest.raises(InvalidInput) as refused:
        settings_for(cloud, "k8s", driver, "demo", settings)
    return str([(fault.pointer, fault.detail) for fault in refused.value.errors])


def test_defaults_are_filled_in_and_without_it_there_is_none() -> None:
    assert settings_for("aws", "k8s", "ec2", "demo", {**EC2, "overlay": {}})["overlay"] == {
        "range": "100.64.0.0/16",
        "node_to_node": True,
    }
    assert settings_for("aws", "k8s", "ec2", "demo", EC2)["overlay"] is None
    assert settings_for("cudo", "k8s", "cudo", "demo", {"overlay": {"range": "10.9.0.0/16"}})["overlay"] == {
        "range": "10.9.0.0/16",
        "node_to_node": True,
    }


@pytest.mark.parametrize(
    ("overlay", "words"),
    [
        ({"range": "100.64.0.0/21"}, "between /12 and /20"),
        ({"range": "203.0.112.0/20"}, "must be within"),
        ({"range": "10.244.0.0/16"}, "overlaps 10.244.0.0/16"),
        ({"range": "10.96.0.0/16"}, "overlaps 10.96.0.0/12"),
        ({"range": "100.64.0.1/16"}, "must be a range"),
        ({"range": "10.0.0.0/16"}, "overlaps 10.0.0.0/16"),
        ({"node_to_node": False}, "pods of nodes in two networks"),
    ],
)
def test_ranges_that_something_else_has_are_refused(overlay: dict[str, Any], words: str) -> None:
    assert words in _faults("aws", "ec2", {**EC2, "overlay": overlay})


def test_what_cannot_have_one_is_refused_with_the_reason() -> None:
    faults = _faults("aws", "ec2", {"key_pair": "my-key", "overlay": {}})
    assert "/settings/cloud_controllers" in faults
    assert "AWS's controller takes no node" in faults
    assert "no overlay" in _faults("aws", "eks", {"overlay": {}})
    assert "10.160.0.0/22" in _faults("cudo", "cudo", {"overlay": {"range": "10.160.0.0/16"}})
