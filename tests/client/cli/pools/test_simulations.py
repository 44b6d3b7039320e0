"""``stockyard simulate`` against the fake API."""

from __future__ import annotations

import json

import yaml

from stockyard.domain.models.base import read
from stockyard.domain.models.pools.simulations import SimulationRequest

ROUTE = "/v1/simulations"
OUTCOME = {
    "complete": True,
    "ended_at": "2026-01-06T00:00:00.000Z",
    "hours": 24.0,
    "usd": 10.0,
    "node_hours": 100.0,
    "mean_nodes": 4.16667,
    "peak_nodes": 7,
    "nodes": 9,
    "pods": 30,
    "evictions": 0,
    "waits": {"count": 12, "longest_seconds": 90, "mean_seconds": 60.5},
    "decision_count": 0,
    "abandoned": 0,
    "decisions": [],
    "without_place": [],
    "warnings": [],
}
TRACE = """
until: 24h
startsAt: 2026-01-05T00:00:00Z
daemonSets:
  - {kind: DaemonSet, metadata: {name: logs}, spec: {template: {spec: {volumes: [{name: canary-secret}]}}}}
events:
  - at: 0s
    arrive:
      - kind: Deployment
        metadata: {name: web, annotations: {note: canary-secret}}
        spec:
          template:
            metadata: {annotations: {karpenter.sh/do-not-disrupt: "true", note: canary-secret}}
            spec: {containers: [{name: a, env: [{name: A, value: canary-secret}]}]}
  - {at: 12h, depart: [{name: web}]}
policies:
  - {name: never, consolidationPolicy: None}
  - {name: nightly, consolidationPolicy: Balanced, minimumSaving: 0.1}
"""
PLAIN = TRACE.partition("policies:")[0]


def test_each_policy_is_a_row_with_money_nodes_and_evictions(cli, api):
    api.answer("POST", ROUTE, OUTCOME).answer("POST", ROUTE, {**OUTCOME, "usd": 7.5, "evictions": 4})
    result = cli("simulate", "-f", "-", stdin=TRACE)
    assert result.exit_code == 0, result.stderr
    lines = [" ".join(line.split()) for line in result.stdout.splitlines()]
    assert lines == [
        "POLICY USD SAVED MEAN NODES PEAK NODE HOURS EVICTIONS WAITS LONGEST",
        "never 10.00 - 4.2 7 100.0 0 12 1m30s",
        "nightly 7.50 25.0% 4.2 7 100.0 4 12 1m30s",
    ]
    assert [body["policy"] for body in api.bodies("POST")] == [
        {"consolidationPolicy": "None"},
        {"consolidationPolicy": "Balanced", "minimumSaving": 0.1},
    ]


def test_what_says_nothing_of_nodes_or_moves_is_not_sent(cli, api):
    api.answer("POST", ROUTE, OUTCOME)
    assert cli("simulate", "-f", "-", "--policy", "never", "--cluster", "demo", stdin=TRACE).exit_code == 0
    (body,) = api.bodies("POST")
    assert "canary-secret" not in json.dumps(body)
    assert (body["cluster"], body["until"], body["startsAt"]) == ("demo", "24h", "2026-01-05T00:00:00Z")
    (deployment,) = body["events"][0]["arrive"]
    assert deployment["metadata"] == {"name": "web"}
    assert deployment["spec"]["template"]["metadata"] == {"annotations": {"karpenter.sh/do-not-disrupt": "true"}}
    assert body["events"][1] == {"at": "12h", "depart": [{"name": "web"}]}
    assert "policies" not in body


def test_without_policies_all_four_are_replayed_and_one_can_be_named(cli, api):
    api.answer("POST", ROUTE, OUTCOME)
    result = cli("simulate", "-f", "-", "-o", "name", stdin=PLAIN)
    assert result.stdout.split() == ["None", "WhenEmpty", "WhenEmptyOrUnderutilized", "Balanced"]
    result = cli("simulate", "-f", "-", "--policy", "nightly", "--policy", "Balanced", "-o", "name", stdin=TRACE)
    assert result.stdout.split() == ["nightly", "Balanced"]
    assert [body["policy"] for body in api.bodies("POST")[4:]] == [
        {"consolidationPolicy": "Balanced", "minimumSaving": 0.1},
        {"consolidationPolicy": "Balanced"},
    ]
    result = cli("simulate", "-f", "-", "--policy", "often", stdin=PLAIN)
    assert result.exit_code == 2
    assert "there is no policy often; there are None, WhenEmpty" in result.stderr


def test_documents_are_the_answers_of_the_api_with_the_policy_s_name(cli, api):
    api.answer("POST", ROUTE, OUTCOME)
    expected = [{"policy": name, **OUTCOME} for name in ("never", "nightly")]
    assert json.loads(cli("simulate", "-f", "-", "-o", "json", stdin=TRACE).stdout) == expected
    assert yaml.safe_load(cli("simulate", "-f", "-", "-o", "yaml", stdin=TRACE).stdout) == expected


def test_sums_that_do_not_compare_are_said_to_be_so(cli, api):
    detail = "The work or the time of one request was used up at 2026-01-05T09:00:00.000Z: nothing later is counted."
    part = {"complete": False, "ended_at": "2026-01-05T09:00:00.000Z", "warnings": [{"pointer": "", "detail": detail}]}
    homeless = {"name": "default/web", "count": 3, "why": "burst: No room."}
    api.answer("POST", ROUTE, {**OUTCOME, "without_place": [homeless]}).answer("POST", ROUTE, {**OUTCOME, **part})
    result = cli("simulate", "-f", "-", "-o", "wide", stdin=TRACE)
    rows = [line.split() for line in result.stdout.splitlines()]
    assert (rows[2][2], rows[2][-1]) == ("-", "2026-01-05T09:00:00.000Z")
    assert "! never: 3 pods of default/web have no place: burst: No room." in result.stdout
    assert f"Warning: nightly: {detail}" in result.stderr
    assert "their sums do not compare" in result.stderr


def test_faults_are_told_with_their_location(cli, api):
    fault = {"pointer": "/events/1/at", "detail": "must be within the trace"}
    api.problem("POST", ROUTE, 422, "InvalidInput", errors=[fault])
    result = cli("simulate", "-f", "-", stdin=TRACE)
    assert result.exit_code == 2
    assert "standard input:15 events[1].at: must be within the trace" in result.stderr
    for policies in ("policies: 1", "policies: [{name: a}, {name: a}]", "policies: [{}]"):
        result = cli("simulate", "-f", "-", stdin=PLAIN + policies)
        assert result.exit_code == 2
        assert "policies" in result.stderr


def test_the_example_is_sent_as_the_api_reads_it(cli, api):
    api.answer("POST", ROUTE, OUTCOME)
    result = cli("simulate", "-f", "examples/trace.yaml", "-o", "name")
    assert result.stdout.split() == ["never", "empty", "balanced", "full", "at-night"]
    requests = [read(SimulationRequest, body) for body in api.bodies("POST")]
    assert [request.policy.consolidation_policy for request in requests][:2] == ["None", "WhenEmpty"]
    assert len(requests[-1].policy.budgets) == 1
