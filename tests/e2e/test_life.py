"""A cluster's life by HTTP on the local cloud: the answers, the resources in the account, and what deletion leaves."""

from __future__ import annotations

import hashlib
import json
from base64 import b64decode
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from agent.stockyard_agent import VERSION
from local.aws.accounts import ACME_ACCOUNT
from stockyard.adapters.dynamodb import keys
from stockyard.domain.records import Fact
from stockyard.operations.machines.observe import OBSERVED

if TYPE_CHECKING:
    from local.testing.serving import Served

PHASES = [
    "account",
    "network",
    "security",
    "identity",
    "endpoint",
    "bastion",
    "control_plane",
    "report",
    "profile",
    "deploy",
    "complete",
]
INSTALLATION = "stockyard:installation"


def resources(served: Served) -> dict[str, list[str]]:
    """The resources in the tenant's account, listed with the tenant's keys, without those made by AWS itself."""
    ec2, elb, iam = (served.aws(service, ACME_ACCOUNT) for service in ("ec2", "elbv2", "iam"))
    reservations = ec2.describe_instances()["Reservations"]
    instances = [i for r in reservations for i in r["Instances"] if i["State"]["Name"] != "terminated"]
    gateways = ec2.describe_nat_gateways()["NatGateways"]
    groups = ec2.describe_security_groups()["SecurityGroups"]
    tables = ec2.describe_route_tables()["RouteTables"]
    volumes = ec2.describe_volumes()["Volumes"]
    return {
        "vpc": [v["VpcId"] for v in ec2.describe_vpcs()["Vpcs"] if not v["IsDefault"]],
        "subnet": [s["SubnetId"] for s in ec2.describe_subnets()["Subnets"] if not s["DefaultForAz"]],
        "internet_gateway": [g["InternetGatewayId"] for g in ec2.describe_internet_gateways()["InternetGateways"]],
        "nat_gateway": [g["NatGatewayId"] for g in gateways if g["State"] != "deleted"],
        "address": [a["AllocationId"] for a in ec2.describe_addresses()["Addresses"]],
        "endpoint": [e["VpcEndpointId"] for e in ec2.describe_vpc_endpoints()["VpcEndpoints"]],
        "route_table": [t["RouteTableId"] for t in tables if t.get("Tags")],
        "security_group": [g["GroupId"] for g in groups if g["GroupName"] != "default"],
        "instance": [i["InstanceId"] for i in instances],
        "volume": [v["VolumeId"] for v in volumes],
        "interface": [i["NetworkInterfaceId"] for i in ec2.describe_network_interfaces()["NetworkInterfaces"]],
        "load_balancer": [b["LoadBalancerName"] for b in elb.describe_load_balancers()["LoadBalancers"]],
        "target_group": [g["TargetGroupName"] for g in elb.describe_target_groups()["TargetGroups"]],
        "role": [r["RoleName"] for r in iam.list_roles(PathPrefix="/stockyard/")["Roles"]],
        "profile": [p["InstanceProfileName"] for p in iam.list_instance_profiles()["InstanceProfiles"]],
    }


@pytest.fixture(scope="module")
def before(served: Served) -> dict[str, list[str]]:
    return resources(served)


@pytest.fixture(scope="module")
def cluster(served: Served, before: dict[str, list[str]], body: Callable[..., dict[str, Any]]) -> dict[str, Any]:
    answer = served.call("POST", "/v1/clusters", body(name="life"))
    assert answer.status == 202, answer.text
    assert answer.headers["location"] == f"/v1/operations/{answer.body['operation_id']}"
    assert answer.body["status"] == "preparing"
    operation = served.operation(answer.body["operation_id"])
    assert operation["status"] == "succeeded", operation["error"]
    assert [phase["name"] for phase in operation["phases"]] == PHASES
    states = {phase["name"]: phase["state"] for phase in operation["phases"]}
    assert states == dict.fromkeys(PHASES, "succeeded") | {"profile": "skipped"}, "it has no profile"
    assert operation["progress"] == 100
    return dict(served.call("GET", f"/v1/clusters/{answer.body['id']}").body)


def test_a_created_cluster_is_ready(cluster: dict[str, Any]) -> None:
    assert (cluster["status"], cluster["phase"]) == ("ready", None)
    assert {condition["type"]: condition["status"] for condition in cluster["conditions"]}["Ready"] == "True"
    assert cluster.pop("kubeconfig_secret") is None
    assert "secret" not in json.dumps(cluster).lower()


def test_the_kubeconfig_names_the_load_balancer_and_its_certificate(served: Served, cluster: dict[str, Any]) -> None:
    config = json.loads(served.call("GET", f"/v1/clusters/{cluster['id']}/kubeconfig").body["kubeconfig"])
    address = config["clusters"][0]["cluster"]
    name = served.aws("elbv2", ACME_ACCOUNT).describe_load_balancers()["LoadBalancers"][0]["DNSName"]
    assert address["server"] == f"https://{name}:6443"
    assert address["certificate-authority-data"]
    command = config["users"][0]["user"]["exec"]
    assert (command["command"], command["args"][-1]) == ("stockyard", f"{cluster['client_id']}-login")


def test_the_stored_kubeconfig_is_for_admins(served: Served, cluster: dict[str, Any]) -> None:
    path = f"/v1/clusters/{cluster['id']}/kubeconfig?static=true"
    assert "kubernetes-admin" in served.call("GET", path).body["kubeconfig"]
    assert served.call("GET", path, token="STOCKYARD_TOKEN_VIEWER").status == 403


def test_the_tree_has_every_resource_in_the_account(
    served: Served, cluster: dict[str, Any], before: dict[str, list[str]]
) -> None:
    def below(node: dict[str, Any]) -> Iterator[dict[str, Any]]:
        yield node
        for child in node["children"]:
            yield from below(child)

    tree = served.call("GET", f"/v1/clusters/{cluster['id']}/tree").body
    assert (tree["kind"], tree["id"]) == ("cluster", cluster["id"])
    identifiers_and_names = " ".join(str(node["id"]) + " " + str(node["name"]) for node in below(tree))
    now = resources(served)
    for kind, identifiers in now.items():
        new = set(identifiers) - set(before[kind])
        if kind in ("volume", "interface"):
            continue  # They are created and deleted with the instance and the gateway.
        assert new, f"no {kind} was made"
        missing = [identifier for identifier in new if identifier not in identifiers_and_names]
        assert not missing, f"{kind} {missing} is not in the tree"


def test_names_and_tags_follow_the_naming_table(served: Served, cluster: dict[str, Any]) -> None:
    client = cluster["client_id"]
    now = resources(served)
    assert f"vantage-{client}-node-role" in now["role"]
    assert f"vantage-{client}-instance-profile" in now["profile"]
    reservations = served.aws("ec2", ACME_ACCOUNT).describe_instances()["Reservations"]
    (machine,) = [i for r in reservations for i in r["Instances"] if i["State"]["Name"] == "running"]
    tags = {tag["Key"]: tag["Value"] for tag in machine["Tags"]}
    assert tags["Name"] == f"vantage-{client}-control-plane"
    assert tags["stockyard:resource"] == cluster["id"]
    assert tags["vantage-cluster"] == client
    assert tags[f"kubernetes.io/cluster/{client}"] == "owned"
    assert machine["MetadataOptions"]["HttpTokens"] == "required"


def test_events_are_in_order_and_audit_has_each_command_once(served: Served, cluster: dict[str, Any]) -> None:
    events = served.call("GET", f"/v1/events?subject={cluster['id']}&page_size=200").body["items"]
    numbers = [event["sequence"] for event in events]
    assert numbers == list(range(1, len(numbers) + 1))
    assert events[0]["phase"] == {"before": None, "after": "preparing"}
    assert "ready" in {event["phase"]["after"] for event in events}
    audit = served.call("GET", f"/v1/audit?subject={cluster['id']}&page_size=200").body["items"]
    commands = [record["action"] for record in audit]
    for command in ("CreateCluster", "BootstrapMachine", "ReportReady"):
        assert commands.count(command) == 1, commands


def observed(served: Served, cluster: str) -> dict[str, Any] | None:
    """Last observation of the agent, as the table keeps it."""
    table, name = served.aws("dynamodb"), f"{cluster}/{OBSERVED}"
    key = {"pk": {"S": keys.partition("acme", Fact, name)}, "sk": {"S": name}}
    item = table.get_item(TableName=table.list_tables()["TableNames"][0], Key=key).get("Item")
    return dict(json.loads(item["value"]["S"])) if item else None


def agents(cluster: str) -> list[int]:
    """The process ids of a cluster's agent on this machine."""
    variable = f"STOCKYARD_CLUSTER_ID={cluster}".encode()
    process_ids = []
    for path in Path("/proc").glob("[0-9]*/environ"):
        try:
            if variable in path.read_bytes().split(b"\0"):
                process_ids.append(int(path.parent.name))
        except OSError:
            continue  # The process has ended, or it belongs to another user.
    return process_ids


def test_the_manifest_of_the_agent_is_given_to_the_clusters_own_client(served: Served, cluster: dict[str, Any]) -> None:
    path = f"/v1/clusters/{cluster['id']}/agent"
    secret = served.call("GET", f"/v1/clusters/{cluster['id']}/client-secret").body
    own = served.client_token(secret["client_id"], secret["client_secret"])
    answer = served.call("GET", path, token=own)
    assert (answer.status, answer.body["apiVersion"], answer.body["kind"]) == (200, "v1", "List")
    assert [manifest["kind"] for manifest in answer.body["items"]][:1] == ["Namespace"]
    assert "Secret" not in {manifest["kind"] for manifest in answer.body["items"]}
    assert secret["client_secret"] not in answer.text
    deployment = next(manifest for manifest in answer.body["items"] if manifest["kind"] == "Deployment")
    (container,) = deployment["spec"]["template"]["spec"]["containers"]
    environment = {variable["name"]: variable.get("value") for variable in container["env"]}
    assert environment["STOCKYARD_API_URL"] == served.environment["STOCKYARD_URL"]
    assert environment["STOCKYARD_CLUSTER_ID"] == cluster["id"]
    assert environment["STOCKYARD_TOKEN_URL"] == f"{served.issuer}/protocol/openid-connect/token"
    assert served.call("GET", f"/v1/clusters/{cluster['name']}/agent", token=own).body == answer.body
    for person in ("STOCKYARD_TOKEN", "STOCKYARD_TOKEN_OTHER", "STOCKYARD_TOKEN_PLATFORM"):
        assert served.call("GET", path, token=person).status == 403


def test_the_agent_observes_the_cluster(served: Served, cluster: dict[str, Any]) -> None:
    first = served.wait("the agent's post", lambda: observed(served, cluster["id"]))
    assert (first["nodes"], first["agent_version"]) == (1, VERSION)
    config = json.loads(served.call("GET", f"/v1/clusters/{cluster['id']}/kubeconfig").body["kubeconfig"])
    authority = b64decode(config["clusters"][0]["cluster"]["certificate-authority-data"])
    key = x509.load_pem_x509_certificate(authority).public_key()
    digest = hashlib.sha256(key.public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)).hexdigest()
    assert first["ca_hash"] == f"sha256:{digest}"
    # That it goes on posting is seen where machines join and are drained: of a quiet cluster not each post is written.
    if Path("/proc/self/environ").exists():
        assert len(agents(cluster["id"])) == 1


def test_another_tenant_sees_nothing(served: Served, cluster: dict[str, Any]) -> None:
    for path in ("", "/tree", "/kubeconfig", "/client-secret"):
        answer = served.call("GET", f"/v1/clusters/{cluster['id']}{path}", token="STOCKYARD_TOKEN_OTHER")
        assert answer.status == 404, path


def test_the_name_of_a_living_cluster_is_refused(
    served: Served, cluster: dict[str, Any], body: Callable[..., dict[str, Any]]
) -> None:
    answer = served.call("POST", "/v1/clusters", body(name="life"))
    assert (answer.status, answer.body["error_type"]) == (409, "ClusterNameInUse")


def sealed_secrets(served: Served) -> list[str]:
    """The ids of all secrets of clusters that stand in the table."""
    client = served.aws("dynamodb")
    (table,) = client.list_tables()["TableNames"]
    pages = client.get_paginator("scan").paginate(TableName=table)
    return [item["sk"]["S"] for page in pages for item in page["Items"] if item["kind"]["S"] == "SealedSecret"]


def test_the_secrets_of_a_cluster_stand_sealed_in_the_table(served: Served, cluster: dict[str, Any]) -> None:
    assert sorted(key for key in sealed_secrets(served) if cluster["id"] in key) == [
        f"{cluster['id']}/ca",
        f"{cluster['id']}/kubeconfig",
    ]


def test_deletion_leaves_nothing_and_frees_the_name(
    served: Served,
    cluster: dict[str, Any],
    before: dict[str, list[str]],
    body: Callable[..., dict[str, Any]],
    remove: Callable[[str], dict[str, Any]],
) -> None:
    assert len(served.identity_clients(cluster["client_id"])) == 1
    operation = remove(cluster["id"])
    assert operation["status"] == "succeeded", operation["error"]
    assert served.call("GET", f"/v1/clusters/{cluster['id']}").status == 404
    assert served.call("DELETE", f"/v1/clusters/{cluster['id']}").status == 404
    assert resources(served) == before
    assert served.identity_clients(cluster["client_id"]) == []
    served.wait("the agent's end", lambda: not agents(cluster["id"]), 30)
    assert observed(served, cluster["id"]) is None
    assert [key for key in sealed_secrets(served) if cluster["id"] in key] == []
    assert served.call("POST", "/v1/clusters?dry_run=true", body(name="life")).status == 200


def test_a_missing_key_pair_is_refused_at_its_pointer(served: Served, body: Callable[..., dict[str, Any]]) -> None:
    wrong = body(name="no-key")
    wrong["settings"]["key_pair"] = "nobody-made-this"
    answer = served.call("POST", "/v1/clusters", wrong)
    assert (answer.status, answer.body["error_type"]) == (422, "InvalidInput")
    assert [fault["pointer"] for fault in answer.body["errors"]] == ["/settings/key_pair"]
    names = [cluster["name"] for cluster in served.call("GET", "/v1/clusters").body["items"]]
    assert "no-key" not in names
