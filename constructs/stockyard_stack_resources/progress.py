"""Progress of what was begun: whether a resource is as the stack wants it, and its outputs then."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from stockyard_stack_resources.api import Api
from stockyard_stack_resources.errors import StackResourceError
from stockyard_stack_resources.kinds import Kind, Record

_AUTHORITY = re.compile(r"certificate-authority-data\"?\s*:\s*\"?([A-Za-z0-9+/=]+)")
LONGEST_AUTHORITY = 2_600
"""Bytes; a longer one would not fit into the 4,096 of an answer to CloudFormation."""


def advance(api: Api, kind: Kind, record: Record, touched: Sequence[str] | None) -> Mapping[str, Any] | None:
    """Outputs of a resource that is ready, None of one that becomes so.

    ``touched`` are pointers of what an update changes, None of a creation. Raises ``StackResourceError`` for one that
    has failed.
    """
    if kind.name == "Cluster":
        return _cluster(api, kind, record, touched)
    if kind.name == "NodeProvider" and record.get("phase") != "Available":
        if record.get("phase") == "Failed":
            raise StackResourceError(f"The provider has failed: {record.get('message') or record.get('reason')}")
        return None
    return dict(kind.outputs(record))


def _cluster(api: Api, kind: Kind, record: Record, touched: Sequence[str] | None) -> Mapping[str, Any] | None:
    operation_id = record.get("operation_id")
    operation = api.get(f"operations/{operation_id}") if operation_id else None
    work: Mapping[str, Any] = operation.body if operation is not None else {}
    if record["status"] == "deleting":
        raise StackResourceError("The cluster is being deleted.")
    if record["status"] == "failed":
        raise StackResourceError(_failure(record, work))
    if record["status"] != "ready" or work.get("status") in ("queued", "running"):
        return None
    if work.get("status") in ("failed", "cancelled", "reverted") and _concerns(work, touched or ()):
        raise StackResourceError(_failure(record, work))
    current = api.get(f"clusters/{record['id']}")
    outputs = dict(kind.outputs(current.body if current is not None else record))
    authority = _authority(api, str(record["id"]))
    return outputs if authority is None else {**outputs, "CertificateAuthority": authority}


def _concerns(operation: Mapping[str, Any], touched: Sequence[str]) -> bool:
    """Whether the operation changes a field that the update changes: another one's failure is not the stack's."""
    changed = [str(change.get("pointer", "")) for change in operation.get("changes") or ()]
    return any(
        f"{first}/".startswith(f"{second}/") or f"{second}/".startswith(f"{first}/")
        for first in changed
        for second in touched
    )


def _failure(record: Record, operation: Mapping[str, Any]) -> str:
    error = operation.get("error") or {}
    cause = error.get("cause") or record.get("message") or f"The operation is {operation.get('status')}."
    phase = f" in phase {error['phase']}" if error.get("phase") else ""
    return f"Cluster {record['name']}{phase}: {cause} {error.get('hint') or ''}".strip()


def _authority(api: Api, cluster: str) -> str | None:
    """Certificate authority of the cluster's API server, PEM in base64; None where there is no kubeconfig."""
    answer = api.get(f"clusters/{cluster}/kubeconfig")
    match = _AUTHORITY.search(str(answer.body.get("kubeconfig", ""))) if answer is not None else None
    return match.group(1) if match and len(match.group(1)) <= LONGEST_AUTHORITY else None
