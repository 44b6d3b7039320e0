"""A run of the local cloud that lets every function do all its kinds of work, for the tests of permissions."""

from __future__ import annotations

from functools import partial
from http import HTTPStatus
from typing import TYPE_CHECKING, Any

import yaml

from local.aws.accounts import ACME_ACCOUNT, REGION
from local.testing.example import EXAMPLES, body_without_nodes, cudo_body
from tests.harness.beside import side_by_side
from tests.harness.crash.machine_report import machine_report
from tests.stacks.privilege_events import change_event_accounts, invoke, send_events
from tests.stacks.privilege_runs import runs_once
from tests.stacks.privilege_sites import sites_once

if TYPE_CHECKING:
    from local.testing.serving import Answer, Served

TRIES = 10


def everything_once(served: Served) -> list[dict[str, Any]]:
    """Do it all; every AWS call of our functions so far. What needs nothing of each other goes side by side."""
    body = body_without_nodes()
    invoke(served, "catalog")  # first, so that all that follows reads what it wrote
    with_key = _account_with_a_key(served)
    invoke(served, "catalog")  # and once more, for an account whose cloud tells it apart what it offers
    cluster_path, *_ = side_by_side(
        partial(_first_cluster, served, body),
        partial(_by_a_key_and_by_events, served, body, with_key),
        partial(_cluster_on_eks, served),
        partial(_cluster_by_a_manifest, served),
    )
    for function in ("relay", "autoscaler", "disruptor", "reaper"):
        invoke(served, function)
    # The sweep has said up to where events have entries by their subject.
    assert served.call("GET", "/v1/events?subject=cloud-account/1").body["items"]
    deletion = served.call("DELETE", cluster_path)
    assert served.operation(deletion.body["id"])["status"] == "succeeded"
    return served.calls


def _first_cluster(served: Served, body: dict[str, Any]) -> str:
    """A cluster on machines, and all that is done with it before it is deleted; its path."""
    first = served.call("POST", "/v1/clusters", {**body, "name": "privilege"})
    assert first.status == 202, first.text
    assert served.operation(first.body["operation_id"])["status"] == "succeeded"
    cluster_path = f"/v1/clusters/{first.body['id']}"
    second = _second_account(served)
    changed = _patched(served, cluster_path, {"description": "changed"})
    assert changed.status == 200, changed.text
    _new_regions(served, body)
    for path in ("", "/tree", "/kubeconfig", "/kubeconfig?static=true", "/client-secret"):
        assert served.call("GET", cluster_path + path).status == 200, path
    for path in ("operations", "events", "audit", "quotas", "prices", "clusters", "cloud-accounts"):
        answer = served.call("GET", f"/v1/{path}?page_size=1")
        assert answer.status == 200, path
        if answer.body["next_page_token"]:
            more = f"/v1/{path}?page_size=1&page_token={answer.body['next_page_token']}"
            assert served.call("GET", more).status == 200, path
    assert served.call("POST", "/v1/cloud-accounts/1/verify").status == 200
    assert served.call("DELETE", second).status in (202, 204)
    _profiles(served, first.body["id"], "site")
    _quota_and_report(served, cluster_path)
    _nodes(served, "privilege")
    _pools(served, "privilege")
    _disruption(served, cluster_path)
    _instances(served, "privilege")
    change_event_accounts(served)
    sites_once(served, Good(served))
    runs_once(served)
    return cluster_path


def _new_regions(served: Served, body: dict[str, Any]) -> None:
    """Whoever names a region first has its prices fetched: in plans of each kind, and in a list."""
    good = Good(served)
    elsewhere = {"name": "elsewhere", "settings": {**body["settings"], "region_name": "us-west-2"}}
    good("POST", "clusters?dry_run=true", {**body, **elsewhere})
    block = {"cloudAccount": 1, "region": "eu-west-1"}
    good("POST", "node-providers?dry_run=true", {"name": "irish", "kind": "ec2", "spec": block})
    text = (EXAMPLES / "eks-inference.yaml").read_text(encoding="utf-8")
    text = text.replace("us-east-1", "eu-west-2").replace("name: inference", "name: elsewhere")
    (document,) = yaml.safe_load_all(text)
    document["metadata"]["labels"] = {"stockyard.dev/cloud-account": "1"}
    good("POST", "apply?dry_run=true", [document])
    # While they are fetched, which another part of this run may do at this moment, there are none yet.
    path = "/v1/prices?region=eu-west-3&page_size=1"
    served.wait("the prices of a region", lambda: served.call("GET", path).status == 200, 180)


def _by_a_key_and_by_events(served: Served, body: dict[str, Any], with_key: int) -> None:
    """One after the other: both ask for a cluster of one name in the account that a key opens."""
    _cluster_by_a_key(served, with_key)
    send_events(served, body, with_key)


class Good:
    """Calls that have to succeed; the body of the answer."""

    def __init__(self, served: Served) -> None:
        self._served = served

    def __call__(self, method: str, path: str, body: Any = None, **headers: str) -> Any:
        named = {key.replace("_", "-"): value for key, value in headers.items()}
        answer = self._served.call(method, f"/v1/{path}", body, headers=named)
        assert answer.status in (200, 201, 202), (path, answer.text)
        return answer.body

    def wait_for_success(self, operation_id: str) -> None:
        """Wait until the operation has succeeded."""
        operation = self._served.operation(operation_id)
        assert operation["status"] == "succeeded", operation["error"]


def _patched(served: Served, path: str, change: dict[str, Any]) -> Answer:
    """The answer to a change, which is tried again while somebody else writes the cluster."""
    for _ in range(TRIES):
        etag = {"If-Match": served.call("GET", path).headers["etag"]}
        answer = served.call("PATCH", path, change, headers=etag)
        if answer.status != HTTPStatus.PRECONDITION_FAILED:
            break
    return answer


def _tags(served: Served, cluster_path: str) -> None:
    """A tag is given to all that is there, the nodes' machines included, and taken from it."""
    for document in ({"tags": {"team": "a"}}, {"tags": {"team": None, "stage": "b"}}):
        changed = _patched(served, cluster_path, document)
        assert changed.status == 200, changed.text
        assert served.operation(changed.body["operation_id"])["status"] == "succeeded"


def _account_with_a_key(served: Served) -> int:
    """Registered, verified and left to the sweep to look at; its number."""
    key = served.environment["CUDO_API_KEY"]
    project = {"project_id": served.environment["CUDO_PROJECT_ID"], "data_center_id": "us-dallas-1"}
    document = {"provider": "cudo", "name": "gpus", "attributes": {**project, "api_key": key}}
    account = served.call("POST", "/v1/cloud-accounts", document)
    assert account.status == 201, account.text
    verified = served.call("POST", f"/v1/cloud-accounts/{account.body['id']}/verify")
    assert verified.body["verification"] == "verified", verified.text
    return int(account.body["id"])


def _cluster_by_a_key(served: Served, account: int) -> None:
    """A cluster in a cloud where a key opens the account: made with a node, and removed."""
    good = Good(served)
    cluster = good("POST", "clusters", cudo_body(account))
    good.wait_for_success(cluster["operation_id"])
    served.wait("its node", lambda: _available(served, f"clusters/{cluster['id']}/pools/workers") == 1, 60)
    good.wait_for_success(good("DELETE", f"clusters/{cluster['id']}")["id"])


def _cluster_on_eks(served: Served) -> None:
    """A cluster whose control plane is a service of the cloud: made, admitted to, changed, tagged, and removed."""
    good = Good(served)
    (account,) = (item for item in good("GET", "cloud-accounts")["items"] if item["id"] == 1)
    group = {
        "name": "gpu",
        "role": "gpu",
        "instance_type": "g6.12xlarge",
        "accelerator_type": "nvidia-l4",
        "fabric": "efa",
        "count": 0,
        "zones": [f"{REGION}a"],
    }
    body = {"name": "on-eks", "description": "d", "cloud_account_id": account["id"], "cluster_type": "k8s"}
    settings = {"region_name": REGION, "node_groups": [group]}
    cluster = good("POST", "clusters", {**body, "driver": "eks", "settings": settings, "kubernetes_version": "1.35"})
    good.wait_for_success(cluster["operation_id"])
    path = f"clusters/{cluster['id']}"
    good("POST", f"{path}/token")
    _profiles(served, cluster["id"], "managed-site")
    lists = {"public_access_cidrs": ["198.51.100.0/24", "203.0.113.0/24"]}
    for change in (
        {"settings": {"node_groups": [{**group, "labels": {"a": "b"}}], **lists}},
        {"kubernetes_version": "1.36"},
        {"tags": {"team": "a"}},
        {"tags": {"team": None, "stage": "b"}},
    ):
        good.wait_for_success(served.wait("its turn", partial(_changed, served, f"/v1/{path}", change), 30))
    invoke(served, "reaper")  # which looks for what is ours in every cluster
    good.wait_for_success(good("DELETE", path)["id"])


def _profiles(served: Served, cluster: str, name: str) -> None:
    """A profile is made, gets a second version, is given to a cluster, looked after there, taken away and removed."""
    good = Good(served)
    text = "{apiVersion: v1, kind: ConfigMap, metadata: {name: settings, namespace: default}, data: {a: '%s'}}"

    def version(number: int) -> dict[str, Any]:
        manifests = [{"name": "settings", "content": text % number}]
        return {
            "version": f"{number}.0.0",
            "packs": [{"layer": "addon", "name": "settings", "tag": "1", "manifests": manifests}],
        }

    profile = good("POST", "cluster-profiles", {"name": name, **version(1)})
    path, of_cluster = f"cluster-profiles/{profile['id']}", f"clusters/{cluster}/profiles"
    good("PUT", path, version(2), If_Match='"1"')
    document = {"apiVersion": "stockyard/v1", "kind": "ClusterProfile", "metadata": {"name": f"{name}-two"}}
    good("POST", "apply", {**document, "spec": version(1)})
    more = good("GET", "cluster-profiles?page_size=1")["next_page_token"]
    good("GET", f"cluster-profiles?page_size=1&page_token={more}")
    for choices in ([{"name": name}], []):
        change = partial(_set_profiles, served, cluster, choices)
        good.wait_for_success(served.wait("its turn", change, 60))
        if choices:
            view = good("GET", f"{of_cluster}?refresh=true")
            assert (view["drift"], [pack["condition"] for pack in view["packs"]]) == ([], ["Ready"])
            assert view["compared_at"]
    for each in (name, f"{name}-two"):
        good("DELETE", f"cluster-profiles/{each}")


def _set_profiles(served: Served, cluster: str, choices: list[dict[str, Any]]) -> str:
    """The operation that gives a cluster profiles, by a patch, or takes them away by their own route; empty while
    somebody else writes the cluster."""
    path = f"/v1/clusters/{cluster}"
    etag = {"If-Match": served.call("GET", path).headers["etag"]}
    way = ("PATCH", path) if choices else ("PUT", f"{path}/profiles")
    answer = served.call(*way, {"profiles": choices}, headers=etag)
    assert answer.status in (202, 412), answer.text
    return "" if answer.status == 412 else str(answer.body.get("operation_id") or answer.body["id"])


def _changed(served: Served, path: str, change: dict[str, Any]) -> str:
    """The operation of a change; empty while somebody else writes the cluster."""
    etag = {"If-Match": served.call("GET", path).headers["etag"]}
    answer = served.call("PATCH", path, change, headers=etag)
    assert answer.status in (200, 202, 412), answer.text
    return "" if answer.status == 412 else str(answer.body["operation_id"])


def _available(served: Served, path: str) -> Any:
    answer = served.call("GET", f"/v1/{path}")
    return answer.body["nodes"]["available"] if answer.status == 200 else None


def _second_account(served: Served) -> str:
    """Registered, in a region that nobody has named, and changed; its path."""
    role = f"arn:aws:iam::{ACME_ACCOUNT}:role/nobody"
    document = {"provider": "aws", "name": "second", "attributes": {"role_arn": role, "region": "eu-central-1"}}
    account = served.call("POST", "/v1/cloud-accounts", document)
    assert account.status == 201, account.text
    path = f"/v1/cloud-accounts/{account.body['id']}"
    etag = {"If-Match": account.headers["etag"]}
    assert served.call("PATCH", path, {"description": "changed"}, headers=etag).status == 200
    return str(path)


def _nodes(served: Served, cluster: str) -> None:
    """A provider, its types, a claim that becomes a node and is given back, and the same by manifests."""
    good = Good(served)
    kind = {"name": "small", "resources": {"cpu": "2", "memory": "4Gi"}, "maxCapacity": 3}
    good("POST", "node-providers", {"name": "lab", "kind": "simulated", "spec": {"nodeTypes": [kind]}})
    good("PATCH", "node-providers/lab", {"properties": {"team": "a"}}, If_Match='"1"')
    claim = good("POST", "node-claims", {"name": "one", "cluster": cluster})
    assert served.operation(claim["operation_id"])["status"] == "succeeded"
    claim = good("GET", "node-claims/one")
    good("PATCH", "node-claims/one", {"labels": {"a": "b"}}, If_Match=f'"{claim["version"]}"')
    manifest = good("GET", "node-claims/one?form=manifest")
    for path in ("node-claims/one/explanation", "node-providers/lab", "node-types/lab.small", "allowed-node-types"):
        good("GET", path)
    # one that nothing was ever made for, and a provider that nobody uses
    spare = {"name": "spare", "kind": "simulated", "spec": {"nodeTypes": [{**kind, "usdPerHour": 0.1}]}}
    good("POST", "node-providers", spare)
    # What counts for a budget is read by whoever plans, buys or shows under it.
    budgeted = partial(_patched, served, f"/v1/clusters/{cluster}")
    assert budgeted({"limits": {"usd_month": "100000"}}).status == HTTPStatus.OK
    good("POST", "node-claims", {"name": "big", "cluster": cluster, "resources": {"cpu": "64"}})
    good("POST", "node-claims?dry_run=true", {"name": "planned", "cluster": cluster, "provider": "spare"})
    good("GET", f"costs?cluster={cluster}")
    served.wait("the scheduler", lambda: good("GET", "node-claims/big")["reason"] != "Pending", 60)
    assert budgeted({"limits": None}).status == HTTPStatus.OK
    for path in ("node-claims", "node-types", "node-providers"):
        more = good("GET", f"{path}?page_size=1")["next_page_token"]
        good("GET", f"{path}?page_size=1&page_token={more}")
    for path in ("node-claims/big", "node-providers/spare"):
        good("DELETE", path)
    provider = good("GET", "node-providers/lab?form=manifest")
    for labels in ({}, {"a": "c"}):
        manifest["metadata"]["labels"] = labels
        second = {**manifest, "metadata": {"name": "two"}, "spec": {**manifest["spec"], "type": "lab.small"}}
        good("POST", "apply", [provider, manifest, second])
        provider["metadata"]["labels"] = {"d": "e"}
    environments = good("GET", "node-environments")["items"]
    for environment in environments[:1]:
        good("GET", f"node-environments/{environment['id']}")
    for name in ("two", "one"):
        assert served.operation(good("DELETE", f"node-claims/{name}")["id"])["status"] == "succeeded"
    assert [claim["name"] for claim in good("GET", "node-claims")["items"] if claim["cluster"] == cluster] == []


def _cluster_by_a_manifest(served: Served) -> None:
    """A cluster that comes as a manifest: made, found unchanged, and taken back."""
    good = Good(served)
    (document,) = yaml.safe_load_all((EXAMPLES / "eks-inference.yaml").read_text(encoding="utf-8"))
    for action in ("created", "unchanged"):
        (result,) = good("POST", "apply", [document])["results"]
        assert result["action"] == action
        if result["operation_id"]:
            good.wait_for_success(result["operation_id"])
    assert good("GET", f"clusters/{result['id']}?form=manifest")["kind"] == "EKSCluster"
    good.wait_for_success(good("DELETE", f"clusters/{result['id']}")["id"])


def _pools(served: Served, cluster: str) -> None:
    """Pools that are made, read in pages, made smaller and deleted; one with a node stays until its cluster goes."""
    good = Good(served)
    path = f"clusters/{cluster}/pools"

    def nodes(name: str) -> Any:
        return _available(served, f"{path}/{name}")

    for name, quantity in (("first", 2), ("second", 1)):
        wish = {"name": name, "quantity": quantity, "provider": "lab"}
        good("POST", f"{path}?dry_run=true", wish)
        good("POST", path, wish)
        served.wait(f"nodes of pool {name}", lambda name=name, quantity=quantity: nodes(name) == quantity, 60)
    pod = {"kind": "Pod", "metadata": {"name": "one"}, "spec": {}}
    for question in ({"manifests": [pod]}, {"manifests": [pod], "cluster": cluster}):
        good("POST", "placements", question)
    good("POST", "simulations", {"until": "1h", "events": [{"at": "0s", "arrive": [pod]}]})
    metadata = {"name": "fourth", "labels": {"stockyard.dev/cluster": cluster}}
    for weight in (1, 2):
        spec = {"template": {"spec": {"requirements": []}}, "weight": weight}
        document = {"apiVersion": "karpenter.sh/v1", "kind": "NodePool", "metadata": metadata, "spec": spec}
        # A pass over the new pool may come between, and then it is to be applied again.
        served.wait("the pool", lambda each=document: served.call("POST", "/v1/apply", [each]).status == 200, 60)
    good("DELETE", f"{path}/fourth")
    more = good("GET", f"{path}?page_size=1")["next_page_token"]
    good("GET", f"{path}?page_size=1&page_token={more}")
    version = good("GET", f"{path}/first")["version"]
    good("PATCH", f"{path}/first", {"quantity": 1}, If_Match=f'"{version}"')
    served.wait("the smaller pool", lambda: nodes("first") == 1, 60)
    # A claim that nothing was made for is gone at once.
    impossible = {"name": "third", "quantity": 1, "requirements": [{"key": "example.com/none", "values": ["x"]}]}
    good("POST", path, impossible)
    served.wait("the claim of the third pool", lambda: good("GET", f"{path}/third")["nodes"]["claims"] == 1, 60)
    for name in ("first", "third"):
        good("DELETE", f"{path}/{name}?dry_run=true")
        good("DELETE", f"{path}/{name}")
        served.wait(f"the end of pool {name}", lambda name=name: nodes(name) is None, 60)
    good("DELETE", f"clusters/{cluster}?dry_run=true")


def _instances(served: Served, cluster: str) -> None:
    """Claims that EC2 serves, on demand and for spot: an instance joins, is switched off and on, rebooted and ended."""
    good = Good(served)
    block = {"cloudAccount": 1, "instanceTypes": ["t3.medium"], "capacityTypes": ["on-demand", "spot"]}
    good("POST", "node-providers", {"name": "aws", "kind": "ec2", "spec": block})
    claims = []
    for name, capacity_type in (("instance", "on-demand"), ("spot", "spot")):
        requirements = [{"key": "karpenter.sh/capacity-type", "operator": "In", "values": [capacity_type]}]
        wish = {"name": name, "cluster": cluster, "provider": "aws", "requirements": requirements}
        claims.append(good("POST", "node-claims", wish))
    for claim in claims:
        good.wait_for_success(claim["operation_id"])
    for state in ("Off", "On", "Reboot"):
        good.wait_for_success(good("POST", "node-claims/instance/power", {"state": state})["operation_id"])
    _tags(served, f"/v1/clusters/{cluster}")
    for claim in claims:
        good.wait_for_success(good("DELETE", f"node-claims/{claim['id']}")["id"])


def _quota_and_report(served: Served, cluster: str) -> None:
    """A quota of its own, the machine's report a second time, and pods that wait."""
    quota = served.call("GET", "/v1/quotas").body["items"][0]
    headers = {"If-Match": f'"{quota["version"]}"', "X-Stockyard-Tenant": "acme"}
    path, limit = f"/v1/quotas/{quota['name']}", {"limit": quota["limit"]}
    answer = served.call("PUT", path, limit, headers=headers, token="STOCKYARD_TOKEN_PLATFORM")
    assert answer.status == 200, answer.text
    client = served.call("GET", f"{cluster}/client-secret").body
    token = served.client_token(client["client_id"], client["client_secret"])
    assert served.call("POST", f"{cluster}/ready", machine_report("https://again"), token=token).status == 202
    pods = {"sequence": 1, "observed_at": "2026-01-02T03:04:05.678Z", "agent_version": "1"}
    # No pool takes them: a node of theirs would be one more than this run counts.
    group = {"namespace": "default", "spec": {"nodeSelector": {"example.com/none": "x"}}}
    pods |= {"groups": {"0" * 16: group}, "pending": {"0" * 16: {"count": 1}}}
    # The cluster's own agent reports too; reports that come within a second of each other are refused.
    report_pods = partial(served.call, "POST", f"{cluster}/pending-pods", pods, token=token)
    served.wait("the report", lambda: report_pods().status == 200, 30)


def _disruption(served: Served, cluster: str) -> None:
    """Preview a disruption, and use its switches."""
    assert served.call("GET", f"{cluster}/disruption/preview").status == 200
    for paused in (True, False):
        for path in (f"{cluster}/disruption", "/v1/disruption"):
            answer = served.call("PUT", path, {"paused": paused})
            assert (answer.status, answer.body["paused"]) == (200, paused), answer.text
            assert served.call("GET", path).body["paused"] is paused
