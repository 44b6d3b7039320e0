"""``stockyard plan`` against the fake API."""

from __future__ import annotations

import json

import yaml

from stockyard_client.cli.pools.placements import reduced

SECRET = "canary-secret-0123456789abcd"
NODE = {
    "pool": "burst",
    "type": "sim.large",
    "provider": "sim",
    "zone": "a",
    "capacity_type": "spot",
    "usd_hour": 0.3,
    "alternatives": 2,
    "pods": ["default/web-0", "default/web-1"],
}
REASON = {"pool": "burst", "rule": "Resource", "subject": "cpu", "message": "No node type has room."}
ANSWER = {
    "cluster_id": "clu_01",
    "pods": 10,
    "nodes": [NODE, {**NODE, "type": "sim.small", "pods": ["default/web-2"]}, {**NODE, "pods": ["default/web-3"]}],
    "existing": [{"node": "n1", "pods": ["default/web-4"]}],
    "left_out": [{"count": 5, "pods": ["default/huge-0"], "reasons": [REASON, {**REASON, "pool": "", "rule": "Gang"}]}],
    "usd_hour": 0.9,
    "bound": 0.8955,
    "gap": 0.005,
    "warnings": [{"pointer": "", "detail": "Skipped 1: the kind Service makes no pods."}],
}
MANIFESTS = """
kind: Deployment
apiVersion: apps/v1
metadata: {name: web, annotations: {a: canary-secret-0123456789abcd}, labels: {x: y}}
spec:
  replicas: 2
  selector: {}
  template:
    metadata: {labels: {app: web}}
    spec:
      volumes: [{name: canary-secret-0123456789abcd}]
      nodeSelector: {zone: a}
      containers:
        - {name: a, env: [{name: A, value: canary-secret-0123456789abcd}], resources: {requests: {cpu: 1}}}
---
kind: List
items:
  - {kind: Pod, metadata: {name: one}, status: {phase: Running, hostIP: h}, spec: {nodeName: n}}
---
kind: Secret
metadata: {name: s}
data: {key: canary-secret-0123456789abcd}
"""


def test_plan_shows_nodes_price_bound_and_who_has_no_room(cli, api):
    api.answer("POST", "/v1/placements", ANSWER)
    result = cli("plan", "-f", "-", "--cluster", "demo", stdin=MANIFESTS)
    assert result.exit_code == 0, result.stderr
    lines = [" ".join(line.split()) for line in result.stdout.splitlines()]
    assert lines == [
        "3 new nodes for 4 pods: 0.9000 USD /hour, at least 0.8955 are needed (gap 0.50%); 1 pod on nodes that are"
        " there. 5 pods have no place.",
        "NODES TYPE ZONE CAPACITY TYPE USD/HOUR EACH PODS POOL",
        "2 sim.large a spot 0.3000 3 burst",
        "1 sim.small a spot 0.3000 1 burst",
        "! default/huge-0 and 4 like it",
        "burst: No node type has room. (Resource)",
        "No node type has room. (Gang)",
    ]
    assert "Warning: Skipped 1: the kind Service makes no pods." in result.stderr


def test_a_plan_that_is_not_whole_says_so_before_all_else(cli, api):
    not_whole = {"pointer": "", "detail": "The plan is not whole: 5 pods had no turn."}
    api.answer("POST", "/v1/placements", {**ANSWER, "complete": False, "warnings": [not_whole, *ANSWER["warnings"]]})
    result = cli("plan", "-f", "-", stdin=MANIFESTS)
    assert result.output.startswith("Warning: The plan is not whole: 5 pods had no turn.\n")
    assert result.output.count("not whole") == 1
    assert "Warning: Skipped 1" in result.output


def test_only_what_decides_the_node_of_pods_is_sent(cli, api):
    api.answer("POST", "/v1/placements", ANSWER)
    assert cli("plan", "-f", "-", "--no-preferences", stdin=MANIFESTS).exit_code == 0
    (body,) = api.bodies("POST")
    assert SECRET not in json.dumps(body)
    assert (body["cluster"], body["preferences"]) == (None, False)
    deployment, pods, secret = body["manifests"]
    container = {"name": "a", "resources": {"requests": {"cpu": 1}}}
    assert deployment == {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "web", "labels": {"x": "y"}},
        "spec": {
            "replicas": 2,
            "template": {
                "metadata": {"labels": {"app": "web"}},
                "spec": {"nodeSelector": {"zone": "a"}, "containers": [container]},
            },
        },
    }
    assert pods["items"] == [
        {"kind": "Pod", "metadata": {"name": "one"}, "status": {"phase": "Running"}, "spec": {"nodeName": "n"}}
    ]
    assert secret == {"kind": "Secret", "metadata": {"name": "s"}}


def test_what_holds_pods_or_ends_them_is_sent():
    gated = {"schedulingGates": [{"name": "quota"}], "resourceClaims": [{"name": "gpu"}]}
    conditions = [{"type": "Complete", "status": "True"}]
    job = {"kind": "Job", "metadata": {}, "status": {"conditions": conditions}, "spec": {"suspend": True}}
    finished_job = {**job, "status": {"conditions": [{**conditions[0], "message": SECRET}], "active": 1}}
    assert reduced(finished_job) == job
    assert reduced({"kind": "Pod", "metadata": {}, "spec": {**gated, "volumes": []}})["spec"] == gated


def test_wide_shows_each_node_with_its_pods(cli, api):
    api.answer("POST", "/v1/placements", ANSWER)
    lines = cli("plan", "-f", "-", "-o", "wide", stdin=MANIFESTS).stdout.splitlines()
    assert [line.split()[-1] for line in lines[2:5]] == ["default/web-1", "default/web-2", "default/web-3"]
    assert [line.split() for line in lines[5:7]] == [
        ["NODE", "STATE", "PODS", "NAMES"],
        ["n1", "Ready", "1", "default/web-4"],
    ]


def test_wide_says_of_a_node_that_it_is_on_its_way(cli, api):
    on_its_way = {**ANSWER["existing"][0], "ready": False}
    api.answer("POST", "/v1/placements", {**ANSWER, "nodes": [], "existing": [on_its_way]})
    lines = cli("plan", "-f", "-", "-o", "wide", stdin=MANIFESTS).stdout.splitlines()
    assert lines[2].split() == ["n1", "OnItsWay", "1", "default/web-4"]


def test_documents_are_the_api_s_answer(cli, api):
    api.answer("POST", "/v1/placements", ANSWER)
    assert json.loads(cli("plan", "-f", "-", "-o", "json", stdin=MANIFESTS).stdout) == ANSWER
    assert yaml.safe_load(cli("plan", "-f", "-", "-o", "yaml", stdin=MANIFESTS).stdout) == ANSWER
    assert cli("plan", "-f", "-", "-o", "name", stdin=MANIFESTS).stdout.splitlines() == ["sim.large", "sim.small"]


def test_nothing_to_buy_and_no_known_price(cli, api):
    api.answer("POST", "/v1/placements", {"pods": 1, "usd_hour": None, "nodes": [], "existing": [], "left_out": []})
    result = cli("plan", "-f", "-", stdin=MANIFESTS)
    assert result.stdout == "No new node.\n"


def test_a_fault_is_shown_with_its_location(cli, api):
    fault = {"pointer": "/manifests/0/spec/replicas", "detail": "an integer is needed"}
    api.problem("POST", "/v1/placements", 422, "InvalidInput", errors=[fault])
    result = cli("plan", "-f", "-", stdin=MANIFESTS)
    assert result.exit_code == 2
    assert "standard input:6 Deployment web spec.replicas: an integer is needed" in result.stderr
