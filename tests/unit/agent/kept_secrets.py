"""Stockyard's side of the Secrets with kubeconfigs that an agent keeps."""

from __future__ import annotations

import base64
from dataclasses import dataclass, field
from typing import Any

from stockyard.domain.models.base import read
from stockyard.domain.models.clusters.kubeconfig_secrets import SecretsRequest


@dataclass
class SecretsOfCluster:
    """Secrets that Stockyard wants to be kept, by namespace and name, as ``secret_refresh`` has it."""

    names: set[tuple[str, str]] = field(default_factory=set)
    removed: set[tuple[str, str]] = field(default_factory=set)
    results: list[dict[str, Any]] = field(default_factory=list)
    minted: int = 0
    refusals: int = 0
    """How many of the next requests are answered 503."""

    def take(self, request: dict[str, Any]) -> tuple[int, Any, dict[str, str]]:
        """Note the results, and answer with new tokens."""
        read(SecretsRequest, request)
        if self.refusals:
            self.refusals -= 1
            return 503, {"title": "Refused"}, {}
        self.results += request["results"]
        self.removed -= {(r["namespace"], r["name"]) for r in request["results"] if r["status"] == "removed"}
        secrets = [self._secret(*full_name) for full_name in sorted(self.names)] if request["refresh"] else []
        removed_secrets = [{"namespace": namespace, "name": name} for namespace, name in sorted(self.removed)]
        return 200, {"secrets": secrets, "removed": removed_secrets, "interval_seconds": 240}, {}

    def _secret(self, namespace: str, name: str) -> dict[str, Any]:
        self.minted += 1
        metadata = {"name": name, "namespace": namespace, "annotations": {"stockyard.dev/expires-at": "soon"}}
        data = {"kubeconfig": base64.b64encode(f"token-{self.minted}".encode()).decode()}
        return {"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "type": "Opaque", "data": data}
