"""The API's document and the page that shows it, as the function serves them."""

from __future__ import annotations

import base64
import gzip
import hashlib
import json
import re
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

from functions.records import contract, handler
from local.testing.fresh_wiring import fresh_wiring

ROOT = Path(__file__).resolve().parents[3]
ELSEWHERE = re.compile(r"(?:https?:)?//[a-z0-9]", re.IGNORECASE)


@pytest.fixture
def get(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """Asks the function, without a token."""
    monkeypatch.setattr("stockyard.edge.origin.check", lambda *_: None)
    monkeypatch.setenv("STOCKYARD_TABLE", "t")

    def call(path: str, **headers: str) -> dict[str, Any]:
        return handler.http.handle(
            {
                "version": "2.0",
                "routeKey": f"GET {path}",
                "rawPath": path,
                "rawQueryString": "",
                "headers": {name.replace("_", "-"): value for name, value in headers.items()},
                "requestContext": {"requestId": "r", "http": {"method": "GET", "path": path}},
                "isBase64Encoded": False,
            },
            None,
        )

    with fresh_wiring():
        yield call


def test_document_is_the_committed_one(get: Any) -> None:
    answer = get("/v1/openapi.json")
    assert (answer["statusCode"], answer["headers"]["Content-Type"]) == (200, "application/json")
    assert answer["body"] == (ROOT / "openapi.json").read_text(encoding="utf-8")
    assert get("/v1/openapi.json", if_none_match=answer["headers"]["ETag"])["statusCode"] == 304


def test_document_is_small_when_it_is_compressed(get: Any) -> None:
    answer = get("/v1/openapi.json", accept_encoding="gzip")
    assert len(answer["body"]) < 200_000
    assert json.loads(gzip.decompress(base64.b64decode(answer["body"])))["openapi"] == "3.1.0"


class Parts(HTMLParser):
    """The tags of a page with their attributes, and the texts of its script and style."""

    def __init__(self) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.inline: dict[str, str] = {}

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        if self.tags and self.tags[-1][0] in ("script", "style") and data.strip():
            self.inline.setdefault(self.tags[-1][0], data)


def test_page_may_do_nothing_but_its_own_script_and_ask_its_own_api(get: Any) -> None:
    answer = get("/v1/docs")
    assert (answer["statusCode"], answer["headers"]["Content-Type"]) == (200, "text/html; charset=utf-8")
    parts = Parts()
    parts.feed(answer["body"])
    hashes = {
        kind: base64.b64encode(hashlib.sha256(text.encode()).digest()).decode() for kind, text in parts.inline.items()
    }
    policy = dict(part.strip().split(" ", 1) for part in answer["headers"]["Content-Security-Policy"].split(";"))
    assert policy == {
        "default-src": "'none'",
        "script-src": f"'sha256-{hashes['script']}'",
        "style-src": f"'sha256-{hashes['style']}'",
        "connect-src": "'self'",
        "base-uri": "'none'",
        "form-action": "'none'",
        "frame-ancestors": "'none'",
    }


def test_page_names_no_other_host_and_writes_no_markup(get: Any) -> None:
    parts = Parts()
    parts.feed(get("/v1/docs")["body"])
    assert not [tag for tag, attributes in parts.tags if attributes.keys() & {"src", "href", "style"} or tag == "link"]
    assert not ELSEWHERE.search(re.sub(r"^\s*// .*$", "", parts.inline["script"], flags=re.MULTILINE))
    # What the document says is shown as text, whatever is in it.
    assert not re.search(r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\b", parts.inline["script"])


def test_files_are_read_and_compressed_once() -> None:
    assert contract.document() is contract.document()
    assert contract.page() is contract.page()
