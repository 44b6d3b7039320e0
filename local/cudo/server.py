"""The simulated Cudo on a port of the loopback, for functions that run in processes of their own."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from functools import cache
from http.server import BaseHTTPRequestHandler
from typing import TYPE_CHECKING

from local.loopback import LoopbackServer

if TYPE_CHECKING:
    from pathlib import Path

    import httpx

    from local.cudo.api import SimulatedCudo
    from local.fault_plan import CudoPlan

MACHINE_SECONDS, DISK_SECONDS = 2.0, 0.5
"""How long a machine and a disk take to come to be here."""
MOST_BODY = 4_000_000
ACME_KEY, GLOBEX_KEY = "local-cudo-key-of-acme", "local-cudo-key-of-globex"
KEYS = {ACME_KEY: "acme-project", GLOBEX_KEY: "globex-project"}
"""The tenants' API keys, each with its project."""


class CudoServer:
    """``keys`` are API keys with the projects that each may use. What it needs is loaded with the first request.

    ``plan`` says what is to go wrong. Requests that the vendor's document does not know are written to ``log``.
    ``address`` gives each machine a public address of its own choice.
    """

    def __init__(
        self,
        keys: Mapping[str, str],
        plan: CudoPlan | None = None,
        log: Path | None = None,
        address: Callable[[], str] | None = None,
    ) -> None:
        self._keys, self._plan, self._log = keys, plan, log
        self._address_of: Callable[[int], str] | None = None if address is None else cache(lambda _number: address())
        self._told = 0
        self._cudo: SimulatedCudo | None = None
        self._lock = threading.Lock()
        self._server = _Server(("127.0.0.1", 0), _Handler)
        self._server.answer = self._answer
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}"
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True, name="cudo")
        self._thread.start()

    @property
    def cudo(self) -> SimulatedCudo:
        """The vendor behind the port."""
        from local.cudo.api import SimulatedCudo

        with self._lock:
            if self._cudo is None:
                self._cudo = SimulatedCudo(
                    self._keys,
                    lambda: datetime.now(UTC),
                    machine_seconds=MACHINE_SECONDS,
                    disk_seconds=DISK_SECONDS,
                    address_of=self._address_of,
                )
                if self._plan is not None:
                    _spoil(self._cudo, self._plan)
            return self._cudo

    def _answer(self, request: httpx.Request) -> httpx.Response:
        answer = self.cudo.answer(request)
        with self._lock:
            outside = self._cudo.outside[self._told :] if self._cudo is not None else []
            self._told += len(outside)
            if outside and self._log is not None:
                with self._log.open("a", encoding="utf-8") as log:
                    log.writelines(f"{line}\n" for line in outside)
        return answer

    @property
    def started(self) -> SimulatedCudo | None:
        """The vendor, once somebody has called it."""
        return self._cudo

    def close(self) -> None:
        """Stop listening."""
        self._server.shutdown()
        self._server.server_close()
        self._thread.join(5)


def _spoil(cudo: SimulatedCudo, plan: CudoPlan) -> None:
    cudo.plan.failing.update(plan.failing)
    cudo.plan.unavailable.update(plan.unavailable)
    cudo.plan.throttled.update(plan.throttled)
    for offered in cudo.stock:
        offered.free.vcpus = plan.free_vcpus.get(f"{offered.name}/{offered.data_center}", offered.free.vcpus)


class _Server(LoopbackServer):
    daemon_threads = True
    answer: Callable[[httpx.Request], httpx.Response]


class _Handler(BaseHTTPRequestHandler):
    server: _Server
    protocol_version = "HTTP/1.1"

    def serve(self) -> None:
        """Hand the request on."""
        import httpx

        length = min(int(self.headers.get("content-length") or 0), MOST_BODY)
        request = httpx.Request(
            self.command, f"http://cudo{self.path}", headers=dict(self.headers), content=self.rfile.read(length)
        )
        answer = self.server.answer(request)
        self.send_response(answer.status_code)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(answer.content)))
        self.end_headers()
        self.wfile.write(answer.content)

    def log_message(self, format: str, *args: object) -> None:
        """Requests are counted by the vendor itself."""


for _method in ("GET", "POST", "PUT", "PATCH", "DELETE"):
    setattr(_Handler, f"do_{_method}", _Handler.serve)
