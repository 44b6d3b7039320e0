"""Texts of ``describe``, ``tree`` and ``explain``."""

from __future__ import annotations

import json

import pytest

EVENT = {"id": "evt_1", "subject": "clu_01", "time": "1970-01-01T00:00:00.000Z", "reason": "Ready", "message": "It is."}
CLAIM = {
    "id": "ncl_01",
    "name": "w-1",
    "cluster": "clu_01",
    "type": "sim.small",
    "phase": "Pending",
    "reason": "NoNodeType",
    "message": "Nothing fits.",
    "placement": {"capacity_type": "spot", "zones": ["zone-a"], "usd_hour": 0.1},
    "labels": {"stockyard.dev/pool": "workers"},
    "resources": {"cpu": "2"},
    "requirements": [{"key": "zone", "operator": "In", "values": ["a", "b"]}],
    "version": 1,
}
POOL = {
    "name": "workers",
    "kind": "dynamic",
    "nodes": {"desired": 2, "claims": 1, "available": 0, "usd_hour": 0.1},
    "conditions": [{"type": "Ready", "status": "False", "reason": "Lacking", "message": "0 of 2 nodes."}],
}
LINE = {"kind": "nodes", "type": "sim.small", "quantity": 1, "hour": 0.1}
COSTS = {"month": "1970-01", "hour": 0.1, "month_rate": 73.0, "spent": 1.5, "lines": [LINE]}
FAILURE = {
    "error_type": "ClusterCouldNotBeDeployed",
    "phase": "network",
    "cause": "We currently do not have sufficient t3.xlarge capacity in the zones that were asked for.",
    "hint": "Another instance type, zone or subnet may have some.",
    "console": "Reached target\nno container runtime",
}


def listed(*items):
    return {"items": list(items), "next_page_token": None}


@pytest.fixture
def world(api, cluster_document, operation_document):
    """A cluster with a pool, a claim that waits, and an operation that runs."""
    extra = {"kubernetes_version": "1.35", "tags": {"team": "a"}}
    api.answer("GET", "/v1/clusters/demo", {**cluster_document(), **extra})
    api.answer(
        "GET", "/v1/operations/op_01", operation_document("running", "succeeded", "running", subject_name="demo")
    )
    api.answer("GET", "/v1/clusters/clu_01/pools", listed(POOL))
    api.answer("GET", "/v1/node-claims", listed(CLAIM))
    api.answer("GET", "/v1/node-claims/w-1", CLAIM)
    api.answer("GET", "/v1/costs", COSTS)
    api.answer("GET", "/v1/events", listed(*[{**EVENT, "id": f"evt_{number}"} for number in range(7)]))
    return api


def test_describe_tells_what_somebody_opened_it_for(cli, world):
    result = cli("cluster", "describe", "demo")
    assert result.exit_code == 0, result.stderr
    text = [" ".join(line.split()) for line in result.stdout.splitlines()]
    for line in (
        "cluster demo preparing A demo",
        "network",
        "Kubernetes 1.35 (k8s)",
        "Where aws, account 1, us-east-1",
        "Price 0.1000 USD/hour, 73.00 USD/month; 1970-01 so far 1.50 USD",
        "Tags team=a",
        "Conditions 0 of 1 hold",
        "False Ready",
        "Provisioning: Network is made",
        "workers dynamic Lacking 0/1 2 - 0.1000 - 0 of 2 nodes.",
        "Node claims 0 of 1 are available",
        "w-1 Pending small spot zone-a 0.1000 - NoNodeType: Nothing fits.",
        "Last operation create_cluster",
        "running 33% op_01",
        "● network",
        "stockyard operation wait op_01",
    ):
        assert line in text
    assert sum(line.endswith("Ready: It is.") for line in text) == 5
    assert "✓ account" not in text


@pytest.mark.parametrize(
    ("settings", "line"),
    [
        ({"control_plane_size": "md", "instance_type": "vantage-k8s-control-md"}, "1 member, vantage-k8s-control-md"),
        ({"control_plane_size": 1, "control_plane_instance_type": "t3.large"}, "1 member, t3.large"),
        (
            {
                "control_plane_size": 3,
                "control_plane_instance_type": "t3.large",
                "autoscaler_node_groups": [{"name": "master", "role": "control"}],
            },
            "3 members, t3.large, group master",
        ),
        ({"node_groups": []}, None),
    ],
)
def test_describe_says_what_a_control_plane_stands_on(cli, world, cluster_document, settings, line):
    world._answers[("GET", "/v1/clusters/demo")] = []
    world.answer("GET", "/v1/clusters/demo", {**cluster_document(), "settings": settings, "driver": "eks"})
    lines = [" ".join(row.split()) for row in cli("cluster", "describe", "demo").stdout.splitlines()]
    assert [row for row in lines if row.startswith("Control plane")] == ([f"Control plane {line}"] if line else [])
    assert "Kubernetes (k8s, driver eks)" in lines


def test_describe_of_a_failed_cluster_cuts_nothing(cli, world, cluster_document, operation_document):
    failed = cluster_document(status="failed", reason="Failed", message=FAILURE["cause"])
    world._answers[("GET", "/v1/clusters/demo")] = []
    world._answers[("GET", "/v1/operations/op_01")] = []
    world.answer("GET", "/v1/clusters/demo", {**failed, "kept_until": "2026-01-31T13:00:00.000Z"})
    operation = operation_document("failed", "succeeded", "failed")
    world.answer("GET", "/v1/operations/op_01", {**operation, "error": FAILURE})
    result = cli("cluster", "describe", "demo")
    assert result.exit_code == 0, result.stderr
    for text in (FAILURE["cause"], FAILURE["hint"], FAILURE["console"], "2026-01-31T13:00:00.000Z"):
        assert text in result.stdout
    commands = result.stdout.partition("Next\n")[2].splitlines()
    assert [line.split("#")[0].strip() for line in commands] == [
        "stockyard cluster resume demo --wait",
        "stockyard cluster resume demo --with FILE --wait",
        "stockyard cluster delete demo",
    ]


def test_describe_does_without_a_forgotten_operation_and_without_costs(cli, world):
    world._answers[("GET", "/v1/operations/op_01")] = []
    world._answers[("GET", "/v1/costs")] = []
    result = cli("cluster", "describe", "demo")
    assert result.exit_code == 0, result.stderr
    assert "Last operation" not in result.stdout
    assert "Price" not in result.stdout


def test_describe_of_a_claim(cli, world, cluster_document):
    world.answer("GET", "/v1/clusters", listed(cluster_document()))
    result = cli("claim", "describe", "w-1")
    assert result.exit_code == 0, result.stderr
    text = [" ".join(line.split()) for line in result.stdout.splitlines()]
    for line in (
        "claim w-1 Pending NoNodeType",
        "Nothing fits.",
        "Cluster demo",
        "Pool workers",
        "Type small of provider sim",
        "Price 0.1000 USD/hour, 73.00 USD/month",
        "Asked cpu=2; zone In a,b",
        "stockyard claim explain w-1",
    ):
        assert line in text
    document = json.loads(cli("claim", "describe", "w-1", "-o", "json").stdout)
    assert document == {"claim": CLAIM, "operation": None}
    assert cli("claim", "describe", "w-1", "-o", "name").stdout == "w-1\n"


def test_claims_of_pools_are_listed_with_the_name_of_their_cluster(cli, world, cluster_document):
    world.answer("GET", "/v1/clusters", listed(cluster_document()))
    assert cli("claim", "list").stdout.splitlines()[1].split()[:4] == ["w-1", "Pending", "demo", "small"]
    assert json.loads(cli("claim", "list", "-o", "json").stdout) == [CLAIM]


TREE = {
    "kind": "cluster",
    "name": "demo",
    "status": "ready",
    "usd_hour": 0.1,
    "children": [
        {
            "kind": "operation",
            "name": "create_cluster",
            "status": "succeeded",
            "children": [{"kind": "phase", "name": "network", "status": "succeeded"}],
        },
        {"kind": "security_group", "name": "node", "id": "sg-1", "status": "made", "message": "us-east-1"},
        {"kind": "security_group", "name": "api", "id": "sg-2", "status": "made", "message": "us-east-1"},
        {"kind": "vpc", "name": "main", "id": "vpc-1", "status": "made", "message": "us-east-1"},
        {
            "kind": "pool",
            "name": "workers",
            "status": "Ready",
            "type": "dynamic",
            "children": [
                {"kind": "node-claim", "name": "w-1", "status": "Available", "type": "sim.s", "usd_hour": 0.1}
            ],
        },
    ],
}


def test_the_tree_folds_what_is_well(cli, api):
    api.answer("GET", "/v1/clusters/demo/tree", TREE)
    assert cli("cluster", "tree", "demo").stdout.splitlines() == [
        "cluster demo  ready  0.1000 USD/hour",
        "├── operation create_cluster  succeeded",
        "├── resources 3",
        "│   ├── security group x2  sg-1, sg-2",
        "│   └── vpc  vpc-1",
        "└── pool workers  Ready  dynamic",
        "    └── claim w-1  Available  sim.s  0.1000 USD/hour",
    ]
    everything = cli("cluster", "tree", "demo", "--all").stdout.splitlines()
    assert "│   └── phase network  succeeded" in everything
    assert "│   ├── security group api  made  sg-2" in everything
    assert json.loads(cli("cluster", "tree", "demo", "-o", "json").stdout) == TREE


def candidate(node_type, usd_hour=None, rule=None, message=""):
    fitting = {"capacity_type": "spot", "usd_hour": usd_hour, "cost": 1} if rule is None else {}
    return {"type": node_type, "rule": rule, "message": message, **fitting}


EXPLANATION = {
    "claim": "ncl_01",
    "decided_at": "1970-01-01T00:00:00.000Z",
    "chosen": {"type": "sim.b", "capacity_type": "spot", "zones": ["a", "b"], "usd_hour": 0.02, "cost": 28},
    "candidates": [
        candidate("sim.a", 0.01),
        candidate("sim.b", 0.02),
        candidate("sim.c", 0.03),
        candidate("ec2.d", rule="Full", message="5 of 5 nodes are claimed"),
        *[candidate(f"ec2.{number}", rule="Resources", message="cpu: 2 asked, 1 allocatable") for number in range(5)],
    ],
    "considered": {"Full": 1, "Resources": 5},
    "message": "",
}


def test_explain_says_the_verdict_first_and_groups_the_rest(cli, api):
    api.answer("GET", "/v1/node-claims/one/explanation", EXPLANATION)
    result = cli("claim", "explain", "one", "--limit", "2")
    assert result.exit_code == 0, result.stderr
    lines = [" ".join(line.split()) for line in result.stdout.splitlines()]
    assert lines == [
        "Placed on sim.b (spot, a, b) 0s ago: 0.0200 USD /hour, 14.60 USD /month.",
        "",
        "3 types fit",
        "TYPE CAPACITY USD/HOUR DEARER BY",
        "sim.b spot 0.0200 100% chosen",
        "sim.a spot 0.0100 -",
        "and 1 more that fit: -o wide, or --limit",
        "",
        "6 types are ruled out",
        "TYPES RULED OUT BY FOR EXAMPLE BECAUSE",
        "5 Resources ec2.0, ec2.1, ec2.2 and 2 more cpu: 2 asked, 1 allocatable",
        "1 Full ec2.d 5 of 5 nodes are claimed",
    ]
    assert [line for line in result.stdout.splitlines() if line != line.rstrip()] == []
    wide = cli("claim", "explain", "one", "-o", "wide").stdout.splitlines()
    assert len(wide) == 2 + len(EXPLANATION["candidates"])
    assert json.loads(cli("claim", "explain", "one", "-o", "json").stdout) == EXPLANATION


def test_explain_of_a_claim_that_names_its_type_counts_all_that_were_looked_at(cli, api):
    candidates = [candidate("sim.a", 0.01), candidate("sim.b", rule="Requirement", message="it is sim.b")]
    document = {**EXPLANATION, "candidates": candidates, "considered": {"Fits": 1, "Requirement": 1304}}
    document["chosen"] = {**EXPLANATION["chosen"], "type": "sim.a"}
    api.answer("GET", "/v1/node-claims/one/explanation", document)
    lines = [" ".join(line.split()) for line in cli("claim", "explain", "one").stdout.splitlines()]
    assert {"1 type fits", "1304 types are ruled out", "1304 Requirement sim.b and 1303 more it is sim.b"} <= set(lines)


def test_explain_tells_what_the_node_is_last(cli, api):
    node = {
        "name": "n1",
        "reported": True,
        "unschedulable_reason": "it is not ready",
        "taints": ["own=a:NoSchedule"],
        "free": {},
    }
    api.answer("GET", "/v1/node-claims/one/explanation", {**EXPLANATION, "node": node})
    text = "Node n1, as its cluster reports it: nothing free. Taints: own=a:NoSchedule."
    last_lines = cli("claim", "explain", "one").stdout.splitlines()[-2:]
    assert last_lines == ["", f"{text} No pod goes there: it is not ready."]
    promised = {
        **node,
        "reported": False,
        "unschedulable_reason": None,
        "taints": [],
        "free": {"cpu": "2", "pods": "110"},
    }
    api.answer("GET", "/v1/node-claims/two/explanation", {**EXPLANATION, "node": promised})
    last = cli("claim", "explain", "two").stdout.splitlines()[-1]
    assert last == "Node n1, as it is expected to be: 2 cpu, 110 pods free."


def test_explain_of_a_claim_without_a_type(cli, api):
    api.answer("GET", "/v1/node-claims/two/explanation", {"claim": "n", "message": "No cluster.", "candidates": []})
    assert cli("claim", "explain", "two").stdout == "No cluster.\n"


def test_describe_of_a_pool_a_provider_a_type_and_an_account(cli, world, cluster_document, operation_document):
    world.answer("GET", "/v1/clusters/demo/pools/workers", {**POOL, "requirements": CLAIM["requirements"]})
    lines = [
        " ".join(line.split()) for line in cli("pool", "describe", "workers", "--cluster", "demo").stdout.splitlines()
    ]
    for line in (
        "pool workers Lacking dynamic, of cluster demo",
        "Nodes 0 available, 1 asked for, at least 2",
        "Price 0.1000 USD/hour, 73.00 USD/month",
        "Requirements zone In a,b",
        "Lacking: 0 of 2 nodes.",
        "w-1 Pending small spot zone-a 0.1000 - NoNodeType: Nothing fits.",
    ):
        assert line in lines
    assert dict(world.requests[-1].url.params) == {"cluster": "clu_01", "label": "stockyard.dev/pool=workers"}
    provider = {"id": "npr_1", "name": "sim", "kind": "simulated", "phase": "Pending", "reason": "NotBuilt"}
    node_type = {"id": "ntp_1", "name": "sim.small", "phase": "Available", "usd_hour": 0.1, "resources": {"cpu": "2"}}
    warning = {"pointer": "/spec/nodeTypes/0", "detail": "It has no cpu."}
    world.answer("GET", "/v1/node-providers/sim", {**provider, "message": "Not yet.", "warnings": [warning]})
    world.answer("GET", "/v1/node-types", listed(node_type, {**node_type, "usd_hour": 0.3, "phase": "Pending"}))
    lines = [" ".join(line.split()) for line in cli("provider", "describe", "sim").stdout.splitlines()]
    assert "Warning: spec.nodeTypes[0]: It has no cpu." in lines
    for line in (
        "provider sim Pending simulated",
        "NotBuilt: Not yet.",
        "Types 2, of which 1 are available",
        "Prices 0.1000 to 0.3000 USD/hour",
        "Claims 1 Pending",
    ):
        assert line in lines
    offerings = [{"capacity_type": "spot", "zones": ["a", "b"], "usd_hour": 0.05}]
    world.answer("GET", "/v1/node-types/sim.small", {**node_type, "offerings": offerings})
    lines = [" ".join(line.split()) for line in cli("type", "describe", "sim.small").stdout.splitlines()]
    assert {"type sim.small Available", "Resources cpu=2", "spot 0.0500 36.50 a, b"} <= set(lines)
    world.answer("GET", "/v1/clusters", listed(cluster_document(), cluster_document(name="x", cloud_account_id=2)))
    record = {"id": 1, "provider": "aws", "name": "prod", "verification": "failed", "verification_message": "No role."}
    world.answer("GET", "/v1/cloud-accounts/1", {**record, "attributes": {"role_arn": "arn:r", "region": None}})
    lines = [" ".join(line.split()) for line in cli("account", "describe", "1").stdout.splitlines()]
    assert {"account 1 failed prod", "No role.", "Role ARN arn:r", "stockyard account verify 1"} <= set(lines)
    assert [line.split()[0] for line in lines if line.startswith(("demo", "x "))] == ["demo"]


def test_describe_of_an_operation(cli, world):
    lines = [" ".join(line.split()) for line in cli("operation", "describe", "op_01").stdout.splitlines()]
    assert {"operation op_01 running create_cluster", "✓ account", "● network", "○ control_plane"} <= set(lines)
    assert {"stockyard operation wait op_01", "Subject demo (clu_01)"} <= set(lines)
    assert cli("operation", "get", "op_01").stdout.splitlines()[1].split()[2] == "demo"
    assert json.loads(cli("operation", "describe", "op_01", "-o", "json").stdout)["id"] == "op_01"


def test_explain_counts_as_the_api_counts(cli, api):
    """The groups name only a part of the types."""
    groups = [
        {"rule": "Fits", "message": "It fits.", "count": 300, "types": ["sim.a", "sim.c"]},
        {"rule": "Resources", "message": "cpu: 2 asked", "count": 500, "types": ["ec2.0", "ec2.1"]},
    ]
    api.answer("GET", "/v1/node-claims/one/explanation", {**EXPLANATION, "groups": groups})
    lines = [" ".join(line.split()) for line in cli("claim", "explain", "one").stdout.splitlines()]
    assert {"301 types fit", "and 298 more that fit: -o wide, or --limit", "500 types are ruled out"} <= set(lines)
    assert "500 Resources ec2.0, ec2.1 and 498 more cpu: 2 asked" in lines


def test_explain_says_that_the_provider_chose(cli, api):
    options = [{"type": "sim.a"}, {"type": "sim.b"}]
    api.answer("GET", "/v1/node-claims/one/explanation", {**EXPLANATION, "options": options})
    sentence = cli("claim", "explain", "one").stdout.splitlines()[0]
    assert sentence.endswith("Of 2 types that the provider was given it took that one.")
    api.answer("GET", "/v1/node-claims/two/explanation", {**EXPLANATION, "options": options[1:]})
    assert "the provider was given" not in cli("claim", "explain", "two").stdout
