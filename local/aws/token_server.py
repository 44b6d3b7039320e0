"""The webhook of :mod:`local.aws.token_webhook` on loopback HTTP, for real API servers."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from local.kubernetes.people import Webhook, WebhookFailed
from local.kubernetes.server import serve

CACHE_SECONDS = 1
"""How long an API server trusts an answer. The usual two minutes would be too long for who looks at a token's end."""


class Reviews:
    """Answers an API server's questions."""

    def __init__(self, webhook: Webhook) -> None:
        self._webhook = webhook

    def answer(self, method: str, target: str, headers: Mapping[str, str], body: bytes = b"") -> tuple[int, Any]:
        """The answer to one ``TokenReview``; 503 when nothing is known of the token."""
        del target, headers
        try:
            review = json.loads(body)
        except ValueError:
            review = None
        if method != "POST" or not isinstance(review, dict):
            return 400, "a TokenReview is expected"
        try:
            return 200, dict(self._webhook(review))
        except WebhookFailed:
            return 503, "the token cannot be judged now"


@contextmanager
def served_reviews(webhook: Webhook, folder: Path) -> Iterator[dict[str, str]]:
    """The flags with which an API server asks the webhook; the file that they name goes into ``folder``."""
    server, url = serve(Reviews(webhook))
    path = folder / "token-webhook.yaml"
    name = "tokens"
    config = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": name, "cluster": {"server": url}}],
        "contexts": [{"name": name, "context": {"cluster": name, "user": ""}}],
        "current-context": name,
    }
    path.write_text(json.dumps(config), encoding="utf-8")
    try:
        yield {
            "--authentication-token-webhook-config-file": str(path),
            "--authentication-token-webhook-version": "v1",
            "--authentication-token-webhook-cache-ttl": f"{CACHE_SECONDS}s",
        }
    finally:
        server.shutdown()
        server.server_close()
