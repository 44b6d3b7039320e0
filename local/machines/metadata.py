"""Instance metadata (IMDSv2) of all machines of the local cloud, on loopback."""

from __future__ import annotations

import base64
import json
import os
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler
from typing import Any
from urllib.parse import unquote

from local.aws.corrections.roles import AccessDenied
from local.loopback import LoopbackServer

Keys = Callable[[], tuple[str, dict[str, str]]]
"""Name of the instance's role and keys of a session of it. Raises ``AccessDenied``."""


@dataclass(frozen=True, slots=True)
class InstanceData:
    """The metadata that an instance can read about itself. ``tags`` returns None when tags are not enabled."""

    region: str
    keys: Keys
    id: str = ""
    zone: str = ""
    tags: Callable[[], Mapping[str, str] | None] = lambda: None
    life_cycle: str = "on-demand"
    notices: dict[str, str] = field(default_factory=dict)
    """What the cloud announces to it, by path."""


class Metadata:
    """The metadata server. An instance finds its data at ``url``, a slash and its id."""

    def __init__(self) -> None:
        self._server = _Server(("127.0.0.1", 0), _Handler)
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}"
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True, name="metadata")
        self._thread.start()

    def add(self, instance: str, data: InstanceData) -> None:
        """Serve an instance."""
        self._server.instances[instance] = data

    def data(self, instance: str) -> InstanceData:
        """What an instance is served. Raises ``KeyError``."""
        return self._server.instances[instance]

    def remove(self, instance: str) -> None:
        """Removes an instance."""
        self._server.instances.pop(instance, None)

    def close(self) -> None:
        """Stop serving."""
        self._server.shutdown()
        self._server.server_close()
        self._thread.join(5)


class _Server(LoopbackServer):
    daemon_threads = True

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self.instances: dict[str, InstanceData] = {}
        self.token = base64.urlsafe_b64encode(os.urandom(24)).decode()


class _Handler(BaseHTTPRequestHandler):
    server: _Server

    def log_message(self, *_: Any) -> None:
        """Say nothing."""

    def do_PUT(self) -> None:
        """``/latest/api/token``."""
        self._reply(200 if self.path.endswith("/latest/api/token") else 404, self.server.token)

    def do_GET(self) -> None:
        """Placement, tags and the role's keys. A request needs the token."""
        instance, _, path = unquote(self.path).lstrip("/").partition("/latest/meta-data/")
        if self.headers.get("X-aws-ec2-metadata-token") != self.server.token:
            return self._reply(401, "")
        data = self.server.instances.get(instance)
        text = None if data is None else _value_of(data, path)
        return self._reply(404 if text is None else 200, text or "")

    def _reply(self, status: int, text: str) -> None:
        body = text.encode()
        self.send_response_only(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


def _value_of(data: InstanceData, path: str) -> str | None:
    facts = {
        "placement/region": data.region,
        "placement/availability-zone": data.zone,
        "instance-id": data.id,
        "instance-life-cycle": data.life_cycle,
        **data.notices,
    }
    if path in facts:
        return facts[path]
    kind, _, name = path.partition("/instance/")
    if kind == "tags":
        return (data.tags() or {}).get(name)
    kind, slash, name = path.partition("iam/security-credentials/")
    if kind or not slash:
        return None
    try:
        role, session = data.keys()
    except AccessDenied:
        return None
    if name:
        return json.dumps({"Code": "Success", **session}) if name == role else None
    return role
