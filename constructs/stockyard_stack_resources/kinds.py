"""Kinds of resources: where each is in the API, where its owner's mark stands, and what a template reads of it."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from stockyard_stack_resources import contract
from stockyard_stack_resources.errors import StackResourceError

Record = Mapping[str, Any]
"""A resource as the API shows it."""
OWNER = "cloudformation-owner"
"""The tag, or with a prefix the annotation, that marks a resource of a stack."""
REPLACES = "cloudformation-replaces"
"""The tag or annotation beside it of one that was made in place of another: the mark of that one."""
_PROFILE_MARK = re.compile(r"\[cloudformation-owner ([0-9a-f]+)(?: replaces ([0-9a-f]+))?\]")


@dataclass(frozen=True, slots=True)
class Mark:
    """Place of the owner's mark: keys of a map of the document, or the description where there is none."""

    field: str
    prefix: str | None = None
    """Beginning of both keys of the map; None for a mark in a text."""

    def put(self, document: Mapping[str, Any], token: str, replaces: str | None = None) -> dict[str, Any]:
        """The document with the mark. ``replaces`` is that of the resource in whose place this one is made."""
        if self.prefix is None:
            words = f"{OWNER} {token}" + (f" replaces {replaces}" if replaces else "")
            return {**document, self.field: f"{document.get(self.field) or ''} [{words}]".strip()}
        marks = {f"{self.prefix}{OWNER}": token, **({f"{self.prefix}{REPLACES}": replaces} if replaces else {})}
        return {**document, self.field: {**(document.get(self.field) or {}), **marks}}

    def read(self, record: Record) -> str | None:
        """The mark of a record, None without one."""
        return self._part(record, OWNER, 1)

    def replaced(self, record: Record) -> str | None:
        """The mark of the resource in whose place the record was made, None without one."""
        return self._part(record, REPLACES, 2)

    def _part(self, record: Record, key: str, group: int) -> str | None:
        if self.prefix is None:
            match = _PROFILE_MARK.search(str(record.get(self.field) or ""))
            return match and match.group(group)
        value = (record.get(self.field) or {}).get(f"{self.prefix}{key}")
        return None if value is None else str(value)


@dataclass(frozen=True, slots=True)
class Kind:
    """One kind of resource. ``collection`` is its path below ``/v1/``, where ``{cluster}`` is the cluster's name."""

    name: str
    collection: str
    mark: Mark
    outputs: Callable[[Record], Mapping[str, Any]]
    fixed: frozenset[str]
    """Fields that never change: another value is another resource."""
    once: frozenset[str] = frozenset()
    """Fields that only a creation has; a change of them is refused."""
    unset: Mapping[str, Any] = field(default_factory=dict)
    """What a change says of a field that it cannot take away."""
    by_version: bool = False
    """Whether a change is a further version of it, and not a patch."""
    parent: str | None = None
    """The field of the document that says what it is in; the API has it in the path."""

    def path(self, document: Mapping[str, Any]) -> str:
        """Place of the resource that a document describes."""
        return f"{self.home(document)}/{document['name']}"

    def home(self, document: Mapping[str, Any]) -> str:
        """Place of its collection."""
        if self.parent is None:
            return self.collection
        if not document.get(self.parent):
            raise StackResourceError(f"{self.name}: {self.parent} is missing")
        return self.collection.replace(f"{{{self.parent}}}", str(document[self.parent]))

    def fixed_values(self, document: Mapping[str, Any]) -> dict[str, Any]:
        """The fixed fields of a document; ``settings.region_name`` is a field of its settings."""
        values = {}
        for name in sorted(self.fixed):
            value: Any = document
            for part in name.split("."):
                value = value.get(part) if isinstance(value, Mapping) else None
            values[name] = value
        return values

    def body(self, document: Mapping[str, Any], token: str, replaces: str | None) -> dict[str, Any]:
        """Body of its creation."""
        return self.mark.put({key: value for key, value in document.items() if key != self.parent}, token, replaces)


def _with(*names: str, **more: str) -> Callable[[Record], Mapping[str, Any]]:
    """Outputs by the fields of the record: ``client_id`` becomes ``ClientId``. What is null is left out."""

    def outputs(record: Record) -> Mapping[str, Any]:
        fields = {**{"".join(part.title() for part in name.split("_")): name for name in names}, **more}
        return {output: record[name] for output, name in fields.items() if record.get(name) is not None}

    return outputs


def _kind(name: str, collection: str, mark: Mark, outputs: Callable[[Record], Mapping[str, Any]], **more: Any) -> Kind:
    fixed = frozenset(contract.FIXED[name]) - more.get("once", frozenset())
    return Kind(
        name, collection, mark, outputs, fixed | more.pop("also_fixed", frozenset()), unset=contract.UNSET[name], **more
    )


_TAG = Mark("tags", "")
_ANNOTATION = Mark("annotations", "stockyard.dev/")
KINDS: Mapping[str, Kind] = {
    kind.name: kind
    for kind in (
        _kind(
            "Cluster",
            "clusters",
            _TAG,
            _with("id", "name", "endpoint", "client_id", "status", "kubernetes_version"),
            once=frozenset({"keep_failed", "secret"}),
            also_fixed=frozenset({"settings.region_name"}),
        ),
        _kind(
            "NodePool",
            "clusters/{cluster}/pools",
            _ANNOTATION,
            _with("name", "cluster_id", "kind"),
            parent="cluster",
            also_fixed=frozenset({"cluster"}),
        ),
        _kind("NodeProvider", "node-providers", _ANNOTATION, _with("id", "name", "phase")),
        _kind(
            "CloudAccount",
            "cloud-accounts",
            _TAG,
            _with("name", "external_id", "verification", Id="id", Number="id"),
            also_fixed=frozenset({"name"}),
        ),
        _kind(
            "ClusterProfile", "cluster-profiles", Mark("description"), _with("id", "name", "version"), by_version=True
        ),
    )
}
"""The kinds by name."""
