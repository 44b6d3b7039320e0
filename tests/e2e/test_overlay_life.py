"""A cluster on AWS with an overlay by HTTP on the local cloud, with nodes of AWS and of Cudo, and what its deletion
leaves."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import pytest
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey

from local.aws.accounts import ACME_ACCOUNT, REGION
from stockyard.domain.clusters import overlay
from stockyard.providers.clouds.cudo.client import Cudo
from tests.harness import outputs
from tests.harness.canaries import hits

if TYPE_CHECKING:
    from local.testing.serving import Served

pytestmark = pytest.mark.timeout(1200)
TYPE = "vcluster.com/node-type"


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
    # The documented example of several providers in one cluster, with names of ours.
    near, far = providers
    pools = [
        {"name": near, "provider": near, "quantity": 1, "requirements": [{"property": TYPE, "value": "t3.medium"}]},
        {"name": far, "provider": far, "quantity": 1},
    ]
    vpn = {"enabled": True, "nodeToNode": {"enabled": True}}
    private = {"enabled": True, "vpn": vpn, "autoNodes": {"static": pools}}
    label = {"labels": {"stockyard.dev/cluster": "overlay"}}
    _good(served, "POST", "apply", [{"metadata": label, "privateNodes": private}])
    return dict(_good(served, "GET", f"clusters/{created['id']}"))


def _nodes(served: Served, cluster: dict[str, Any]) -> dict[str, int]:
    pools = _good(served, "GET", f"clusters/{cluster['id']}/pools")["items"]
    return {pool["name"]: pool["nodes"]["available"] for pool in pools}


def test_nodes_of_both_clouds_join_one_cluster(
    served: Served, cudo: Cudo, cluster: dict[str, Any], providers: tuple[str, str]
) -> None:
    assert (cluster["vpn"], cluster["node_to_node"]) == (True, True)
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


def test_its_machines_are_shown_with_network_and_address(served: Served, cluster: dict[str, Any]) -> None:
    path = f"clusters/{cluster['id']}/network"

    def states() -> list[str]:
        return [member["state"] for member in _good(served, "GET", path)["members"] if member["node"]]

    served.wait("all say how they are reached", lambda: states() == ["up"] * 3, 90)
    view = _good(served, "GET", path)
    assert view["observed_at"]
    assert view["range"] == overlay.DEFAULT_RANGE
    members = {member["name"].rpartition("-")[0] or member["name"]: member for member in view["members"]}
    assert set(members) == {"overlay", "near", "far"}
    assert [member["hub"] for member in view["members"]].count(True) == 1
    assert len({member["address"] for member in view["members"]}) == 3
    assert members["near"]["network"] == members["overlay"]["network"] != members["far"]["network"]
    assert "us-dallas-1" in members["far"]["network"]
    assert members["far"]["home"] == members["near"]["home"] == members["overlay"]["node"]
    assert (members["far"]["direct"], members["far"]["relayed"]) == (1, 0)
    explanation = _good(served, "GET", f"node-claims/{members['far']['claim']}/explanation")
    assert members["far"]["address"] in explanation["network"]
    assert "us-dallas-1" in explanation["network"]
    tree = json.dumps(_good(served, "GET", f"clusters/{cluster['id']}/tree"))
    assert all(f"overlay {members[name]['address']}" in tree for name in ("near", "far"))


def test_private_keys_stay_on_their_machines(served: Served, cluster: dict[str, Any]) -> None:
    keys = {path.parent.name: path.read_text().strip() for path in served.home.rglob("overlay.key")}
    assert len(keys) >= 3
    publics = {
        base64.b64encode(
            X25519PrivateKey.from_private_bytes(base64.b64decode(key)).public_key().public_bytes_raw()
        ).decode()
        for key in keys.values()
    }
    searched = [*outputs.everywhere(served)]
    assert hits(keys, searched) == []
    assert {output.kind for output in searched} >= {"record", "log", "user data", "start script", "stream", "history"}
    # The public ones are found: in the table of the overlay's machines, at least.
    table = "".join(output.text for output in searched if output.kind == "record")
    assert sum(key in table for key in publics) >= 3, cluster["id"]


def test_its_deletion_leaves_nothing(
    served: Served, cudo: Cudo, cluster: dict[str, Any], remove: Callable[[str], dict[str, Any]]
) -> None:
    operation = remove(cluster["id"])
    assert operation["status"] == "succeeded", operation["error"]
    leftovers: list[Any] = [*cudo.vms(), *cudo.networks(), *cudo.security_groups()]
    assert [thing.id for thing in leftovers if cluster["client_id"][-12:] in thing.id] == []
    elb = served.aws("elbv2", ACME_ACCOUNT)
    assert [group for group in elb.describe_target_groups()["TargetGroups"] if group["Protocol"] == "UDP"] == []
