"""Answers of the webhook to an API server over HTTP."""

from __future__ import annotations

import http.client
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from local.aws.token_server import served_reviews
from local.kubernetes.people import WebhookFailed


def webhook(body: Mapping[str, Any]) -> dict[str, Any]:
    if body["spec"]["token"] == "unknown":
        raise WebhookFailed
    return {**body, "status": {"authenticated": body["spec"]["token"] == "good"}}


def test_a_review_is_answered_or_put_off(tmp_path: Path):
    with served_reviews(webhook, tmp_path) as flags:
        config = json.loads(Path(flags["--authentication-token-webhook-config-file"]).read_text())
        address = urlsplit(config["clusters"][0]["cluster"]["server"]).netloc

        def ask(method: str, body: str) -> tuple[int, str]:
            connection = http.client.HTTPConnection(address, timeout=5)
            connection.request(method, "/", body=body)
            answer = connection.getresponse()
            text = answer.read().decode()
            connection.close()
            return answer.status, text

        def review(token: str) -> tuple[int, str]:
            return ask("POST", json.dumps({"kind": "TokenReview", "spec": {"token": token}}))

        status, text = review("good")
        assert (status, json.loads(text)["status"]) == (200, {"authenticated": True})
        assert json.loads(review("bad")[1])["status"] == {"authenticated": False}
        assert review("unknown")[0] == 503
        assert [ask("POST", text)[0] for text in ("", "{", "[]")] == [400, 400, 400]
        assert ask("GET", "{}")[0] == 400
