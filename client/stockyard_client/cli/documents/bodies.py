"""The kind of a document, by its shape, and the command for it."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING, Any

from stockyard_client.cli.documents.bad_input import BadInput
from stockyard_client.cli.documents.sources import STANDARD_INPUT

if TYPE_CHECKING:
    from stockyard_client.cli.documents.documents import Document

MANIFEST = "manifest"
COMMANDS: Mapping[str, str] = {
    "cluster": "cluster create",
    "account": "account create",
    "provider": "provider create",
    "claim": "claim create",
    "pool": "pool create --cluster CLUSTER",
    "profile": "profile create",
    MANIFEST: "apply",
}
"""The command for each noun."""
_SIGNS: tuple[tuple[str, frozenset[str]], ...] = (
    ("profile", frozenset({"packs"})),
    ("cluster", frozenset({"cloud_account_id", "cluster_type", "settings"})),
    ("account", frozenset({"attributes", "role_arn"})),
    ("provider", frozenset({"kind", "price_per_cost_unit"})),
    ("pool", frozenset({"quantity", "floor", "limits", "headroom", "weight", "update_strategy"})),
    ("claim", frozenset({"cluster", "resources", "type"})),
)
"""The first noun one of whose fields a body has; fields that several have stand at one that has no other."""


_RECORD = frozenset({"version", "created_at", "updated_at"})
"""What each record has, and no request."""


def noun_of(value: Mapping[str, Any]) -> str:
    """Kind of a document: ``manifest``, the noun of a request's body, or empty where its fields do not tell."""
    if is_manifest(value):
        return MANIFEST
    return next((noun for noun, signs in _SIGNS if signs & set(value)), "")


def is_manifest(value: Mapping[str, Any]) -> bool:
    """Whether it is meant to be applied: it has a version, metadata or a kind of such, or is a vcluster.yaml.

    Kinds of providers, which bodies have too, begin with a small letter.
    """
    return bool({"apiVersion", "metadata", "privateNodes"} & set(value)) or str(value.get("kind", ""))[:1].isupper()


def check_body(document: Document, noun: str) -> None:
    """Raises :class:`BadInput` with the right command for a document that is no body of ``noun``."""
    if set(document.value) >= _RECORD:
        text = f"{document.location()}: this is a record, as `get` writes it, with fields that no request has"
        advice = f"; `stockyard {noun} get NAME --manifest` writes what `stockyard apply` takes"
        raise BadInput(text if noun == "account" else text + advice)
    actual = noun_of(document.value)
    if actual not in ("", noun):
        raise _wrong(document, actual)


def check_manifest(document: Document) -> None:
    """Raises :class:`BadInput` with the right command for a body of a request."""
    actual = noun_of(document.value)
    if actual not in ("", MANIFEST):
        raise _wrong(document, actual)


def check_kind(document: Document, kinds: Collection[str]) -> None:
    """Raises :class:`BadInput` for a manifest of another kind than these."""
    if document.kind and document.kind not in kinds:
        raise _wrong(document, MANIFEST)


def _wrong(document: Document, actual: str) -> BadInput:
    if actual == MANIFEST:
        description = f"a manifest of kind {document.kind}" if document.kind else "a manifest"
    else:
        description = f"the body of a request for {'an' if actual == 'account' else 'a'} {actual}"
    file = "-" if document.source == STANDARD_INPUT else document.source
    return BadInput(f"{document.location()}: this is {description}: use `stockyard {COMMANDS[actual]} -f {file}`")
