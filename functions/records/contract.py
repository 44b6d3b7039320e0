"""The API's document and the page that shows it: read, compressed and hashed when they are asked for first."""

from __future__ import annotations

import base64
import hashlib
import re
from functools import cache
from pathlib import Path

from stockyard.edge.http.content import Content

DOCUMENT = Path(__file__).resolve().parents[2] / "openapi.json"
"""The committed one, which is beside this function's folder also where it is deployed."""
PAGE = Path(__file__).with_name("reference.html")
_INLINE = re.compile(r"<(script|style)>(.*?)</\1>", re.DOTALL)


@cache
def document() -> Content:
    """The OpenAPI document."""
    return Content.of("application/json", DOCUMENT.read_bytes())


@cache
def page() -> Content:
    """The page. It may run its own script and ask this API for the document, and nothing else."""
    text = PAGE.read_text(encoding="utf-8")
    hashes = {kind: _hash(inline) for kind, inline in _INLINE.findall(text)}
    policy = (
        f"default-src 'none'; script-src '{hashes['script']}'; style-src '{hashes['style']}'; connect-src 'self';"
        " base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    )
    headers = {"Content-Security-Policy": policy, "Referrer-Policy": "no-referrer"}
    return Content.of("text/html", text.encode(), headers)


def _hash(inline: str) -> str:
    return f"sha256-{base64.b64encode(hashlib.sha256(inline.encode()).digest()).decode()}"
