"""LimitRanges complete what containers do not say, as the API server does."""

from __future__ import annotations

from typing import Any

import pytest

from stockyard.scheduling.limit_ranges import read_defaults, with_requests


def limit_range(*limits: Any) -> dict[str, Any]:
    return {"spec": {"limits": [*limits]}}


@pytest.mark.parametrize(
    ("limits", "requests"),
    [
        ([], {}),
        ([{"type": "Pod", "max": {"cpu": "9"}}], {}),
        ([{"type": "Container", "min": {"cpu": "1"}}], {"cpu": "1"}),
        ([{"type": "Container", "min": {"cpu": "1"}, "max": {"cpu": "4"}}], {"cpu": "4"}),
        ([{"type": "Container", "max": {"cpu": "4"}, "default": {"cpu": "3"}}], {"cpu": "3"}),
        (
            [{"type": "Container", "default": {"cpu": "3", "memory": "1Gi"}, "defaultRequest": {"cpu": "2"}}],
            {"cpu": "2", "memory": "1Gi"},
        ),
        ([{"type": "Container", "default": {"cpu": 3}}, {"type": "Container", "default": {"cpu": 5}}], {"cpu": 5}),
    ],
    ids=["none", "of pods", "least", "most is the limit", "limit", "request", "last"],
)
def test_what_is_limited_is_requested(limits: list[Any], requests: dict[str, Any]) -> None:
    assert read_defaults(limit_range(*limits), ()) == requests


@pytest.mark.parametrize(
    ("limits", "pointer"),
    [("x", "/spec/limits"), ([7], "/spec/limits/0"), ([{"type": 7}], "/spec/limits/0/type")]
    + [([{"type": "Container", name: {"cpu": "-1"}}], f"/spec/limits/0/{name}/cpu") for name in ("min", "default")],
)
def test_what_is_wrong_is_named_by_its_pointer(limits: Any, pointer: str) -> None:
    with pytest.raises(ValueError, match=f"^{pointer}: "):
        read_defaults({"spec": {"limits": limits}}, ())


def test_what_a_container_or_its_pod_says_stays() -> None:
    containers = [
        {"resources": {"requests": {"cpu": "1"}}},
        {"resources": {"limits": {"cpu": "2"}}},
        {"name": "bare"},
        {"resources": 7},
        "wrong",
    ]
    spec = {"containers": containers, "initContainers": [{}]}
    defaults = {"cpu": "4", "memory": "1Gi"}
    after = with_requests(spec, defaults)
    assert [each["resources"]["requests"] for each in after["containers"][:3]] == [
        {"cpu": "1", "memory": "1Gi"},
        {"memory": "1Gi"},
        defaults,
    ]
    assert after["containers"][3:] == containers[3:]
    assert after["initContainers"] == [{"resources": {"requests": defaults}}]
    whole = {**spec, "resources": {"requests": {"cpu": "1"}}}
    assert with_requests(whole, defaults) == whole
