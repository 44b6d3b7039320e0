"""Nodes of EC2 by HTTP on the local cloud: the cheapest of two clouds, the tenant's view, power, and deletion."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import pytest

from local.aws.accounts import ACME_ACCOUNT, REGION

if TYPE_CHECKING:
    from local.testing.serving import Served

pytestmark = pytest.mark.timeout(1200)

POOL = "workers"
MARK = {"team": "ec2-nodes"}
"""A property of this module's providers only, because other modules leave cheaper providers behind."""


def _good(served: Served, method: str, path: str, body: Any = None) -> Any:
    answer = served.call(method, f"/v1/{path}", body)
    assert answer.status in (200, 201, 202), answer.text
    return answer.body


def _succeeded(served: Served, operation: str) -> dict[str, Any]:
    ended_operation = served.operation(operation)
    assert ended_operation["status"] == "succeeded", ended_operation["error"]
    return ended_operation


def _machines(served: Served, cluster: dict[str, Any], *names: str) -> list[dict[str, Any]]:
    """The cluster's workers as the tenant sees them: those in the states ``names``, or all that are not terminated."""
    filters = [{"Name": "tag:vantage-cluster", "Values": [cluster["client_id"]]}]
    reservations = served.aws("ec2", ACME_ACCOUNT).describe_instances(Filters=filters)["Reservations"]
    alive = names or ("pending", "running", "stopping", "stopped")
    machines = [
        instance for group in reservations for instance in group["Instances"] if instance["State"]["Name"] in alive
    ]
    return [machine for machine in machines if not _tags(machine)["Name"].endswith("-control-plane")]


def _templates(served: Served) -> dict[str, dict[str, str]]:
    """Name -> tags of every launch template in the tenant's account."""
    templates = served.aws("ec2", ACME_ACCOUNT).describe_launch_templates()["LaunchTemplates"]
    return {template["LaunchTemplateName"]: _tags(template) for template in templates}


def _tags(thing: dict[str, Any]) -> dict[str, str]:
    return {tag["Key"]: tag["Value"] for tag in thing["Tags"]}


@pytest.fixture(scope="module")
def cluster(
    served: Served, body: Callable[..., dict[str, Any]], remove: Callable[[str], dict[str, Any]]
) -> Iterator[dict[str, Any]]:
    """A ready cluster. After its deletion nothing of its nodes may be left in the tenant's account."""
    before = _templates(served)
    created = _good(served, "POST", "clusters", body(name="ec2-nodes"))
    _succeeded(served, created["operation_id"])
    yield created
    operation = remove(created["id"])
    assert operation["status"] == "succeeded", operation["error"]
    assert _machines(served, created) == []
    assert _templates(served) == before


@pytest.fixture(scope="module")
def claims(served: Served, cluster: dict[str, Any]) -> list[dict[str, Any]]:
    """Three claims of a pool, for any provider. EC2 is the cheaper of two providers and has capacity for one claim."""
    block = {
        "cloudAccount": 1,
        "region": REGION,
        "instanceTypes": ["t3.medium"],
        "nodeTypes": [{"name": "t3.medium", "maxCapacity": 1}],
    }
    small = {"name": "small", "resources": {"cpu": "2", "memory": "4Gi"}, "usdPerHour": 0.05}
    _good(served, "POST", "node-providers", {"name": "amazon", "kind": "ec2", "spec": block, "properties": MARK})
    simulated = {"name": "next", "kind": "simulated", "spec": {"nodeTypes": [small]}, "properties": MARK}
    _good(served, "POST", "node-providers", simulated)
    requirements = [{"key": key, "operator": "In", "values": [value]} for key, value in MARK.items()]
    wish = {"cluster": cluster["id"], "requirements": requirements, "labels": {"stockyard.dev/pool": POOL}}
    created = [_good(served, "POST", "node-claims", {"name": f"ec2-{number}", **wish}) for number in range(3)]
    for claim in created:
        _succeeded(served, claim["operation_id"])
    return [_good(served, "GET", f"node-claims/{claim['id']}") for claim in created]


def test_claims_get_the_cheaper_cloud_and_then_the_next(served: Served, claims: list[dict[str, Any]]) -> None:
    assert sorted(claim["type"] for claim in claims) == ["amazon.t3.medium", "next.small", "next.small"]
    elsewhere = next(claim for claim in claims if claim["type"] == "next.small")
    explanation = _good(served, "GET", f"node-claims/{elsewhere['id']}/explanation")
    candidates = {
        candidate["type"]: (candidate["usd_hour"], candidate["rule"], candidate["message"])
        for candidate in explanation["candidates"]
    }
    assert candidates["next.small"] == (0.05, None, "the cheapest that fits")
    with_disk = pytest.approx(0.0416 + 0.08 * 50 / 730, abs=1e-6)
    assert candidates["amazon.t3.medium"] == (with_disk, "Full", "all its nodes are taken")
    assert (explanation["chosen"]["type"], explanation["chosen"]["usd_hour"]) == ("next.small", 0.05)
    capacity = _good(served, "GET", "node-types/amazon.t3.medium")["capacity"]
    assert (capacity["total"], capacity["claimed"], capacity["available"]) == (1, 1, 0)


def test_template_and_instance_follow_the_naming_table(
    served: Served, cluster: dict[str, Any], claims: list[dict[str, Any]]
) -> None:
    (claim,) = [claim for claim in claims if claim["type"] == "amazon.t3.medium"]
    assert (claim["phase"], claim["node_name"]) == ("Available", claim["name"])
    assert {condition["type"]: condition["status"] for condition in claim["conditions"]}["Joined"] == "True"
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


def test_power_stops_starts_and_reboots_a_machine(
    served: Served, cluster: dict[str, Any], claims: list[dict[str, Any]]
) -> None:
    (claim,) = [claim for claim in claims if claim["type"] == "amazon.t3.medium"]
    path = f"node-claims/{claim['id']}"
    for state, instance, observed in (("Off", "stopped", "Off"), ("On", "running", "On"), ("Reboot", "running", "On")):
        switched = _good(served, "POST", f"{path}/power", {"state": state})
        _succeeded(served, switched["operation_id"])
        assert [machine["InstanceId"] for machine in _machines(served, cluster, instance)] == [claim["machine_id"]]
        claim_view = _good(served, "GET", path)
        assert (claim_view["phase"], claim_view["power_observed"]) == ("Available", observed)
    calls = [call["operation"] for call in served.calls if call["side"] == "tenant"]
    assert {"StopInstances", "StartInstances", "RebootInstances"} <= set(calls)


def test_a_machine_that_the_tenant_terminates_fails_its_claim(served: Served, claims: list[dict[str, Any]]) -> None:
    (claim,) = [claim for claim in claims if claim["type"] == "amazon.t3.medium"]
    served.aws("ec2", ACME_ACCOUNT).terminate_instances(InstanceIds=[claim["machine_id"]])
    path = f"node-claims/{claim['id']}"

    def failed() -> bool:
        served.aws("lambda").invoke(FunctionName="stockyard-dev-reaper", Payload=b"{}")
        return bool(_good(served, "GET", path)["phase"] == "Failed")

    served.wait("the sweep", failed)
    assert _good(served, "GET", path)["reason"] == "MachineGone"
    assert _good(served, "GET", "node-types/amazon.t3.medium")["capacity"]["claimed"] == 0


def test_deletion_of_claims_leaves_no_machine(
    served: Served, cluster: dict[str, Any], claims: list[dict[str, Any]]
) -> None:
    operations = [_good(served, "DELETE", f"node-claims/{claim['id']}")["id"] for claim in claims]
    for operation in operations:
        _succeeded(served, operation)
    assert _machines(served, cluster) == []
    assert _good(served, "GET", "node-types/amazon.t3.medium")["capacity"]["claimed"] == 0
    for claim in claims:
        assert served.call("GET", f"/v1/node-claims/{claim['id']}").status == 404
