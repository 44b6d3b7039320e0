"""People whom a simulated control plane knows by their ID tokens, as its authentication configuration says."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from local.functions.authorizer import JwtAuthorizer, Refused
from local.kubernetes.people import Webhook


def logins(state: Path) -> Webhook | None:
    """Webhook for the tokens of people, for the cluster of the machine in ``state``; None before it has a
    configuration.

    The rule of the real one about the claim ``organization`` is an expression; here the machine's tenant stands for it.
    """
    try:
        configuration = json.loads((state / "api" / "authentication.yaml").read_text(encoding="utf-8"))
        tenant = json.loads((state / "machine.json").read_text(encoding="utf-8"))["tenant"]
        (rules,) = configuration["jwt"]
    except (OSError, ValueError, KeyError):
        return None
    authorizer = JwtAuthorizer(rules["issuer"]["url"], tuple(rules["issuer"]["audiences"]))
    mappings = rules["claimMappings"]

    def review(document: Mapping[str, Any]) -> Mapping[str, Any]:
        try:
            claims = authorizer.claims(f"Bearer {document['spec']['token']}")
        except Refused:
            return {"status": {"authenticated": False}}
        organizations = claims.get("organization")
        belongs = tenant == organizations if isinstance(organizations, str) else tenant in (organizations or ())
        username = claims.get(mappings["username"]["claim"])
        if not belongs or not username:
            return {"status": {"authenticated": False}}
        groups = [mappings["groups"]["prefix"] + group for group in claims.get(mappings["groups"]["claim"]) or ()]
        user = {"username": mappings["username"]["prefix"] + username, "groups": groups}
        return {"status": {"authenticated": True, "user": user}}

    return review
