"""A cluster of each minor that new clusters may have, and the upgrade from each to the next, on simulated Kubernetes.

The minors that are built have theirs on real control planes too: ``test_members.py`` and ``test_served_members.py``.
"""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, Any

import pytest

from local.kubernetes.real.build import missing
from local.testing.example import body_without_nodes
from stockyard.kubernetes_versions import NEW, TESTED
from tests.harness.stories.pools import administrator

if TYPE_CHECKING:
    from pathlib import Path

    from local.testing.serving import Served

pytestmark = pytest.mark.timeout(600)


@pytest.fixture(scope="module")
def clusters(request: pytest.FixtureRequest) -> dict[str, dict[str, Any]]:
    """Clusters by their minors, all created at once."""
    if reason := missing():
        pytest.skip(f"is for make test-kubernetes: {reason}")
    served: Served = request.getfixturevalue("served")
    created = {}
    for minor in NEW:
        body = {**body_without_nodes(), "name": f"minor-{minor.replace('.', '-')}", "kubernetes_version": minor}
        answer = served.call("POST", "/v1/clusters", body)
        assert answer.status == 202, answer.text
        created[minor] = answer.body
    for cluster in created.values():
        assert served.operation(cluster["operation_id"])["status"] == "succeeded"
    return created


def test_a_cluster_of_each_minor_is_brought_to_the_next(
    served: Served, clusters: dict[str, dict[str, Any]], tmp_path: Path
) -> None:
    changes, callers = {}, {}
    for before, after in pairwise(NEW):
        callers[before] = administrator(served, clusters[before], tmp_path)
        assert callers[before].call("GET", "/version")["gitVersion"] == f"v{TESTED[before].release}"
        path = f"/v1/clusters/{clusters[before]['id']}"
        answer = served.change("PATCH", path, {"kubernetes_version": after})
        assert answer.status == 202, answer.text
        changes[before] = answer.body["operation_id"]
    for before, after in pairwise(NEW):
        assert served.operation(changes[before])["status"] == "succeeded"
        assert callers[before].call("GET", "/version")["gitVersion"] == f"v{TESTED[after].release}"
    for cluster in clusters.values():
        assert served.call("DELETE", f"/v1/clusters/{cluster['id']}").status == 202
