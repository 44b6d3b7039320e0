"""``--watch``, ``events --follow`` and ``logs``: a line for each change, until somebody interrupts."""

from __future__ import annotations

import json

import httpx
import pytest
from rich.cells import cell_len

from stockyard_client.cli.progress import duration

OPERATIONS, EVENTS, CLUSTERS, CLAIMS = "/v1/operations", "/v1/events", "/v1/clusters", "/v1/node-claims"


def event(number, subject="clu_01", **more):
    named = {
        "id": f"evt_{number:026}",
        "subject": subject,
        "sequence": number,
        "time": f"2026-11-25T12:00:{number:02}.500Z",
    }
    return {**named, "reason": "PhaseDone", "message": f"m {number}", **more}


def page(*items, cursor="evt_0000000001~"):
    return {"items": list(items), "next_page_token": None, "cursor": cursor}


@pytest.fixture
def feed(api):
    """Events that come one page after the other; then somebody interrupts."""

    def come(*pages):
        api.answer("GET", EVENTS, page())
        for number, items in enumerate(pages, 2):
            api.answer("GET", EVENTS, page(*items, cursor=f"evt_{number:010}~"))
        api.fault("GET", EVENTS, KeyboardInterrupt())

    return come


def listed(api, path, *items):
    api.answer("GET", path, {"items": list(items), "next_page_token": None})


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
    places = {line.index(row[6]) for line, row in zip(result.stdout.splitlines(), rows, strict=True)}
    assert len(places) == 1
    assert "The same command goes on" in result.stderr


def test_the_feed_begins_before_the_list_is_read(cli, api, feed, cluster_document):
    feed([])
    listed(api, CLUSTERS, cluster_document())
    cli("cluster", "list", "-w")
    assert [request.url.path for request in api.requests[:3]] == [EVENTS, CLUSTERS, EVENTS]
    assert api.requests[2].url.params["wait"] == "20"
    assert api.requests[2].url.params["after"] == "evt_0000000001~"


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
    assert [(row[0], row[3]) for row in rows] == [("op_01", "0%"), ("op_01", "33%"), ("op_02", "0%")]


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


@pytest.mark.parametrize(
    ("command", "path", "document"),
    [
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


def test_events_are_the_newest_with_the_newest_last(cli, api, cluster_document):
    api.answer("GET", EVENTS, page(event(3), event(2, "clu_01/workers")))
    listed(api, CLUSTERS, cluster_document())
    result = cli("events", "--limit", "2", "--reason", "PhaseDone", "--kind", "Cluster")
    rows = [line.split() for line in result.stdout.splitlines()]
    assert rows[0] == ["AGE", "SUBJECT", "REASON", "MESSAGE"]
    assert [row[1:] for row in rows[1:]] == [
        ["demo/workers", "PhaseDone", "m", "2"],
        ["demo", "PhaseDone", "m", "3"],
    ]
    sent = dict(api.requests[0].url.params)
    assert sent == {"reason": "PhaseDone", "detail_type": "Cluster", "order": "desc", "page_size": "2"}


def test_a_claim_is_called_by_the_name_that_its_event_tells(cli, api, cluster_document):
    documents = [event(4, "op_1"), event(3, "ncl_2", name=None), event(2, "ncl_1", name="workers-1"), event(1)]
    api.answer("GET", EVENTS, page(*documents))
    listed(api, CLUSTERS, cluster_document())

    def subjects(form):
        return [line.split()[1] for line in cli("events", "-o", form).stdout.splitlines()]

    assert subjects("table") == ["SUBJECT", "demo", "workers-1", "ncl_2", "op_1"]
    assert [request.url.path for request in api.requests] == [EVENTS, CLUSTERS]
    assert subjects("wide") == ["SUBJECT", "clu_01", "ncl_1", "ncl_2", "op_1"]
    assert json.loads(cli("events", "-o", "json").stdout) == documents[::-1]


def test_events_since_a_duration_or_a_time_are_all_of_them(cli, api, clock):
    clock.time = 7200.0
    api.answer("GET", EVENTS, page())
    cli("events", "--since", "1h")
    cli("events", "--since", "2026-01-31T13:00:00+01:00")
    assert [r.url.params["since"] for r in api.requests] == ["1970-01-01T01:00:00Z", "2026-01-31T12:00:00Z"]
    result = cli("events", "--since", "yesterday")
    assert result.exit_code == 2
    assert "--since is neither a duration" in result.stderr


def test_events_are_followed_and_ctrl_c_says_how_to_go_on(cli, api, feed, cluster_document):
    feed([event(2)], [], [event(3), event(4)])
    api.answer("GET", f"{CLUSTERS}/demo", cluster_document())
    result = cli("events", "--follow", "--cluster", "demo", "-o", "json")
    assert [json.loads(line)["sequence"] for line in result.stdout.splitlines()] == [2, 3, 4]
    assert result.exit_code == 130
    again = "stockyard events --follow --subject clu_01 --after evt_0000000004~"
    assert f"To go on from here: {again}" in result.stderr


def test_the_heading_of_followed_events_stands_above_their_columns(cli, api, feed):
    long = "a-reason-that-is-longer-than-others"
    feed([event(1, subject="op_1"), event(2, subject="op_2", reason=long)], [event(3, subject="op_3")])
    heading, *lines = cli("events", "--follow").stdout.splitlines()
    assert [line.index("op_") for line in lines] == [heading.index("SUBJECT")] * 3
    assert [line.index("m ") for line in lines] == [heading.index("MESSAGE")] * 3


WIDE = "\u65e5\u672c\u8a9e" * 6
"""Letters of two cells."""


def test_followed_events_stand_below_their_heading_whatever_their_letters(cli, feed):
    feed([event(2, subject=WIDE), event(3, subject="plain")])
    heading, *rows = cli("events", "--follow").stdout.splitlines()
    assert {cell_len(row[: row.index("PhaseDone")]) for row in rows} == {heading.index("REASON")}


def test_what_is_watched_stands_below_its_heading_whatever_its_letters(cli, api, feed):
    feed([])
    accounts = [{"id": 1, "provider": "aws", "name": WIDE}, {"id": 2, "provider": "aws", "name": "plain"}]
    listed(api, "/v1/cloud-accounts", *accounts)
    heading, *rows = cli("account", "list", "-w").stdout.splitlines()
    assert {cell_len(row[: row.index("aws")]) for row in rows} == {heading.index("PROVIDER")}


def test_events_of_a_cluster_are_followed_from_its_first_one(cli, api, cluster_document):
    api.answer("GET", f"{CLUSTERS}/demo", cluster_document())
    api.answer("GET", EVENTS, page(event(1)))
    api.answer("GET", EVENTS, page(event(2), cursor="evt_0000000002~"))
    api.fault("GET", EVENTS, KeyboardInterrupt())
    result = cli("cluster", "events", "demo", "-f")
    lines = [line.split() for line in result.stdout.splitlines()]
    assert [(line[0], line[-1]) for line in lines] == [
        ("TIME", "MESSAGE"),
        ("2026-11-25T12:00:01Z", "1"),
        ("2026-11-25T12:00:02Z", "2"),
    ]
    assert api.requests[1].url.params["subject"] == "clu_01"


def operation_with_times(status="running", **more):
    phases = [
        {
            "name": "account",
            "state": "succeeded",
            "attempt": 1,
            "message": "AWS account 2",
            "started_at": "2026-11-25T12:00:01.000Z",
            "ended_at": "2026-11-25T12:00:02.000Z",
        },
        {
            "name": "network",
            "state": "running",
            "attempt": 2,
            "message": "A route is not shown yet.",
            "started_at": "2026-11-25T12:00:03.000Z",
            "ended_at": None,
        },
        {"name": "later", "state": "pending", "attempt": 0, "message": "", "started_at": None, "ended_at": None},
    ]
    base = {"id": "op_01", "kind": "create_cluster", "subject": "clu_01", "status": status, "phases": phases}
    return {**base, "error": None, "progress": 33, "version": 1, "updated_at": "2026-11-25T12:00:04.000Z", **more}


def test_logs_tell_what_an_operation_did(cli, api, cluster_document):
    api.answer("GET", f"{CLUSTERS}/demo", cluster_document())
    api.answer("GET", f"{OPERATIONS}/op_01", operation_with_times())
    result = cli("logs", "demo")
    assert result.exit_code == 0
    assert [line.split(maxsplit=3) for line in result.stdout.splitlines()] == [
        ["2026-11-25T12:00:01.000Z", "account", "started"],
        ["2026-11-25T12:00:02.000Z", "account", "succeeded", "AWS account 2"],
        ["2026-11-25T12:00:03.000Z", "network", "started", "attempt 2"],
        ["2026-11-25T12:00:04.000Z", "network", "running", "A route is not shown yet."],
    ]


def test_followed_logs_end_with_the_operation_and_its_exit_code(cli, api):
    failed = operation_with_times("failed", version=3, updated_at="2026-11-25T12:00:09.000Z")
    failed["phases"][1] = {
        **failed["phases"][1],
        "state": "failed",
        "ended_at": "2026-11-25T12:00:08.000Z",
        "message": "none left",
    }
    failed["error"] = {
        "error_type": "ClusterCouldNotBeDeployed",
        "cause_type": "InsufficientCapacity",
        "phase": "network",
        "cause": "none left",
        "hint": "Ask for another one.",
        "console": "boot\npanic",
    }
    api.answer("GET", f"{OPERATIONS}/op_01", operation_with_times())
    api.answer("GET", f"{OPERATIONS}/op_01", operation_with_times(version=2, updated_at="2026-11-25T12:00:05.000Z"))
    api.answer("GET", f"{OPERATIONS}/op_01", failed)
    result = cli("logs", "op_01", "--follow")
    assert result.exit_code == 6
    lines = [" ".join(line.split()[1:]) for line in result.stdout.splitlines()]
    assert lines == [
        "account started",
        "account succeeded AWS account 2",
        "network started attempt 2",
        "network running A route is not shown yet.",
        "network failed none left",
        "create_cluster failed none left",
        "Ask for another one.",
        "boot",
        "panic",
    ]


def test_logs_of_a_claim_by_its_name_and_of_nothing(cli, api):
    api.answer("GET", f"{CLAIMS}/c1", {"id": "ncl_1", "name": "c1", "phase": "Pending", "operation_id": "op_01"})
    api.answer("GET", f"{OPERATIONS}/op_01", operation_with_times())
    assert cli("logs", "c1").exit_code == 0
    result = cli("logs", "nothing")
    assert result.exit_code == 2
    assert "there is no cluster and no claim nothing" in result.stderr


def test_operations_are_listed_newest_first(cli, api, operation_document):
    listed(api, OPERATIONS, operation_document(), operation_document(id="op_02"))
    result = cli("operation", "list", "--status", "running", "--subject", "clu_01", "--limit", "1")
    assert [line.split()[0] for line in result.stdout.splitlines()] == ["ID", "op_01"]
    sent = dict(api.requests[0].url.params)
    assert sent == {"status": "running", "subject": "clu_01", "order": "desc", "page_size": "1"}


def test_ctrl_c_while_waiting_says_how_to_wait_again(cli, api, operation_document):
    api.answer("GET", f"{OPERATIONS}/op_01", operation_document())
    api.fault("GET", f"{OPERATIONS}/op_01", KeyboardInterrupt())
    result = cli("operation", "wait", "op_01")
    assert result.exit_code == 130
    assert "To wait again: stockyard operation wait op_01" in result.stderr


def test_what_was_begun_says_how_to_follow_it(cli, api, operation_document):
    api.answer("DELETE", f"{CLUSTERS}/demo", operation_document(), status=202)
    result = cli("cluster", "delete", "demo")
    assert result.stderr.splitlines()[-1] == "To follow: stockyard operation wait op_01"


def test_phases_are_shown_with_the_time_that_they_took(cli, api):
    document = operation_with_times("succeeded")
    document["phases"][0]["ended_at"] = "2026-11-25T12:02:06.400Z"
    api.answer("GET", f"{OPERATIONS}/op_01", document)
    assert "account        succeeded in 2m05s  AWS account 2" in cli("operation", "wait", "op_01").stderr


@pytest.mark.parametrize(
    ("seconds", "text"), [(0.2, "0s"), (59.4, "59s"), (60, "1m00s"), (3599, "59m59s"), (7320, "2h02m")]
)
def test_durations(seconds, text):
    assert duration(seconds) == text
