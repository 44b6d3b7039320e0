"""A cluster on AWS with an overlay by HTTP on the local cloud, with nodes of AWS and of Cudo, and what its deletion
leaves."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import pytest

from local.aws.accounts import ACME_ACCOUNT, REGION
from stockyard.domain.clusters import overlay
from stockyard.providers.clouds.cudo.client import Cudo

if TYPE_CHECKING:
    from local.testing.serving import Served

pytestmark = pytest.mark.timeout(1200)


def _good(served: Served, method: str, path: str, body: Any = None) -> Any:
    answer = served.call(method, f"/v1/{path}", body)
    assert answer.status in (200, 201, 202, 204), answer.text
    return answer.body


@pytest.fixture(scope="module")
def cudo(served: Served) -> Iterator[Cudo]:
    environment = served.environment
    client = Cudo(environment["CUDO_API_KEY"], environment["CUDO_PROJECT_ID"], base_url=environment["CUDO_URL"])
    yield client
    client.close()


@pytest.fixture(scope="module")
def providers(served: Served) -> Iterator[tuple[str, str]]:
    """A provider of nodes on AWS, and one in Cudo with an account of its own."""
    attributes = {
        "project_id": served.environment["CUDO_PROJECT_ID"],
        "api_key": served.environment["CUDO_API_KEY"],
        "data_center_id": "us-dallas-1",
    }
    number = int(
        _good(served, "POST", "cloud-accounts", {"provider": "cudo", "name": "far", "attributes": attributes})["id"]
    )
    _good(served, "POST", f"cloud-accounts/{number}/verify")
    near = {"cloudAccount": 1, "region": REGION, "instanceTypes": ["t3.medium"]}
    far = {"cloudAccount": number, "dataCenter": "us-dallas-1"}
    _good(served, "POST", "node-providers", {"name": "near", "kind": "ec2", "spec": near})
    _good(served, "POST", "node-providers", {"name": "far", "kind": "cudo", "spec": far})
    yield "near", "far"
    for path in ("node-providers/near", "node-providers/far", f"cloud-accounts/{number}"):
        _good(served, "DELETE", path)


@pytest.fixture(scope="module")
def cluster(served: Served, providers: tuple[str, str], body: Callable[..., dict[str, Any]]) -> dict[str, Any]:
    request = body(name="overlay")
    request["settings"] |= {"overlay": {}, "cloud_controllers": False, "integrations": []}
    created = _good(served, "POST", "clusters", request)
    operation = served.operation(created["operation_id"])
    assert operation["status"] == "succeeded", operation["error"]
    for name in providers:
        pool = {"name": name, "provider": name, "quantity": 1}
        _good(served, "POST", f"clusters/{created['id']}/pools", pool)
    return dict(_good(served, "GET", f"clusters/{created['id']}"))


def _nodes(served: Served, cluster: dict[str, Any]) -> dict[str, int]:
    pools = _good(served, "GET", f"clusters/{cluster['id']}/pools")["items"]
    return {pool["name"]: pool["nodes"]["available"] for pool in pools}


def test_nodes_of_both_clouds_join_one_cluster(
    served: Served, cudo: Cudo, cluster: dict[str, Any], providers: tuple[str, str]
) -> None:
    assert cluster["settings"]["overlay"] == {"range": overlay.DEFAULT_RANGE, "node_to_node": True}
    served.wait(
        "a node of each provider", lambda: dict.fromkeys(providers, 1).items() <= _nodes(served, cluster).items(), 90
    )
    (group,) = [group for group in cudo.security_groups() if cluster["client_id"][-12:] in group.id]
    assert {(rule.ports, rule.protocol) for rule in group.rules if rule.inbound} == {("51820", "PROTOCOL_UDP")}
    (machine,) = [vm for vm in cudo.vms() if cluster["client_id"][-12:] in vm.id]
    assert machine.public_address
    elb = served.aws("elbv2", ACME_ACCOUNT)
    groups = [group for group in elb.describe_target_groups()["TargetGroups"] if group["Protocol"] == "UDP"]
    assert len(groups) == overlay.HUBS
    behind = [
        len(elb.describe_target_health(TargetGroupArn=group["TargetGroupArn"])["TargetHealthDescriptions"])
        for group in groups
    ]
    assert sorted(behind) == [*[0] * (overlay.HUBS - 1), 1]


def test_its_deletion_leaves_nothing(
    served: Served, cudo: Cudo, cluster: dict[str, Any], remove: Callable[[str], dict[str, Any]]
) -> None:
    operation = remove(cluster["id"])
    assert operation["status"] == "succeeded", operation["error"]
    leftovers = [*cudo.vms(), *cudo.networks(), *cudo.security_groups()]
    assert [thing.id for thing in leftovers if cluster["client_id"][-12:] in thing.id] == []
    elb = served.aws("elbv2", ACME_ACCOUNT)
    assert [group for group in elb.describe_target_groups()["TargetGroups"] if group["Protocol"] == "UDP"] == []
