"""The console's files: what they call, whom they ask, how much they weigh."""

from __future__ import annotations

import gzip
import json
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
CONSOLE = ROOT / "console"
SCRIPTS = sorted(path for path in CONSOLE.rglob("*.js") if "vendor" not in path.parts)
MOST_BYTES = 120_000
"""Of all files together, as CloudFront compresses them."""
MOST_LINES = 400


def text(path: Path) -> str:
    return path.read_text(encoding="utf-8")


def routes() -> dict[str, dict[str, object]]:
    source = text(CONSOLE / "assets" / "core" / "routes.js")
    table: dict[str, dict[str, object]] = json.loads(source[source.index("{") : source.rindex("}") + 1])
    return table


def test_operations_are_those_of_the_contract() -> None:
    document = json.loads(text(ROOT / "openapi.json"))
    contract = {
        operation["operationId"]: {
            "method": method.upper(),
            "path": path,
            "roles": operation.get("x-stockyard-roles", []),
        }
        for path, methods in document["paths"].items()
        for method, operation in methods.items()
    }
    named = routes()
    assert named == {name: contract.get(name) for name in named}
    assert list(named) == sorted(named)


def test_scripts_name_operations_alone_and_each_is_called() -> None:
    everything = "\n".join(text(path) for path in SCRIPTS if path.name != "routes.js")
    assert "/v1/" not in everything
    called = set(re.findall(r'"([A-Z][A-Za-z]+)"', everything))
    assert [name for name in routes() if name not in called] == []
    calls = re.findall(r'\b(?:call|useRead|usePages|may|asRequest|address)\(\s*"([A-Za-z]+)"', everything)
    assert set(calls) <= set(routes())


def test_every_file_that_a_script_loads_is_there() -> None:
    for path in SCRIPTS:
        for name in re.findall(r'from "(\.[^"]+)"', text(path)):
            assert (path.parent / name).resolve().is_file(), f"{path.relative_to(ROOT)}: {name}"
    for name in re.findall(r'(?:src|href)="/console/([^"]+)"', text(CONSOLE / "index.html")):
        assert (CONSOLE / name).is_file(), name


@pytest.mark.parametrize("path", SCRIPTS, ids=lambda path: path.name)
def test_scripts_make_no_markup_of_text_and_ask_nobody_else(path: Path) -> None:
    source = text(path)
    for word in ("innerHTML", "dangerouslySetInnerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval("):
        assert word not in source, word
    assert not re.search(r"https?://(?!www\.w3\.org)", source)
    assert len(source.splitlines()) < MOST_LINES


def test_templates_close_what_they_open() -> None:
    """A row or a cell without an end would draw nothing."""
    for path in SCRIPTS:
        source = text(path)
        for name in ("li", "th", "td", "tr", "p", "div", "span", "ul", "table", "section", "label", "button"):
            opened = re.findall(rf"<{name}(?=[\s>])(?:[^<>]|=>|\$\{{[^}}]*\}})*?(/?)>", source)
            closed = len(re.findall(rf"</{name}>", source))
            assert closed == sum(1 for end in opened if not end) or closed >= len(opened) - opened.count("/"), (
                f"{path.name}: <{name}> {len(opened)} opened, {closed} closed"
            )


def test_no_style_or_script_stands_in_the_document() -> None:
    source = text(CONSOLE / "index.html")
    assert "<style" not in source
    assert not re.search(r"<script(?![^>]*\bsrc=)", source)
    assert not re.search(r"\son\w+=|\sstyle=", source)


def test_all_modules_are_fetched_at_once() -> None:
    """One module tells of the next only when it is there: the document names all of them."""
    page = text(CONSOLE / "index.html")
    names = {path.relative_to(CONSOLE).as_posix() for path in CONSOLE.rglob("*.js")} - {
        "assets/theme.js",
        "assets/app.js",
    }
    assert set(re.findall(r'rel="modulepreload" href="/console/([^"]+)"', page)) == names


def test_all_files_together_are_light() -> None:
    files = [path for path in CONSOLE.rglob("*") if path.suffix in {".js", ".css", ".html", ".svg"}]
    assert sum(len(gzip.compress(path.read_bytes())) for path in files) < MOST_BYTES


def test_vendored_file_has_its_licences() -> None:
    names = {path.name for path in (CONSOLE / "assets" / "vendor").iterdir()}
    assert names == {"preact-htm.js", "LICENSE.preact.txt", "LICENSE.htm.txt"}
    assert "MIT" in text(CONSOLE / "assets" / "vendor" / "LICENSE.preact.txt")
    assert "Apache License" in text(CONSOLE / "assets" / "vendor" / "LICENSE.htm.txt")
