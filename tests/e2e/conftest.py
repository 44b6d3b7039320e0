"""What the end-to-end tests share: bodies of requests and a cluster's life by HTTP."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from local.serving import Served

EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "aws-cluster.json"


@pytest.fixture(scope="session")
def body() -> Callable[..., dict[str, Any]]:
    """The example's request with other values of its top level."""

    def make(**changes: Any) -> dict[str, Any]:
        return {**json.loads(EXAMPLE.read_text(encoding="utf-8")), **changes}

    return make


@pytest.fixture(scope="session")
def remove(served: Served) -> Callable[[str], dict[str, Any]]:
    """Delete a cluster and wait for the end of its deletion."""

    def gone(cluster_id: str) -> dict[str, Any]:
        answer = served.call("DELETE", f"/v1/clusters/{cluster_id}")
        assert answer.status == 202, answer.text
        return served.operation(answer.body["id"])

    return gone
