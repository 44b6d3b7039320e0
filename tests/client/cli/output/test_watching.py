"""``--watch``: a line for each change, until somebody interrupts."""

from __future__ import annotations

import json

import httpx
import pytest
from rich.cells import cell_len

from tests.client.cli.feeds import CLAIMS, CLUSTERS, EVENTS, OPERATIONS, WIDE, event, listed


def test_a_list_is_shown_and_then_a_line_for_each_change(cli, api, feed, cluster_document):
    feed([event(2)], [event(3), event(4)], [event(5)])
    listed(
        api, CLUSTERS, cluster_document(phase="network"), cluster_document(id="clu_02", name="other", status="ready")
    )
    api.answer("GET", f"{CLUSTERS}/clu_01", cluster_document(phase="control_plane", version=4))
    api.answer("GET", f"{CLUSTERS}/clu_01", cluster_document(phase="control_plane", version=5))
    api.problem("GET", f"{CLUSTERS}/clu_01", 404, "NotFound")
    result = cli("cluster", "list", "-w")
    assert result.exit_code == 130
    rows = [line.split() for line in result.stdout.splitlines()]
    assert [(row[0], row[1], row[6]) for row in rows] == [
        ("NAME", "STATUS", "WHY"),
        ("demo", "preparing", "network"),
        ("other", "ready", "Provisioning:"),
        ("demo", "preparing", "control_plane"),
        # the next version looks the same in this table; then it is gone
        ("demo", "Deleted", "control_plane"),
    ]
    columns = {line.index(row[6]) for line, row in zip(result.stdout.splitlines(), rows, strict=True)}
    assert len(columns) == 1
    assert "The same command goes on" in result.stderr


def test_the_feed_begins_before_the_list_is_read(cli, api, feed, cluster_document):
    feed([])
    listed(api, CLUSTERS, cluster_document())
    cli("cluster", "list", "-w")
    assert [request.url.path for request in api.requests[:3]] == [EVENTS, CLUSTERS, EVENTS]
    assert api.requests[2].url.params["wait"] == "20"
    assert api.requests[2].url.params["after"] == "evt_0000000001~"


def test_an_empty_list_says_so_and_goes_on(cli, api, feed, cluster_document):
    feed([event(2)])
    listed(api, CLUSTERS)
    api.answer("GET", f"{CLUSTERS}/clu_01", cluster_document())
    result = cli("cluster", "list", "-w")
    assert result.stderr.startswith("Nothing found yet.\n")
    assert [line.split()[0] for line in result.stdout.splitlines()] == ["NAME", "demo"]


def test_json_is_a_document_a_line(cli, api, feed, cluster_document):
    feed([event(2)], [event(3)])
    listed(api, CLUSTERS, cluster_document())
    api.answer("GET", f"{CLUSTERS}/clu_01", cluster_document(version=4))
    api.problem("GET", f"{CLUSTERS}/clu_01", 404, "NotFound")
    documents = [json.loads(line) for line in cli("cluster", "list", "-w", "-o", "json").stdout.splitlines()]
    assert [(each["version"], each.get("deleted", False)) for each in documents] == [(3, False), (4, False), (4, True)]


def test_with_a_filter_what_leaves_the_list_is_shown_once_more(cli, api, feed):
    def claim(phase):
        return {"id": "ncl_1", "name": "c", "phase": phase}

    feed([event(2, "ncl_1")], [event(3, "ncl_1")])
    listed(api, CLAIMS, claim("Pending"))
    listed(api, CLAIMS)
    api.answer("GET", f"{CLAIMS}/ncl_1", claim("Available"))
    result = cli("claim", "list", "--phase", "Pending", "-w")
    assert [line.split()[1] for line in result.stdout.splitlines()] == ["PHASE", "Pending", "Available"]
    assert [request.url.path for request in api.requests].count(f"{CLAIMS}/ncl_1") == 1


def test_news_that_cannot_be_read_is_read_later(cli, api, feed, cluster_document):
    feed([event(2)], [])
    listed(api, CLUSTERS, cluster_document())
    for _ in range(3):
        api.fault("GET", f"{CLUSTERS}/clu_01", httpx.ConnectError("refused"))
    listed(api, CLUSTERS, cluster_document(status="ready", phase=None, version=4))
    result = cli("cluster", "list", "-w")
    assert [line.split()[1] for line in result.stdout.splitlines()] == ["STATUS", "preparing", "ready"]
    assert "asking again in 5 s" in result.stderr


def test_a_fault_of_the_api_ends_no_watch(cli, api, feed, cluster_document):
    feed([event(2)], [])
    listed(api, CLUSTERS, cluster_document())
    api.answer("GET", f"{CLUSTERS}/clu_01", {"message": "Internal Server Error"}, status=500)
    listed(api, CLUSTERS, cluster_document(status="ready", phase=None, version=4))
    result = cli("cluster", "list", "-w")
    assert [line.split()[1] for line in result.stdout.splitlines()] == ["STATUS", "preparing", "ready"]


def test_pools_are_watched_by_the_events_of_their_claims(cli, api, feed, cluster_document):
    def pool(available):
        nodes = {"desired": 1, "claims": 1, "available": available}
        return {"cluster_id": "clu_01", "name": "workers", "kind": "dynamic", "nodes": nodes}

    feed([event(2, "ncl_1", cluster_id="clu_01", pool="workers"), event(3, "ncl_2", cluster_id="clu_9", pool="x")])
    api.answer("GET", f"{CLUSTERS}/demo", cluster_document())
    listed(api, f"{CLUSTERS}/clu_01/pools", pool(0))
    api.answer("GET", f"{CLUSTERS}/clu_01/pools/workers", pool(1))
    result = cli("pool", "list", "--cluster", "demo", "-w")
    assert ["0/1" in line or "1/1" in line for line in result.stdout.splitlines()] == [False, True, True]
    assert "1/1" in result.stdout.splitlines()[-1]


def test_operations_are_watched_by_the_events_of_their_subjects(cli, api, feed, operation_document):
    feed([event(2, "clu_01"), event(3, "op_02")])
    listed(api, OPERATIONS, operation_document())
    api.answer("GET", f"{OPERATIONS}/op_01", operation_document("running", "succeeded"))
    api.answer("GET", f"{OPERATIONS}/op_02", operation_document(id="op_02", subject="clu_02"))
    result = cli("operation", "list", "-w")
    rows = [line.split() for line in result.stdout.splitlines()[1:]]
    assert [(row[0], row[4]) for row in rows] == [("op_01", "0%"), ("op_01", "33%"), ("op_02", "0%")]


@pytest.mark.parametrize(
    ("command", "path", "document"),
    [
        (("account", "list"), "/v1/cloud-accounts", {"id": 1, "name": "a", "provider": "aws"}),
        (("provider", "list"), "/v1/node-providers", {"id": "npr_1", "name": "lab", "kind": "simulated"}),
        (("claim", "list"), CLAIMS, {"id": "ncl_1", "name": "c", "phase": "Pending"}),
    ],
)
def test_other_lists_are_watched_too(cli, api, feed, command, path, document):
    subject = f"cloud-account/{document['id']}" if path == "/v1/cloud-accounts" else document["id"]
    feed([event(2, subject)])
    listed(api, path, document)
    api.answer("GET", f"{path}/{document['id']}", {**document, "name": "renamed", "version": 2})
    result = cli(*command, "--watch", "-o", "json")
    assert [json.loads(line)["name"] for line in result.stdout.splitlines()] == [document["name"], "renamed"]


AGAIN = [
    (("type", "list"), "/v1/node-types", {"id": "t1", "name": "lab.small", "provider": "lab", "type": "small"}),
    (("price", "list"), "/v1/prices", {"region": "us-east-1", "kind": "instance", "name": "t3.large", "price": 0.1}),
    (("quota", "list"), "/v1/quotas", {"name": "clusters", "limit": 5, "used": 1}),
    (("environment", "list"), "/v1/node-environments", {"id": "nen_1", "provider": "lab", "phase": "Pending"}),
    (("profile", "list"), "/v1/cluster-profiles", {"id": "cpr_1", "name": "site", "version": "1.0.0"}),
]


@pytest.mark.parametrize(("command", "path", "document"), AGAIN)
def test_lists_whose_changes_have_no_event_are_read_again(cli, api, feed, clock, command, path, document):
    feed(*[[] for _ in range(20)])
    listed(api, path, document)
    listed(api, path, {**document, "note": "changed"})
    listed(api, path)
    documents = [json.loads(line) for line in cli(*command, "--watch", "-o", "json").stdout.splitlines()]
    versions = [(each.get("note"), each.get("deleted", False)) for each in documents]
    assert versions == [(None, False), ("changed", False), ("changed", True)]
    reads = [request.url.path for request in api.requests].count(path)
    assert 3 <= reads <= 1 + clock.time / 15


def test_quotas_are_read_again_after_an_event(cli, api, feed):
    feed([event(2, "clu_02")])
    listed(api, "/v1/quotas", {"name": "clusters", "limit": 5, "used": 1})
    listed(api, "/v1/quotas", {"name": "clusters", "limit": 5, "used": 2})
    assert [line.split()[1] for line in cli("quota", "list", "-w").stdout.splitlines()] == ["USED", "1", "2"]


@pytest.mark.parametrize(
    ("command", "path", "document"),
    [
        (("type", "get", "x"), "/v1/node-types/x", {"id": "t1", "name": "lab.small", "provider": "lab"}),
        (("type", "allowed"), "/v1/allowed-node-types", {"allowed": ["lab.*"]}),
        (("event-account", "get"), "/v1/event-accounts", {"accounts": []}),
        (("profile", "get", "x"), "/v1/cluster-profiles/x", {"id": "cpr_1", "name": "x", "version": "1.0.0"}),
    ],
)
def test_one_record_without_an_etag_is_read_again(cli, api, clock, command, path, document):
    for note in ("a", "a", "b"):
        api.answer("GET", path, {**document, "note": note})
    api.problem("GET", path, 404, "NotFound")
    result = cli(*command, "-w", "-o", "json")
    assert result.exit_code == 0, result.stderr
    documents = [json.loads(line) for line in result.stdout.splitlines()]
    assert [(each["note"], each.get("deleted", False)) for each in documents] == [
        ("a", False),
        ("b", False),
        ("b", True),
    ]
    assert [request.url.params.get("wait") for request in api.requests] == [None] * 4
    assert all(pause <= 15 for pause in clock.slept)


def test_a_quota_is_read_again(cli, api):
    for used in (1, 2):
        listed(api, "/v1/quotas", {"name": "clusters", "limit": 5, "used": used})
    api.fault("GET", "/v1/quotas", KeyboardInterrupt())
    result = cli("quota", "get", "clusters", "-w")
    assert [line.split()[1] for line in result.stdout.splitlines()] == ["USED", "1", "2"]
    assert result.exit_code == 130


@pytest.mark.parametrize(
    ("command", "path", "document"),
    [
        (("environment", "get", "x"), "/v1/node-environments/x", {"id": "nen_1", "phase": "Pending"}),
        (("cluster", "get", "x"), f"{CLUSTERS}/x", {"id": "clu_1", "name": "x", "status": "ready"}),
        (("claim", "get", "x"), f"{CLAIMS}/x", {"id": "ncl_1", "name": "x", "phase": "Pending"}),
        (("provider", "get", "x"), "/v1/node-providers/x", {"id": "npr_1", "name": "x", "kind": "simulated"}),
        (("account", "get", "1"), "/v1/cloud-accounts/1", {"id": 1, "name": "x", "provider": "aws"}),
        (
            ("operation", "get", "op_1"),
            f"{OPERATIONS}/op_1",
            {"id": "op_1", "kind": "k", "subject": "s", "status": "running"},
        ),
        (("pool", "get", "x", "--cluster", "c"), f"{CLUSTERS}/c/pools/x", {"name": "x", "kind": "static"}),
    ],
)
def test_one_record_is_watched_until_it_is_gone(cli, api, command, path, document):
    api.answer("GET", path, {**document, "version": 1}, ETag='"1"')
    api.answer("GET", path, None, status=304, ETag='"1"')
    api.answer("GET", path, {**document, "version": 2}, ETag='"2"')
    api.problem("GET", path, 404, "NotFound")
    result = cli(*command, "-w", "-o", "json")
    assert result.exit_code == 0, result.stderr
    documents = [json.loads(line) for line in result.stdout.splitlines()]
    assert [(each["version"], each.get("deleted", False)) for each in documents] == [(1, False), (2, False), (2, True)]
    assert [request.headers.get("If-None-Match") for request in api.requests] == [None, '"1"', '"1"', '"2"']


def test_what_is_not_there_at_first_is_an_error(cli, api):
    api.problem("GET", f"{CLUSTERS}/x", 404, "NotFound")
    assert cli("cluster", "get", "x", "-w").exit_code == 3


def test_what_is_watched_stands_below_its_heading_whatever_its_letters(cli, api, feed):
    feed([])
    accounts = [{"id": 1, "provider": "aws", "name": WIDE}, {"id": 2, "provider": "aws", "name": "plain"}]
    listed(api, "/v1/cloud-accounts", *accounts)
    heading, *rows = cli("account", "list", "-w").stdout.splitlines()
    assert {cell_len(row[: row.index("aws")]) for row in rows} == {heading.index("PROVIDER")}
