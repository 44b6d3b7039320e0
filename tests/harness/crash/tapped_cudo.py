"""The simulated Cudo behind a transport that passes every request through the tap, as ``cudo.CreateVM``."""

from __future__ import annotations

from collections.abc import Callable

import httpx

from local.cudo.document import trimmed
from local.cudo.failure import Failure
from tests.harness.crash.faults import Errors, Tap

_KINDS = {"VM": "vm", "Disk": "disk", "Network": "network", "SecurityGroup": "security_group"}
"""What an operation is about, by a part of its name."""
ERRORS = Errors(
    lambda: httpx.ReadTimeout("no answer in time"),
    lambda: Failure(429, "RESOURCE_EXHAUSTED", "Too many requests."),
    lambda: Failure(403, "PERMISSION_DENIED", "Not allowed."),
)


class TappedCudo(httpx.BaseTransport):
    """``answer`` is the vendor's. The parameters that the tap shows are the ids of things, as ``named`` spells them."""

    def __init__(self, answer: Callable[[httpx.Request], httpx.Response], tap: Tap) -> None:
        self._answer, self._tap = answer, tap

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        """The vendor's answer, or what the tap makes of it."""
        request.read()
        operation, path = trimmed().operation(request.method, request.url.path)
        kind = next((kind for part, kind in _KINDS.items() if part in operation), "")
        self._tap.parameters = {"id": named(kind, path["id"])} if "id" in path else {}
        try:
            return self._tap.around(f"cudo.{operation}", lambda: self._answer(request), ERRORS)
        except Failure as failure:
            return httpx.Response(failure.status, json=failure.body)


def named(kind: str, vendor_id: str) -> str:
    """The id of a thing with its kind: a machine and its security group have the same id."""
    return f"{kind}/{vendor_id}"
