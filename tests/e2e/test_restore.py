"""Members put snapshots of etcd into the account of the tenant, and a cluster begins anew from one of them after its
only machine is gone. The deletion takes the snapshots with it."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pytest

from local.aws.accounts import ACME_ACCOUNT

if TYPE_CHECKING:
    from local.testing.serving import Served


@pytest.fixture(scope="module")
def cluster(served: Served, body: Callable[..., dict[str, Any]]) -> dict[str, Any]:
    request = body(name="restored")
    request["settings"] = {**request["settings"], "etcd_backup": {"interval_hours": 24, "keep": 2}}
    answer = served.call("POST", "/v1/clusters", request)
    assert answer.status == 202, answer.text
    assert served.operation(answer.body["operation_id"])["status"] == "succeeded"
    return dict(answer.body)


def snapshots(served: Served, cluster: dict[str, Any]) -> list[dict[str, Any]]:
    answer = served.call("GET", f"/v1/clusters/{cluster['id']}/snapshots")
    assert answer.status == 200, answer.text
    return list(answer.body["items"])


@pytest.fixture(scope="module")
def snapshot(served: Served, cluster: dict[str, Any]) -> str:
    ends_at = time.monotonic() + 90
    while not (listed := snapshots(served, cluster)):
        assert time.monotonic() < ends_at, served.call("GET", f"/v1/clusters/{cluster['id']}/snapshots").text
        time.sleep(0.5)
    return str(listed[0]["id"])


def test_a_snapshot_is_in_the_tenants_account(served: Served, cluster: dict[str, Any], snapshot: str) -> None:
    store = served.aws("s3", ACME_ACCOUNT)
    (name,) = [bucket["Name"] for bucket in store.list_buckets()["Buckets"]]
    (item,) = store.list_objects_v2(Bucket=name)["Contents"]
    assert item["Key"] == f"stockyard-etcd/{cluster['id']}/{snapshot}.tar.gz"
    assert served.call("GET", f"/v1/clusters/{cluster['id']}").body["last_snapshot"] == snapshot


def test_a_cluster_whose_machine_is_gone_is_restored(
    served: Served, cluster: dict[str, Any], snapshot: str, remove: Callable[[str], dict[str, Any]]
) -> None:
    path = f"/v1/clusters/{cluster['id']}"
    ec2 = served.aws("ec2", ACME_ACCOUNT)
    filters = [
        {"Name": "tag:stockyard:key", "Values": ["instance/control-plane"]},
        {"Name": "tag:stockyard:resource", "Values": [cluster["id"]]},
    ]
    reservations = ec2.describe_instances(Filters=filters)["Reservations"]
    machines = [machine["InstanceId"] for entry in reservations for machine in entry["Instances"]]
    ec2.terminate_instances(InstanceIds=machines)
    plan = served.call("POST", f"{path}/restore?dry_run=true", {"snapshot": "latest"})
    assert "is forgotten" in plan.body["plan"]["warnings"][0]["detail"]
    answer = served.call("POST", f"{path}/restore", {"snapshot": snapshot})
    assert answer.status == 202, answer.text
    operation = served.operation(answer.body["id"])
    assert operation["status"] == "succeeded", operation["error"]
    assert served.call("GET", path).body["status"] == "ready"
    policy = {"RoleName": f"vantage-{cluster['client_id']}-ctrl-role", "PolicyName": "etcd-snapshots"}
    document = served.aws("iam", ACME_ACCOUNT).get_role_policy(**policy)["PolicyDocument"]
    assert [statement["Action"] for statement in document["Statement"]] == ["s3:PutObject"]
    assert remove(cluster["id"])["status"] == "succeeded"
    assert served.aws("s3", ACME_ACCOUNT).list_buckets()["Buckets"] == []
