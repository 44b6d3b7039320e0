"""Every exit code, and what stands on stderr with it."""

from __future__ import annotations

import base64
import json

import httpx
import pytest


@pytest.mark.parametrize(
    ("status", "error_type", "code"),
    [
        (400, "MalformedBody", 2),
        (413, "BodyTooLarge", 2),
        (415, "UnsupportedMediaType", 2),
        (422, "InvalidInput", 2),
        (404, "NotFound", 3),
        (401, "Unauthorized", 4),
        (403, "Forbidden", 4),
        (409, "ClusterNameInUse", 5),
        (412, "PreconditionFailed", 5),
        (403, "QuotaExceeded", 6),
        (500, "Internal", 1),
        (502, "UnexpectedBehavior", 1),
    ],
)
def test_refusals(cli, api, status, error_type, code):
    api.problem("GET", "/v1/clusters/demo", status, error_type)
    result = cli("cluster", "get", "demo")
    assert result.exit_code == code
    assert result.stdout == ""
    assert f"Error: It is {error_type}. ({error_type}, {status})" in result.stderr
    assert "Request id: req-1" in result.stderr


def test_no_connection_is_a_failure(cli, api):
    api.fault("GET", "/v1/clusters", httpx.ConnectError("refused"))
    result = cli("cluster", "list")
    assert result.exit_code == 1
    assert "no answer from https://api.test" in result.stderr


@pytest.mark.parametrize(
    ("error", "code"),
    [
        ({"error_type": "ClusterCouldNotBeDeployed", "cause_type": "InsufficientCapacity", "cause": "none left"}, 6),
        ({"error_type": "ClusterCouldNotBeDeployed", "cause_type": "VendorQuotaExceeded", "cause": "200 rules"}, 6),
        ({"error_type": "ClusterCouldNotBeDeployed", "cause_type": "VendorRefused", "cause": "no QuotaExceeded"}, 1),
        ({"error_type": "VendorQuotaExceeded", "cause": "full"}, 6),
        ({"error_type": "ClusterCouldNotBeDeployed", "cause": "RunInstances: VcpuLimitExceeded"}, 6),
        ({"error_type": "ClusterCouldNotBeDeployed", "cause": "We do not have sufficient t3.xlarge capacity in a"}, 6),
        ({"error_type": "ClusterCouldNotBeDeployed", "cause": "The maximum number of VPCs has been reached."}, 6),
        ({"error_type": "ClusterCouldNotBeDeployed", "cause": "DescribeVpcs: RequestLimitExceeded"}, 1),
        ({"error_type": "ClusterCouldNotBeDeployed", "cause": "AccessDenied"}, 1),
        (None, 1),
    ],
)
def test_failed_operations(cli, api, operation_document, error, code):
    api.answer("GET", "/v1/operations/op_01", operation_document("failed", error=error))
    result = cli("operation", "wait", "op_01")
    assert result.exit_code == code
    assert result.stderr.startswith("Error: ")


def test_time_out(cli, api, operation_document):
    api.answer("GET", "/v1/operations/op_01", operation_document())
    assert cli("operation", "wait", "op_01", "--timeout", "10").exit_code == 124


def test_interruption(cli, api):
    api.fault("GET", "/v1/clusters", KeyboardInterrupt())
    result = cli("cluster", "list")
    assert result.exit_code == 130
    assert "goes on by itself" in result.stderr


def test_a_slip_is_answered_with_commands_that_the_help_shows(cli):
    assert "Did you mean 'create'?" in cli("cluster", "creat").stderr
    assert "Did you mean 'cluster'?" in cli("clusterr").stderr
    # the former name goes on working
    assert cli("cluster", "retry", "--help").exit_code == 0


@pytest.mark.parametrize(
    "arguments", [("cluster", "creat"), ("cluster", "get"), ("cluster", "list", "-o", "xml"), ("cluster", "create")]
)
def test_usage(cli, api, arguments):
    result = cli(*arguments)
    assert result.exit_code == 2
    assert "Usage: " in result.stderr
    assert api.requests == []


def test_a_wrong_choice_is_said_without_words_of_the_library(cli, api):
    result = cli("cluster", "list", "-o", "xml")
    assert "Invalid value for '--output' / '-o': 'xml' is not one of 'table'" in result.stderr


@pytest.mark.parametrize("url", [None, "ftp://x", "api.test"])
def test_unknown_api_is_a_usage_error(cli, url):
    cli.environment.pop("STOCKYARD_URL")
    if url:
        cli.environment["STOCKYARD_URL"] = url
    result = cli("cluster", "list")
    assert result.exit_code == 2
    assert result.stderr.startswith("Error: ")


def test_not_logged_in_says_how(cli, api):
    api.answer("GET", "/v1/clusters", {"message": "Unauthorized"}, status=401)
    cli.environment.pop("STOCKYARD_TOKEN")
    result = cli("cluster", "list")
    assert result.exit_code == 4
    assert "stockyard login" in result.stderr
    assert "Authorization" not in api.requests[0].headers


def jwt(**claims: object) -> str:
    payload = base64.urlsafe_b64encode(json.dumps(claims).encode()).decode().rstrip("=")
    return f"e30.{payload}.c2ln"


@pytest.mark.parametrize(
    ("token", "text"),
    [
        ("", "There is no token: log in"),
        ("abc", "STOCKYARD_TOKEN is no token of an issuer (a JWT): log in"),
        (jwt(exp=-60), "STOCKYARD_TOKEN expired at 1969-12-31 23:59:00 UTC: log in"),
        (jwt(exp=60), "STOCKYARD_TOKEN is refused, and ends only at 1970-01-01 00:01:00 UTC"),
    ],
)
def test_a_refused_token_is_looked_at(cli, api, token, text):
    api.answer("GET", "/v1/clusters", {"message": "Unauthorized"}, status=401)
    cli.environment["STOCKYARD_TOKEN"] = token
    result = cli("cluster", "list")
    assert result.exit_code == 4
    assert text in result.stderr
    assert not token or token not in result.output


@pytest.mark.parametrize(
    ("url", "hint"),
    [
        ("http://127.0.0.1:4566", "STOCKYARD_URL may be that of one that has stopped"),
        ("https://api.test", "Is the URL right?"),
    ],
)
def test_a_missing_server_is_said_with_what_may_be_the_reason(cli, api, url, hint):
    cli.environment["STOCKYARD_URL"] = url
    api.fault("GET", "/v1/clusters", httpx.ConnectError("[Errno 111] Connection refused"))
    result = cli("cluster", "list")
    assert result.exit_code == 1
    assert result.stderr.startswith(f"Error: no answer from {url}: connection refused\n")
    assert hint in result.stderr
    assert "Errno" not in result.stderr


def test_a_connection_that_broke_comes_without_that_hint(cli, api):
    api.fault("GET", "/v1/clusters", httpx.ReadError(""))
    assert cli("cluster", "list").stderr == "Error: no answer from https://api.test: the connection broke\n"


PRICES = [
    {"region": "us-east-1", "name": name, "price": price}
    for name, price in (("t3a.xlarge", 0.15), ("m6i.xlarge", 0.192), ("m6g.xlarge", 0.1), ("m5a.large", 0.08),
                        ("m5a.xlarge", 0.172), ("m7i.xlarge", None), ("t3.xlarge", 0.166))
]  # fmt: skip


@pytest.mark.parametrize(
    ("settings", "types"),
    [
        ({"control_plane_instance_types": ["t3.xlarge"]}, '["t3.xlarge", "t3a.xlarge", "m5a.xlarge"]'),
        ({"control_plane_instance_type": "m6i.xlarge"}, '["m6i.xlarge", "t3a.xlarge", "t3.xlarge"]'),
    ],
)
def test_a_creation_without_capacity_names_the_command_that_goes_on(
    cli, api, operation_document, cluster_document, settings, types
):
    error = {"error_type": "ClusterCouldNotBeDeployed", "cause_type": "InsufficientCapacity", "phase": "control_plane"}
    api.answer("GET", "/v1/operations/op_01", operation_document("failed", error=error))
    api.answer("GET", "/v1/clusters/clu_01", cluster_document(settings={"region_name": "us-east-1", **settings}))
    api.answer("GET", "/v1/prices", {"items": PRICES, "next_page_token": None})
    result = cli("operation", "wait", "op_01")
    command = f"stockyard cluster resume demo --set 'settings.control_plane_instance_types={types}' --wait"
    assert result.stderr.splitlines()[-1] == f"With other types as well: {command}"
    assert result.exit_code == 6


def test_a_creation_that_failed_otherwise_names_resume(cli, api, operation_document, cluster_document):
    for phase, cause in (("network", "VendorQuotaExceeded"), ("control_plane", "VendorRefused")):
        error = {"error_type": "ClusterCouldNotBeDeployed", "cause_type": cause, "phase": phase}
        api.answer("GET", f"/v1/operations/{phase}", operation_document("failed", error=error))
        text = cli("operation", "wait", phase).stderr
        assert "Once mended: stockyard cluster resume clu_01 --wait" in text
        assert "add --set settings.NAME=VALUE, or --with FILE" in text
    # no family of equals, and an API that does not answer
    short = {**error, "cause_type": "InsufficientCapacity"}
    api.answer("GET", "/v1/operations/short", operation_document("failed", error=short))
    assert "Once mended" in cli("operation", "wait", "short").stderr
    api.answer("GET", "/v1/clusters/clu_01", cluster_document(settings={"control_plane_instance_type": "g5.xlarge"}))
    assert "Once mended" in cli("operation", "wait", "short").stderr


def test_a_reader_who_has_seen_enough_is_no_failure(cli, api, monkeypatch):
    api.answer("GET", "/v1/clusters", {"items": [], "next_page_token": None})

    def broken(*_: object) -> None:
        raise BrokenPipeError

    monkeypatch.setattr("stockyard_client.cli.clusters.clusters.show_many", broken)
    result = cli("cluster", "list")
    assert (result.exit_code, result.output) == (141, "")


def test_repetitions_are_said_only_when_asked_for(cli, api):
    api.answer("GET", "/v1/clusters", {"message": "later"}, status=503)
    assert "Trying again" not in cli("cluster", "list").stderr
    assert cli("-v", "cluster", "list").stderr.count("Trying again") == 2


@pytest.mark.parametrize("url", ["https://api.test/", "https://api.test/v1", "https://api.test/v1/"])
def test_the_url_may_end_as_the_paths_of_the_api_begin(cli, api, url):
    api.answer("GET", "/v1/clusters", {"items": [], "next_page_token": None})
    assert cli("--url", url, "cluster", "list").exit_code == 0
    assert str(api.requests[0].url).startswith("https://api.test/v1/clusters")


def test_a_fault_that_many_fields_share_is_said_once(cli, api):
    shared = [{"pointer": f"/packs/{n}/url", "detail": "the host cannot be reached"} for n in range(23)]
    errors = [*shared, {"pointer": "/name", "detail": "is needed"}]
    api.problem("POST", "/v1/clusters", 422, "InvalidInput", errors=errors)
    lines = cli("cluster", "create", "-f", "-", stdin="{}").stderr.splitlines()
    assert lines[0].startswith("Error: 24 fields are not valid")
    assert lines[1].endswith("packs[0].url and 22 other places: the host cannot be reached")
    assert lines[2].endswith("name: is needed")
