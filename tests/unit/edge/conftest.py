"""An HTTP function, events as the gateway makes them, and an idempotency store in memory."""

from __future__ import annotations

import base64
import itertools
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import cached_property
from typing import Any

import pytest

from stockyard.domain.records import AuditRecord, Idempotency
from stockyard.edge.route import HttpFunction
from tests.harness.crash.route_keys import route_key

OPERATOR = {
    "sub": "u-1",
    "preferred_username": "bob",
    "azp": "console",
    "organization": {"acme": {"id": "1"}},
    "realm_access": {"roles": ["stockyard-viewer", "stockyard-operator"]},
}


_NUMBERS = itertools.count()


class MemoryKeys:
    """The edge's ``Keys`` over a dictionary, conditional like the table."""

    def __init__(self) -> None:
        self.records: dict[str, Idempotency] = {}

    def get(self, id: str) -> Idempotency | None:
        return self.records.get(id)

    def insert(self, record: Idempotency) -> bool:
        if record.id in self.records:
            return False
        self.records[record.id] = record
        return True

    def replace(self, record: Idempotency) -> bool:
        if self.records[record.id].version != record.version - 1:
            return False
        self.records[record.id] = record
        return True


@dataclass
class World:
    """An HTTP function with its surroundings, and the way to call it."""

    now: datetime = datetime(2026, 11, 21, 12, tzinfo=UTC)
    keys: dict[str, MemoryKeys] = field(default_factory=dict)
    audits: list[tuple[str, AuditRecord]] = field(default_factory=list)

    @cached_property
    def http(self) -> HttpFunction:
        # made in the test itself: its logger keeps the stream that is there now
        return HttpFunction(
            f"test-{next(_NUMBERS)}",
            keys=lambda tenant: self.keys.setdefault(tenant, MemoryKeys()),
            audit=lambda tenant, record: self.audits.append((tenant, record)),
            page_key=lambda: b"k" * 32,
            clock=lambda: self.now,
            randomness=lambda size: b"\x01" * size,
        )

    def wait(self, seconds: float) -> None:
        self.now += timedelta(seconds=seconds)

    def call(self, method: str, path: str, **options: Any) -> Result:
        sent = event(method, path, **options)
        templates = [route.path for route in self.http.routes if route.method == method]
        return Result(self.http.handle({**sent, "routeKey": route_key(method, path, templates)}, None))


class Result:
    """An answer, taken apart."""

    def __init__(self, raw: Mapping[str, Any]) -> None:
        self.status: int = raw["statusCode"]
        self.headers: dict[str, str] = dict(raw["headers"])
        self.text: str = raw["body"]
        self.json: Any = json.loads(raw["body"])


def event(
    method: str,
    path: str,
    *,
    claims: Mapping[str, Any] | None = OPERATOR,
    body: Any = None,
    raw: str | None = None,
    query: str = "",
    headers: Mapping[str, str] | None = None,
    flat: Mapping[str, str] | None = None,
) -> dict[str, Any]:
    sent = {"content-type": "application/json"} if body is not None or raw is not None else {}
    context: dict[str, Any] = {"requestId": "req-1", "stage": "$default", "http": {"method": method, "path": path}}
    if claims is not None:
        payload = base64.urlsafe_b64encode(json.dumps(claims).encode()).decode().rstrip("=")
        sent["authorization"] = f"Bearer e30.{payload}.sig"
        gateway_claims = {"sub": str(claims["sub"])} if "sub" in claims else {}
        context["authorizer"] = {"jwt": {"claims": gateway_claims if flat is None else dict(flat), "scopes": None}}
    return {
        "version": "2.0",
        "routeKey": f"{method} {path}",
        "rawPath": path,
        "rawQueryString": query,
        "headers": {**sent, **(headers or {})},
        "requestContext": context,
        "body": json.dumps(body) if raw is None and body is not None else raw,
        "isBase64Encoded": False,
    }


@pytest.fixture
def world() -> World:
    return World()


@pytest.fixture
def make_event() -> Any:
    return event


@pytest.fixture
def memory_keys() -> MemoryKeys:
    return MemoryKeys()
