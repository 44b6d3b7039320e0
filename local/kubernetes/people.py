"""People whom a simulated Kubernetes API knows by a webhook, as a real one does with a file of configuration for it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from local.kubernetes.resources import RBAC, RESOURCES
from local.kubernetes.rules import Action, Grant
from local.kubernetes.store import Object, StatusError

Webhook = Callable[[Mapping[str, Any]], Mapping[str, Any]]
"""Takes and gives the body of a ``TokenReview``. Raises ``WebhookFailed``."""
MASTERS = "system:masters"
"""The group that no rules hold for."""
READ, WRITE = ["get", "list", "watch"], ["create", "update", "patch", "delete", "deletecollection"]


class WebhookFailed(Exception):
    """The webhook does not know whether the token is good, because it cannot look."""


@dataclass(frozen=True, slots=True)
class Person:
    """Owner of a token, as a webhook says."""

    name: str
    groups: frozenset[str] = frozenset()


def reviewed(webhook: Webhook, token: str) -> Person | None:
    """Owner of the token; None for nobody's, and when the webhook fails."""
    try:
        answer = webhook({"apiVersion": "authentication.k8s.io/v1", "kind": "TokenReview", "spec": {"token": token}})
    except WebhookFailed:
        return None
    status = answer["status"]
    if not status.get("authenticated"):
        return None
    user = status["user"]
    return Person(user["username"], frozenset(user.get("groups") or ()) | {"system:authenticated"})


@dataclass(frozen=True, slots=True)
class Impersonation:
    """The user and group of an impersonated request, and the right for it that its account needs. None: as its
    account."""

    person: Person | None = None
    actions: tuple[Action, ...] = ()


def impersonated(headers: Mapping[str, str]) -> Impersonation:
    """Person whom the headers name. A group without a user is refused, as a real API server does."""
    user, group = headers.get("impersonate-user", ""), headers.get("impersonate-group", "")
    if group and not user:
        raise StatusError(403, f"requested groups [{group}] without impersonating a user")
    if not user:
        return Impersonation()
    names = [("users", user), *([("groups", group)] if group else [])]
    actions = tuple(Action("impersonate", "", resource, "", name) for resource, name in names)
    return Impersonation(Person(user, frozenset({group, "system:authenticated"} - {""})), actions)


def review(body: Mapping[str, Any], resource: str, name: str, groups: frozenset[str], granted: list[Grant]) -> Object:
    """Answer to a person's question about its own name, all its rights, or one right."""
    if resource == "selfsubjectreviews":
        return {**body, "status": {"userInfo": {"username": name, "groups": sorted(groups)}}}
    if resource == "selfsubjectrulesreviews":
        space = str((body.get("spec") or {}).get("namespace", ""))
        rules = [
            {"verbs": [each.verb], "apiGroups": [each.group], "resources": [each.resource],
             **({"resourceNames": [each.name]} if each.name else {})}
            for each in granted
            if each.namespace in ("", space)
        ]  # fmt: skip
        return {**body, "status": {"resourceRules": rules, "nonResourceRules": [], "incomplete": False}}
    spec = body.get("spec") or {}
    attributes = spec.get("resourceAttributes") or {
        "verb": "get",
        "resource": (spec.get("nonResourceAttributes") or {}).get("path"),
    }
    part = f"/{attributes['subresource']}" if attributes.get("subresource") else ""
    action = Action(
        str(attributes.get("verb", "")),
        str(attributes.get("group", "")),
        f"{attributes.get('resource', '')}{part}",
        str(attributes.get("namespace", "")),
        str(attributes.get("name", "")),
    )
    return {**body, "status": {"allowed": any(grant.covers(action) for grant in granted)}}


def standard_roles() -> list[Object]:
    """The roles ``view``, ``edit`` and ``cluster-admin``, which a real API has from the start. Who may only look sees
    no Secret, and neither sees roles or what belongs to no namespace."""
    plain = [resource for resource in RESOURCES if resource.namespaced and resource.group != RBAC]
    groups = sorted({resource.group for resource in plain})
    names = [resource.name for resource in plain]
    names += [f"{resource.name}/{part}" for resource in plain for part in resource.parts if part in ("log", "scale")]
    seen_names = [*(name for name in names if name != "secrets"), "namespaces"]
    return [
        _role("view", {"apiGroups": groups, "resources": seen_names, "verbs": READ}),
        _role(
            "edit",
            {"apiGroups": groups, "resources": [*names, "namespaces"], "verbs": READ},
            {
                "apiGroups": groups,
                "resources": [*names, *(f"pods/{part}" for part in ("eviction", "exec", "attach", "portforward"))],
                "verbs": WRITE,
            },
        ),
        _role("cluster-admin", {"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]}),
    ]


def _role(name: str, *rules: Object) -> Object:
    return {"apiVersion": f"{RBAC}/v1", "kind": "ClusterRole", "metadata": {"name": name}, "rules": list(rules)}
