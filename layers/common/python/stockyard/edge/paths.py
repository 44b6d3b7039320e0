"""Every path of the API and its methods: what 404 and 405 are decided by, also where no function serves a request.

A test compares the table with the routes that the functions declare.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from stockyard.errors import MethodNotAllowed, NotFound, StockyardError

PARAMETER = "^[A-Za-z0-9_-][A-Za-z0-9._=-]{0,159}$"
"""What every id and name in a path looks like: names of node types have dots, those of some quotas ``=``."""

METHODS: Mapping[str, tuple[str, ...]] = {
    "/v1/allowed-node-types": ("GET", "PUT"),
    "/v1/apply": ("POST",),
    "/v1/audit": ("GET",),
    "/v1/cloud-accounts": ("GET", "POST"),
    "/v1/cloud-accounts/{id}": ("DELETE", "GET", "PATCH"),
    "/v1/cloud-accounts/{id}/template": ("GET",),
    "/v1/cloud-accounts/{id}/verify": ("POST",),
    "/v1/clusters": ("GET", "POST"),
    "/v1/clusters/{id}": ("DELETE", "GET", "PATCH"),
    "/v1/clusters/{id}/agent": ("GET",),
    "/v1/clusters/{id}/bootstrap": ("POST",),
    "/v1/clusters/{id}/client-secret": ("GET",),
    "/v1/clusters/{id}/kubeconfig": ("GET",),
    "/v1/clusters/{id}/observations": ("POST",),
    "/v1/clusters/{id}/ready": ("POST",),
    "/v1/clusters/{id}/resume": ("POST",),
    "/v1/clusters/{id}/tree": ("GET",),
    "/v1/events": ("GET",),
    "/v1/health": ("GET",),
    "/v1/node-claims": ("GET", "POST"),
    "/v1/node-claims/{id}": ("DELETE", "GET", "PATCH"),
    "/v1/node-claims/{id}/explanation": ("GET",),
    "/v1/node-claims/{id}/join": ("POST",),
    "/v1/node-claims/{id}/power": ("POST",),
    "/v1/node-environments": ("GET",),
    "/v1/node-environments/{id}": ("GET",),
    "/v1/node-providers": ("GET", "POST"),
    "/v1/node-providers/{id}": ("DELETE", "GET", "PATCH"),
    "/v1/node-types": ("GET",),
    "/v1/node-types/{id}": ("GET",),
    "/v1/operations": ("GET",),
    "/v1/operations/{id}": ("GET",),
    "/v1/prices": ("GET",),
    "/v1/quotas": ("GET",),
    "/v1/quotas/{name}": ("PUT",),
}


def pattern(template: str) -> re.Pattern[str]:
    """What paths of a template look like; parameters are the named groups."""
    parts = (f"(?P<{part[1:-1]}>[^/]+)" if part.startswith("{") else re.escape(part) for part in template.split("/"))
    return re.compile("/".join(parts))


def check_parameters(values: Iterable[str]) -> None:
    """``NotFound`` unless each value could be the id or name of something."""
    if not all(re.fullmatch(PARAMETER[1:-1], value) for value in values):
        raise NotFound("There is no such resource.")


def unserved(method: str, path: str) -> tuple[StockyardError, dict[str, str]]:
    """The error for a request that no route takes, and its header fields."""
    for template, methods in METHODS.items():
        if pattern(template).fullmatch(path) and method not in methods:
            allowed = ", ".join(methods)
            return MethodNotAllowed(f"This resource allows {allowed}."), {"Allow": allowed}
    return NotFound("There is no such resource."), {}
