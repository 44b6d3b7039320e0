"""The Lambda function of these routes."""

from __future__ import annotations

from typing import Any

from functions.node_claims.routes import door


def lambda_handler(event: dict[str, Any], context: object) -> dict[str, Any]:
    """An HTTP API event (payload 2.0) in, its answer out."""
    return door.handle(event, context)
