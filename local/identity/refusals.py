"""Error answers of the realm, as Keycloak sends them."""

from __future__ import annotations

from collections.abc import Mapping


class Refused(Exception):
    """An error response: HTTP status and JSON body, as Keycloak sends them."""

    def __init__(self, status: int, body: Mapping[str, str]) -> None:
        super().__init__(f"{status} {body}")
        self.status = status
        self.body = dict(body)


def oauth_refusal(status: int, error: str, description: str) -> Refused:
    """An error of the token endpoint."""
    return Refused(status, {"error": error, "error_description": description})
