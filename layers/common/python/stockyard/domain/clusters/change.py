"""Changes that somebody wants of a cluster."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import fields, replace
from typing import Any

from stockyard.domain.records import Cluster
from stockyard.domain.values.frozen import dataclass
from stockyard.domain.values.rights import OPERATOR


@dataclass(frozen=True, slots=True)
class Expiry:
    """Moment when the deletion of a cluster begins by itself: ``at`` as the record has it, None for never."""

    at: str | None


@dataclass(frozen=True, slots=True)
class SecretChoice:
    """A Secret with the cluster's kubeconfig that somebody wants to have in a cluster, by its name.

    None is the cluster itself, and the namespace of its manifest. ``role`` is that of the token in it.
    """

    cluster: str | None = None
    namespace: str | None = None
    role: str = "operator"


@dataclass(frozen=True, slots=True)
class SecretRequest:
    """Whether there is to be such a Secret: None for no longer."""

    choice: SecretChoice | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterChange:
    """The fields of a cluster as they are to be; None leaves one as it is."""

    description: str | None = None
    tags: dict[str, str] | None = None
    limits: dict[str, str] | None = None
    settings: dict[str, Any] | None = None
    kubernetes_version: str | None = None
    profiles: Sequence[Mapping[str, Any]] | None = None
    """All profiles, each as a document with its ``name``."""
    document: dict[str, Any] | None = None
    """What its manifest says beside the settings."""
    expiry: Expiry | None = None
    secret: SecretRequest | None = None
    rights: str = OPERATOR
    """Of who chooses the profiles, see ``pack_rights``, and asks for the Secret."""

    def fields(self) -> dict[str, Any]:
        """Values that are to change, by name."""
        names = {part.name for part in fields(self)} - {"rights", "expiry", "secret"}
        values = {part.name: getattr(self, part.name) for part in fields(self) if part.name in names}
        expiry = {} if self.expiry is None else {"expires_at": self.expiry.at}
        return {**{name: value for name, value in values.items() if value is not None}, **expiry}

    def target(self, cluster: Cluster) -> Cluster:
        """The cluster with the settings and the version that it is to have; itself where neither is to change."""
        names = {"settings", "kubernetes_version"}
        values = {name: value for name, value in self.fields().items() if name in names}
        return replace(cluster, **values) if values else cluster
