"""Records as the documents that callers receive. Plain code, so that a function that only reads never loads pydantic.

The models in ``domain.models`` describe the same documents for ``openapi.json``; a test compares the two. Fields are
listed, never left out: a new field of a record stays inside until it is named here.
"""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from stockyard.domain.records import AuditRecord, CloudAccount, Cluster, Event, Operation

_ACCOUNT = (
    "provider",
    "name",
    "description",
    "attributes",
    "external_id",
    "verification",
    "verification_message",
    "verified_at",
    "tags",
    "created_at",
    "updated_at",
    "version",
)
_CLUSTER = (
    "id",
    "name",
    "description",
    "cluster_type",
    "provider",
    "cloud_account_id",
    "client_id",
    "status",
    "phase",
    "settings",
    "tags",
    "created_at",
    "updated_at",
    "version",
    "operation_id",
)
_OPERATION = ("id", "kind", "subject", "status", "created_at", "updated_at", "version")
_EVENT = ("id", "detail_type", "subject", "sequence", "time", "actor", "reason", "message", "version")
_AUDIT = ("id", "time", "actor", "action", "subject", "outcome", "request_id", "detail")


def attributes(record: object, names: tuple[str, ...]) -> dict[str, Any]:
    """The fields of ``record`` that a view shows as they are."""
    return {name: getattr(record, name) for name in names}


def cloud_account_view(account: CloudAccount) -> dict[str, Any]:
    """``account`` as a ``CloudAccountView`` document."""
    return {"id": int(account.id), **attributes(account, _ACCOUNT)}


def cluster_view(cluster: Cluster) -> dict[str, Any]:
    """``cluster`` as a ``ClusterView`` document."""
    return {**attributes(cluster, _CLUSTER), "conditions": [asdict(condition) for condition in cluster.conditions]}


def operation_view(operation: Operation, progress: int) -> dict[str, Any]:
    """``operation`` as an ``OperationView`` document; ``progress`` in percent."""
    return {
        **attributes(operation, _OPERATION),
        "phases": [asdict(phase) for phase in operation.phases],
        "error": asdict(operation.error) if operation.error else None,
        "progress": progress,
    }


def event_view(event: Event, tenant: str) -> dict[str, Any]:
    """``event`` as an ``EventView`` document."""
    return {**attributes(event, _EVENT), "tenant": tenant, "phase": {"before": event.before, "after": event.after}}


def audit_view(record: AuditRecord) -> dict[str, Any]:
    """``record`` as an ``AuditView`` document."""
    return attributes(record, _AUDIT)
