"""From pods that are made in a cluster's own Kubernetes API, here a simulated one, to the nodes that they run on.

The agent's watch and reports, the passes, the scheduler and the workflows of nodes take part as they are; see
:mod:`tests.harness.stories.pools`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import pytest

from local.aws.accounts import ACME_ACCOUNT
from tests.harness.stories.consolidation import nodes_become_fewer
from tests.harness.stories.pools import LAB, PODS, STATIC, Story, administrator, pod, story_body

if TYPE_CHECKING:
    from local.testing.serving import Served

pytestmark = pytest.mark.timeout(1200)


@pytest.fixture(scope="module")
def story(
    served: Served, remove: Callable[[str], dict[str, Any]], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Story]:
    """The README's cluster with a static pool besides. After its deletion nothing is left of it."""
    provider = served.call("POST", "/v1/node-providers", LAB)
    assert provider.status == 201, provider.text
    cluster = served.call("POST", "/v1/clusters", story_body(name="pooled")).body
    pool = {"name": STATIC, "quantity": 2, "provider": LAB["name"]}
    assert served.call("POST", f"/v1/clusters/{cluster['id']}/pools", pool).status == 201
    assert served.operation(cluster["operation_id"])["status"] == "succeeded"
    kube = administrator(served, cluster, tmp_path_factory.mktemp("administrator"))
    story = Story(served, cluster, kube)
    yield story
    assert remove(cluster["id"])["status"] == "succeeded"
    assert "ec2-1-us-east-1" not in [each["name"] for each in story.good("GET", "node-providers")["items"]]
    marks = [{"Name": "tag:vantage-cluster", "Values": [cluster["client_id"]]}]
    reservations = served.aws("ec2", ACME_ACCOUNT).describe_instances(Filters=marks)["Reservations"]
    states = {instance["State"]["Name"] for group in reservations for instance in group["Instances"]}
    assert states <= {"terminated", "shutting-down"}
    story.good("DELETE", f"node-providers/{LAB['name']}")


def test_a_cluster_comes_up_with_the_floors_of_its_pools(story: Story) -> None:
    story.floors()


def test_pods_that_wait_bring_nodes_and_run(
    story: Story, soaking: bool, record_property: Callable[[str, object], None]
) -> None:
    story.lose_a_node()  # what becomes of it is seen when the pods run
    record_property("figure:pods_to_nodes", story.pods_bring_nodes(200 if soaking else 40))


def test_a_lost_node_of_a_static_pool_is_replaced(story: Story) -> None:
    story.lost_node_is_replaced()


def test_a_pod_that_asks_for_a_gpu_gets_an_instance_with_one(story: Story) -> None:
    """The node comes by a node group of types with GPUs, from AWS's image with their driver; the pod is bound to its
    node."""
    groups = [*story.good("GET", f"clusters/{story.cluster['id']}")["settings"]["autoscaler_node_groups"]]
    gpus = {
        "name": "gpus",
        "role": "worker",
        "min_size": 0,
        "max_size": 1,
        "instance_types": ["g6.xlarge", "g5.xlarge"],
    }
    patch = {"settings": {"autoscaler_node_groups": [*groups, gpus]}}
    story.change_cluster(patch)
    asking = pod("training-0", {}, "1")
    asking["spec"]["containers"][0]["resources"]["limits"] = {"nvidia.com/gpu": "1"}
    story.kube.call("POST", PODS, asking)
    story.served.wait("the pod with a GPU", lambda: story.all_run("training", 1), 120)
    ((_, name),) = story.phases("training")
    node = story.nodes()[name]
    assert node["status"]["allocatable"]["nvidia.com/gpu"] == "1"
    assert node["metadata"]["labels"]["karpenter.k8s.aws/instance-gpu-name"] == "l4"
    (claim,) = story.claims("gpus")
    ec2 = story.served.aws("ec2", ACME_ACCOUNT)
    (machine,) = ec2.describe_instances(InstanceIds=[claim["machine_id"]])["Reservations"][0]["Instances"]
    (image,) = ec2.describe_images(ImageIds=[machine["ImageId"]])["Images"]
    assert "Nvidia Driver" in image["Name"]
    story.kube.call("DELETE", f"{PODS}/training-0")
    story.change_cluster({"settings": {"autoscaler_node_groups": groups}})


def test_a_limit_of_money_stops_the_next_node(story: Story) -> None:
    story.money_stops_the_next()


def test_nodes_that_are_not_needed_leave(
    story: Story, soaking: bool, record_property: Callable[[str, object], None]
) -> None:
    if not soaking:
        pytest.skip("it waits for minutes: the soak tells it")
    record_property("figure:consolidation_story", nodes_become_fewer(story, 200))


def test_a_deleted_pool_is_drained_and_leaves_nothing(story: Story) -> None:
    story.deleted_pool_is_drained()


def test_events_tell_the_story_in_order(story: Story) -> None:
    story.events_tell_it()
