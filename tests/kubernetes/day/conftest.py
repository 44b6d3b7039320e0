"""The clusters of a person's day, and what is begun in them before it is looked at."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from typing import TYPE_CHECKING

import pytest

from local.aws.accounts import ACME_ACCOUNT
from local.kubernetes.api import MERGE
from local.kubernetes.real.build import minors, missing, missing_previous
from local.kubernetes.real.control_plane import KWOK
from local.testing.example import EXAMPLES, body_without_nodes
from tests.harness.stories.pools import administrator
from tests.kubernetes.day.manifests import Object, among, deployment, node_pool
from tests.kubernetes.day.people import MINUTE, Day, Person
from tests.kubernetes.test_served import good, succeeded

if TYPE_CHECKING:
    from local.testing.serving import Served

TYPE = "node.kubernetes.io/instance-type"
FAMILY, INSTANCE_SIZE = "karpenter.k8s.aws/instance-family", "karpenter.k8s.aws/instance-size"
SMALL = among(TYPE, "t3.small")
"""2 CPU, of which pods may have 1930m; some of it is the DaemonSet's."""
NONE_LEFT = "m5.large"
"""The instance type of which EC2 has none."""
UNREACHABLE = [
    {"key": f"node.kubernetes.io/{state}", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 5}
    for state in ("not-ready", "unreachable")
]


@pytest.fixture(scope="module")
def cloud(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    if reason := missing() or missing_previous():
        pytest.skip(reason)
    from local.testing.serving import serve

    folder = tmp_path_factory.mktemp("day")
    faults = folder / "faults.json"
    faults.write_text(json.dumps({"capacity": {NONE_LEFT: 0}}))
    served = serve(folder / "home", "--kubernetes", "--no-limits", "--faults", str(faults))
    yield served
    assert served.stop() == 0


def body(name: str, members: int) -> Object:
    """A cluster of the tests, without workers."""
    document = {**body_without_nodes(), "name": name}
    groups = document["settings"]["autoscaler_node_groups"]
    control = next(group for group in groups if group["role"] == "control")
    document["settings"]["autoscaler_node_groups"] = [{**control, "min_size": members, "max_size": members}]
    return document


@pytest.fixture(scope="module")
def days(cloud: Served, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Day]:
    """The clusters by their names, ready. A pool of ``demo`` was made while it was being prepared."""
    person = Person(cloud, tmp_path_factory.mktemp("person"))
    person.runs("stockyard", "provider", "create", "-f", str(EXAMPLES / "ec2-nodes.yaml"))
    bodies = [body("demo", 1), {**body("two", 1), "kubernetes_version": minors()[1]}, body("three", 3)]
    created = [good(cloud, "POST", "clusters", each) for each in bodies]
    days = {}
    early = Day(cloud, created[0], None, person=person)
    output = early.open_pools(node_pool("dyn", SMALL))
    assert "No node type fits" not in output, output
    for cluster in created:
        succeeded(cloud, cluster["operation_id"])
        kube = administrator(cloud, cluster, tmp_path_factory.mktemp("administrator"))
        days[cluster["name"]] = Day(cloud, cluster, kube, person=person)
        days[cluster["name"]].save(paused=True)
    # They come after the cluster is ready.
    cloud.wait("three members", lambda: len(days["three"].members()) == 3, 2 * MINUTE)
    for name in ("demo", "three"):
        person.log_in(name)
    return days


@pytest.fixture(scope="module")
def demo(days: dict[str, Day]) -> Day:
    return days["demo"]


@dataclass(frozen=True)
class SlowActs:
    """Acts on ``three`` at a moment: the claims of the pools in question, each the only one of its pool then, and of
    the member whose machine was ended."""

    day: Day
    at: datetime
    claims: dict[str, Object]
    member: Object

    def name(self, pool: str) -> str:
        """The node that the claim of a pool had."""
        return str(self.claims[pool]["node_name"])

    def living(self, pool: str) -> list[Object]:
        """Claims of a pool but for that of before."""
        return [claim for claim in self.day.claims(pool) if claim["id"] != self.claims[pool]["id"]]


@pytest.fixture(scope="module")
def slow_acts(days: dict[str, Day]) -> SlowActs:
    """A Node is deleted, a kubelet dies, the machines of a node and of a member are terminated, and nodes of a pool
    whose pods have become fewer may leave, but nothing that could replace them is to be had."""
    day = days["three"]
    dear, pools = [among(FAMILY, "m5", "m6g"), among(INSTANCE_SIZE, "large", "xlarge")], ("ghost", "silent", "lost")
    # A node whose pod has gone before the agent lists nodes again would leave as an empty one.
    day.open_pools(*(node_pool(name, SMALL, after="1m") for name in pools), node_pool("dear", *dear))
    singles = [deployment(name, 1, "1500m", name, tolerations=UNREACHABLE) for name in pools]
    # They get two nodes of four CPUs: the first two are together on one of them.
    sizes = {"busy": "2500m", "calm": "500m", "spare": "3500m"}
    day.make(*singles, *(deployment(name, 1, cpu, "dear") for name, cpu in sizes.items()))
    day.run(ghost=1, silent=1, lost=1, busy=1, calm=1, spare=1)
    for name in (*pools, "dear"):
        day.served.wait(name, partial(day.are_available, name), MINUTE)
    claims = {name: day.claims(name)[0] for name in pools}
    kube, ec2 = day.kube, day.served.aws("ec2", ACME_ACCOUNT)
    (pod,) = kube.call("GET", "/api/v1/namespaces/stockyard-system/pods")["items"]
    listed = day.good("GET", f"node-claims?cluster={day.cluster['id']}&page_size=200")["items"]
    member = next(each for each in listed if each["control_plane"] and each["node_name"] != pod["spec"]["nodeName"])
    slow_acts = SlowActs(day, datetime.now(UTC), claims, member)
    day.kubectl("delete", "node", slow_acts.name("ghost"), "--wait=false")
    day.kubectl("delete", "pod", "-l", "app=ghost", "--force")
    kube.call("PATCH", f"/api/v1/nodes/{slow_acts.name('silent')}", {"metadata": {"labels": {KWOK: None}}}, MERGE)
    ec2.terminate_instances(InstanceIds=[claims["lost"]["machine_id"], member["machine_id"]])
    day.served.aws("lambda").invoke(FunctionName="stockyard-dev-reaper", Payload=b"{}", InvocationType="Event")
    day.scale(0, "busy")
    day.save()
    return slow_acts


@pytest.fixture(scope="module")
def drained(demo: Day) -> str:
    """A node whose pods a person has made leave, onto one that is empty."""
    node = demo.where("web")[0]
    assert f"{node} drained" in demo.kubectl("drain", node, "--ignore-daemonsets")
    demo.run(web=6)
    return node


@dataclass(frozen=True)
class Saving:
    """From when on nodes of ``demo`` may leave, and the claims of then."""

    at: datetime
    dyn: set[str]
    compute: set[str]


@pytest.fixture(scope="module")
def saving(demo: Day, drained: str) -> Saving:
    """Pods become fewer, so that one node of the pool ``dyn`` is in excess. Many would be if pods could go onto the
    cordoned one. On the node of the pool ``compute`` one small pod is left."""
    demo.scale(1, "three")
    demo.scale(0, "heavy")
    demo.run(three=1)
    saving = Saving(datetime.now(UTC), demo.ids("dyn"), demo.ids("compute"))
    demo.save()
    return saving
