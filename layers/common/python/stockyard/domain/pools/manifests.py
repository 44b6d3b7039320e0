"""The documents that pools are shown as, by the form that they came in.

A document of a foreign form that is read, stored and shown again differs only in what docs/pool-documents.md lists. A
pool that its form cannot say any more, because it was changed on our own routes, is shown as a manifest of ours.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from dataclasses import field
from typing import Any

from stockyard.domain.nodes.manifests import KARPENTER, OWN, PROVIDER, FieldPath, Warnings
from stockyard.domain.pools.budgets import EXPIRED
from stockyard.domain.pools.records import STATIC, NewPool, Pool
from stockyard.domain.pools.schedules import with_zone
from stockyard.domain.values.durations import NEVER
from stockyard.domain.values.frozen import dataclass

AnyPool = NewPool | Pool
_OF_ALL = {"kind", "provider_ref", "requirements", "taints", "labels", "quantity", "limits", "weight", "disruption"}
_OF_ALL |= {"expire_after", "termination_grace_period"}
_OF_A_VCLUSTER = _OF_ALL | {"properties"}
_OF_A_NODE_POOL = _OF_ALL | {"startup_taints", "annotations"}
"""What a document of that form can say of a pool."""


@dataclass(frozen=True, slots=True)
class PoolsDocument:
    """The pools that a document asks for, each with its place in it: one of a NodePool or a ``Pool``, all of a
    vcluster.yaml.

    ``cluster_ref`` is the cluster that it names, else empty. ``vpn`` and ``node_to_node`` say which networks are asked
    for.
    """

    pools: tuple[NewPool, ...] = ()
    paths: tuple[FieldPath, ...] = ()
    cluster_ref: str = ""
    vpn: bool = False
    node_to_node: bool = False
    warnings: Warnings = field(default_factory=list)


def pool_manifest(pool: AnyPool, cluster: str = "") -> dict[str, Any]:
    """The pool as a document that can be applied, of the form that it came in: a vcluster.yaml with this pool, a
    NodePool; any other, and one that its form cannot say, as a ``Pool`` of ours, which names its ``cluster``. That of a
    node group is one of ours too, since a group is no document of its own."""
    if pool.form == "autoNodes" and says_vcluster(pool):
        return vcluster_document([pool])
    if pool.form == "karpenter" and says_node_pool(pool):
        return node_pool(pool)
    return own_manifest(pool, cluster)


_STOCKYARD_ONLY = ("paused", "minimumSaving")
"""What only pools of ours can say of disruption."""


def says_vcluster(pool: AnyPool) -> bool:
    """Whether a vcluster.yaml can say all of the pool."""
    open_ended = any("minValues" in requirement for requirement in pool.requirements)
    is_ours = open_ended or any(map(pool.disruption.get, _STOCKYARD_ONLY))
    return bool(pool.provider_ref) and not is_ours and _says_no_more_than(pool, _OF_A_VCLUSTER)


def says_node_pool(pool: AnyPool) -> bool:
    """Whether a NodePool can say all of the pool."""
    is_extended = any(
        budget.get("timeZone") or EXPIRED in (budget.get("reasons") or ())
        for budget in pool.disruption.get("budgets", ())
    )
    is_ours = is_extended or any(map(pool.disruption.get, _STOCKYARD_ONLY))
    return not is_ours and _says_no_more_than(pool, _OF_A_NODE_POOL)


def _says_no_more_than(pool: AnyPool, names: Set[str]) -> bool:
    return not any(value for name, value in pool.spec().items() if name not in names)


# --- vcluster.yaml ----------------------------------------------------------------------------------------------------


def vcluster_document(pools: Sequence[AnyPool], *, vpn: bool = False, node_to_node: bool = False) -> dict[str, Any]:
    """A vcluster.yaml with these pools, in the form that is current: a list with an entry for each provider."""
    entries: dict[str, dict[str, Any]] = {}
    for pool in pools:
        entry = entries.setdefault(pool.provider_ref, {"provider": pool.provider_ref})
        entry.setdefault(pool.kind, []).append(_auto_pool(pool))
    private: dict[str, Any] = {"enabled": True}
    if vpn or node_to_node:
        private["vpn"] = {"enabled": vpn, **({"nodeToNode": {"enabled": True}} if node_to_node else {})}
    return {"privateNodes": {**private, "autoNodes": list(entries.values())}}


def _auto_pool(pool: AnyPool) -> dict[str, Any]:
    static = pool.kind == STATIC
    selectors = [
        {"property": requirement["key"], "operator": requirement["operator"], **_values(requirement)}
        for requirement in pool.requirements
    ]
    optional = {
        "properties": dict(pool.properties),
        "nodeTypeSelector": selectors,
        "taints": [dict(taint) for taint in pool.taints],
        "nodeLabels": dict(pool.labels),
        "limits": dict(pool.limits),
        "disruption": dict(pool.disruption),
        "terminationGracePeriod": pool.termination_grace_period or NEVER,
        "expireAfter": pool.expire_after or ("" if static else NEVER),
        "weight": pool.weight,
        "profile": pool.document.get("profile"),
    }
    quantity = {"quantity": pool.quantity} if static else {}
    return {"name": pool.name, **quantity, **_without_empty(optional)}


def _values(requirement: Mapping[str, Any]) -> dict[str, Any]:
    return {"values": list(requirement["values"])} if requirement.get("values") else {}


# --- NodePool ---------------------------------------------------------------------------------------------------------


def node_pool(pool: AnyPool) -> dict[str, Any]:
    """The pool as a NodePool of ``karpenter.sh/v1``. What a NodePool cannot say is left out, the reason ``Expired`` of
    budgets too; the time zone of a budget stands before its schedule."""
    static = pool.kind == STATIC
    provider = {PROVIDER: pool.provider_ref} if pool.provider_ref else {}
    metadata = _without_empty({"labels": {**pool.labels, **provider}, "annotations": dict(pool.annotations)})
    template = {
        "taints": [dict(taint) for taint in pool.taints],
        "startupTaints": [dict(taint) for taint in pool.startup_taints],
        "nodeClassRef": pool.document.get("nodeClassRef") if pool.form == "karpenter" else None,
        "terminationGracePeriod": "" if pool.termination_grace_period == NEVER else pool.termination_grace_period,
        "expireAfter": pool.expire_after or ("" if static else NEVER),
    }
    spec = {
        "template": {
            **({"metadata": metadata} if metadata else {}),
            "spec": {"requirements": [dict(entry) for entry in pool.requirements], **_without_empty(template)},
        },
        **_without_empty(
            {"limits": dict(pool.limits), "weight": pool.weight, "disruption": _of_karpenter(pool.disruption)}
        ),
        **({"replicas": pool.quantity} if static else {}),
    }
    written = pool.document.get("metadata", {}) if pool.form == "karpenter" else {}
    return {"apiVersion": KARPENTER, "kind": "NodePool", "metadata": {"name": pool.name, **written}, "spec": spec}


def _of_karpenter(disruption: Mapping[str, Any]) -> dict[str, Any]:
    budgets = [
        {name: value for name, value in budget.items() if name not in ("timeZone", "reasons")}
        | ({"reasons": reasons} if (reasons := _without_expired(budget)) else {})
        | ({"schedule": with_zone(budget["schedule"], budget["timeZone"])} if budget.get("timeZone") else {})
        for budget in disruption.get("budgets", ())
        if not budget.get("reasons") or _without_expired(budget)
    ]
    block = {name: value for name, value in disruption.items() if name not in _STOCKYARD_ONLY}
    return {**block, **({"budgets": budgets} if "budgets" in disruption else {})}


def _without_expired(budget: Mapping[str, Any]) -> list[str]:
    return [reason for reason in budget.get("reasons") or () if reason != EXPIRED]


# --- ours -------------------------------------------------------------------------------------------------------------


def own_manifest(pool: AnyPool, cluster: str = "") -> dict[str, Any]:
    """The pool as a manifest of ``stockyard/v1``, with the fields of our own routes in camel case."""
    named = {"cluster": cluster} if cluster else {}
    spec = {**named, **own_pool_spec(pool)}
    return {"apiVersion": OWN, "kind": "Pool", "metadata": {"name": pool.name}, "spec": spec}


def own_pool_spec(pool: AnyPool) -> dict[str, Any]:
    """Spec of the pool in a manifest of ours, without its name and its cluster."""
    values = {
        _camel(name): list(value) if isinstance(value, tuple) else value
        for name, value in pool.spec().items()
        if value and name != "provider_ref"
    }
    provider = {"provider": pool.provider_ref} if pool.provider_ref else {}
    quantity = {"quantity": pool.quantity} if pool.kind == STATIC else {}
    return {**provider, **values, **quantity}


def _camel(name: str) -> str:
    first, *further = name.split("_")
    return first + "".join(map(str.capitalize, further))


def _without_empty(fields: Mapping[str, Any]) -> dict[str, Any]:
    """The fields that say something."""
    return {name: value for name, value in fields.items() if value}
