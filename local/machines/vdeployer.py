"""A stand-in for the clusters' vdeployer: it accepts deployments with a service token and remembers them."""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler
from typing import Any

from local.loopback import LoopbackServer

PATH = re.compile(r"/clusters/([a-z0-9-]+)/vdeployer/deploy")


TEXTS = {
    "provider": r"aws|cudo",
    "cluster_name": r"[A-Za-z0-9-]{1,128}",
    "keycloak_client_secret": r"\S{24,}",
    "keycloak_organization_id": r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}",
    "sssd_binder_password": r"\S{32,}",
    "vantage_url": r"https?://\S+",
}
"""What the published settings have besides those of the cluster's request, and the form of each."""
OF_A_HUB = "jupyterhub_service_token"


def is_published(settings: Any, client_id: str) -> bool:
    """Whether these are the settings of the published body, for this client."""
    if not isinstance(settings, dict) or settings.get("keycloak_client_id") != client_id:
        return False
    if any(not re.fullmatch(form, str(settings.get(name, ""))) for name, form in TEXTS.items()):
        return False
    hub = "jupyterhub" in settings.get("integrations", ())
    return hub == (OF_A_HUB in settings) and (not hub or bool(re.fullmatch(r"\S{32,}", str(settings[OF_A_HUB]))))


class VDeployer:
    """``url_template`` is for the stage's setting. ``faults`` are the statuses of the first answers, one a request."""

    def __init__(self, accepts: Callable[[str], bool]) -> None:
        self.faults: list[int] = []
        self.deployed: list[tuple[str, Any]] = []
        self._server = _Server(("127.0.0.1", 0), _Handler)
        self._server.vdeployer, self._server.accepts = self, accepts
        self.url_template = f"http://127.0.0.1:{self._server.server_address[1]}/clusters/{{client_id}}/vdeployer"
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True, name="vdeployer")
        self._thread.start()

    def close(self) -> None:
        """Stop listening."""
        self._server.shutdown()
        self._server.server_close()
        self._thread.join(5)


class _Server(LoopbackServer):
    daemon_threads = True
    vdeployer: VDeployer
    accepts: Callable[[str], bool]


class _Handler(BaseHTTPRequestHandler):
    server: _Server

    def log_message(self, *_: Any) -> None:
        """Say nothing."""

    def do_POST(self) -> None:
        """``/deploy``: 200, 401 for a wrong token, 400 for a body of another shape, or the next fault."""
        raw = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        status = self._judge(raw)
        self.send_response_only(status)
        self.send_header("Content-Length", "2")
        self.end_headers()
        self.wfile.write(b"{}")

    def _judge(self, raw: bytes) -> int:
        vdeployer = self.server.vdeployer
        match = PATH.fullmatch(self.path)
        if match is None:
            return 404
        if vdeployer.faults:
            return vdeployer.faults.pop(0)
        if not self.server.accepts(self.headers.get("Authorization", "")):
            return 401
        try:
            body = json.loads(raw)
        except ValueError:
            return 400
        if (
            not isinstance(body, dict)
            or set(body) != {"settings"}
            or not is_published(body["settings"], match.group(1))
        ):
            return 400
        vdeployer.deployed.append((match.group(1), body))
        return 200
