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


MAC = "0e:00:00:00:00:01"
"""The one interface of each machine."""
_LIFETIME = "X-aws-ec2-metadata-token-ttl-seconds"


@dataclass(frozen=True, slots=True)
class InstanceData:
    """The metadata that an instance can read about itself. ``tags`` returns None when tags are not enabled."""

    region: str
    keys: Keys
    id: str = ""
    zone: str = ""
    tags: Callable[[], Mapping[str, str] | None] = lambda: None
    life_cycle: str = "on-demand"
    type: str = ""
    architecture: str = "x86_64"
    notices: dict[str, str] = field(default_factory=dict)
    """What the cloud announces to it, by path."""


class Metadata:
    """The metadata server. An instance finds its data at ``url``, a slash and its id."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._own: dict[str, _Served] = {}
        self._served = _Served(_Server(("127.0.0.1", 0), _Handler))
        self._server, self.url = self._served.server, self._served.url

    def own_url(self, instance: str) -> str:
        """The URL at which an instance alone is served, for programs of others: AWS's SDKs ask at the root, whatever
        path their endpoint has. Raises ``KeyError`` for an instance that is not served."""
        with self._lock:
            if instance not in self._own:
                server = _Server(("127.0.0.1", 0), _Handler)
                server.instances, server.only = {instance: self._server.instances[instance]}, instance
                self._own[instance] = _Served(server)
            return self._own[instance].url

    def add(self, instance: str, data: InstanceData) -> None:
        """Serve an instance."""
        self._server.instances[instance] = data

    def data(self, instance: str) -> InstanceData:
        """Data that an instance is served. Raises ``KeyError``."""
        return self._server.instances[instance]

    def remove(self, instance: str) -> None:
        """Removes an instance."""
        self._server.instances.pop(instance, None)
        with self._lock:
            own = self._own.pop(instance, None)
        if own is not None:
            own.close()

    def close(self) -> None:
        """Stop serving."""
        for served in (*self._own.values(), self._served):
            served.close()


class _Served:
    """A server that runs."""

    def __init__(self, server: _Server) -> None:
        self.server = server
        self.url = f"http://127.0.0.1:{server.server_address[1]}"
        self._thread = threading.Thread(target=server.serve_forever, daemon=True, name="metadata")
        self._thread.start()

    def close(self) -> None:
        """Stop serving."""
        self.server.shutdown()
        self.server.server_close()
        self._thread.join(5)


class _Server(LoopbackServer):
    daemon_threads = True

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self.instances: dict[str, InstanceData] = {}
        self.only: str | None = None
        """The instance that everybody is who asks; None where a path begins with who asks."""
        self.token = base64.urlsafe_b64encode(os.urandom(24)).decode()


class _Handler(BaseHTTPRequestHandler):
    server: _Server

    def log_message(self, *_: Any) -> None:
        """Say nothing."""

    def do_PUT(self) -> None:
        """``/latest/api/token``."""
        lifetime = self.headers.get(_LIFETIME, "")
        headers = {_LIFETIME: lifetime} if lifetime else {}
        self._reply(200 if self.path.endswith("/latest/api/token") else 404, self.server.token, headers)

    def do_GET(self) -> None:
        """Placement, tags and the role's keys. A request needs the token."""
        full_path = unquote(self.path) if self.server.only is None else f"/{self.server.only}{unquote(self.path)}"
        instance, _, path = full_path.lstrip("/").partition("/latest/")
        if self.headers.get("X-aws-ec2-metadata-token") != self.server.token:
            return self._reply(401, "")
        data = self.server.instances.get(instance)
        text = None if data is None else _text_of(data, path)
        return self._reply(404 if text is None else 200, text or "")

    def _reply(self, status: int, text: str, headers: Mapping[str, str] | None = None) -> None:
        body = text.encode()
        self.send_response_only(status)
        self.send_header("Content-Length", str(len(body)))
        for name, value in (headers or {}).items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)


def _text_of(data: InstanceData, path: str) -> str | None:
    if path == "dynamic/instance-identity/document":
        document = {"region": data.region, "availabilityZone": data.zone, "instanceId": data.id}
        return json.dumps({**document, "instanceType": data.type, "architecture": data.architecture})
    kind, _, path = path.partition("/")
    return _value_of(data, path) if kind == "meta-data" else None


def _value_of(data: InstanceData, path: str) -> str | None:
    facts = {
        "placement/region": data.region,
        "placement/availability-zone": data.zone,
        "instance-id": data.id,
        "instance-life-cycle": data.life_cycle,
        "network/interfaces/macs": f"{MAC}/",
        "block-device-mapping": "ami\nroot",
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
