"""Functions of a stage with CloudFront in front of the API answer only what came through it."""

from __future__ import annotations

import hashlib
import json
import re
from pathlib import Path
from typing import Any

import pytest

from stockyard import settings, wiring
from stockyard.edge import origin
from stockyard.errors import Forbidden

ROOT = Path(__file__).parents[3]
OLD, NEW = "o" * 64, "n" * 64


def hash_of(key: str) -> str:
    return hashlib.sha256(key.encode()).hexdigest()


def request(**headers: str) -> dict[str, Any]:
    return {
        "rawPath": "/v1/health",
        "routeKey": "GET /v1/health",
        "headers": headers,
        "requestContext": {"http": {"method": "GET"}, "requestId": "r-1"},
    }


@pytest.mark.parametrize("headers", [{}, {settings.ORIGIN_KEY_HEADER: ""}, {settings.ORIGIN_KEY_HEADER: hash_of(NEW)}])
def test_a_request_without_the_key_is_refused(headers: dict[str, str]) -> None:
    with pytest.raises(Forbidden):
        origin.check(request(**headers), hash_of(NEW))


def test_while_the_key_changes_both_are_accepted() -> None:
    hashes = f"{hash_of(NEW)},{hash_of(OLD)}"
    for key in (OLD, NEW):
        origin.check(request(**{settings.ORIGIN_KEY_HEADER: key}), hashes)


def test_without_a_distribution_every_request_passes() -> None:
    origin.check(request(), "")


@pytest.mark.parametrize("path", ["/v1/health", "/v1/clusters", "/v1/nothing"])
def test_functions_answer_no_route_around_the_distribution(monkeypatch: pytest.MonkeyPatch, path: str) -> None:
    names = {"STOCKYARD_TABLE": "table", "STOCKYARD_ORIGIN_KEY_HASHES": hash_of(NEW)}
    monkeypatch.setattr(wiring, "configuration", lambda: settings.read(names))
    http = wiring.http("records")
    event = {**request(), "rawPath": path}
    answer = http.handle(event, None)
    assert answer["statusCode"] == 403
    assert json.loads(answer["body"])["error_type"] == "Forbidden"
    event["headers"] = {settings.ORIGIN_KEY_HEADER: NEW}
    assert http.handle(event, None)["statusCode"] in (404, 405), "this function has no routes here"


def test_no_function_reads_an_address_that_a_caller_may_write() -> None:
    address = re.compile(r"""["'](x-forwarded-for|forwarded|sourceip|cloudfront-viewer-address)["']""", re.IGNORECASE)
    sources = [*(ROOT / "layers/common/python").rglob("*.py"), *(ROOT / "functions").rglob("*.py")]
    assert len(sources) > 100
    assert [str(path) for path in sources if address.search(path.read_text(encoding="utf-8"))] == []
