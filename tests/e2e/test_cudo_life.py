"""A cluster on Cudo by HTTP on the local cloud: plan, phases, what stands in the project, what a deletion leaves."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import yaml

from stockyard.providers.clouds.cudo.client import Cudo

if TYPE_CHECKING:
    from local.testing.serving import Served

ROOT = Path(__file__).resolve().parents[2]
PHASES = ["account", "machine_type", "network", "disk", "control_plane", "report", "deploy", "complete"]
REMOVED = ["settle", "control_plane", "disk", "network", "machine_type", "client", "forget"]


@pytest.fixture(scope="module")
def cudo(served: Served) -> Iterator[Cudo]:
    """The tenant's project, as the vendor shows it."""
    environment = served.environment
    client = Cudo(environment["CUDO_API_KEY"], environment["CUDO_PROJECT_ID"], base_url=environment["CUDO_URL"])
    yield client
    client.close()


@pytest.fixture(scope="module")
def account(served: Served) -> Iterator[int]:
    attributes = {
        "project_id": served.environment["CUDO_PROJECT_ID"],
        "api_key": served.environment["CUDO_API_KEY"],
        "data_center_id": "us-dallas-1",
        **{
            f"vault_{name}": served.environment[f"VAULT_{name.upper()}"] for name in ("address", "role_id", "secret_id")
        },
    }
    body = {"provider": "cudo", "name": "cudo-life", "attributes": attributes}
    number = int(served.call("POST", "/v1/cloud-accounts", body).body["id"])
    assert served.call("POST", f"/v1/cloud-accounts/{number}/verify").body["verification"] == "verified"
    yield number
    answer = served.call("DELETE", f"/v1/cloud-accounts/{number}")
    assert answer.status in (200, 202, 204), answer.text


@pytest.fixture(scope="module")
def example(account: int) -> Callable[..., dict[str, Any]]:
    """The example's body, with other values for some of its settings."""

    def make(**settings: Any) -> dict[str, Any]:
        body: dict[str, Any] = json.loads((ROOT / "examples" / "cudo-cluster.json").read_text(encoding="utf-8"))
        return {**body, "cloud_account_id": account, "settings": {**body["settings"], **settings}}

    return make


@pytest.fixture(scope="module")
def cluster(served: Served, example: Callable[..., dict[str, Any]]) -> dict[str, Any]:
    answer = served.call("POST", "/v1/clusters", example())
    assert answer.status == 202, answer.text
    operation = served.operation(answer.body["operation_id"])
    assert operation["status"] == "succeeded", operation["error"]
    assert [phase["name"] for phase in operation["phases"]] == PHASES
    return dict(served.call("GET", f"/v1/clusters/{answer.body['id']}").body)


def test_the_plan_names_every_part_with_its_price(served: Served, example: Callable[..., dict[str, Any]]) -> None:
    answer = served.call("POST", "/v1/clusters?dry_run=true", example())
    assert answer.status == 200, answer.text
    plan = answer.body["plan"]
    kinds = [thing["kind"] for thing in plan["creates"]]
    assert kinds == ["keycloak client", *["security group"] * 2, "network", "disk", "machine", "pool", "pool"]
    assert plan["price"]["complete"]
    names = [item["name"] for item in plan["price"]["items"]]
    assert "control plane: 8 vCPUs" in names
    assert "1 node of pool workers" in names
    assert 0.1 < plan["price"]["hour"] < 1


def test_the_project_has_what_the_plan_said(served: Served, cudo: Cudo, cluster: dict[str, Any]) -> None:
    assert cluster["status"] == "ready"
    client = cluster["client_id"]
    machine = cudo.vm(f"vantage-{client}-control-plane")
    assert machine is not None
    assert (machine.machine_type, machine.vcpus, machine.memory_gib) == ("intel-broadwell", 8, 16)
    assert [disk.id for disk in machine.disks] == [f"vantage-{client}-data"]
    group = cudo.security_group(f"vantage-{client}-control-plane")
    assert group is not None
    from_outside = {(rule.ports, rule.cidr) for rule in group.rules if rule.inbound and rule.cidr != "10.160.0.0/22"}
    assert from_outside == {("6443", "0.0.0.0/0")}
    kubeconfig = served.call("GET", f"/v1/clusters/{cluster['id']}/kubeconfig").body["kubeconfig"]
    server = (kubeconfig if isinstance(kubeconfig, dict) else yaml.safe_load(kubeconfig))["clusters"][0]["cluster"]
    assert server["server"] == f"https://{machine.public_address}:6443"


def test_the_floor_has_its_node_and_the_group_without_one_has_none(
    served: Served, cudo: Cudo, cluster: dict[str, Any]
) -> None:
    def ready_pools() -> bool:
        conditions = served.call("GET", f"/v1/clusters/{cluster['id']}").body["conditions"]
        return any(c["type"] == "PoolsReady" and c["status"] == "True" for c in conditions)

    served.wait("the floors of the pools", ready_pools, 90)
    nodes = {
        pool["name"]: pool["nodes"]["available"]
        for pool in served.call("GET", f"/v1/clusters/{cluster['id']}/pools").body["items"]
    }
    assert nodes == {"workers": 1, "gpu": 0}
    (node,) = [vm for vm in cudo.vms() if "-node-" in vm.id and cluster["client_id"][-12:] in vm.id]
    assert (node.machine_type, node.vcpus, node.memory_gib, node.gpus) == ("intel-broadwell", 4, 8, 0)


def test_a_claim_for_a_gpu_brings_a_machine_with_one(served: Served, cudo: Cudo, cluster: dict[str, Any]) -> None:
    block = {"cloudAccount": cluster["cloud_account_id"], "dataCenter": "us-dallas-1"}
    provider = {"name": "dallas", "kind": "cudo", "spec": block}
    assert served.call("POST", "/v1/node-providers", provider).status == 201
    wish = {"name": "training", "cluster": cluster["name"], "resources": {"nvidia.com/gpu": "1"}}
    claim = served.call("POST", "/v1/node-claims", wish).body
    operation = served.operation(claim["operation_id"])
    assert operation["status"] == "succeeded", operation["error"]
    machine = cudo.vm(served.call("GET", "/v1/node-claims/training").body["machine_id"])
    assert machine is not None
    assert (machine.machine_type, machine.gpus) == ("intel-broadwell-v100", 1)
    deletion = served.call("DELETE", "/v1/node-claims/training")
    assert served.operation(deletion.body["id"])["status"] == "succeeded"
    assert cudo.vm(machine.id) is None


def test_a_deletion_leaves_nothing(
    served: Served, cudo: Cudo, cluster: dict[str, Any], remove: Callable[[str], dict[str, Any]]
) -> None:
    operation = remove(cluster["id"])
    assert operation["status"] == "succeeded", operation["error"]
    assert [phase["name"] for phase in operation["phases"]] == REMOVED
    assert served.call("DELETE", "/v1/node-providers/dallas").status in (200, 202, 204)
    leftovers: list[Any] = [*cudo.vms(), *cudo.disks(), *cudo.networks(), *cudo.security_groups()]
    assert [thing.id for thing in leftovers if cluster["client_id"][-12:] in thing.id] == []
    assert not (served.home / "logs" / "cudo-outside.log").exists(), "requests that the vendor's document does not know"
