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


@pytest.mark.parametrize(
    "arguments", [("cluster", "creat"), ("cluster", "get"), ("cluster", "list", "-o", "xml"), ("cluster", "create")]
)
def test_usage(cli, api, arguments):
    result = cli(*arguments)
    assert result.exit_code == 2
    assert "Usage: " in result.stderr
    assert api.requests == []


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


def token(**claims):
    payload = base64.urlsafe_b64encode(json.dumps(claims).encode()).decode().rstrip("=")
    return f"e30.{payload}.c2ln"


@pytest.mark.parametrize(
    ("sent", "words"),
    [
        ("", "There is no token"),
        ("nonsense", "STOCKYARD_TOKEN is no token of an issuer (a JWT)"),
        (token(exp=0), "STOCKYARD_TOKEN expired at 1970-01-01 00:00:00 UTC"),
        (token(exp=2**33), "is it of the issuer that this API trusts? Else"),
    ],
)
def test_a_refused_token_is_told_apart(cli, api, sent, words):
    api.answer("GET", "/v1/clusters", {"message": "Unauthorized"}, status=401)
    cli.environment["STOCKYARD_TOKEN"] = sent
    result = cli("cluster", "list")
    assert result.exit_code == 4
    assert words in result.stderr
    assert "log in with `stockyard login`" in result.stderr
    assert not sent or sent not in result.stderr


def test_repetitions_are_said_only_when_asked_for(cli, api):
    api.answer("GET", "/v1/clusters", {"message": "later"}, status=503)
    assert "Trying again" not in cli("cluster", "list").stderr
    assert cli("-v", "cluster", "list").stderr.count("Trying again") == 2
