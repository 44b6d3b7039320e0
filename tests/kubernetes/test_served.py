"""``KUBERNETES=1 make serve`` as its user sees it: real ``kubectl``, nodes for pods, drains, and nothing left."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from local.aws.accounts import REGION
from local.kubernetes.real.build import minors, missing, missing_previous
from local.testing.example import cudo_body
from tests.harness.stories.consolidation import nodes_become_fewer
from tests.harness.stories.pools import GROUP, LAB, STATIC, Story, administrator, story_body
from tests.kubernetes.day.people import Person

if TYPE_CHECKING:
    from local.testing.serving import Served

pytestmark = pytest.mark.timeout(600)


@pytest.fixture(scope="module")
def cloud(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    if reason := missing() or missing_previous():
        pytest.skip(reason)
    from local.testing.serving import serve

    served = serve(tmp_path_factory.mktemp("real") / "home", "--kubernetes", "--no-limits")
    yield served
    assert served.stop() == 0
    assert not (served.home / "pki").exists()
    assert not (served.home / "planes").exists()


def good(cloud: Served, method: str, path: str, body: Any = None) -> Any:
    answer = cloud.call(method, f"/v1/{path}", body)
    assert answer.status in (200, 201, 202), answer.text
    return answer.body


def succeeded(cloud: Served, operation: str) -> None:
    ended_operation = cloud.operation(operation)
    assert ended_operation["status"] == "succeeded", ended_operation["error"]


def programs_of(cloud: Served) -> list[str]:
    """The command lines of all processes of machines and control planes."""
    folders = [f"{cloud.home / name}/" for name in ("machines", "planes")]
    lines = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            line = path.read_bytes().replace(b"\0", b" ").decode(errors="replace")
        except OSError:
            continue
        if any(folder in line for folder in folders):
            lines.append(line)
    return lines


def files_of(cloud: Served) -> list[Path]:
    """The folders of machines and control planes."""
    return [path for name in ("machines", "planes") for path in (cloud.home / name).glob("*")]


@pytest.fixture(scope="module")
def cluster(cloud: Served) -> dict[str, Any]:
    """The README's cluster with a static pool besides."""
    good(cloud, "POST", "node-providers", LAB)
    created: dict[str, Any] = good(cloud, "POST", "clusters", story_body())
    pool = {"name": STATIC, "quantity": 2, "provider": LAB["name"]}
    good(cloud, "POST", f"clusters/{created['id']}/pools", pool)
    succeeded(cloud, created["operation_id"])
    assert created["kubernetes_version"] == minors()[0], "the minor of who names none is one that is built"
    return created


@pytest.fixture(scope="module")
def kubectl(cloud: Served, cluster: dict[str, Any], tmp_path_factory: pytest.TempPathFactory) -> Callable[..., str]:
    """Real ``kubectl`` with the kubeconfig that the command line writes, which asks the command line for tokens."""
    person = Person(cloud, tmp_path_factory.mktemp("person"))
    person.log_in(cluster["name"])
    return partial(person.runs, "kubectl")


@pytest.fixture(scope="module")
def story(
    cloud: Served, cluster: dict[str, Any], kubectl: Callable[..., str], tmp_path_factory: pytest.TempPathFactory
) -> Story:
    """Pods are made by the cluster's user. Who looks on is the administrator, which takes no program a look."""

    def create(documents: Sequence[dict[str, Any]]) -> None:
        kubectl("create", "-f", "-", text=json.dumps({"apiVersion": "v1", "kind": "List", "items": documents}))

    kube = administrator(cloud, cluster, tmp_path_factory.mktemp("administrator"))
    return Story(cloud, cluster, kube, create)


def test_its_creator_is_an_administrator_and_its_agent_runs(
    cloud: Served, cluster: dict[str, Any], kubectl: Callable[..., str]
) -> None:
    assert "oidc:local-user" in kubectl("auth", "whoami")
    config = json.loads(kubectl("config", "view", "-o", "json", "--raw"))
    (client_id,) = (user["user"]["exec"]["args"][-1] for user in config["users"] if user["name"] == cluster["name"])
    assert client_id == f"{cluster['client_id']}-login"
    # The same person's token of another login.
    with pytest.raises(AssertionError, match=r"Unauthorized|must be logged in"):
        kubectl("auth", "whoami", "--user=", f"--token={cloud.environment['STOCKYARD_TOKEN_ID']}")
    (own,) = kubectl("get", "nodes", "-l", "node-role.kubernetes.io/control-plane", "-o", "name").split()
    kubectl("wait", "--for=condition=Ready", own, "--timeout=30s")
    kubectl("rollout", "status", "-n", "stockyard-system", "deployment/stockyard-agent", "--timeout=30s")


def test_a_cluster_comes_up_with_the_floors_of_its_pools(story: Story) -> None:
    story.floors()


def test_a_claims_machine_joins_with_a_certificate_of_its_own(story: Story, kubectl: Callable[..., str]) -> None:
    (claim,) = story.claims(GROUP)
    node = json.loads(kubectl("get", "node", claim["name"], "-o", "json"))
    assert node["spec"]["providerID"].startswith(f"aws:///{REGION}")
    assert node["metadata"]["labels"]["stockyard.dev/claim"] == claim["id"]
    assert node["status"]["capacity"]["cpu"] == "2"
    kubectl("wait", "--for=condition=Ready", f"node/{claim['name']}", "--timeout=30s")
    requests = json.loads(kubectl("get", "csr", "-o", "json"))["items"]
    assert [item["spec"]["username"].split(":")[1] for item in requests] == ["bootstrap"], "nobody else has asked"


def test_pods_that_wait_bring_nodes_and_run(
    story: Story, soaking: bool, record_property: Callable[[str, object], None]
) -> None:
    story.lose_a_node()  # what becomes of it is seen when the pods run
    record_property("figure:pods_to_nodes_real", story.pods_bring_nodes(200 if soaking else 40))


def test_a_lost_node_of_a_static_pool_is_replaced(story: Story) -> None:
    story.lost_node_is_replaced()


def test_a_limit_of_money_stops_the_next_node(story: Story) -> None:
    story.money_stops_the_next()


def test_nodes_that_are_not_needed_leave(
    story: Story, soaking: bool, record_property: Callable[[str, object], None]
) -> None:
    if not soaking:
        pytest.skip("it waits for minutes: the soak tells it")
    record_property("figure:consolidation_story_real", nodes_become_fewer(story, 200 if soaking else 40))


def test_a_deleted_pool_is_drained_and_leaves_nothing(story: Story) -> None:
    story.deleted_pool_is_drained()


def test_events_tell_the_story_in_order(story: Story) -> None:
    story.events_tell_it()


def test_a_deleted_cluster_leaves_no_process_and_no_file(cloud: Served, cluster: dict[str, Any]) -> None:
    assert len(programs_of(cloud)) >= 5
    deletion = good(cloud, "DELETE", f"clusters/{cluster['id']}")
    succeeded(cloud, deletion["id"])
    cloud.wait("the end of the cluster's programs", lambda: not programs_of(cloud), 30)
    cloud.wait("the end of the cluster's files", lambda: not files_of(cloud), 30)


def test_a_cluster_on_cudo_lives_on_a_real_control_plane(cloud: Served) -> None:
    """The cluster's machines prove themselves by tokens and know the API by a name; its node joins with a real
    certificate."""
    environment = cloud.environment
    attributes = {
        "project_id": environment["CUDO_PROJECT_ID"],
        "api_key": environment["CUDO_API_KEY"],
        "data_center_id": "us-dallas-1",
    }
    document = {"provider": "cudo", "name": "cudo", "attributes": attributes}
    account = int(good(cloud, "POST", "cloud-accounts", document)["id"])
    assert good(cloud, "POST", f"cloud-accounts/{account}/verify")["verification"] == "verified"
    cluster = good(cloud, "POST", "clusters", cudo_body(account))
    succeeded(cloud, cluster["operation_id"])

    def available() -> bool:
        return bool(good(cloud, "GET", f"clusters/{cluster['id']}/pools/workers")["nodes"]["available"] == 1)

    cloud.wait("its node", available, 120)
    deletion = good(cloud, "DELETE", f"clusters/{cluster['id']}")
    succeeded(cloud, deletion["id"])
    cloud.wait("the end of its programs", lambda: not programs_of(cloud), 30)
