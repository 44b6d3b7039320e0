"""The documents of a request as they are read: lists are taken apart, and what is not ours stands apart."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from stockyard.domain.models.manifests.read_manifests import is_known, is_meant_for_us, is_node_class
from stockyard.domain.nodes.manifests import KARPENTER, FieldPath, Warnings
from stockyard.domain.values.manifest_lists import taken_apart
from stockyard.domain.values.notes import Note
from stockyard.domain.values.pointers import pointer
from stockyard.errors import FieldProblem, InvalidInput

MOST_DOCUMENTS = 100
"""Documents of one request, items of lists among them."""
_OF_A_CLUSTER = ((KARPENTER, "NodePool"), (KARPENTER, "NodeClaim"))
"""Kinds that have no namespace in Kubernetes. Its API server clears the one that is written, and goes on."""
_MOST_FIELDS, _LONGEST_KIND, _LONGEST_VERSION = 10, 63, 253


@dataclass(frozen=True, slots=True)
class Documents:
    """The documents as models, the place of each in the request, and warnings about parts that are left out."""

    documents: tuple[Mapping[str, Any], ...]
    paths: tuple[FieldPath, ...]
    warnings: Warnings


def sorted_out(sent: Sequence[Mapping[str, Any]]) -> Documents:
    """The documents of a request. One of a foreign kind is left out with a warning, beside others that are read; where
    all are foreign, all stay, so that each is refused by its name.

    ``InvalidInput`` for a list whose items are none, and for too many documents.
    """
    flat = _flat(sent)
    foreign = {path for path, document in flat if _is_foreign(document)}
    if len(foreign) == len(flat):
        foreign = set()
    documents: list[Mapping[str, Any]] = []
    warnings: Warnings = []
    for path, document in flat:
        if path in foreign:
            warnings.append(_foreign_warning(path, document))
            continue
        if _has_needless_namespace(document):
            text = f"A {document['kind']} belongs to its cluster and has no namespace: this one is left out."
            warnings.append(((*path, "metadata", "namespace"), Note(text)))
            documents.append(_without_namespace(document))
        else:
            documents.append(document)
    return Documents(tuple(documents), tuple(path for path, _ in flat if path not in foreign), warnings)


def _flat(sent: Sequence[Mapping[str, Any]]) -> list[tuple[FieldPath, Mapping[str, Any]]]:
    flat: list[tuple[FieldPath, Mapping[str, Any]]] = []
    for number, document in enumerate(sent):
        try:
            flat += taken_apart(document, (number,))
        except ValueError as error:
            path, _, text = str(error).partition(": ")
            raise InvalidInput.at(path, text) from None
        if len(flat) > MOST_DOCUMENTS:
            text = f"no more than {MOST_DOCUMENTS} documents are read at once, items of lists among them"
            raise InvalidInput.at(pointer(number), text)
    wrong = [path for path, document in flat if not isinstance(document, Mapping)]
    if wrong:
        raise InvalidInput.of([FieldProblem(pointer(*path), "must be an object") for path in wrong])
    return flat


def _is_foreign(document: Mapping[str, Any]) -> bool:
    version, kind = document.get("apiVersion"), document.get("kind")
    if not isinstance(version, str) or not isinstance(kind, str):
        return False
    return not is_known(version, kind) and not is_meant_for_us(version, kind)


def _foreign_warning(path: FieldPath, document: Mapping[str, Any]) -> tuple[FieldPath, str]:
    version, kind = document["apiVersion"][:_LONGEST_VERSION], document["kind"][:_LONGEST_KIND]
    if not is_node_class(kind):
        return (*path, "kind"), f"{kind} of {version} is no kind that is read here: the document is left out."
    spec = document.get("spec")
    fields = [str(name)[:_LONGEST_KIND] for name in spec] if isinstance(spec, Mapping) else []
    listed = ", ".join(fields[:_MOST_FIELDS]) + (" and more" if len(fields) > _MOST_FIELDS else "")
    unused = f" Not used of it: {listed}." if fields else ""
    return (*path, "kind"), f"The {kind} is left out: a node provider says how nodes are made.{unused}"


def _without_namespace(document: Mapping[str, Any]) -> dict[str, Any]:
    metadata = {name: value for name, value in document["metadata"].items() if name != "namespace"}
    return {**document, "metadata": metadata}


def _has_needless_namespace(document: Mapping[str, Any]) -> bool:
    metadata = document.get("metadata")
    is_of_cluster = (document.get("apiVersion"), document.get("kind")) in _OF_A_CLUSTER
    return is_of_cluster and isinstance(metadata, Mapping) and bool(metadata.get("namespace"))
