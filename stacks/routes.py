"""The routes of the API, read from ``openapi.json``, which is generated from where the functions declare them."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

DOCUMENT = Path(__file__).resolve().parent.parent / "openapi.json"
DEFAULT_ROUTE = "$default"


@dataclass(frozen=True, slots=True)
class GatewayRoute:
    """A route as API Gateway spells it (``POST /v1/clusters``) and the function behind it.

    ``open_because``: why it has no JWT authorizer; empty where it has one.
    """

    key: str
    function: str
    open_because: str = ""


def routes() -> tuple[GatewayRoute, ...]:
    """Every route of the gateway: those of the document, and the one for what no other takes."""
    paths: dict[str, dict[str, Any]] = json.loads(DOCUMENT.read_text(encoding="utf-8"))["paths"]
    documented = (
        GatewayRoute(
            f"{method.upper()} {path}", operation["x-stockyard-function"], operation.get("x-stockyard-open", "")
        )
        for path, methods in paths.items()
        for method, operation in methods.items()
    )
    reason = "Answers 404 and 405 as problem documents, and never anything of a tenant"
    return (*documented, GatewayRoute(DEFAULT_ROUTE, "records", reason))
