"""Whether a request came through our distribution of CloudFront, where a stage has one in front of the API.

Nothing here or elsewhere in the functions reads a caller's address. Behind a distribution the gateway sees that of
CloudFront, and ``X-Forwarded-For`` holds whatever a caller wrote into it; the web ACL counts by what it sees itself.
"""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Mapping
from typing import Any

from stockyard.edge.identity import header
from stockyard.errors import Forbidden
from stockyard.settings import ORIGIN_KEY_HEADER


def check(event: Mapping[str, Any], hashes: str) -> None:
    """``Forbidden`` unless the request carries the secret of one of ``hashes``: SHA-256 in hexadecimal digits, with
    commas between them. With none every request passes."""
    if not hashes:
        return
    digest = hashlib.sha256((header(event, ORIGIN_KEY_HEADER) or "").encode()).hexdigest()
    if not any(hmac.compare_digest(digest, accepted) for accepted in hashes.split(",")):
        raise Forbidden("The API is reached by its own name only.")
