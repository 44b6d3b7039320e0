"""Members of a real control plane are replaced, the first one too: the API answers, with its objects still there."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

from local.kubernetes.real.build import missing
from tests.harness.pool_story import administrator, story_body
from tests.kubernetes.test_served import files_of, good, programs_of, succeeded

if TYPE_CHECKING:
    from tests.harness.serving import Served

pytestmark = pytest.mark.timeout(600)
MAPS = "/api/v1/namespaces/default/configmaps"


@pytest.fixture(scope="module")
def cloud(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    if reason := missing():
        pytest.skip(reason)
    from tests.harness.serving import serve

    served = serve(tmp_path_factory.mktemp("members") / "home", "--kubernetes", "--no-limits")
    yield served
    assert served.stop() == 0
    assert not (served.home / "planes").exists()


def machines(cloud: Served) -> set[str]:
    return {path.name for path in (cloud.home / "machines").iterdir()}


def test_a_repave_ends_with_all_objects(cloud: Served, tmp_path_factory: pytest.TempPathFactory) -> None:
    cluster = good(cloud, "POST", "clusters", story_body())
    succeeded(cloud, cluster["operation_id"])
    kube = administrator(cloud, cluster, tmp_path_factory.mktemp("administrator"))
    kube.call("POST", MAPS, {"metadata": {"name": "kept"}, "data": {"from": "the first machine"}})
    before = machines(cloud)
    operation = good(cloud, "POST", f"clusters/{cluster['id']}/repave")
    succeeded(cloud, operation["id"])
    cloud.wait("the end of every machine of before", lambda: not before & machines(cloud), 60)
    assert kube.call("GET", f"{MAPS}/kept")["data"] == {"from": "the first machine"}
    # The agent and the controllers go on, too: a node comes for a claim.
    claim = good(cloud, "POST", "node-claims", {"cluster": cluster["id"], "resources": {"cpu": 1}})
    cloud.wait("a node", lambda: good(cloud, "GET", f"node-claims/{claim['id']}")["phase"] == "Available", 120)
    good(cloud, "DELETE", f"clusters/{cluster['id']}")
    cloud.wait("the end of its programs", lambda: not programs_of(cloud), 120)
    cloud.wait("the end of its files", lambda: not files_of(cloud), 60)
