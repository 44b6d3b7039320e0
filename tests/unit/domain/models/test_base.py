"""Values of models as documents."""

from __future__ import annotations

from typing import Any

from stockyard.domain.models.base import document_of, read
from stockyard.domain.models.clusters.observations import Observation
from stockyard.domain.models.pools.pending_pods import PendingPods

NODE = {
    "name": "web-1", "uid": "u", "created_at": "2026-11-02T12:00:00Z", "ready": "True", "labels": {"zone": "a"},
    "taints": [{"key": "spot", "effect": "NoSchedule"}], "pods": 3,
}  # fmt: skip
OBSERVATION: dict[str, Any] = {
    "sequence": 7, "observed_at": "2026-11-02T12:00:00Z", "agent_version": "1", "kubernetes_version": "v1.36.3",
    "ca_hash": "sha256:" + "0" * 64, "nodes": [NODE], "pods": {"sequence": 6, "true_at": "2026-11-02T12:00:00.5Z"},
    "results": [{"id": "one", "status": "done", "data": {"files": [{"name": "a"}]}}],
}  # fmt: skip
ID = "0" * 16
REPORT: dict[str, Any] = {
    "sequence": 7, "observed_at": "2026-11-02T12:00:00Z", "agent_version": "1", "base": None,
    "groups": {ID: {"namespace": "default", "labels": {}, "spec": {"containers": [{"resources": {}}]}}},
    "pending": {ID: {"count": 2, "names": ["default/web-1"]}}, "running": {"web-1": {ID: 1}, "web-2": None},
    "nodes": {"web-1": {"ready": "True", "created_at": "2026-11-02T12:00:00Z", "taints": NODE["taints"]}},
}  # fmt: skip


def test_a_document_is_what_pydantic_would_dump() -> None:
    for kind, sent in ((Observation, OBSERVATION), (PendingPods, REPORT)):
        model = read(kind, sent)
        assert document_of(model) == model.model_dump()
