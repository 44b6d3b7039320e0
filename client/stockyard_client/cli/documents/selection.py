"""Documents that were read, by their labels and by the thing that each is about."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from stockyard_client.cli.documents.bad_input import BadInput

if TYPE_CHECKING:
    from stockyard_client.cli.documents.documents import Document

CLUSTER = "stockyard.dev/cluster"
"""The label by which documents of pools and claims of other projects name their cluster."""


def labels_of(value: Mapping[str, Any]) -> dict[str, str]:
    """The labels by which a document is selected: those of its metadata, the tags of a Cluster, the labels of a
    Pool."""
    labels: dict[str, str] = {}
    for holder, name in (("spec", "labels"), ("spec", "tags"), ("metadata", "labels")):
        inner = value.get(holder)
        own = inner.get(name) if isinstance(inner, Mapping) else None
        labels |= {str(key): str(text) for key, text in own.items()} if isinstance(own, Mapping) else {}
    return labels


class Selector:
    """Labels that are looked for, as kubectl reads them: ``k=v``, ``k!=v``, ``k``, ``!k``, with commas between."""

    def __init__(self, text: str | None) -> None:
        self._rules = [_rule(part.strip()) for part in text.split(",")] if text is not None else []

    def takes(self, labels: Mapping[str, str]) -> bool:
        """Whether something with these labels is selected."""
        return all(_holds(labels, *rule) for rule in self._rules)


def _rule(text: str) -> tuple[str, str, str]:
    for sign in ("!=", "==", "="):
        key, separator, value = text.partition(sign)
        if separator and key.strip():
            return key.strip(), "!=" if sign == "!=" else "=", value.strip()
    absent = text.startswith("!")
    key = text.removeprefix("!").strip()
    if not key or "=" in key:
        raise BadInput(f"--selector: {text!r} is not k=v, k!=v, k or !k")
    return key, "absent" if absent else "present", ""


def _holds(labels: Mapping[str, str], key: str, sign: str, value: str) -> bool:
    if sign in ("present", "absent"):
        return (key in labels) is (sign == "present")
    return (labels.get(key) == value) is (sign == "=")


def check_each_once(documents: Iterable[Document], cluster: str | None) -> None:
    """:class:`BadInput` where two documents are about the same thing: only one of them would last."""
    first_documents: dict[tuple[str, ...], Document] = {}
    for document in documents:
        if not document.kind or not document.name:
            continue
        key = (_family(document.kind), *_namespace_and_cluster(document.value, cluster), document.name)
        first = first_documents.setdefault(key, document)
        if first is not document:
            raise BadInput(f"{document.location()}: {first.location()} has the same name")


def names_of(documents: Sequence[Document]) -> set[str]:
    """Every name that a document gives to a thing: its own, and those of pools in it."""
    names: set[str] = set()
    for document in documents:
        names |= {document.name} | _names_below(document.value)
    return names


def _names_below(value: Any) -> set[str]:
    if isinstance(value, Mapping):
        own = value.get("name")
        return {name for inner in value.values() for name in _names_below(inner)} | (
            {own} if isinstance(own, str) else set()
        )
    return {name for inner in value for name in _names_below(inner)} if isinstance(value, list) else set()


def _family(kind: str) -> str:
    """The kind of thing: pools and clusters come in several kinds of documents."""
    return next((family for family in ("Pool", "Cluster", "NodeClaim") if kind.endswith(family)), kind)


def _namespace_and_cluster(value: Mapping[str, Any], cluster: str | None) -> tuple[str, str]:
    """The namespace and the cluster that a document names."""
    metadata, spec = value.get("metadata"), value.get("spec")
    labels = metadata.get("labels") if isinstance(metadata, Mapping) else None
    own = spec.get("cluster") if isinstance(spec, Mapping) else None
    labelled = labels.get(CLUSTER) if isinstance(labels, Mapping) else None
    is_cluster = str(value.get("kind", "")).endswith("Cluster")
    namespace = metadata.get("namespace") if is_cluster and isinstance(metadata, Mapping) else None
    return str(namespace or ""), str(own or labelled or cluster or "")


def of_cluster(document: dict[str, Any], cluster: str | None) -> dict[str, Any]:
    """The document; one of another project that names no cluster names this one."""
    metadata = document.get("metadata") or {}
    if cluster is None or not _is_foreign(document) or not isinstance(metadata, dict):
        return document
    labels = metadata.get("labels") or {}
    if not isinstance(labels, dict):
        return document
    return {**document, "metadata": {**metadata, "labels": {CLUSTER: cluster, **labels}}}


def _is_foreign(document: dict[str, Any]) -> bool:
    """Whether its form has no field for the cluster: a vcluster.yaml, or what a Karpenter has in one cluster."""
    if "kind" not in document:
        return "privateNodes" in document
    return str(document.get("apiVersion", "")).startswith("karpenter.sh/") or document["kind"] == "NodePool"
