"""``stockyard events`` and ``stockyard cluster events``."""

from __future__ import annotations

import json

from rich.cells import cell_len

from tests.client.cli.feeds import CLUSTERS, EVENTS, WIDE, event, listed, page


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


def test_followed_events_stand_below_their_heading_whatever_their_letters(cli, feed):
    feed([event(2, subject=WIDE), event(3, subject="plain")])
    heading, *rows = cli("events", "--follow").stdout.splitlines()
    assert {cell_len(row[: row.index("PhaseDone")]) for row in rows} == {heading.index("REASON")}
