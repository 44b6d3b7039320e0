"""The console's files below ``/console/``, with the headers and addresses that CloudFront gives them."""

from __future__ import annotations

import hashlib
import json
import mimetypes
from collections.abc import Sequence
from pathlib import Path
from urllib.parse import unquote, urlsplit

ROOM = "/console"
FILES = ("assets/", "config.json")
"""What is a file below it; every other address is a page, which the one document shows."""
SERVING = "serving.json"
"""The file of headers, which is served to nobody."""


class Console:
    """Files of ``folder``, and what the console has to know of its ``issuer``."""

    def __init__(self, folder: Path, issuer: str, client_id: str) -> None:
        self._folder = folder.resolve()
        origin = "://".join(urlsplit(issuer)[:2])
        named = json.loads((folder / SERVING).read_text(encoding="utf-8"))
        self._headers = [(name.lower(), text.replace("{issuer}", origin)) for name, text in named.items()]
        self._config = json.dumps({"issuer": issuer, "client_id": client_id}).encode()

    @staticmethod
    def has(path: str) -> bool:
        """Whether a path is the console's."""
        return path == ROOM or path.startswith(f"{ROOM}/")

    def answer(self, method: str, path: str, tag: str | None = None) -> tuple[int, Sequence[tuple[str, str]], bytes]:
        """Status, headers and body; ``tag`` is the one of a copy that the browser has."""
        if method not in {"GET", "HEAD"}:
            return 403, [("content-type", "text/plain")], b"Forbidden"
        if path == ROOM:
            return 302, [("location", f"{ROOM}/")], b""
        name = unquote(path.removeprefix(f"{ROOM}/"))
        body, kind = self._config, "application/json"
        if name != "config.json":
            file = self._folder / (name if name.startswith(FILES) else "index.html")
            file = file.resolve()
            if not file.is_relative_to(self._folder) or not file.is_file():
                return 404, [("content-type", "text/plain"), *self._headers], b"Not Found"
            body, kind = file.read_bytes(), mimetypes.guess_type(file.name)[0] or "application/octet-stream"
        now = f'"{hashlib.sha256(body).hexdigest()[:20]}"'
        headers = [*self._headers, ("etag", now), ("cache-control", "no-cache")]
        if tag == now:
            return 304, headers, b""
        text = f"{kind}; charset=utf-8" if kind.startswith("text/") or kind.endswith("json") else kind
        return 200, [*headers, ("content-type", text)], body
