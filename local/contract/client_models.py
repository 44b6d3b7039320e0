"""The client's models, made from the contract: a class for each answer that the SDK gives out, with all its fields.

A client is older or newer than the API that it asks, so only what names a thing is needed; the rest has defaults.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from textwrap import fill
from typing import Any

FOLDER = Path("client/stockyard_client")
WIDTH = 120
REFERENCE = "#/components/schemas/"
DEFAULTS = {
    "attempt": "1",
    "cluster_type": '"k8s"',
    "complete": "True",
    "currency": '"USD"',
    "known_hour": "0.0",
    "known_month": "0.0",
    "ready": "True",
    "unit": '"hour"',
}
"""Of fields whose absence says something else than nothing."""
SECRET = frozenset({"client_secret"})
"""Fields that no representation shows."""
MOMENTS = re.compile(r"\w+_(at|time|until)|time|verification|verification_message|actor")
"""Texts that are None where they are missing."""


@dataclass(frozen=True, slots=True)
class Row:
    """A class of the SDK: the schema that it has the fields of, those that an answer cannot lack, and its bases.
    ``unset`` are fields that are None where an answer leaves them out, ``loose`` those whose items may be anything."""

    name: str
    schema: str
    needed: str = ""
    bases: str = "Model"
    unset: str = ""
    loose: str = ""


PARTS = "part_models"
"""Module of classes that others have fields of."""
MODULES: Mapping[str, tuple[str, tuple[Row, ...]]] = {
    PARTS: (
        "Parts of answers of the API.",
        (Row("Condition", "ConditionView", "type status"), Row("PoolNodes", "PoolNodesView")),
    ),
    "models": (
        "Answers of the API about cloud accounts, clusters, operations and events, and plans.",
        (
            Row("CloudAccount", "CloudAccountView", "id provider", "Resource"),
            Row("Cluster", "ClusterView", "id name status", "Resource", unset="cloud_account_id price"),
            Row("Phase", "PhaseView", "name state"),
            Row("OperationError", "OperationErrorView", "error_type"),
            Row("OperationFailure", "OperationFailureView", "attempt"),
            Row("Run", "RunView", "name"),
            Row("LogLine", "LogLineView", "run"),
            Row("Operation", "OperationView", "id kind subject status", "OperationState, Resource"),
            Row("Event", "EventView", "id subject"),
            Row("Price", "Price"),
            Row("Plan", "Plan", unset="price", loose="creates changes deletes rejected warnings"),
        ),
    ),
    "node_models": (
        "Answers of the API about nodes: providers, types, claims, and what applying manifests did.",
        (
            Row("NodeProvider", "NodeProviderView", "id name", "Resource"),
            Row("Capacity", "CapacityView"),
            Row("NodeType", "NodeTypeView", "id name", "Resource", unset="cost"),
            Row("NodeClaim", "NodeClaimView", "id name phase", "Resource"),
            Row("Candidate", "CandidateView", "type", unset="cost"),
            Row("TypeGroup", "GroupView", "rule"),
            Row("Explanation", "ExplanationView", "claim"),
            Row("Applied", "AppliedView", "kind name id action"),
            Row("SetMember", "SetMemberView", "set kind id name"),
            Row("PriceOf", "PriceView", "region name"),
        ),
    ),
    "os_image_models": (
        "Answers of the API about images of operating systems.",
        (Row("OSImage", "OSImageView", "id name", "Resource"),),
    ),
    "pool_models": (
        "Answers of the API about pools, and about the needs of pods.",
        (
            Row("Pool", "PoolView", "name kind", "PoolState, Resource"),
            Row("PlannedNode", "PlannedNodeView", "type"),
            Row("NodePods", "NodePodsView", "node"),
            Row("Refusal", "RefusalView", "rule"),
            Row("LeftOut", "LeftOutView"),
            Row("Placements", "PlacementsView"),
        ),
    ),
    "profile_models": (
        "Answers of the API about cluster profiles, and about those of a cluster.",
        (
            Row("ClusterProfile", "ClusterProfileView", "id name", "Resource", unset="variables packs"),
            Row("PackStatus", "PackStatusView", "profile layer name"),
            Row("ClusterProfiles", "ClusterProfilesView"),
        ),
    ),
    "site_models": (
        "Answers of the API about sites.",
        (
            Row("Site", "SiteView", "id name", "Resource"),
            Row("SiteCredentials", "SiteCredentialsView", "client_id client_secret"),
        ),
    ),
}
STATES = frozenset({"OperationState", "PoolState"})
"""Bases that are no models."""


def modules(document: Mapping[str, Any]) -> dict[Path, str]:
    """File -> its text, by the contract."""
    schemas = document["components"]["schemas"]
    return {FOLDER / f"{name}.py": _module(name, *about, schemas) for name, about in MODULES.items()}


def _module(name: str, purpose: str, rows: tuple[Row, ...], schemas: Mapping[str, Any]) -> str:
    names = {row.schema: row.name for row in rows}
    shared = {row.schema: row.name for row in MODULES[PARTS][1]}
    classes = "\n\n\n".join(_class(row, schemas, {**shared, **names}) for row in rows)
    bases = sorted({base for row in rows for base in row.bases.split(", ")}, key=str.lower)
    parts = [] if name == PARTS else [part for part in shared.values() if re.search(rf"\b{part}\b", classes)]
    imported = {"base_models": set(bases) - STATES, PARTS: parts, "states": STATES.intersection(bases)}
    imports = [
        f"from stockyard_client.{module} import {', '.join(sorted(names_of, key=str.lower))}"
        for module, names_of in imported.items()
        if names_of
    ]
    outside = ["from typing import Any"] if "Any" in classes else []
    outside += ["", "from pydantic import Field"] if "Field(" in classes else []
    head = f'"""{purpose}\n\nMade from the contract by ``local.openapi``.\n"""\n\nfrom __future__ import annotations\n'
    blocks = [block for block in ("\n".join(outside).strip(), "\n".join(imports)) if block]
    return "\n".join([head, "\n\n".join(blocks)]) + f"\n\n\n{classes}\n"


def _class(row: Row, schemas: Mapping[str, Any], names: Mapping[str, str]) -> str:
    schema = schemas[row.schema]
    lines = [f"class {row.name}({row.bases}):", *_text(schema["description"]), ""]
    needed, unset = row.needed.split(), row.unset.split()
    fields = schema["properties"]
    for name in sorted(fields, key=lambda field: field not in needed):
        kind = _type(fields[name], names) if name not in row.loose.split() else "tuple[Any, ...]"
        if name == "version" and kind == "int":
            continue  # Of the base.
        lines += _field(name, kind, needed=name in needed, unset=name in unset)
        if description := fields[name].get("description"):
            lines += _text(description)
    return "\n".join(lines)


def _field(name: str, kind: str, *, needed: bool, unset: bool) -> Iterator[str]:
    hidden = name in SECRET
    if needed:
        yield f"    {name}: {kind}" + (" = Field(repr=False)" if hidden else "")
        return
    if (unset or MOMENTS.fullmatch(name)) and not kind.endswith(" | None"):
        kind += " | None"
    ignored = "  # type: ignore[assignment]" if name == "version" else ""
    yield f"    {name}: {kind} = {_default(name, kind)}{ignored}"


def _default(name: str, kind: str) -> str:
    if kind.endswith(" | None") or kind == "Any":
        return "None"
    if name in DEFAULTS:
        return DEFAULTS[name]
    if kind.startswith("dict"):
        return "Field(default_factory=dict)"
    plain = {"str": '""', "int": "0", "float": "0.0", "bool": "False"}
    return plain.get(kind) or ("()" if kind.startswith("tuple") else f"{kind}()")


def _type(schema: Mapping[str, Any], names: Mapping[str, str]) -> str:
    """The type of a field. Objects that the SDK has no class for are plain ones."""
    if "$ref" in schema:
        return names.get(schema["$ref"].removeprefix(REFERENCE), "dict[str, Any]")
    if alternatives := schema.get("anyOf"):
        kinds = {_type(schema_of_one, names) for schema_of_one in alternatives if schema_of_one.get("type") != "null"}
        (kind,) = kinds if len(kinds) == 1 else ("Any",)
        return f"{kind} | None" if kind != "Any" and len(kinds) < len(alternatives) else kind
    if schema.get("type") == "array":
        return f"tuple[{_type(schema['items'], names)}, ...]"
    if schema.get("type") == "object":
        more = schema.get("additionalProperties")
        return "dict[str, str]" if isinstance(more, Mapping) and more.get("type") == "string" else "dict[str, Any]"
    return {"string": "str", "integer": "int", "number": "float", "boolean": "bool"}.get(schema.get("type", ""), "Any")


def _text(description: str) -> list[str]:
    text = " ".join(description.split()).replace("\\", "\\\\")
    return fill(f'"""{text}"""', WIDTH, initial_indent="    ", subsequent_indent="    ").splitlines()
