"""Fields of the last manifest of a set: the third way beside the new manifest and the thing itself."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from stockyard.domain.manifest_sets import Names, SetMember, member_id, merged
from stockyard.domain.nodes.manifests import OWN
from stockyard.domain.records import Cluster, Name
from stockyard.operations.services import Services

_EMPTY: Mapping[str, Any] = {
    "description": "",
    "tags": {},
    "limits": {},
    "profiles": [],
    "expiresAt": None,
    "kubeconfigSecret": None,
}
"""Fields of a Cluster that can be taken away, each with what says so."""
_MAPS = ("tags", "limits")


@dataclass(frozen=True, slots=True)
class Former:
    """Names of fields that the set of a request said of a thing. Without a set a document counts as it is."""

    services: Services
    set_name: str | None

    def merge(
        self, kind: str, id: str, made_at: str, said_fields: Mapping[str, Any], current: object
    ) -> dict[str, Any]:
        """The ``said_fields`` fields of a thing after all three."""
        if self.set_name is None:
            return dict(said_fields)
        there = {name: getattr(current, name) for name in said_fields}
        return merged(said_fields, there, self._names(kind, id, made_at))

    def completed(self, document: Mapping[str, Any]) -> Mapping[str, Any]:
        """The document. That of a Cluster, which leaves as it is what it does not say, says what it said before and
        says no more as taken away, and keeps tags and limits of foreign_entries."""
        if self.set_name is None or (document.get("apiVersion"), document.get("kind")) != (OWN, "Cluster"):
            return document
        metadata, spec = document.get("metadata"), document.get("spec")
        if not isinstance(metadata, Mapping) or not isinstance(spec, Mapping):
            return document
        cluster = self._cluster(metadata.get("name"))
        if cluster is None:
            return document
        former = self._names("cluster", cluster.id, cluster.created_at)
        whole = {**{name: empty for name, empty in _EMPTY.items() if name in former}, **spec}
        for name in _MAPS:
            if isinstance(whole.get(name), Mapping):
                own = former.get(name) or {}
                foreign_entries = {key: value for key, value in getattr(cluster, name).items() if key not in own}
                whole[name] = {**foreign_entries, **whole[name]}
        settings, former_settings = whole.get("settings", {}), former.get("settings") or {}
        if isinstance(settings, Mapping) and former_settings:
            whole["settings"] = {**dict.fromkeys(former_settings), **settings}
        return {**document, "spec": whole}

    def _cluster(self, name: Any) -> Cluster | None:
        holder = self.services.store.get(Name, f"cluster/{name}") if isinstance(name, str) else None
        return self.services.store.get(Cluster, holder.owner) if holder else None

    def _names(self, kind: str, id: str, made_at: str) -> Names:
        member = self.services.store.get(SetMember, member_id(kind, id))
        is_own = member is not None and (member.set_name, member.made_at) == (self.set_name, made_at)
        return dict(member.fields) if member is not None and is_own else {}
