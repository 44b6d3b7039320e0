"""The page that shows the API's document, in a real browser on the local cloud."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import pytest

from tests.harness import browser

if TYPE_CHECKING:
    from local.testing.serving import Served

DOCUMENT = json.loads((Path(__file__).resolve().parents[2] / "openapi.json").read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def program() -> str:
    """The browser. Nothing is served where there is none."""
    path = browser.program()
    if path is None:
        pytest.skip(f"it needs a browser: {', '.join(browser.PROGRAMS)}")
    return path


@pytest.fixture
def tab(program: str, tmp_path: Path) -> Iterator[browser.Tab]:
    with browser.tab(program, tmp_path) as page:
        yield page


def test_page_shows_every_operation_and_asks_nobody_else(program: str, served: Served, tab: browser.Tab) -> None:
    tab.open(f"{served.environment['STOCKYARD_URL']}/v1/docs#CreateCluster")
    tab.wait_for("document.querySelector('#CreateCluster > div')")
    ids = tab.evaluate("[...document.querySelectorAll('main > details')].map((box) => box.id)")
    assert sorted(ids) == sorted(
        operation["operationId"] for methods in DOCUMENT["paths"].values() for operation in methods.values()
    )
    text = tab.evaluate("document.getElementById('CreateCluster').innerText")
    description = DOCUMENT["components"]["schemas"]["ClusterCreate"]["properties"]["name"]["description"]
    tab.wait_for(f"document.getElementById('CreateCluster').innerText.includes({json.dumps(description)})")
    assert DOCUMENT["components"]["responses"]["MalformedBody"]["description"] in text
    tab.evaluate("[...document.querySelectorAll('#CreateCluster details')].forEach((box) => { box.open = true; })")
    tab.wait_for("document.getElementById('CreateCluster').innerText.includes('urn:stockyard:problem:InvalidInput')")
    assert tab.complaints == []
    home = urlsplit(served.environment["STOCKYARD_URL"]).netloc
    assert {urlsplit(url).netloc for url in tab.requested} == {home}


def test_filter_leaves_what_has_the_words(program: str, served: Served, tab: browser.Tab) -> None:
    tab.open(f"{served.environment['STOCKYARD_URL']}/v1/docs")
    tab.wait_for("document.querySelectorAll('nav a').length > 0")
    tab.evaluate(
        "(() => { const field = document.querySelector('nav input'); field.value = 'quota put';"
        " field.dispatchEvent(new Event('input')); })()"
    )
    visible = "[...document.querySelectorAll('nav a')].filter((link) => link.offsetParent).map((link) => link.hash)"
    assert tab.evaluate(visible) == ["#SetQuota"]
