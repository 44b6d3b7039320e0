"""The page of what may come in from outside has a row for each route, message and call of a machine."""

from __future__ import annotations

import json
from pathlib import Path

from local import openapi, security_page

ROOT = Path(security_page.__file__).parents[1]
PAGE = (ROOT / security_page.PAGE).read_text(encoding="utf-8")


def rows(title: str) -> dict[str, list[str]]:
    """The rows of a part of the page by their first cell."""
    part = PAGE.partition(f"## {title}\n")[2].partition("\n## ")[0]
    cells = [line.strip("| ").split(" | ") for line in part.splitlines() if line.startswith(("| `", "| stream"))]
    return {row[0].strip("`"): row[1:] for row in cells}


def test_page_is_that_of_the_code(tmp_path: Path) -> None:
    assert openapi.generated()[security_page.PAGE] == PAGE
    assert openapi.main([], root=tmp_path) == 0
    (tmp_path / security_page.PAGE).write_text(PAGE.replace("admin", "viewer"))
    assert openapi.main(["--check"], root=tmp_path) == 1


def test_each_route_has_a_row_with_its_roles() -> None:
    document = json.loads((ROOT / "openapi.json").read_text(encoding="utf-8"))
    people, machines, everybody = rows("Routes of people"), rows("Calls of machines"), rows("Routes of everybody")
    for path, methods in document["paths"].items():
        for method, operation in methods.items():
            name = f"{method.upper()} {path}"
            roles = [role.removeprefix("stockyard-") for role in operation.get("x-stockyard-roles", ())]
            assert (name in people) == bool(roles), name
            assert name in people or name in machines or name in everybody, name
            if roles:
                assert people[name][1].split(", ") == roles, name
    assert machines["POST /v1/node-claims/{id}/join"][0] == "proof"
    assert machines["POST /v1/clusters/{id}/ready"][0] == "own client"


def test_each_function_is_begun_by_a_route_or_a_message() -> None:
    served = {row[0] for row in rows("Routes of people").values()} | {"machines", "runs"}
    functions = {row[1] for row in rows("Messages").values()}
    folders = {path.parent.name for path in (ROOT / "functions").glob("*/handler.py")}
    assert served | functions >= folders
    assert rows("Messages")["stockyard-dev-requests"][2].startswith("an account that the bus admits")
