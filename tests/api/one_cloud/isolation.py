"""Checks that a tenant sees nothing of acme, whatever it names."""

from __future__ import annotations

ROLES = ("stockyard-viewer", "stockyard-operator", "stockyard-admin")
PROFILE = {"version": "1.0.0", "packs": [{"layer": "k8s", "name": "kubernetes", "tag": "1.34"}]}
KINDS = (
    *("cluster", "name", "client", "operation", "account", "event", "audit"),
    *("provider", "provider name", "type", "type name", "claim", "claim name", "environment"),
    *("profile", "profile name", "site", "site name", "image", "image name"),
)
FILTERS = ("subject", "after", "tag", "status", "region", "cluster", "provider", "phase", "kind", "label")


def no_trace(answer, acme, *said_by_caller):
    """Checks that an answer has no text of acme except what the caller itself sent."""
    for kind, value in acme.items():
        if kind not in ("token", "account") and not any(value in text for text in said_by_caller):
            assert value not in answer.text, (kind, answer.text)
    assert answer.status_code < 500, answer.text


def invisible(api, operation, acme, token):
    """Checks that each kind of acme's ids gives 404, and that the answer has no text of acme."""
    for kind in KINDS:
        identifier = acme[kind]
        answer = api.call(operation, token, at=identifier)
        assert answer.status_code == 404, (kind, answer.status_code, answer.text)
        assert answer.json()["error_type"] == "NotFound"
        no_trace(answer, acme, identifier)


def intruder(api, operation):
    """The token of the other tenant with the most rights that the route accepts."""
    return api.token("globex", *ROLES) if operation.roles else api.token("globex", client_id="globex-0123456789ab")
