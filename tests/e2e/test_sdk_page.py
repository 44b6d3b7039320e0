"""The recipes of docs/sdk.md, run in order on the local cloud as a reader would run them."""

from __future__ import annotations

import contextlib
import io
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.harness.blocks import SCARCE

if TYPE_CHECKING:
    from local.testing.serving import Served

PAGE = Path(__file__).resolve().parents[2] / "docs" / "sdk.md"
SAYS: Mapping[str, str] = {
    "1. Plan, with the price": r"control plane instance t3\.large .* USD a month\n(.*\n)+\d+ things, [1-9][0-9.]+ USD",
    "2. Create a cluster and wait": r"100 %\nshop ready\n$",
    "3. Claim a node": r"^\S+ \S+\.\S+ Available\n$",
    "4. Make a pool and scale it": r"\nweb 1 of 1\n$",
    "5. Follow events": r"Accepted (.*\n)+.* Ready The cluster is ready\.\n$",
    "6. Handle refusals and conflicts": r"^409 ClusterNameInUse .*\n(.*\n)*"
    r"/settings/key_pear unknown field; did you mean key_pair\?\n",
    "7. Retry a failed creation with other settings": r"^control_plane InsufficientCapacity .*\nready\n$",
    "8. Explain a choice, and what it costs": r"\S+\.\S+ 0\.\d+ USD an hour\n(.*\n)+.* cost 0\.\d*[1-9]",
    "9. Get a kubeconfig": r"^kubectl --kubeconfig \S+/shop\.yaml get nodes\n$",
    "10. Delete all of it": r"^(\w+ [1-9]\d* things\n){2}\[\]\n$",
}
"""The recipes, and what each has to print."""


def blocks(text: str) -> list[str]:
    """The Python of a part of the page."""
    return re.findall(r"^```python\n(.*?)^```$", text, re.DOTALL | re.MULTILINE)


def recipes() -> dict[str, list[str]]:
    """Recipe -> its code; what comes before the first one is the empty name."""
    head, *parts = re.split(r"^## ", PAGE.read_text(encoding="utf-8"), flags=re.MULTILINE)
    return {"": blocks(head), **{part.partition("\n")[0]: blocks(part) for part in parts}}


@pytest.fixture(scope="module")
def reader(served: Served) -> Iterator[dict[str, Any]]:
    """State that the recipes before have left: the names of one Python session, begun as the page says."""
    with pytest.MonkeyPatch.context() as patch:
        for name in ("STOCKYARD_URL", "STOCKYARD_TOKEN"):
            patch.setenv(name, served.environment[name])
        names: dict[str, Any] = {}
        run(recipes()[""], names)
        yield names
        names["stockyard"].close()


def run(code: list[str], names: dict[str, Any]) -> str:
    """Runs the blocks one after the other; what they print."""
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        for block in code:
            exec(compile(block, str(PAGE), "exec"), names)  # noqa: S102 - the page is ours
    return printed.getvalue()


def test_page_has_these_recipes() -> None:
    assert list(recipes()) == ["", *SAYS]
    assert all(recipes().values())
    assert SCARCE in recipes()["7. Retry a failed creation with other settings"][0]


@pytest.mark.timeout(600)
@pytest.mark.parametrize("recipe", SAYS)
def test_recipe_runs_and_says_what_it_should(reader: dict[str, Any], recipe: str) -> None:
    text = run(recipes()[recipe], reader)
    assert re.search(SAYS[recipe], text), text
