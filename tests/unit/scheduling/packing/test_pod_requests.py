"""Resources that a pod takes of a node."""

from __future__ import annotations

from typing import Any

import pytest

from stockyard.scheduling.packing.pod_requests import requests

GIB = 2**30 * 1000


def container(cpu: str = "", **fields: Any) -> dict[str, Any]:
    return {"resources": {"requests": {"cpu": cpu}}, **fields}


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        ({"containers": [container("1"), container("500m")]}, {"cpu": 1500}),
        ({"containers": [container("1")], "initContainers": [container("3"), container("2")]}, {"cpu": 3000}),
        ({"containers": [container("1")], "initContainers": [container("1", restartPolicy="Always")]}, {"cpu": 2000}),
        (
            {
                "containers": [container("1")],
                "initContainers": [container("1", restartPolicy="Always"), container("2"), container("9m")],
            },
            {"cpu": 3000},
        ),
        (
            {
                "containers": [container("1")],
                "initContainers": [container("2"), container("3", restartPolicy="Always")],
            },
            {"cpu": 4000},
        ),
        ({"containers": [container("1")], "overhead": {"cpu": "100m", "memory": "1Gi"}}, {"cpu": 1100, "memory": GIB}),
        ({"containers": [{"resources": {"limits": {"cpu": "2"}}}]}, {"cpu": 2000}),
        ({"containers": [{"resources": {"limits": {"cpu": "2"}, "requests": {"cpu": "1"}}}]}, {"cpu": 1000}),
        ({"containers": [container("1")], "resources": {"requests": {"cpu": "4"}}}, {"cpu": 4000}),
        (  # Kubernetes 1.35: a limit of the pod makes it ask for the sum of its containers, or else for the limit
            {"containers": [container("1"), container("500m")], "resources": {"limits": {"cpu": "6", "memory": "1Gi"}}},
            {"cpu": 1500, "memory": GIB},
        ),
        (
            {"containers": [container("1")], "resources": {"limits": {"cpu": "6"}, "requests": {"cpu": "3"}}},
            {"cpu": 3000},
        ),
        (
            {
                "containers": [{"resources": {"limits": {"hugepages-2Mi": "2Mi"}}}],
                "resources": {"limits": {"hugepages-2Mi": "4Mi"}},
                "overhead": {"cpu": "1"},
            },
            {"hugepages-2Mi": 4 * 2**20 * 1000, "cpu": 1000},
        ),
        ({"containers": [container("0")], "resources": {"limits": {"cpu": "6"}}}, {}),
        ({"containers": [container("0")]}, {}),
        ({"containers": [{"resources": {"limits": {"nvidia.com/gpu": 1}}}]}, {"nvidia.com/gpu": 1000}),
        ({}, {}),
    ],
)
def test_what_a_pod_takes_of_a_node(spec: dict[str, Any], expected: dict[str, int]) -> None:
    assert requests(spec) == {**expected, "pods": 1000}


def test_a_pod_asks_for_no_device_as_a_whole() -> None:
    with pytest.raises(ValueError, match=r"^/spec/resources/limits/example.com~1gpu: a pod has only cpu"):
        requests({"resources": {"limits": {"example.com/gpu": 1}}})
