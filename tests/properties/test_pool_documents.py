"""Pools that are shown as their document and read again are equal, with all fields and in every form.

Documents are drawn at random in all forms, with all fields. ``STOCKYARD_SOAK`` raises the count to 20,000.
"""

from __future__ import annotations

from random import Random
from typing import Any

from stockyard.domain.models.pools.node_pools import read_node_pool
from stockyard.domain.models.pools.read_vcluster import read_vcluster
from stockyard.domain.pools.manifests import pool_manifest, vcluster_document
from stockyard.errors import InvalidInput
from tests.properties.test_mutated_manifests import with_one_change

DOCUMENTS, MANY = 150, 20_000
KEYS = ("vcluster.com/node-type", "topology.kubernetes.io/zone", "acme.com/gpu", "size", "karpenter.sh/capacity-type")
VALUES = ("a", "b", "c", "eu-1", "x_y.z", "1")
DURATIONS = ("30s", "5m", "1h30m", "0s", "Never")
NAMES = ("web", "batch", "gpu.large", "a", "p-1")


def sometimes(chance: Random, fields: dict[str, Any]) -> dict[str, Any]:
    """Each field or not."""
    return {name: value for name, value in fields.items() if chance.random() < 0.5}


def values(chance: Random) -> list[str]:
    return chance.sample(VALUES, chance.randint(1, len(VALUES)))


def requirement(chance: Random, *, own_words: bool) -> dict[str, Any]:
    """A requirement; with ``own_words`` as a vcluster.yaml has it."""
    operator = chance.choice(("In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt", "Gte", "Lte"))
    entry: dict[str, Any] = {"property" if own_words else "key": chance.choice(KEYS), "operator": operator}
    if operator in ("In", "NotIn"):
        listed = values(chance)
        entry |= {"value": listed[0]} if own_words and len(listed) == 1 else {"values": listed}
        if not own_words and chance.random() < 0.3:
            entry["minValues"] = chance.randint(1, len(listed))
    elif operator not in ("Exists", "DoesNotExist"):
        entry |= {"values": [str(chance.randrange(100))]}
    elif own_words and operator == "DoesNotExist" and chance.random() < 0.5:
        entry["operator"] = "NotExists"
    if own_words and operator == "In" and chance.random() < 0.5:
        del entry["operator"]
    return entry


def taints(chance: Random) -> list[dict[str, Any]]:
    effects = chance.sample(("NoSchedule", "PreferNoSchedule", "NoExecute"), chance.randint(0, 3))
    return [{"key": "t", "effect": effect, **sometimes(chance, {"value": "v"})} for effect in effects]


def disruption(chance: Random, *, zones: bool) -> dict[str, Any]:
    windows: tuple[dict[str, Any], ...] = (
        {},
        {"schedule": "@daily", "duration": "1h30m"},
        {"schedule": "CRON_TZ=Europe/Berlin 0 9 * * *", "duration": "8h"},
        *([{"schedule": "@daily", "duration": "8h", "timeZone": "Asia/Kathmandu"}] if zones else []),
    )
    budgets: list[dict[str, Any]] = [
        {
            "nodes": chance.choice(("10%", "0", 5, "100%")),
            **sometimes(
                chance, {"reasons": chance.sample(("Empty", "Drifted", "Underutilized"), chance.randint(0, 3))}
            ),
            **chance.choice(windows),
        }
        for _ in range(chance.randint(0, 3))
    ]
    policy = chance.choice(("WhenEmpty", "WhenEmptyOrUnderutilized", "Balanced"))
    after = chance.choice(DURATIONS)
    return sometimes(chance, {"budgets": budgets, "consolidationPolicy": policy, "consolidateAfter": after})


def limits(chance: Random) -> dict[str, Any]:
    return sometimes(
        chance, {"cpu": 100, "memory": "1.5Ti", "nodes": chance.choice(("3", 10)), "usd_hour": 0.5, "usd_month": 9.5}
    )


def properties(chance: Random) -> dict[str, Any]:
    drawn = {"region": "eu", "size/big": True, "size/small": False, "fast": True, "a.vcluster.com/x": "1,2"}
    return sometimes(chance, drawn)


def auto_pool(chance: Random, kind: str, name: str) -> dict[str, Any]:
    entries = [requirement(chance, own_words=True) for _ in range(chance.randint(0, 3))]
    fields = {
        chance.choice(("requirements", "nodeTypeSelector")): entries,
        "properties": properties(chance),
        "taints": taints(chance),
        "nodeLabels": {"team": chance.choice(VALUES)},
        "terminationGracePeriod": chance.choice(DURATIONS),
        "expireAfter": chance.choice(DURATIONS),
        "profile": "gpu",
    }
    if kind == "static":
        return {"name": name, "quantity": chance.randrange(5), **sometimes(chance, fields)}
    own = {"limits": limits(chance), "disruption": disruption(chance, zones=True), "weight": chance.randint(1, 100)}
    return {"name": name, **sometimes(chance, {**fields, **own})}


def vcluster(chance: Random) -> dict[str, Any]:
    """A vcluster.yaml in one of its four forms."""
    names = chance.sample(NAMES, chance.randint(1, len(NAMES)))
    pools: dict[str, list[dict[str, Any]]] = {"static": [], "dynamic": []}
    for name in names:
        kind = chance.choice(("static", "dynamic"))
        pools[kind].append(auto_pool(chance, kind, name))
    form = chance.randrange(4)
    if form == 0:
        entries = [{"provider": "p", "properties": properties(chance), **pools}, {"provider": "q"}]
        return {"privateNodes": {"enabled": True, "autoNodes": entries}}
    if form == 1:
        auto_nodes = {"provider": "p", "properties": properties(chance), **pools}
        return {"privateNodes": {"enabled": True, "autoNodes": auto_nodes}}
    for pool in (*pools["static"], *pools["dynamic"]):
        pool["provider"] = chance.choice(("p", "q"))
    return {"privateNodes": {"enabled": True, "autoNodes" if form == 2 else "nodePools": pools}}


def node_pool(chance: Random) -> dict[str, Any]:
    template = {
        "taints": taints(chance),
        "startupTaints": [{"key": "s", "effect": "NoExecute"}],
        "expireAfter": chance.choice(DURATIONS),
        "terminationGracePeriod": chance.choice(DURATIONS[:-1]),
        "nodeClassRef": {"group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": "default"},
    }
    labels = sometimes(chance, {"team": "a", "vcluster.loft.sh/provider-platform": "p"})
    entries = [requirement(chance, own_words=False) for _ in range(chance.randint(0, 4))]
    static = chance.random() < 0.3
    own = {"replicas": chance.randrange(9)} if static else sometimes(chance, {"limits": limits(chance), "weight": 3})
    return {
        "apiVersion": "karpenter.sh/v1",
        "kind": "NodePool",
        "metadata": {"name": chance.choice(NAMES), **sometimes(chance, {"labels": {"stockyard.dev/cluster": "demo"}})},
        "spec": {
            "template": {
                "metadata": sometimes(chance, {"labels": labels, "annotations": {"note": "any text"}}),
                "spec": {"requirements": entries, **sometimes(chance, template)},
            },
            **own,
            **sometimes(chance, {"disruption": disruption(chance, zones=False)}),
        },
    }


def test_a_document_that_is_shown_reads_as_the_same_pools(seed: int, soaking: bool) -> None:
    chance = Random(seed)
    for _ in range(MANY if soaking else DOCUMENTS):
        document = vcluster(chance)
        pools = {pool.name: pool for pool in read_vcluster(document).pools}
        together = vcluster_document(list(pools.values()))
        assert {pool.name: pool for pool in read_vcluster(together).pools} == pools, document
        again = {pool.name: pool for pool in read_vcluster(together).pools}
        assert vcluster_document(list(again.values())) == together, "what is normal stays"
        for pool in pools.values():
            assert read_vcluster(pool_manifest(pool)).pools == (pool,), document
        manifest = node_pool(chance)
        read = read_node_pool(manifest).pools[0]
        manifest_shown = pool_manifest(read)
        assert read_node_pool(manifest_shown).pools[0] == read, manifest
        assert pool_manifest(read_node_pool(manifest_shown).pools[0]) == manifest_shown


def test_no_document_is_a_fault_of_ours(seed: int, soaking: bool) -> None:
    """Broken documents are refused by names, with a pointer into the document."""
    chance = Random(seed)
    refusals: list[list[str]] = []
    for _ in range(MANY if soaking else DOCUMENTS):
        document = chance.choice((vcluster, node_pool))(chance)
        read = read_node_pool if "kind" in document else read_vcluster
        for _ in range(chance.randint(1, 3)):
            document = with_one_change(document, chance)
        if not isinstance(document, dict):
            continue  # the edge takes objects only
        try:
            read(document)
        except InvalidInput as refused:
            refusals.append([fault.pointer for fault in refused.errors])
    assert len(refusals) > DOCUMENTS / 4
    assert all(pointers and all(at[:1] in ("", "/") for at in pointers) for pointers in refusals)
