"""The command line reaches every route of the API's document but those that only machines call."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import httpx
import pytest
import stamina
from typer.testing import CliRunner

from stockyard_client.cli.app import app
from stockyard_client.cli.context import Context

ROOT = Path(__file__).parents[3]
DOCUMENT = json.loads((ROOT / "openapi.json").read_text())
CLUSTER, POOL = ("--cluster", "demo"), ("base", "--cluster", "demo")
COMMANDS: dict[str, tuple[str, ...]] = {
    "ApplyManifests": ("apply", "-f", "FILE"),
    "ListAudit": ("audit", "list"),
    "GetAllowedNodeTypes": ("type", "allowed"),
    "SetAllowedNodeTypes": ("type", "allow", "--all"),
    "ListCloudAccounts": ("account", "list"),
    "RegisterCloudAccount": ("account", "create", "--name", "main", "--role-arn", "arn"),
    "DeleteCloudAccount": ("account", "delete", "1"),
    "GetCloudAccount": ("account", "get", "1"),
    "ChangeCloudAccount": ("account", "update", "1", "--set", "name=x"),
    "GetCloudAccountTemplate": ("account", "template", "1"),
    "VerifyCloudAccount": ("account", "verify", "1"),
    "ListClusterProfiles": ("profile", "list"),
    "CreateClusterProfile": ("profile", "create", "-f", "FILE"),
    "DeleteClusterProfile": ("profile", "delete", "base"),
    "GetClusterProfile": ("profile", "get", "base"),
    "AddClusterProfileVersion": ("profile", "create", "-f", "FILE"),
    "ListClusters": ("cluster", "list"),
    "CreateCluster": ("cluster", "create", "-f", "FILE"),
    "DeleteCluster": ("cluster", "delete", "demo"),
    "GetCluster": ("cluster", "get", "demo"),
    "ChangeCluster": ("cluster", "update", "demo", "--set", "description=x"),
    "GetAgent": ("cluster", "agent", "demo"),
    "CancelChange": ("cluster", "cancel", "demo"),
    "GetCertificates": ("cluster", "certificates", "demo"),
    "RenewCertificates": ("cluster", "certificates", "demo", "--renew"),
    "ReadClientSecret": ("cluster", "client-secret", "demo"),
    "GetCosts": ("cost",),
    "GetMetrics": ("metrics",),
    "GetDisruption": ("disruption", "show", "demo"),
    "SetDisruption": ("disruption", "pause", "demo"),
    "PreviewDisruption": ("disruption", "preview", "demo"),
    "ReadKubeconfig": ("cluster", "kubeconfig", "demo", "--print"),
    "ListOsImages": ("os-image", "list"),
    "CreateOsImage": ("os-image", "create", "noble", "--url", "https://a/b"),
    "DeleteOsImage": ("os-image", "delete", "noble"),
    "GetOsImage": ("os-image", "get", "noble"),
    "ChangeOsImage": ("os-image", "update", "noble", "--description", "x"),
    "ListPools": ("pool", "list", *CLUSTER),
    "CreatePool": ("pool", "create", "--name", "base", *CLUSTER),
    "DeletePool": ("pool", "delete", *POOL),
    "GetPool": ("pool", "get", *POOL),
    "ChangePool": ("pool", "update", *POOL, "--floor", "1"),
    "GetProfilesOfCluster": ("cluster", "profiles", "demo"),
    "PutProfilesOfCluster": ("cluster", "profiles", "demo", "-f", "FILE"),
    "GetRepave": ("cluster", "repave", "demo"),
    "DecideRepave": ("cluster", "repave", "demo", "--approve"),
    "StartRepave": ("cluster", "repave", "demo", "--start"),
    "RestoreCluster": ("cluster", "restore", "demo", "--snapshot", "latest"),
    "ResumeCluster": ("cluster", "resume", "demo"),
    "GetUsage": ("cluster", "usage", "demo"),
    "ListSnapshots": ("cluster", "snapshots", "demo"),
    "MakeClusterToken": ("token", *CLUSTER),
    "GetNetwork": ("cluster", "network", "demo"),
    "GetClusterTree": ("cluster", "tree", "demo"),
    "GetDisruptionSwitch": ("disruption", "show"),
    "SetDisruptionSwitch": ("disruption", "pause", "--all"),
    "ListSetMembers": ("set", "members"),
    "ListSites": ("site", "list"),
    "CreateSite": ("site", "create", "room"),
    "DeleteSite": ("site", "delete", "room"),
    "GetSite": ("site", "get", "room"),
    "RenewSiteCredentials": ("site", "credentials", "room", "-d", "FILE"),
    "GetSiteManifest": ("site", "manifest", "room"),
    "GetEventAccounts": ("event-account", "get"),
    "SetEventAccounts": ("event-account", "set", "111122223333"),
    "ListEvents": ("events",),
    "Health": ("health",),
    "ListNodeClaims": ("claim", "list"),
    "CreateNodeClaim": ("claim", "create", *CLUSTER),
    "DeleteNodeClaim": ("claim", "delete", "c1"),
    "GetNodeClaim": ("claim", "get", "c1"),
    "ChangeNodeClaim": ("claim", "update", "c1", "--set", "display_name=x"),
    "ExplainNodeClaim": ("claim", "explain", "c1"),
    "PowerNodeClaim": ("claim", "power", "c1", "off"),
    "ListNodeEnvironments": ("environment", "list"),
    "GetNodeEnvironment": ("environment", "get", "nen_1"),
    "ListNodeProviders": ("provider", "list"),
    "CreateNodeProvider": ("provider", "create", "-f", "FILE"),
    "DeleteNodeProvider": ("provider", "delete", "lab"),
    "GetNodeProvider": ("provider", "get", "lab"),
    "ChangeNodeProvider": ("provider", "update", "lab", "--set", "display_name=x"),
    "ListNodeTypes": ("type", "list"),
    "GetNodeType": ("type", "get", "lab.small"),
    "ListOperations": ("operation", "list"),
    "GetOperation": ("operation", "get", "op_1"),
    "GetOperationLog": ("logs", "op_1"),
    "PlanPlacements": ("plan", "-f", "FILE"),
    "ListPrices": ("price", "list"),
    "ListQuotas": ("quota", "list"),
    "SetQuota": ("quota", "set", "clusters", "3"),
    "SimulateDisruption": ("simulate", "-f", "FILE", "--policy", "None"),
}
"""One way to each route; ``FILE`` is a document of the right kind."""
MACHINES = {
    "GetContract": "the document itself, for programs and for the page that shows it",
    "GetReference": "a page for browsers",
    "ReportBootOfControlPlane": "a machine tells how its first boot goes",
    "ReportBootOfNode": "a machine tells how its first boot goes",
    "BootstrapMachine": "a machine without a token proves itself",
    **dict.fromkeys(
        (
            "BeginRun",
            "PostRunLog",
            "EndRun",
            "GetRunState",
            "PutRunState",
            "DeleteRunState",
            "LockRunState",
            "UnlockRunState",
        ),
        "the program of a run asks by the run's own token",
    ),
    **dict.fromkeys(
        (
            "BeginRun",
            "PostRunLog",
            "EndRun",
            "GetRunState",
            "PutRunState",
            "DeleteRunState",
            "LockRunState",
            "UnlockRunState",
        ),
        "the program of a run asks by the run's own token",
    ),
    "RefreshKubeconfigSecrets": "the agent keeps Secrets with kubeconfigs in its cluster",
    "GetMirror": "the agent mirrors pools into its cluster",
    "PostObservations": "the agent tells what it sees",
    "PostPendingPods": "the agent tells which pods wait",
    "ReportReady": "a control plane tells that it is ready",
    "ReportSnapshot": "a member tells how a snapshot went",
    "ReportInterruption": "a machine tells that its cloud takes it back",
    "JoinMachine": "a machine asks how to join",
    "ExchangeWithSite": "the connector of a site brings answers and is given requests",
    "ReportMember": "a member of a control plane has joined",
}
"""Routes that only machines and agents call, with proofs that a person has not."""
FILES = {
    "ApplyManifests": {"apiVersion": "v1", "kind": "NodeClaim", "metadata": {"name": "c1"}},
    "CreateClusterProfile": {"name": "new", "packs": []},
    "AddClusterProfileVersion": {"name": "base", "packs": []},
    "CreateCluster": {"name": "demo", "settings": {}},
    "CreateNodeProvider": {"name": "lab", "kind": "simulated"},
    "PlanPlacements": {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}},
    "PutProfilesOfCluster": {"profiles": []},
    "SimulateDisruption": {"events": []},
}
ANSWER: dict[str, Any] = {
    "id": "1", "name": "base", "kind": "k", "subject": "s", "status": "ready", "phase": "Available", "version": "1",
    "phases": [], "provider": "aws", "claim": "c1", "type": "t", "state": "idle", "paused": False, "usd": 1.0,
    "client_id": "c", "client_secret": "s", "interval_hours": 24, "keep": 7, "place": "p", "failure": None,
    "region": "r", "limit": 1, "used": 0, "results": [], "policy": "p", "hours": 1.0,
    "runs": [{"name": "console"}], "run": "console",
    "kubeconfig": json.dumps({"clusters": [{"cluster": {}}], "users": [{"user": {}}]}),
}  # fmt: skip
"""A bit of every record: what a command makes of it is not looked at here."""


def operations() -> dict[str, tuple[str, str]]:
    """Method and path of each route, by its name in the document."""
    return {
        operation["operationId"]: (method.upper(), path)
        for path, methods in DOCUMENT["paths"].items()
        for method, operation in methods.items()
        if method in {"get", "post", "put", "patch", "delete"}
    }


def sent_by(arguments: tuple[str, ...], environment: dict[str, str]) -> list[tuple[str, str]]:
    requests: list[tuple[str, str]] = []

    def handle(request: httpx.Request) -> httpx.Response:
        requests.append((request.method, request.url.path))
        items = [{**ANSWER, "name": name} for name in ("base", "clusters")]
        return httpx.Response(200, json={**ANSWER, "items": items, "next_page_token": None}, headers={"ETag": '"1"'})

    context = Context(environment=environment, transport=httpx.MockTransport(handle), terminal=False)
    CliRunner().invoke(app, list(arguments), obj=context, prog_name="stockyard")
    return requests


def test_each_route_has_a_command_or_a_reason():
    assert sorted(operations()) == sorted({**COMMANDS, **MACHINES})


@pytest.fixture(autouse=True)
def _no_backoff():
    with stamina.set_testing(True, attempts=1):
        yield


def test_each_command_sends_its_request(tmp_path):
    environment = {"STOCKYARD_URL": "https://api.test", "STOCKYARD_TOKEN": "t", "HOME": str(tmp_path)}
    routes = operations()
    lost = []
    for name, arguments in COMMANDS.items():
        file = tmp_path / f"{name}.json"
        file.write_text(json.dumps(FILES.get(name, {})))
        method, path = routes[name]
        pattern = re.compile(re.sub(r"\{\w+\}", "[^/]+", path))
        words = tuple(str(file) if word == "FILE" else word for word in arguments)
        if not any(sent[0] == method and pattern.fullmatch(sent[1]) for sent in sent_by(words, environment)):
            lost.append(name)
    assert lost == []
