"""Records as the documents that callers receive. Plain code, so that a function that only reads never loads pydantic.

The models in ``domain.models`` describe the same documents for ``openapi.json``; a test compares the two. Fields are
listed, never left out: a new field of a record stays inside until it is named here.
"""

from __future__ import annotations

from dataclasses import fields, is_dataclass
from typing import Any

from stockyard.domain.records import AuditRecord, CloudAccount, Cluster, Event, Operation, Site

CHANGES = ("created_at", "updated_at", "version")
STATE = ("phase", "reason", "message", "conditions")
_VERIFICATION = ("verification", "verification_message", "verified_at", "warnings")
_ACCOUNT = ("provider", "name", "description", "attributes", "secrets", "external_id", *_VERIFICATION, "tags", *CHANGES)
_CLUSTER = (
    "id",
    "name",
    "description",
    "cluster_type",
    "kubernetes_version",
    "provider",
    "driver",
    "cloud_account_id",
    "client_id",
    "endpoint",
    "status",
    "phase",
    "conditions",
    "settings",
    "bastion",
    "certificates_expire_at",
    "last_snapshot",
    "keep_failed",
    "kept_until",
    "expires_at",
    "tags",
    "limits",
    *CHANGES,
    "operation_id",
    "queue",
)
_OPERATION_OWN = ("id", "kind", "subject", "subject_name", "status", "phases", "runs", "changes", "error")
_OPERATION = (*_OPERATION_OWN, "failures", *CHANGES)
_SITE = ("id", "name", "description", "client_id", "state", "contact_at", "connector_version", "allowed", "created_by")
_EVENT = ("id", "detail_type", "subject", "sequence", "time", "actor", "reason", "message", "version")
_AUDIT = ("id", "time", "actor", "action", "subject", "outcome", "request_id", "detail")


def attributes(record: object, names: tuple[str, ...]) -> dict[str, Any]:
    """The fields of ``record`` that a view shows, as JSON has them."""
    return {name: _json(getattr(record, name)) for name in names}


def _json(value: Any) -> Any:
    """``value`` with lists for tuples, and objects for the parts of a record."""
    if isinstance(value, tuple):
        return [_json(entry) for entry in value]
    if is_dataclass(value):
        return attributes(value, tuple(part.name for part in fields(value)))
    return dict(value) if isinstance(value, dict) else value


def cloud_account_view(account: CloudAccount) -> dict[str, Any]:
    """``account`` as a ``CloudAccountView`` document."""
    return {"id": int(account.id), **attributes(account, _ACCOUNT)}


def site_view(site: Site) -> dict[str, Any]:
    """``site`` as a ``SiteView`` document."""
    return attributes(site, (*_SITE, *CHANGES))


def cluster_view(cluster: Cluster) -> dict[str, Any]:
    """``cluster`` as a ``ClusterView`` document."""
    reason, message = _trouble(cluster)
    document = {**attributes(cluster, _CLUSTER), "kubeconfig_secret": dict(cluster.kubeconfig_secret) or None}
    networks = cluster.settings.get("overlay")
    document |= {"vpn": bool(networks), "node_to_node": bool(networks and networks["node_to_node"])}
    return {**document, "reason": reason, "message": message, "warnings": [], "costs": None, "price": None}


_TROUBLE = {"failed": ("Ready", "False"), "ready": ("Degraded", "True")}
"""By status the condition that says why a cluster is not well, and its status then."""


def _trouble(cluster: Cluster) -> tuple[str, str]:
    """Reason and message of what has failed; empty while all is well."""
    sign = _TROUBLE.get(cluster.status)
    signs = (each for each in cluster.conditions if (each.type, each.status) == sign)
    return next(((each.reason, each.message) for each in signs), ("", ""))


def operation_view(operation: Operation, progress: int) -> dict[str, Any]:
    """``operation`` as an ``OperationView`` document; ``progress`` in percent."""
    return {**attributes(operation, _OPERATION), "progress": progress}


def event_view(event: Event, tenant: str) -> dict[str, Any]:
    """``event`` as an ``EventView`` document."""
    return {
        **attributes(event, _EVENT),
        "tenant": tenant,
        "phase": {"before": event.before, "after": event.after},
        **{name: event.about.get(name) for name in ("name", "cluster_id", "pool", "zone")},
    }


def audit_view(record: AuditRecord) -> dict[str, Any]:
    """``record`` as an ``AuditView`` document."""
    return attributes(record, _AUDIT)
