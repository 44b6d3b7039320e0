"""Functions that are called in process, with services in memory in place of those of a stage."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from types import ModuleType
from typing import Any
from unittest.mock import patch

from stockyard import wiring
from stockyard.operations.services import Services
from tests.harness.crash.world import _event
from tests.harness.worlds.inprocess import Context


@dataclass(frozen=True)
class Reply:
    """The answer to a request. ``json`` is the document, or the text of what is none."""

    status: int
    headers: Mapping[str, str]
    json: Any


Ask = Callable[..., Reply]
"""Sends a request; ``version`` is that of ``If-Match``."""


@contextmanager
def asking(
    services: Callable[[], Services], module_of: Callable[[str], ModuleType], *modules: ModuleType
) -> Iterator[Ask]:
    """Calls routes of the handlers ``modules``, of which ``module_of`` a path serves it."""
    with ExitStack() as stack:
        parts = {"services": lambda _: services(), "store": lambda _: services().store, "audit": lambda *_: None}
        for name, part in parts.items():
            stack.enter_context(patch.object(wiring, name, part))
        for module in modules:
            dependencies = replace(
                module.http._dependencies,
                clock=services().clock.now,
                admit=lambda _: None,
                audit=lambda _, record: None,
                keys=None,
            )
            stack.enter_context(patch.object(module.http, "_dependencies", dependencies))
            stack.enter_context(patch.object(module.http, "_origin", None))

        def call(
            method: str, path: str, body: Any = None, *, version: int = 0, dry_run: bool = False, query: str = ""
        ) -> Reply:
            event = _event(method, path, body, {"roles": ("stockyard-operator", "stockyard-admin")}, "key-1")
            event["headers"]["if-match"] = f'"{version}"'
            event["headers"]["content-type"] = f"application/{'merge-patch+' if method == 'PATCH' else ''}json"
            event["rawQueryString"] = "dry_run=true" if dry_run else query
            answer = module_of(path).lambda_handler(event, Context("clusters", "request"))
            headers, text = answer["headers"], answer["body"]
            is_json = "json" in headers.get("Content-Type", "json")
            return Reply(int(answer["statusCode"]), headers, json.loads(text) if is_json else text)

        yield call
