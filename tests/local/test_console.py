"""The console's files, as the local gateway serves them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from local.functions.console import Console

FOLDER = Path(__file__).resolve().parents[2] / "console"
ISSUER = "https://id.example.com/realms/stockyard"


@pytest.fixture(scope="module")
def console() -> Console:
    return Console(FOLDER, ISSUER, "stockyard-console")


def test_every_page_is_the_one_document_and_files_are_themselves(console: Console) -> None:
    pages = (
        "/console/",
        "/console/clusters/a",
        "/console/offers/t3.xlarge",
        "/console/sign-in",
        "/console/claims/..%2f",
    )
    document = (FOLDER / "index.html").read_bytes()
    for path in pages:
        status, headers, body = console.answer("GET", path)
        assert (status, body) == (200, document), path
        assert dict(headers)["content-type"] == "text/html; charset=utf-8"
    status, headers, body = console.answer("GET", "/console/assets/app.js")
    assert (status, body) == (200, (FOLDER / "assets" / "app.js").read_bytes())
    assert dict(headers)["content-type"].startswith("text/javascript")
    assert console.answer("GET", "/console")[:2] == (302, [("location", "/console/")])
    assert all(map(console.has, ("/console", "/console/x")))
    assert not any(map(console.has, ("/consoles", "/v1/console")))


def test_nothing_outside_the_folder_is_served(console: Console) -> None:
    for path in ("assets/none.js", "assets/../../app.py", "assets/%2e%2e/%2e%2e/app.py", "assets/", "assets/core"):
        assert console.answer("GET", f"/console/{path}")[0] == 404, path
    assert console.answer("GET", "/console/serving.json")[2] == (FOLDER / "index.html").read_bytes()
    assert console.answer("POST", "/console/")[0] == 403


def test_headers_forbid_everything_that_is_not_ours_or_the_issuers(console: Console) -> None:
    policy = dict(console.answer("GET", "/console/")[1])["content-security-policy"]
    parts = {part.split()[0]: part.split()[1:] for part in policy.split(";")}
    assert parts["default-src"] == ["'none'"]
    assert parts["connect-src"] == ["'self'", "https://id.example.com"]
    assert parts["script-src"] == parts["style-src"] == ["'self'"]
    assert parts["frame-ancestors"] == parts["base-uri"] == parts["form-action"] == ["'none'"]
    assert "unsafe" not in policy


def test_a_browser_keeps_a_file_until_it_is_another_one(console: Console) -> None:
    _, headers, body = console.answer("GET", "/console/config.json")
    assert json.loads(body) == {"issuer": ISSUER, "client_id": "stockyard-console"}
    tag = dict(headers)["etag"]
    assert console.answer("GET", "/console/config.json", tag)[0] == 304
    assert console.answer("GET", "/console/config.json", '"other"')[0] == 200
    assert dict(headers)["cache-control"] == "no-cache"
