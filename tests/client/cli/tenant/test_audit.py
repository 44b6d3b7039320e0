"""``stockyard audit``."""

from __future__ import annotations

import json

import pytest

AUDIT = "/v1/audit"


def record(number, **more):
    named = {"id": f"aud_{number:026}", "time": f"2026-11-25T12:00:{number:02}.500Z", "actor": "user:ann"}
    return {**named, "action": "DeleteCluster", "outcome": "done", "subject": f"clu_{number}", **more}


def page(*items, cursor="aud_0000000001~"):
    return {"items": list(items), "next_page_token": None, "cursor": cursor}


def test_the_newest_records_are_listed_the_newest_last(cli, api):
    api.answer("GET", AUDIT, page(record(3), record(2)))
    result = cli("audit", "list")
    assert [line.split()[-1] for line in result.stdout.splitlines()] == ["SUBJECT", "clu_2", "clu_3"]
    assert dict(api.requests[0].url.params) == {"order": "desc", "page_size": "50"}


def test_records_are_filtered_by_the_api(cli, api):
    api.answer("GET", AUDIT, page())
    filters = {"subject": "clu_1", "actor": "user:ann", "action": "DeleteCluster", "outcome": "Conflict"}
    options = [text for name, value in filters.items() for text in (f"--{name}", value)]
    assert cli("audit", "list", *options, "--limit", "7").exit_code == 0
    assert dict(api.requests[0].url.params) == {**filters, "order": "desc", "page_size": "7"}


def test_records_since_a_time_are_all_of_them(cli, api):
    api.answer("GET", AUDIT, page(record(1)))
    cli("audit", "list", "--since", "2026-01-31T12:00:00Z")
    assert dict(api.requests[0].url.params) == {"since": "2026-01-31T12:00:00Z"}


@pytest.mark.parametrize(
    ("limit", "subjects"), [((), ["clu_1", "clu_2", "clu_3"]), (("--limit", "2"), ["clu_2", "clu_3"])]
)
def test_after_a_record_the_newest_of_those_that_came_are_listed(cli, api, limit, subjects):
    api.answer("GET", AUDIT, page(record(1), record(2), record(3)))
    result = cli("audit", "list", "--after", "aud_0", *limit)
    assert [line.split()[-1] for line in result.stdout.splitlines()[1:]] == subjects
    assert dict(api.requests[0].url.params) == {"after": "aud_0"}


def test_records_are_followed_and_ctrl_c_says_how_to_go_on(cli, api):
    api.answer("GET", AUDIT, page(record(1)))
    api.answer("GET", AUDIT, page(record(2), record(3, actor="the agent"), cursor="aud_0000000003~"))
    api.fault("GET", AUDIT, KeyboardInterrupt())
    result = cli("audit", "list", "--actor", "the agent", "-f")
    assert result.exit_code == 130
    heading, *lines = result.stdout.splitlines()
    assert [line.split()[0] for line in lines] == [f"2026-11-25T12:00:0{number}Z" for number in (1, 2, 3)]
    assert [line.index("clu_") for line in lines] == [heading.index("SUBJECT")] * 3
    again = "stockyard audit list --follow --actor 'the agent' --after aud_0000000003~"
    assert f"To go on from here: {again}" in result.stderr
    assert api.requests[1].url.params["wait"] == "20"


def test_a_followed_record_is_a_document_a_line(cli, api):
    api.answer("GET", AUDIT, page(cursor="aud_0000000001~"))
    api.answer("GET", AUDIT, page(record(2)))
    api.fault("GET", AUDIT, KeyboardInterrupt())
    assert [json.loads(line) for line in cli("audit", "list", "-f", "-o", "json").stdout.splitlines()] == [record(2)]
