"""Claims by HTTP on the local cloud: their node types, their times, and many schedulers at once."""

from __future__ import annotations

import gzip
import json
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from typer.testing import CliRunner

from benchmarks.node_claims import CLIENTS, Claims, raise_quota
from local.testing.serving import http
from stockyard_client.cli.app import app
from stockyard_client.cli.context import Context

if TYPE_CHECKING:
    from local.testing.serving import Served

pytestmark = pytest.mark.timeout(3600)

SCHEDULERS = 16
UNANSWERED = "StoreUnavailable"
"""The error of a scheduler when the table did not answer in time."""
PASSES = 3
"""A claim whose slot was taken in each attempt of a pass waits for the next one, which the schedule begins."""
BATCH = 10
"""The number of rounds whose claims are created together."""

Record = Callable[[str, object], None]


def _type(name: str, usd: float, limit: int | None = None) -> dict[str, Any]:
    limited = {} if limit is None else {"maxCapacity": limit}
    return {"name": name, "resources": {"cpu": "2", "memory": "4Gi"}, "usdPerHour": usd, **limited}


@pytest.fixture(scope="module")
def cluster(
    served: Served, body: Callable[..., dict[str, Any]], remove: Callable[[str], dict[str, Any]]
) -> Iterator[str]:
    """The name of a ready cluster. Deleting it deletes its remaining claims too."""
    raise_quota(served)
    created = served.call("POST", "/v1/clusters", body(name="with-nodes")).body
    assert served.operation(created["operation_id"])["status"] == "succeeded"
    yield "with-nodes"
    assert remove(created["id"])["status"] == "succeeded"


@pytest.fixture
def stockyard(served: Served, tmp_path: Path) -> Callable[..., str]:
    """The command line against the local cloud: standard output of a command that has to succeed."""

    def run(*arguments: str, document: Any = None) -> str:
        variables = {"STOCKYARD_URL": served.environment["STOCKYARD_URL"], "HOME": str(tmp_path)}
        variables["STOCKYARD_TOKEN"] = served.environment["STOCKYARD_TOKEN"]
        text = None if document is None else json.dumps(document)
        result = CliRunner().invoke(app, list(arguments), obj=Context(environment=variables), input=text)
        assert result.exit_code == 0, result.output
        return result.stdout

    return run


@pytest.fixture(scope="module")
def claims(served: Served, cluster: str) -> Claims:
    """The claims of the cluster."""
    return Claims(served, cluster)


def test_pools_and_plans_of_pods_by_the_command_line(
    claims: Claims, cluster: str, stockyard: Callable[..., str]
) -> None:
    claims.provider("yard", {**_type("box", 0.05), "properties": {"example.com/yard": "box"}})
    of_cluster = ("--cluster", cluster)
    require = ("--require", "example.com/yard=box")
    stockyard("pool", "create", *of_cluster, "--name", "fixed", "--quantity", "2", *require, "--wait")
    stockyard("pool", "create", *of_cluster, "--name", "burst", "--limit", "usd_hour=0.1", *require, "--wait")
    assert [line.split()[:5] for line in stockyard("pool", "list", *of_cluster).splitlines()[1:]] == [
        ["burst", "dynamic", "Ready", "0/0", "0"],
        ["fixed", "static", "Ready", "2/2", "2"],
        ["workers", "dynamic", "Ready", "0/0", "0"],
    ]
    tree = json.loads(stockyard("cluster", "describe", cluster, "-o", "json"))
    pools = {child["name"]: child for child in tree["children"] if child["kind"] == "pool"}
    assert (pools["fixed"]["usd_hour"], len(pools["fixed"]["children"])) == (0.1, 2)
    container = {"name": "a", "resources": {"requests": {"cpu": "1500m", "memory": "1Gi"}}}
    template = {"spec": {"containers": [container], "nodeSelector": {"example.com/yard": "box"}}}
    pods = {"kind": "Deployment", "metadata": {"name": "web"}, "spec": {"replicas": 5, "template": template}}
    limited = json.loads(stockyard("plan", *of_cluster, "-f", "-", "-o", "json", document=pods))
    assert [node["type"] for node in limited["nodes"]] == ["yard.box"] * 2
    ((item,), reasons) = (limited["left_out"], limited["left_out"][0]["reasons"])
    rules = {reason["pool"]: (reason["rule"], reason["subject"]) for reason in reasons}
    # Two fit on the nodes that are there, once the cluster's agent has told what runs on them.
    assert item["count"] in (1, 2, 3)
    assert rules["burst"] == ("Limit", "money")
    everywhere = json.loads(stockyard("plan", "-f", "-", "-o", "json", document=pods))
    assert (len(everywhere["nodes"]), everywhere["left_out"], everywhere["usd_hour"]) == (5, [], 0.25)
    assert everywhere["bound"] <= 0.25
    assert "2/2" not in stockyard("pool", "scale", "fixed", *of_cluster, "--quantity", "1", "--wait")
    for name in ("fixed", "burst"):
        assert stockyard("pool", "delete", name, *of_cluster, "--wait") == ""
    assert stockyard("pool", "list", *of_cluster, "-o", "name") == "workers\n"


def test_claims_get_the_cheapest_type_then_the_next(served: Served, claims: Claims) -> None:
    claims.provider("next-cheapest", _type("n", 0.02))
    claims.provider("cheapest", _type("c", 0.01, 2))
    created = [claims.make(f"land-{i}") for i in range(3)]
    for claim in created:
        assert served.operation(claim["operation_id"])["status"] == "succeeded"
    claims_by_name = {claim["name"]: claim for claim in claims.named("land-")}
    assert [claims_by_name[f"land-{i}"]["type"] for i in range(3)] == ["cheapest.c", "cheapest.c", "next-cheapest.n"]
    explanation = served.call("GET", "/v1/node-claims/land-2/explanation").body
    candidates = {
        candidate["type"]: (candidate["usd_hour"], candidate["rule"]) for candidate in explanation["candidates"]
    }
    assert (candidates["cheapest.c"], candidates["next-cheapest.n"]) == ((0.01, "Full"), (0.02, None))
    capacity = served.call("GET", "/v1/node-types/cheapest.c").body["capacity"]
    assert (capacity["total"], capacity["claimed"], capacity["available"]) == (2, 2, 0)
    claims.remove("land-")
    assert served.call("GET", "/v1/node-types/cheapest.c").body["capacity"]["claimed"] == 0


def test_observations_are_accepted_from_the_clusters_own_client(served: Served, cluster: str) -> None:
    """Compressed observations are accepted too; other callers are refused."""
    secret = served.call("GET", f"/v1/clusters/{cluster}/client-secret").body
    own = served.client_token(secret["client_id"], secret["client_secret"])
    post = {
        "sequence": 1,
        "observed_at": "2026-01-02T03:04:05.678Z",
        "agent_version": "1",
        "kubernetes_version": "v1.34.1",
        "ca_hash": "sha256:" + "0" * 64,
        "nodes": [],
        "results": [],
    }
    path = f"/v1/clusters/{cluster}/observations"
    answer = served.call("POST", path, post, token=own)
    assert (answer.status, answer.body["commands"]) == (200, [])
    assert answer.body["interval_seconds"] >= 1
    url = served.environment["STOCKYARD_URL"] + path
    for content in (
        {"Content-Type": "application/json", "Content-Encoding": "gzip"},
        {"Content-Type": "application/gzip"},
    ):
        headers = {"Authorization": f"Bearer {own}", **content}
        assert http("POST", url, gzip.compress(json.dumps(post).encode()), headers).status == 200
        assert http("POST", url, b"not gzip", headers).status == 400
    assert served.call("POST", path, post).status == 403
    assert served.call("POST", path, {**post, "sequence": -1}, token=own).status == 422
    # The cluster's agent reports its pods by itself. One that says less than it has said is asked for all of it.
    pods = {"sequence": 1, "observed_at": post["observed_at"], "agent_version": "1", "groups": {}, "pending": {}}
    path = f"/v1/clusters/{cluster}/pending-pods"

    def resync() -> bool:
        answer = served.call("POST", path, pods, token=own)
        assert answer.status in (200, 429), answer.text
        return bool(answer.status == 200 and answer.body["resync"] and answer.body["sequence"] > 1)

    served.wait("a report of the cluster's agent", resync, 60)
    assert served.call("POST", path, pods).status == 403


@pytest.mark.timeout(10800)
def test_all_measured_claims_get_a_node(
    claims: Claims, soaking: bool, alone: Callable[[], AbstractContextManager[None]], record_property: Record
) -> None:
    """No claim is lost. The times are only recorded: ``benchmarks/node_claims.py`` fails when they are too long."""
    count, burst = (1000, 100) if soaking else (8, 4)
    with alone():
        figures = claims.measured(count, burst)
    for name, figure in {**figures, **claims.removed()}.items():
        record_property(f"figure:{name}", figure)


def test_many_schedulers_at_once_bind_each_claim_once(
    served: Served, claims: Claims, soaking: bool, record_property: Record
) -> None:
    """In each round some slots become free, more claims wait for them, and up to sixteen schedulers start together.

    In every round as many claims are bound as there are slots, no claim is lost, and the slot counter agrees. At the
    end no claim was ever bound twice.
    """
    rounds, batch, slots, schedulers = (200, BATCH, 3, SCHEDULERS) if soaking else (2, 2, 3, 4)
    claims.provider("contested", _type("c", 0.0001, 0))
    last = _last_event(served)
    bound: list[str] = []
    for first in range(0, rounds, batch):
        prefix = f"round-{first}-"
        with ThreadPoolExecutor(CLIENTS) as pool:
            names = [f"{prefix}{index}" for index in range(batch * (slots + 1))]
            claim_ids = set(pool.map(lambda n: str(claims.make(n, provider="contested")["id"]), names))
        for number in range(1, batch + 1):
            _slots(served, number * slots)
            for _minute in range(PASSES):
                _pass(served, schedulers)
                if _bound(claims, prefix) >= number * slots:
                    break
            bound_now = _placed(claims, prefix, claim_ids, number * slots)
        bound += bound_now
        _slots(served, 0)
        claims.remove(prefix)
        assert served.call("GET", "/v1/node-types/contested.c").body["capacity"]["claimed"] == 0
    assert len(set(bound)) == len(bound) == rounds * slots
    scheduled = Counter(subject for subject, reason in _events_after(served, last) if reason == "Scheduled")
    assert {claim_id: scheduled[claim_id] for claim_id in bound if scheduled[claim_id] != 1} == {}, (
        "a claim was bound twice"
    )
    record_property(
        "figure:schedulers_local_cloud",
        {
            "rounds": rounds,
            "schedulers": schedulers,
            "claims": rounds * (slots + 1),
            "bound": len(bound),
            "twice": sum(times - 1 for times in scheduled.values()),
        },
    )


def _slots(served: Served, count: int) -> None:
    """Sets the capacity of the contested type. A binding at the same time does not change the provider's version."""
    spec = {"nodeTypes": [_type("c", 0.0001, count)]}
    answer = served.change("PATCH", "/v1/node-providers/contested", {"spec": spec})
    assert answer.status == 200, answer.text


def _pass(served: Served, schedulers: int) -> None:
    """Runs this many schedulers, each in a process of its own, started together."""
    gate, client = threading.Barrier(schedulers), served.aws("lambda")

    def once(_: int) -> dict[str, Any]:
        gate.wait(60)
        report: dict[str, Any] = {"errorType": UNANSWERED}
        for _again in range(3):  # The next minute's schedule would run it again too.
            if report.get("errorType") == UNANSWERED:
                answer = client.invoke(FunctionName="stockyard-dev-scheduler", Payload=b"{}")
                report = json.loads(answer["Payload"].read())
        return report

    with ThreadPoolExecutor(schedulers) as pool:
        reports = list(pool.map(once, range(schedulers)))
    assert all("errorType" not in report for report in reports), reports


def _bound(claims: Claims, prefix: str) -> int:
    """The number of claims with a slot of the contested type."""
    return sum(claim["type"] == "contested.c" for claim in claims.named(prefix))


def _placed(claims: Claims, prefix: str, claim_ids: set[str], slots: int) -> list[str]:
    """The bound claims. Checks that they are as many as there are slots, and that all others still wait."""
    listed = claims.named(prefix)
    assert {claim["id"] for claim in listed} == claim_ids
    placed = [claim["id"] for claim in listed if claim["type"] == "contested.c"]
    summary = [(claim["name"], claim["type"], claim["reason"]) for claim in listed]
    assert len(placed) == slots, summary
    assert all(claim["reason"] == "NoCapacity" for claim in listed if not claim["type"]), summary
    assert claims.served.call("GET", "/v1/node-types/contested.c").body["capacity"]["claimed"] == slots
    return placed


def _last_event(served: Served) -> str:
    """The id of the newest event."""
    return [event_id for event_id, _, _ in _events(served, "")][-1]


def _events_after(served: Served, after: str) -> list[tuple[str, str]]:
    """(subject, reason) of every event after ``after``."""
    return [(subject, reason) for event_id, subject, reason in _events(served, "") if event_id > after]


def _events(served: Served, query: str) -> Iterator[tuple[str, str, str]]:
    token = ""
    while True:
        page = served.call("GET", f"/v1/events?page_size=200{query}{token}").body
        yield from ((event["id"], event["subject"], event["reason"]) for event in page["items"])
        if not page["next_page_token"]:
            return
        token = f"&page_token={page['next_page_token']}"  # A token is valid for the same query only.
