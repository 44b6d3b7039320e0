"""Helpers that the end-to-end tests share: request bodies, and how a cluster is deleted by HTTP."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pytest

from local.testing.example import body_without_nodes

if TYPE_CHECKING:
    from local.testing.serving import Served


@pytest.fixture(scope="session")
def body() -> Callable[..., dict[str, Any]]:
    """Makes the example's request body, with other values for some of its top-level fields."""

    def make(**changes: Any) -> dict[str, Any]:
        return {**body_without_nodes(), **changes}

    return make


@pytest.fixture(scope="module")
def remove(served: Served) -> Callable[[str], dict[str, Any]]:
    """Deletes a cluster, waits until the deletion has ended, and returns the operation."""

    def delete_and_wait(cluster_id: str) -> dict[str, Any]:
        answer = served.call("DELETE", f"/v1/clusters/{cluster_id}")
        assert answer.status == 202, answer.text
        return served.operation(answer.body["id"])

    return delete_and_wait
