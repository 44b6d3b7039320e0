"""Proposals of the shell: one page of what the API has, and nothing at all where that cannot be had."""

from __future__ import annotations

import httpx
import pytest
from typer.testing import CliRunner

from stockyard_client.cli.app import app
from stockyard_client.cli.context import Context

CLUSTER, POOLS = "/v1/clusters", "/v1/clusters/demo/pools"
RECORDS = {
    CLUSTER: [{"id": "clu_1", "name": "demo", "status": "ready"}, {"id": "clu_2", "name": "other", "status": "ready"}],
    POOLS: [{"name": "workers", "kind": "dynamic"}, {"name": "web", "kind": "static"}],
    "/v1/node-claims": [{"id": "ncl_1", "name": "workers-1", "phase": "Pending"}],
    "/v1/node-providers": [{"id": "npr_1", "name": "lab", "kind": "ec2"}],
    "/v1/node-types": [{"id": "nty_1", "name": "lab.small"}, {"id": "nty_2", "name": "lab.large"}],
    "/v1/cloud-accounts": [{"id": 12, "provider": "aws", "name": "main"}],
    "/v1/operations": [{"id": "op_1", "kind": "create_cluster", "subject": "clu_1", "status": "running"}],
    "/v1/cluster-profiles": [{"id": "prf_1", "name": "base", "version": "1.0.0"}],
    "/v1/clusters/demo/snapshots": [{"id": "snap-1", "stored_at": "2026-01-31T12:00:00Z"}],
    "/v1/node-environments": [{"id": "env_1", "provider_id": "npr_1", "cluster_id": "clu_1", "phase": "Available"}],
    "/v1/quotas": [{"name": "clusters", "limit": 5, "used": 1}],
}


@pytest.fixture
def proposed(api, clock, cli):
    """The words that bash is given for the last word of a line."""
    for path, items in RECORDS.items():
        api.answer("GET", path, {"items": items, "next_page_token": None})

    def complete(line, **environment):
        context = Context({**cli.environment, **environment}, api.transport, clock.sleep, clock, clock)
        words = {"COMP_WORDS": f"stockyard {line}", "COMP_CWORD": str(len(line.split(" ")))}
        shell = {"_STOCKYARD_COMPLETE": "complete_bash", **words}
        result = CliRunner().invoke(app, [], obj=context, env=shell, prog_name="stockyard")
        assert result.stderr == ""
        return result.stdout.split()

    return complete


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("cluster get d", ["demo"]),
        ("login --cluster o", ["other"]),
        ("claim get w", ["workers-1"]),
        ("claim power w", ["workers-1"]),
        ("claim edit w", ["workers-1"]),
        ("claim list --provider l", ["lab"]),
        ("claim create --type lab.", ["lab.small", "lab.large"]),
        ("pool get --cluster demo w", ["workers", "web"]),
        ("claim list --cluster demo --pool wo", ["workers"]),
        ("disruption pause demo --pool we", ["web"]),
        ("provider describe l", ["lab"]),
        ("type list --provider l", ["lab"]),
        ("type get lab.s", ["lab.small"]),
        ("type allow lab.small lab.l", ["lab.large"]),
        ("account get 1", ["12"]),
        ("account edit 1", ["12"]),
        ("cluster create --account 1", ["12"]),
        ("operation get op", ["op_1"]),
        ("cluster cancel demo --queued op", ["op_1"]),
        ("logs d", ["demo"]),
        ("logs w", ["workers-1"]),
        ("logs op_", ["op_1"]),
        ("profile get b", ["base"]),
        ("cluster restore demo --snapshot s", ["snap-1"]),
        ("cluster restore demo --snapshot l", ["latest"]),
        ("environment get e", ["env_1"]),
        ("quota set c", ["clusters"]),
    ],
)
def test_what_begins_with_the_word_is_proposed(proposed, line, words):
    assert proposed(line) == words


def test_a_page_that_is_full_is_enough(proposed, api):
    full = [{"id": f"npr_{number}", "name": f"full-{number:03}"} for number in range(100)]
    api._answers.pop(("GET", "/v1/node-providers"))
    api.answer("GET", "/v1/node-providers", {"items": full, "next_page_token": "more"})
    assert len(proposed("provider get full")) == 100
    assert [request.url.params["page_size"] for request in api.requests] == ["100"]


def test_claims_are_those_of_the_cluster_that_was_given(proposed, api):
    proposed("claim create --cluster demo --type lab.s")
    proposed("claim list --cluster demo --pool w")
    proposed("logs w")
    types, pools, _, claims = api.requests
    assert types.url.params["provider"] == "lab"
    assert pools.url.path == POOLS
    assert "cluster" not in claims.url.params


def test_whom_somebody_of_the_platform_means_is_asked_for(proposed, api):
    assert proposed("--tenant acme quota get c") == ["clusters"]
    assert api.requests[0].headers["X-Stockyard-Tenant"] == "acme"


def test_pools_and_snapshots_of_no_cluster_are_not_asked_for(proposed, api):
    assert proposed("pool get w") == []
    assert proposed("claim list --pool w") == []
    assert not api.requests


@pytest.mark.parametrize("status", [401, 403, 404, 500, 503])
def test_a_refusal_proposes_nothing_and_is_not_repeated(proposed, api, status):
    api._answers.pop(("GET", "/v1/node-claims"))
    api.problem("GET", "/v1/node-claims", status, "Refused")
    assert proposed("claim get w") == []
    assert len(api.requests) == 1


@pytest.mark.parametrize("error", [httpx.ConnectError("no"), httpx.ReadTimeout("slow")])
def test_an_api_that_is_out_of_reach_proposes_nothing(proposed, api, error):
    api._answers.pop(("GET", CLUSTER))
    api.fault("GET", CLUSTER, error)
    assert proposed("cluster get d") == []
    assert len(api.requests) == 1


def test_without_an_api_nothing_is_proposed(proposed, api):
    assert proposed("cluster get d", STOCKYARD_URL="") == []
    assert proposed("cluster get d", STOCKYARD_URL="ftp://nowhere") == []
    assert not api.requests


def test_an_answer_that_is_none_proposes_nothing(proposed, api):
    api._answers.pop(("GET", CLUSTER))
    api.answer("GET", CLUSTER, "what?")
    assert proposed("cluster get d") == []
