"""Nodes of EC2 by HTTP on the local cloud: the cheapest of two clouds, what the tenant sees, switching, and the end."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import pytest

from local.aws import ACME_ACCOUNT, REGION

if TYPE_CHECKING:
    from local.serving import Served

pytestmark = pytest.mark.timeout(1200)

POOL = "workers"
MARK = {"team": "ec2-nodes"}
"""A property of this module's providers alone: other modules leave cheaper ones behind."""


def _good(served: Served, method: str, path: str, body: Any = None) -> Any:
    answer = served.call(method, f"/v1/{path}", body)
    assert answer.status in (200, 201, 202), answer.text
    return answer.body


def _ended(served: Served, operation: str) -> dict[str, Any]:
    found = served.operation(operation)
    assert found["status"] == "succeeded", found["error"]
    return found


def _machines(served: Served, cluster: dict[str, Any], *names: str) -> list[dict[str, Any]]:
    """The cluster's workers as the tenant sees them, of these states, or all that have not ended."""
    wanted = [{"Name": "tag:vantage-cluster", "Values": [cluster["client_id"]]}]
    found = served.aws("ec2", ACME_ACCOUNT).describe_instances(Filters=wanted)["Reservations"]
    alive = names or ("pending", "running", "stopping", "stopped")
    machines = [one for group in found for one in group["Instances"] if one["State"]["Name"] in alive]
    return [one for one in machines if not _tags(one)["Name"].endswith("-control-plane")]


def _templates(served: Served) -> dict[str, dict[str, str]]:
    """Name -> tags of every launch template in the tenant's account."""
    found = served.aws("ec2", ACME_ACCOUNT).describe_launch_templates()["LaunchTemplates"]
    return {one["LaunchTemplateName"]: _tags(one) for one in found}


def _tags(thing: dict[str, Any]) -> dict[str, str]:
    return {one["Key"]: one["Value"] for one in thing["Tags"]}


@pytest.fixture(scope="module")
def cluster(
    served: Served, body: Callable[..., dict[str, Any]], remove: Callable[[str], dict[str, Any]]
) -> Iterator[dict[str, Any]]:
    """A ready cluster; afterwards nothing of its nodes is left in the tenant's account."""
    before = _templates(served)
    made = _good(served, "POST", "clusters", body(name="ec2-nodes"))
    _ended(served, made["operation_id"])
    yield made
    operation = remove(made["id"])
    assert operation["status"] == "succeeded", operation["error"]
    assert _machines(served, made) == []
    assert _templates(served) == before


@pytest.fixture(scope="module")
def claims(served: Served, cluster: dict[str, Any]) -> list[dict[str, Any]]:
    """Three of a pool without a provider. EC2 is the cheaper one of two, and takes one."""
    block = {
        "cloudAccount": 1,
        "region": REGION,
        "instanceTypes": ["t3.medium"],
        "nodeTypes": [{"name": "t3.medium", "maxCapacity": 1}],
    }
    small = {"name": "small", "resources": {"cpu": "2", "memory": "4Gi"}, "usdPerHour": 0.05}
    _good(served, "POST", "node-providers", {"name": "amazon", "kind": "ec2", "spec": block, "properties": MARK})
    other = {"name": "next", "kind": "simulated", "spec": {"nodeTypes": [small]}, "properties": MARK}
    _good(served, "POST", "node-providers", other)
    requirements = [{"key": key, "operator": "In", "values": [value]} for key, value in MARK.items()]
    wish = {"cluster": cluster["id"], "requirements": requirements, "labels": {"stockyard.dev/pool": POOL}}
    made = [_good(served, "POST", "node-claims", {"name": f"ec2-{number}", **wish}) for number in range(3)]
    for claim in made:
        _ended(served, claim["operation_id"])
    return [_good(served, "GET", f"node-claims/{claim['id']}") for claim in made]


def test_claims_land_on_the_cheaper_cloud_and_then_on_the_next(served: Served, claims: list[dict[str, Any]]) -> None:
    assert sorted(claim["type"] for claim in claims) == ["amazon.t3.medium", "next.small", "next.small"]
    elsewhere = next(claim for claim in claims if claim["type"] == "next.small")
    told = _good(served, "GET", f"node-claims/{elsewhere['id']}/explanation")
    found = {one["type"]: (one["usd_hour"], one["rule"], one["message"]) for one in told["candidates"]}
    assert found["next.small"] == (0.05, None, "the cheapest that fits")
    assert found["amazon.t3.medium"] == (0.0416, "Full", "all its nodes are taken")
    assert (told["chosen"]["type"], told["chosen"]["usd_hour"]) == ("next.small", 0.05)
    capacity = _good(served, "GET", "node-types/amazon.t3.medium")["capacity"]
    assert (capacity["total"], capacity["claimed"], capacity["available"]) == (1, 1, 0)


def test_the_tenant_sees_template_and_instance_by_the_naming_table(
    served: Served, cluster: dict[str, Any], claims: list[dict[str, Any]]
) -> None:
    (claim,) = [one for one in claims if one["type"] == "amazon.t3.medium"]
    assert (claim["phase"], claim["node_name"]) == ("Available", claim["name"])
    assert {one["type"]: one["status"] for one in claim["conditions"]}["Joined"] == "True"
    client = cluster["client_id"]
    tags = _templates(served)[f"vantage-{client}-{POOL}"]
    assert (tags["vantage-cluster"], tags["Name"]) == (client, f"vantage-{client}-{POOL}")
    (machine,) = _machines(served, cluster, "running")
    assert (machine["InstanceId"], machine["InstanceType"]) == (claim["machine_id"], "t3.medium")
    assert machine["IamInstanceProfile"]["Arn"].endswith(f"/vantage-{client}-instance-profile")
    assert machine["MetadataOptions"]["HttpTokens"] == "required"
    tags = _tags(machine)
    assert tags["vantage-cluster"] == client
    assert tags["Name"].startswith(f"vantage-{client}-")
    assert {"stockyard:installation", "stockyard:tenant", "stockyard:resource"} <= set(tags)


def test_a_machine_is_switched_off_and_on_and_rebooted(
    served: Served, cluster: dict[str, Any], claims: list[dict[str, Any]]
) -> None:
    (claim,) = [one for one in claims if one["type"] == "amazon.t3.medium"]
    path = f"node-claims/{claim['id']}"
    for state, instance, observed in (("Off", "stopped", "Off"), ("On", "running", "On"), ("Reboot", "running", "On")):
        switched = _good(served, "POST", f"{path}/power", {"state": state})
        _ended(served, switched["operation_id"])
        assert [one["InstanceId"] for one in _machines(served, cluster, instance)] == [claim["machine_id"]]
        shown = _good(served, "GET", path)
        assert (shown["phase"], shown["power_observed"]) == ("Available", observed)
    calls = [one["operation"] for one in served.calls if one["side"] == "tenant"]
    assert {"StopInstances", "StartInstances", "RebootInstances"} <= set(calls)


def test_a_machine_that_the_tenant_ends_is_missed(served: Served, claims: list[dict[str, Any]]) -> None:
    (claim,) = [one for one in claims if one["type"] == "amazon.t3.medium"]
    served.aws("ec2", ACME_ACCOUNT).terminate_instances(InstanceIds=[claim["machine_id"]])
    path = f"node-claims/{claim['id']}"

    def said() -> bool:
        served.aws("lambda").invoke(FunctionName="stockyard-dev-reaper", Payload=b"{}")
        return bool(_good(served, "GET", path)["phase"] == "Failed")

    served.wait("the sweep", said)
    assert _good(served, "GET", path)["reason"] == "MachineGone"
    assert _good(served, "GET", "node-types/amazon.t3.medium")["capacity"]["claimed"] == 0


def test_after_the_deletion_no_machine_is_left(
    served: Served, cluster: dict[str, Any], claims: list[dict[str, Any]]
) -> None:
    operations = [_good(served, "DELETE", f"node-claims/{claim['id']}")["id"] for claim in claims]
    for operation in operations:
        _ended(served, operation)
    assert _machines(served, cluster) == []
    assert _good(served, "GET", "node-types/amazon.t3.medium")["capacity"]["claimed"] == 0
    for claim in claims:
        assert served.call("GET", f"/v1/node-claims/{claim['id']}").status == 404
