"""``stockyard logs``, lists of operations, and what is said while an operation is waited for."""

from __future__ import annotations

import pytest

from stockyard_client.cli.output.progress import duration
from tests.client.cli.feeds import CLAIMS, CLUSTERS, OPERATIONS, listed


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


def test_logs_show_the_lines_of_runs_instead_of_the_end_of_the_console(cli, api):
    run = {"name": "console", "attempt": 1, "phase": "machine", "started_at": "2026-11-25T12:00:06.000Z"}
    failed = operation_with_times("failed", runs=[{**run, "ended_at": "2026-11-25T12:00:06.000Z", "error": None}])
    failed["error"] = {"error_type": "ClusterCouldNotBeDeployed", "phase": "machine", "cause": "x", "console": "end"}
    api.answer("GET", f"{OPERATIONS}/op_01", failed)
    line = {"run": "console", "attempt": 1, "time": "2026-11-25T12:00:06.000Z"}
    items = [{**line, "number": 1, "text": "boot"}, {**line, "number": 2, "text": "end"}]
    api.answer("GET", f"{OPERATIONS}/op_01/log", {"items": items, "cursor": "console.1.2", "next_page_token": None})
    result = cli("logs", "op_01")
    assert [line.split()[1:] for line in result.stdout.splitlines() if "console" in line] == [
        ["console:", "boot"],
        ["console:", "end"],
    ]


def test_followed_lines_of_a_run_are_written_once_and_as_they_come(cli, api):
    run = {"name": "apply", "attempt": 1, "phase": "launch", "started_at": "2026-11-25T12:00:06.000Z"}
    running = operation_with_times(runs=[{**run, "ended_at": None, "error": None}])
    done = operation_with_times("succeeded", version=2, runs=[{**run, "ended_at": "x", "error": None}])
    line = {"run": "apply", "attempt": 1, "time": "2026-11-25T12:00:07.000Z"}
    for document in (running, running, done):
        api.answer("GET", f"{OPERATIONS}/op_01", document)
    for number, texts in ((1, ["one"]), (2, ["two"]), (2, []), (3, ["three"]), (3, [])):
        cursor = f"apply.1.{number}"
        items = [{**line, "number": number, "text": text} for text in texts]
        api.answer("GET", f"{OPERATIONS}/op_01/log", {"items": items, "cursor": cursor, "next_page_token": None})
    result = cli("logs", "op_01", "--follow")
    assert result.exit_code == 0
    lines = [line.split()[-1] for line in result.stdout.splitlines() if "apply:" in line]
    assert lines == ["one", "two", "three"]
