"""Reads the pools of a vcluster.yaml, in whichever of the published forms they are.

What was read how is said as a warning at its place: which form it is, and for each property whether it is a requirement
or a variable of the provider.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, NoReturn

from pydantic import ConfigDict, Field

from stockyard.domain.models import fields
from stockyard.domain.models.base import Input, read, without_nulls
from stockyard.domain.models.nodes.node_fields import (
    MAX_REQUIREMENTS,
    MAX_VALUES_TOGETHER,
    Camel,
    Properties,
    is_parameter,
)
from stockyard.domain.models.pools.auto_nodes import (
    AutoNodes,
    AutoPool,
    DynamicPool,
    OfProvider,
    PrivateNodes,
    StaticPool,
)
from stockyard.domain.models.pools.pool_fields import MAX_POOLS, restricted_fault, texts
from stockyard.domain.nodes.manifests import CLUSTER, FieldPath, Warnings
from stockyard.domain.nodes.node_types import BUILT_IN
from stockyard.domain.pools.manifests import PoolsDocument
from stockyard.domain.pools.records import DYNAMIC, EXPIRE_AFTER, STATIC, NewPool
from stockyard.domain.values.notes import Note
from stockyard.domain.values.pointers import pointer
from stockyard.domain.values.requirements import ARCH, DOES_NOT_EXIST, EXISTS, IN, NOT_IN, REGION, ZONE
from stockyard.domain.values.states import PoolKind
from stockyard.errors import FieldProblem, InvalidInput

CONSOLIDATE_AFTER = TERMINATION_GRACE_PERIOD = "30s"
"""The published defaults of pools in a vcluster.yaml."""
KNOWN_PROPERTIES = BUILT_IN | {ZONE, REGION, ARCH}
"""Properties that every node type may have, so that their names are never split."""
MOST_IGNORED = 50
"""How many parts of a vcluster.yaml that are not looked at a warning names."""
_PRIVATE = frozenset({"enabled", "vpn", "nodeToNode", "autoNodes", "nodePools"})
_OF_A_POOL = re.compile(r"(.*/(?:static|dynamic)/[0-9]+)/(?:requirements|nodeTypeSelector)/.+")

Entry = dict[str, Any]


class _Metadata(Camel):
    model_config = ConfigDict(extra="ignore")

    labels: fields.Labels = Field(default_factory=dict)


class _Variables(Input):
    properties: Properties


class _Requirement(Input):
    key: fields.LabelKey
    values: list[Annotated[fields.LabelValue, Field(min_length=1)]]


@dataclass(frozen=True, slots=True)
class _Block:
    """Pools from one part of the document, and the settings of that part for all of them."""

    path: FieldPath
    pools: AutoNodes
    variables: bool
    """Whether properties that are no booleans are the provider's variables; else they are requirements."""

    def each(self) -> Iterator[tuple[FieldPath, PoolKind, AutoPool]]:
        by_kind: dict[PoolKind, Sequence[AutoPool]] = {STATIC: self.pools.static, DYNAMIC: self.pools.dynamic}
        for kind, pools in by_kind.items():
            for number, pool in enumerate(pools):
                yield (*self.path, kind, number), kind, pool


def is_vcluster(document: Mapping[str, Any]) -> bool:
    """Whether the document is a vcluster.yaml: it has no kind, and a part that only such a document has."""
    return "kind" not in document and "apiVersion" not in document and bool(_PARTS & set(document))


_PARTS = frozenset({"privateNodes", "controlPlane", "sync", "networking", "policies", "integrations"})


def read_vcluster(
    document: Mapping[str, Any], *, at: FieldPath = (), properties: Collection[str] = KNOWN_PROPERTIES
) -> PoolsDocument:
    """The pools of a vcluster.yaml. ``properties`` are the names of properties that node types have: with a boolean,
    such a name is not split into a name and a value. Raises ``InvalidInput`` with every fault, below ``at``."""
    document = without_nulls(document)
    warnings = _ignored(document, at)
    metadata = read(_Metadata, document.get("metadata", {}), at=(*at, "metadata"))
    cluster_ref = metadata.labels.get(CLUSTER, "")
    if "privateNodes" not in document:
        warnings.append((at, "There are no privateNodes in it, so there are no pools."))
        return PoolsDocument(cluster_ref=cluster_ref, warnings=warnings)
    here = (*at, "privateNodes")
    private = read(PrivateNodes, document["privateNodes"], at=here)
    blocks = _blocks(private, document["privateNodes"], here, warnings)
    pools, paths = _pools(blocks, properties, warnings)
    if pools and not private.enabled:
        _raise([FieldProblem(pointer(*here, "enabled"), "must be true where pools exist")])
    vpn, node_to_node = private.vpn, private.vpn.node_to_node.enabled or private.node_to_node.enabled
    return PoolsDocument(tuple(pools), tuple(paths), cluster_ref, vpn.enabled, node_to_node, warnings)


def _ignored(document: Mapping[str, Any], at: FieldPath) -> Warnings:
    private = document.get("privateNodes")
    parts: list[FieldPath] = [(name,) for name in document if name not in ("privateNodes", "metadata")]
    parts += [("privateNodes", name) for name in private if name not in _PRIVATE] if isinstance(private, dict) else []
    warnings: Warnings = [((*at, *part), Note("This part is not looked at.")) for part in parts[:MOST_IGNORED]]
    if len(parts) > MOST_IGNORED:
        warnings.append((at, Note(f"{len(parts) - MOST_IGNORED} further parts are not looked at.")))
    return warnings


# --- the forms --------------------------------------------------------------------------------------------------------


def _blocks(private: PrivateNodes, raw: Mapping[str, Any], here: FieldPath, warnings: Warnings) -> list[_Block]:
    path, auto_nodes = (*here, "autoNodes"), private.auto_nodes
    if private.node_pools is not None:
        if auto_nodes is not None:
            _raise([FieldProblem(pointer(*here, "nodePools"), "give autoNodes or nodePools, not both")])
        warnings.append(((*here, "nodePools"), "Read as the form of before autoNodes: each pool names its provider."))
        return [_block(raw["nodePools"], (*here, "nodePools"), AutoNodes, variables=False)]
    if auto_nodes is None:
        return []
    if isinstance(auto_nodes, list):
        if len(auto_nodes) > MAX_POOLS:
            _raise([FieldProblem(pointer(*path), f"must have at most {MAX_POOLS} entries")])
        return _listed(auto_nodes, path)
    if not isinstance(auto_nodes, dict):
        _raise([FieldProblem(pointer(*path), "must be a list or an object")])
    of_one = {"provider", "properties"} & set(auto_nodes)
    of_pools = "an object with one provider" if of_one else "an object whose pools each name their provider"
    warnings.append((path, f"Read as the older form: {of_pools}. Now it is a list with an entry for each provider."))
    return [_block(auto_nodes, path, AutoNodes, variables=False)]


def _listed(entries: Sequence[Any], path: FieldPath) -> list[_Block]:
    blocks: list[_Block] = []
    faults: list[FieldProblem] = []
    providers: set[str] = set()
    for number, entry in enumerate(entries):
        try:
            block = _block(entry, (*path, number), OfProvider, variables=True)
        except InvalidInput as refused:
            faults += refused.errors
            continue
        provider = block.pools.provider
        if provider in providers:
            text = f"node pool provider {provider} is already used. You cannot have two configurations for the same"
            faults.append(FieldProblem(pointer(*path, number, "provider"), f"{text} provider"))
        providers.add(provider)
        blocks.append(block)
    if faults:
        _raise(faults)
    return blocks


def _block(raw: Any, path: FieldPath, model: type[AutoNodes], *, variables: bool) -> _Block:
    try:
        return _Block(path, read(model, raw, at=path), variables)
    except InvalidInput as refused:
        _raise([_in_words_of_vcluster(fault, raw, path) for fault in refused.errors])


def _in_words_of_vcluster(fault: FieldProblem, raw: Any, path: FieldPath) -> FieldProblem:
    """A fault of a requirement names its pool, as published."""
    below = _OF_A_POOL.fullmatch(fault.pointer.removeprefix(pointer(*path)))
    if below is None:
        return fault
    _, kind, number = below[1].split("/")
    name = raw[kind][int(number)].get("name")
    pool_name = name if isinstance(name, str) and re.fullmatch(r"[a-z0-9.-]{1,63}", name) else ""
    return FieldProblem(fault.pointer, f"invalid requirements for node pool {pool_name}: {fault.detail}")


# --- pools ------------------------------------------------------------------------------------------------------------


def _pools(
    blocks: Sequence[_Block], property_keys: Collection[str], warnings: Warnings
) -> tuple[list[NewPool], list[FieldPath]]:
    pools: list[NewPool] = []
    paths: list[FieldPath] = []
    names: set[str] = set()
    faults: list[FieldProblem] = []
    for block in blocks:
        try:
            shared = _read_properties(
                block.pools.properties, block, (*block.path, "properties"), property_keys, warnings
            )
        except InvalidInput as refused:
            faults += refused.errors
            continue
        for path, kind, pool in block.each():
            if pool.name in names:
                text = f"node pool name {pool.name} is already used. You cannot have two node pools with the same name"
                faults.append(FieldProblem(pointer(*path, "name"), text))
            names.add(pool.name)
            provider = pool.provider or block.pools.provider
            if not provider:
                faults.append(FieldProblem(pointer(*path, "provider"), "node pool provider is required"))
            try:
                own = _read_properties(pool.properties, block, (*path, "properties"), property_keys, warnings)
                pools.append(_pool(pool, kind, provider, (own, shared), path, warnings))
            except InvalidInput as refused:
                faults += refused.errors
            paths.append(path)
    if len(paths) > MAX_POOLS:
        faults.append(FieldProblem(pointer(*blocks[0].path), f"a document has at most {MAX_POOLS} pools"))
    if faults:
        _raise(faults)
    return pools, paths


_Readings = tuple[list[Entry], dict[str, str]]
"""What properties are read as: requirements, and variables of the provider."""


def _pool(
    pool: AutoPool,
    kind: PoolKind,
    provider: str,
    readings: tuple[_Readings, _Readings],
    path: FieldPath,
    warnings: Warnings,
) -> NewPool:
    (own_requirements, own_variables), (shared_requirements, shared_variables) = readings
    requirements = [selector.entry() for selector in pool.selectors()]
    requirements += [entry for entry in (*own_requirements, *shared_requirements) if entry not in requirements]
    values = sum(len(entry.get("values", ())) for entry in requirements)
    if len(requirements) > MAX_REQUIREMENTS or values > MAX_VALUES_TOGETHER:
        text = f"has at most {MAX_REQUIREMENTS} requirements with {MAX_VALUES_TOGETHER} values, those of properties too"
        raise InvalidInput.at(pointer(*path), text)
    warnings += _remarks(pool, path)
    return NewPool(
        name=pool.name,
        kind=kind,
        provider_ref=provider,
        requirements=tuple(requirements),
        properties={**shared_variables, **own_variables},
        taints=tuple(taint.entry() for taint in pool.taints),
        labels=dict(pool.node_labels),
        termination_grace_period=pool.termination_grace_period or TERMINATION_GRACE_PERIOD,
        expire_after=pool.expire_after or (EXPIRE_AFTER if kind == DYNAMIC else ""),
        form="autoNodes",
        document={"profile": pool.profile} if pool.profile else {},
        **_sized(pool),
    )


def _sized(pool: AutoPool) -> dict[str, Any]:
    if isinstance(pool, DynamicPool):
        return {
            "limits": texts(pool.limits),
            "weight": pool.weight or 0,
            "disruption": pool.disruption.block(CONSOLIDATE_AFTER),
        }
    return {"quantity": pool.quantity} if isinstance(pool, StaticPool) else {}


def _remarks(pool: AutoPool, path: FieldPath) -> Warnings:
    warnings: Warnings = []
    if pool.termination_grace_period is None:
        text = f"Not given, so it is {TERMINATION_GRACE_PERIOD}: after that, pods go whatever their budgets say."
        warnings.append(((*path, "terminationGracePeriod"), Note(text)))
    if pool.profile:
        warnings.append(((*path, "profile"), Note("This is kept, and does nothing yet.")))
    return warnings


# --- properties -------------------------------------------------------------------------------------------------------


def _read_properties(
    properties: Mapping[str, str | bool],
    block: _Block,
    path: FieldPath,
    property_keys: Collection[str],
    warnings: Warnings,
) -> _Readings:
    """Read a map of properties. Raises ``InvalidInput`` for names and values that nothing can have."""
    entries: dict[tuple[str, str], Entry] = {}
    variables: dict[str, str] = {}
    faults: list[FieldProblem] = []
    for name, value in properties.items():
        reading = _requirement(name, value, block, property_keys)
        if reading is None:
            variables[name] = str(value).lower() if isinstance(value, bool) else str(value)
            warnings.append(((*path, name), Note("Read as a variable of the provider.")))
            continue
        key, operator, values = reading
        fault = restricted_fault(key)
        if fault:
            faults.append(FieldProblem(pointer(*path, name), fault))
        try:
            read(_Requirement, {"key": key, "values": values})
        except InvalidInput as refused:
            faults += [FieldProblem(pointer(*path, name), problem.detail) for problem in refused.errors]
            continue
        entry = entries.setdefault((key, operator), {"key": key, "operator": operator})
        if values:
            entry["values"] = [*entry.get("values", ()), *values]
        text = " ".join((key, operator, *values))
        warnings.append(((*path, name), Note(f"Read as the requirement {text}.")))
    try:
        read(_Variables, {"properties": variables})
    except InvalidInput as refused:
        at = pointer(*path)
        faults += [
            FieldProblem(at + problem.pointer.removeprefix("/properties"), problem.detail) for problem in refused.errors
        ]
    if faults:
        _raise(faults)
    return list(entries.values()), variables


def _requirement(
    name: str, value: str | bool, block: _Block, property_keys: Collection[str]
) -> tuple[str, str, list[str]] | None:
    """Key, operator and values that a property asks for; None: it is a variable of the provider."""
    if name not in property_keys and is_parameter(name):
        return None
    if not isinstance(value, bool):
        return None if block.variables else (name, IN, [value])
    key, slash, last = name.rpartition("/")
    if name in property_keys or not slash:
        return (name, EXISTS if value else DOES_NOT_EXIST, [])
    return (key, IN if value else NOT_IN, [last])


def _raise(faults: Sequence[FieldProblem]) -> NoReturn:
    raise InvalidInput.of(faults)
