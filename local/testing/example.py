"""The cluster that the README creates, and the same without a floor of worker nodes for tests that want none."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
EXAMPLE = EXAMPLES / "aws-cluster.json"


def example_body() -> dict[str, Any]:
    """The body of the example, as it is."""
    body: dict[str, Any] = json.loads(EXAMPLE.read_text(encoding="utf-8"))
    return body


def body_without_nodes() -> dict[str, Any]:
    """The body of the example; its worker group begins without nodes."""
    body = example_body()
    for group in body["settings"]["autoscaler_node_groups"]:
        if group["role"] == "worker":
            group["min_size"] = 0
    return body


def cudo_body(account: int) -> dict[str, Any]:
    """The body of the example on Cudo, for an account without a Vault."""
    body: dict[str, Any] = json.loads((EXAMPLES / "cudo-cluster.json").read_text(encoding="utf-8"))
    return {**body, "cloud_account_id": account, "settings": {**body["settings"], "no_vault": True}}
