"""Pods, pools and node types of scheduling scenarios, read into what the packer takes."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from stockyard.domain.nodes.node_types import NodeType, Offering, read_resources
from stockyard.domain.values.quantities import milli
from stockyard.domain.values.requirements import (
    ARCH,
    INSTANCE_TYPE,
    OS,
    Requirements,
)
from stockyard.scheduling.packing.model import (
    Pod,
    PodTerm,
    Pool,
    Preference,
    Selector,
    Spread,
    Taint,
    Toleration,
    term,
)

Json = Any
PROVIDER = "scenario"
NAMESPACE = "default"
_POD = frozenset(
    {
        "name",
        "count",
        "labels",
        "requests",
        "init_containers",
        "overhead",
        "node_selector",
        "required_terms",
        "preferred_terms",
        "tolerations",
        "topology_spread",
        "anti_affinity",
        "affinity",
    }
)
_POOL = frozenset({"name", "requirements", "labels", "taints", "limits", "weight"})


def check_fields(document: Mapping[str, Json], fields: frozenset[str]) -> None:
    """Raises ``ValueError`` when the document has a field that is not known."""
    extra = sorted(set(document) - fields)
    if extra:
        raise ValueError(f"unknown field {', '.join(extra)}")


def read_pod(document: Mapping[str, Json]) -> Pod:
    """A pod in the words of the files."""
    check_fields(document, _POD)
    requests = {name: milli(amount) for name, amount in document.get("requests", {}).items()}
    for container in document.get("init_containers", ()):
        for name, amount in container.items():
            requests[name] = max(requests.get(name, 0), milli(amount))
    for name, amount in document.get("overhead", {}).items():
        requests[name] = requests.get(name, 0) + milli(amount)
    requests["pods"] = 1000
    node_selector = [
        {"key": key, "operator": "In", "values": [value]} for key, value in document.get("node_selector", {}).items()
    ]
    terms = [term([*node_selector, *entry]) for entry in document.get("required_terms") or [[]]]
    return Pod(
        namespace=NAMESPACE,
        labels=tuple(sorted(document.get("labels", {}).items())),
        requests=tuple(sorted(requests.items())),
        terms=tuple(terms),
        preferences=tuple(
            Preference(entry["weight"], term(entry["requirements"])) for entry in document.get("preferred_terms", ())
        ),
        tolerations=tuple(Toleration(**entry) for entry in document.get("tolerations", ())),
        spreads=tuple(read_spread(entry) for entry in document.get("topology_spread", ())),
        affinity=tuple(read_term(entry) for entry in document.get("affinity", ())),
        anti_affinity=tuple(read_term(entry) for entry in document.get("anti_affinity", ())),
    )


def read_selector(labels: Mapping[str, str] | None) -> Selector:
    if labels is None:
        return Selector()
    entries = [{"key": key, "operator": "In", "values": [value]} for key, value in labels.items()]
    return Selector(term(entries))


def read_spread(document: Mapping[str, Json]) -> Spread:
    check_fields(document, frozenset({"key", "max_skew", "when", "selector", "min_domains"}))
    return Spread(
        document["key"],
        document["max_skew"],
        read_selector(document.get("selector")),
        hard=document["when"] == "DoNotSchedule",
        min_domains=document.get("min_domains"),
    )


def read_term(document: Mapping[str, Json]) -> PodTerm:
    check_fields(document, frozenset({"key", "selector"}))
    return PodTerm(document["key"], read_selector(document["selector"]), frozenset({NAMESPACE}))


def read_pool(document: Mapping[str, Json], types: Sequence[NodeType], usage: Counter[tuple[str, str]]) -> Pool:
    check_fields(document, _POOL)
    limits = {name: milli(amount) for name, amount in document.get("limits", {}).items()}
    return Pool(
        document["name"],
        tuple(types),
        Requirements.of(document["requirements"]),
        document.get("labels", {}),
        tuple(Taint(**entry) for entry in document.get("taints", ())),
        document.get("weight") or 0,
        limits,
        {name: usage[document["name"], name] for name in limits},
    )


@cache
def catalogue(folder: Path, name: str) -> tuple[NodeType, ...]:
    """The node types of a catalogue, those that are rules included."""
    document = json.loads((folder / "instance_catalogs.json").read_text(encoding="utf-8"))
    if name in document["catalogs"]:
        return tuple(_node_type(entry) for entry in document["catalogs"][name])
    rows = document["generated"]["assorted1344"]
    types = [_assorted(dict(zip(rows["columns"], row, strict=True)), rows) for row in rows["rows"]]
    zones = {entry.name: entry.offerings[0].zones[0] for entry in types}
    arch = {entry.name: entry.properties[ARCH][0] for entry in types}
    if name == "assorted_amd64_only":
        types = [entry for entry in types if arch[entry.name] == "amd64"]
    elif name == "assorted_no_arm_in_zone2":
        types = [entry for entry in types if not (arch[entry.name] == "arm64" and zones[entry.name] == "test-zone-2")]
    elif name == "assorted_first10":
        types = types[:10]
    elif name != "assorted1344":
        raise ValueError(f"unknown catalogue {name}")
    return tuple(types)


def _assorted(row: Mapping[str, Json], rules: Mapping[str, Json]) -> NodeType:
    large = row["vcpu"] > 4 and row["memory_gib"] > 8
    labels = {ARCH: row["arch"], OS: row["os"], "integer": str(row["vcpu"]), "size": "large" if large else "small"}
    labels["special"] = "optional" if large else []
    entry = {
        "name": row["name"],
        "capacity": {"cpu": str(row["vcpu"]), "memory": f"{row['memory_gib']}Gi", "pods": str(rules["pods"])},
        "overhead": rules["overhead"],
        "labels": labels,
        "offerings": [{"capacity_type": row["capacity_type"], "zone": row["zone"], "price": row["price"]}],
    }
    return _node_type(entry)


def _node_type(entry: Mapping[str, Json]) -> NodeType:
    capacity = read_resources(entry["capacity"])
    overhead = read_resources(entry.get("overhead", {}), pods=None)
    labels = {key: (value,) if isinstance(value, str) else tuple(value) for key, value in entry["labels"].items()}
    return NodeType(
        name=f"{PROVIDER}.{entry['name']}",
        provider=PROVIDER,
        properties={**labels, INSTANCE_TYPE: (entry["name"],)},
        allocatable={name: amount - overhead.get(name, 0) for name, amount in capacity.items()},
        capacity=capacity,
        cost=0,
        offerings=tuple(
            Offering(entry["capacity_type"], (entry["zone"],), entry["price"]) for entry in entry["offerings"]
        ),
    )
