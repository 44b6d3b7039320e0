"""Claims by HTTP on the local cloud: where they land, how long they take, and many schedulers at once."""

from __future__ import annotations

import gzip
import json
import statistics
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime
from typing import TYPE_CHECKING, Any

import pytest

from local.serving import http

if TYPE_CHECKING:
    from local.serving import Served

pytestmark = pytest.mark.timeout(3600)

CLIENTS = 4
"""Callers that send claims one after the other: what the local cloud's table takes without a queue of its own."""
SCHEDULERS = 16
SLOWEST = 5.0
"""Seconds that may be ours, of 95 in 100 claims. The machines take none here."""

Record = Callable[[str, object], None]


def _type(name: str, usd: float, limit: int | None = None) -> dict[str, Any]:
    limited = {} if limit is None else {"maxCapacity": limit}
    return {"name": name, "resources": {"cpu": "2", "memory": "4Gi"}, "usdPerHour": usd, **limited}


def _provider(served: Served, name: str, *types: dict[str, Any]) -> None:
    answer = served.call(
        "POST", "/v1/node-providers", {"name": name, "kind": "simulated", "spec": {"nodeTypes": list(types)}}
    )
    assert answer.status == 201, answer.text


def _claim(served: Served, cluster: str, name: str, **wish: Any) -> dict[str, Any]:
    answer = served.call("POST", "/v1/node-claims", {"name": name, "cluster": cluster, **wish})
    assert answer.status == 202, answer.text
    found: dict[str, Any] = answer.body
    return found


def _claims(served: Served, prefix: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    token = ""
    while True:
        page = served.call("GET", f"/v1/node-claims?page_size=200{token}").body
        found += [one for one in page["items"] if one["name"].startswith(prefix)]
        if not page["next_page_token"]:
            return found
        token = f"&page_token={page['next_page_token']}"


def _remove(served: Served, prefix: str) -> None:
    def delete(claim: dict[str, Any]) -> None:
        answer = served.call("DELETE", f"/v1/node-claims/{claim['id']}")
        assert answer.status in (202, 404), answer.text

    with ThreadPoolExecutor(CLIENTS) as pool:
        list(pool.map(delete, _claims(served, prefix)))
    served.wait("the claims' end", lambda: not _claims(served, prefix), 1800)


@pytest.fixture(scope="module")
def cluster(
    served: Served, body: Callable[..., dict[str, Any]], remove: Callable[[str], dict[str, Any]]
) -> Iterator[str]:
    """A ready cluster. Deleting it takes what is left of its claims along."""
    quota = next(one for one in served.call("GET", "/v1/quotas").body["items"] if one["name"] == "nodeclaims")
    raised = served.call(
        "PUT",
        "/v1/quotas/nodeclaims",
        {"limit": 5000},
        headers={"If-Match": f'"{quota["version"]}"', "X-Stockyard-Tenant": "acme"},
        token="STOCKYARD_TOKEN_PLATFORM",
    )
    assert raised.status == 200, raised.text
    made = served.call("POST", "/v1/clusters", body(name="with-nodes")).body
    assert served.operation(made["operation_id"])["status"] == "succeeded"
    yield "with-nodes"
    assert remove(made["id"])["status"] == "succeeded"


def test_the_cheapest_of_all_is_taken_then_the_next(served: Served, cluster: str) -> None:
    _provider(served, "next-cheapest", _type("n", 0.02))
    _provider(served, "cheapest", _type("c", 0.01, 2))
    claims = [_claim(served, cluster, f"land-{i}") for i in range(3)]
    for claim in claims:
        assert served.operation(claim["operation_id"])["status"] == "succeeded"
    shown = {claim["name"]: claim for claim in _claims(served, "land-")}
    assert [shown[f"land-{i}"]["type"] for i in range(3)] == ["cheapest.c", "cheapest.c", "next-cheapest.n"]
    told = served.call("GET", "/v1/node-claims/land-2/explanation").body
    found = {one["type"]: (one["usd_hour"], one["rule"]) for one in told["candidates"]}
    assert (found["cheapest.c"], found["next-cheapest.n"]) == ((0.01, "Full"), (0.02, None))
    capacity = served.call("GET", "/v1/node-types/cheapest.c").body["capacity"]
    assert (capacity["total"], capacity["claimed"], capacity["available"]) == (2, 2, 0)
    _remove(served, "land-")
    assert served.call("GET", "/v1/node-types/cheapest.c").body["capacity"]["claimed"] == 0


def test_a_cluster_s_agent_is_heard(served: Served, cluster: str) -> None:
    """By its own client alone; also what comes compressed."""
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
    assert (answer.status, answer.body) == (200, {"commands": [], "interval_seconds": 60})
    packed = {"Authorization": f"Bearer {own}", "Content-Type": "application/json", "Content-Encoding": "gzip"}
    url = served.environment["STOCKYARD_URL"] + path
    assert http("POST", url, gzip.compress(json.dumps(post).encode()), packed).status == 200
    assert http("POST", url, b"not gzip", packed).status == 400
    assert served.call("POST", path, post).status == 403
    assert served.call("POST", path, {**post, "sequence": -1}, token=own).status == 422


def test_from_the_request_to_the_node(served: Served, cluster: str, soaking: bool, record_property: Record) -> None:
    """Machines here take no time, so all that passes is ours."""
    count = 1000 if soaking else 8
    _provider(served, "instant", _type("i", 0.001))
    before = len(served.calls)
    with ThreadPoolExecutor(CLIENTS) as pool:
        started = datetime.now().astimezone()
        list(pool.map(lambda number: _claim(served, cluster, f"many-{number}"), range(count)))

    def all_there() -> list[dict[str, Any]] | None:
        found = _claims(served, "many-")
        return found if all(one["phase"] == "Available" for one in found) else None

    claims = served.wait("the nodes", all_there, 1800)
    assert len(claims) == count
    ended = max(_when(one, "Joined") for one in claims)
    seconds = sorted((_when(one, "Joined") - _time(one["created_at"])).total_seconds() for one in claims)
    bound = sorted((_when(one, "Scheduled") - _time(one["created_at"])).total_seconds() for one in claims)
    calls = Counter(call["operation"] for call in served.calls[before:])
    p95 = seconds[int(0.95 * len(seconds)) - 1]
    record_property(
        "figure:claims_latency",
        {
            "claims": count,
            "clients": CLIENTS,
            "p50_seconds": round(statistics.median(seconds), 2),
            "p95_seconds": round(p95, 2),
            "bound_p50_seconds": round(statistics.median(bound), 2),
            "claims_a_second": round(count / (ended - started).total_seconds(), 2),
            "calls_a_claim": {name: round(n / count, 2) for name, n in calls.most_common(8)},
        },
    )
    _remove(served, "many-")
    assert p95 < SLOWEST or not soaking


def _time(text: str) -> datetime:
    return datetime.fromisoformat(text.replace("Z", "+00:00"))


def _when(claim: dict[str, Any], condition: str) -> datetime:
    found = next(one for one in claim["conditions"] if one["type"] == condition)
    assert found["status"] == "True", claim
    return _time(found["last_transition_time"])


def test_many_schedulers_at_once(served: Served, cluster: str, soaking: bool, record_property: Record) -> None:
    """Each round: claims for fewer places than there are claims, and sixteen schedulers that start together."""
    rounds, places, schedulers = (200, 3, SCHEDULERS) if soaking else (1, 3, 4)
    _provider(served, "contested", _type("c", 0.0001, places))
    bound = 0
    for number in range(rounds):
        prefix = f"round-{number}-"
        for index in range(places + 1):
            _claim(served, cluster, f"{prefix}{index}", provider="contested")
        gate = threading.Barrier(schedulers)

        def pass_once(_: int, gate: threading.Barrier = gate) -> dict[str, Any]:
            client = served.aws("lambda")
            gate.wait(60)
            answer = client.invoke(FunctionName="stockyard-dev-scheduler", Payload=b"{}")
            report: dict[str, Any] = json.loads(answer["Payload"].read())
            return report

        with ThreadPoolExecutor(schedulers) as pool:
            reports = list(pool.map(pass_once, range(schedulers)))
        assert all("errorType" not in report for report in reports), reports
        claims = _claims(served, prefix)
        placed = [one for one in claims if one["type"] == "contested.c"]
        assert len(placed) == places, [(one["name"], one["type"], one["reason"]) for one in claims]
        assert served.call("GET", "/v1/node-types/contested.c").body["capacity"]["claimed"] == places
        events = [
            event["subject"]
            for claim in placed
            for event in served.call("GET", f"/v1/events?subject={claim['id']}&page_size=200").body["items"]
            if event["reason"] == "Scheduled"
        ]
        assert sorted(events) == sorted(one["id"] for one in placed), "a claim was bound twice"
        bound += len(placed)
        _remove(served, prefix)
        assert served.call("GET", "/v1/node-types/contested.c").body["capacity"]["claimed"] == 0
    record_property(
        "figure:schedulers_local_cloud",
        {"rounds": rounds, "schedulers": schedulers, "claims": rounds * (places + 1), "bound": bound, "twice": 0},
    )
