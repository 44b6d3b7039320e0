"""Marks that tell the owner of an object which Stockyard makes in a host: four labels."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from typing import Any

from stockyard.domain.models.patterns import LABEL
from stockyard.ports import Tagged

INSTALLATION, TENANT, RESOURCE, GENERATION = (
    f"stockyard.dev/{name}" for name in ("installation", "tenant", "resource", "generation")
)
NODE_PROVIDER, NODE_TYPE = "stockyard.dev/node-provider", "stockyard.dev/node-type"
"""Labels of a machine with the id of its provider, and the bare name of its node type."""
_FIT = re.compile(LABEL)


def label_value(text: str) -> str:
    """The text as the value of a label; a digest of a text that cannot be one."""
    return text if _FIT.fullmatch(text) else f"sha256-{hashlib.sha256(text.encode()).hexdigest()[:48]}"


def marks(installation: str, tenant: str, resource_id: str, generation: int) -> dict[str, str]:
    """The labels of an object that is made for that record, in that generation."""
    texts = {INSTALLATION: installation, TENANT: tenant, RESOURCE: resource_id, GENERATION: str(generation)}
    return {key: label_value(text) for key, text in texts.items()}


def selector(installation: str, tenant: str) -> str:
    """The selector of all objects of a tenant."""
    return f"{INSTALLATION}={label_value(installation)},{TENANT}={label_value(tenant)}"


def labels_of(document: Mapping[str, Any]) -> Mapping[str, str]:
    """The labels of an object."""
    return document["metadata"].get("labels") or {}


def tagged(kind: str, document: Mapping[str, Any], installation: str, tenant: str) -> Tagged | None:
    """The object as the sweep wants it; None for one that does not carry all four marks of the tenant."""
    labels, meta = labels_of(document), document["metadata"]
    own = (label_value(installation), label_value(tenant))
    if (labels.get(INSTALLATION), labels.get(TENANT)) != own or not (labels.get(RESOURCE) and labels.get(GENERATION)):
        return None
    return Tagged(
        kind,
        meta["name"],
        meta["namespace"],
        tenant,
        labels[RESOURCE],
        labels[GENERATION],
        meta.get("creationTimestamp"),
    )
