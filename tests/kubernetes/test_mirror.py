"""The mirror of pools and claims on both kinds of clusters, and what only a real API server judges: the definitions,
the admission policies, and what ``kubectl get`` shows."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import pytest

from agent.roles import NAME, NAMESPACE
from agent.stockyard_agent.mirror import Mirror
from agent.stockyard_agent.mirror_objects import DEFINITIONS, definitions
from local.kubernetes.api import MERGE
from local.kubernetes.real.client import Refused
from stockyard.domain.nodes.records import NodeClaim, Placement
from stockyard.domain.pools.mirror import mirrored_claim, mirrored_pool
from stockyard.domain.pools.records import DYNAMIC, Pool
from stockyard.domain.values.conditions import Condition
from tests.kubernetes.rigs import ContractRig, RealRig, until
from tests.unit.agent.rig import node_claim, node_pool

POOLS, CLAIMS = "/apis/karpenter.sh/v1/nodepools", "/apis/karpenter.sh/v1/nodeclaims"
NOW = "2026-01-02T03:04:05.678Z"


@pytest.fixture(autouse=True)
def _without_definitions(request: pytest.FixtureRequest) -> Iterator[None]:
    """A real cluster is the same in all tests: what they have defined goes, and the objects with it."""
    name = "real_rig" if "real_rig" in request.fixturenames else "rig"
    rig: ContractRig = request.getfixturevalue(name)
    yield
    for definition in definitions() if isinstance(rig, RealRig) else ():
        path = f"{DEFINITIONS}/{definition['metadata']['name']}"
        with suppress(Refused):
            rig.administer("DELETE", path)
        until(lambda path=path: not rig.exists(path))


def tell(rig: ContractRig, mirror: Mirror, version: str, *documents: Any) -> None:
    """Stockyard has this to mirror; the agent posts, and mirrors it. A definition takes a moment to be served."""
    rig.platform.mirror, rig.platform.mirrored = version, list(documents)
    rig.rounds(rig.agent(mirror=mirror), 1)

    def is_settled() -> bool:
        mirror.step()
        return mirror.settled

    until(is_settled)


def items(rig: ContractRig, path: str) -> dict[str, Any]:
    return {item["metadata"]["name"]: item for item in rig.administer("GET", path)["items"]}


def foreign(name: str, **labels: str) -> dict[str, Any]:
    meta = {"name": name, "labels": labels}
    return {"apiVersion": "karpenter.sh/v1", "kind": "NodePool", "metadata": meta, "spec": {"weight": 1}}


def real_documents() -> list[dict[str, Any]]:
    """A pool and its claim as Stockyard itself shows them."""
    ready = Condition("Ready", "True", "Satisfied", "1 of 1 nodes are available.", NOW)
    pool = Pool(
        "clu_1/burst", "clu_1", "burst", NOW, NOW, kind=DYNAMIC, provider_ref="aws", limits={"cpu": "100"}, weight=7,
        requirements=({"key": "kubernetes.io/arch", "operator": "In", "values": ["amd64"]},), expire_after="720h",
        taints=({"key": "gpu", "value": "a", "effect": "NoSchedule"},), labels={"team": "a"}, conditions=(ready,),
        disruption={"consolidateAfter": "30s", "consolidationPolicy": "WhenEmpty", "budgets": [{"nodes": "10%"}]},
    )  # fmt: skip
    conditions = (Condition("Provisioned", "True", "Launched", "", NOW), Condition("Joined", "True", "Joined", "", NOW))
    placed = Placement("npr_1", "aws.m7i.large", "spot", ("us-east-1a",), 0.1, NOW)
    claim = NodeClaim(
        "ncl_1", "burst-1", NOW, NOW, pool="burst", phase="Available", conditions=conditions, placement=placed,
        node_name="burst-1", resources={"cpu": "2"}, requirements=pool.requirements,
    )  # fmt: skip
    return [mirrored_pool(pool, [claim]), mirrored_claim(claim)]


def test_mirror_is_made_changed_and_removed(rig: ContractRig) -> None:
    mirror = rig.mirror()
    tell(rig, mirror, "1", node_pool("burst"), node_claim("burst", "1"), node_claim("burst", "2"))
    pools, claims = items(rig, POOLS), items(rig, CLAIMS)
    assert (list(pools), list(claims)) == (["burst"], ["burst-1", "burst-2"])
    assert pools["burst"]["spec"] == node_pool("burst")["spec"]
    assert pools["burst"]["status"] == {"nodes": 1, "conditions": [], "resources": {"nodes": "1"}}
    assert claims["burst-1"]["metadata"]["ownerReferences"][0]["uid"] == pools["burst"]["metadata"]["uid"]
    tell(rig, mirror, "2", node_pool("burst", "9"), node_claim("burst", "2", ready="True", zone="a"))
    pools, claims = items(rig, POOLS), items(rig, CLAIMS)
    assert pools["burst"]["spec"]["limits"] == {"cpu": "9"}
    assert claims["burst-2"]["status"]["conditions"][0]["status"] == "True"
    assert claims["burst-2"]["metadata"]["labels"]["topology.kubernetes.io/zone"] == "a"
    assert list(claims) == ["burst-2"]
    # A new agent finds what it needs, and nothing to write.
    versions = [each["metadata"]["resourceVersion"] for each in (*pools.values(), *claims.values())]
    tell(rig, rig.mirror(), "3", node_pool("burst", "9"), node_claim("burst", "2", ready="True", zone="a"))
    current = (*items(rig, POOLS).values(), *items(rig, CLAIMS).values())
    assert [each["metadata"]["resourceVersion"] for each in current] == versions
    rig.administer("POST", POOLS, foreign("theirs"))
    tell(rig, mirror, "")
    assert (list(items(rig, POOLS)), list(items(rig, CLAIMS))) == (["theirs"], [])
    assert [line for line in rig.logs if "not mirrored" in line] == []


def test_pools_of_others_stay_as_they_are(rig: ContractRig) -> None:
    mirror = rig.mirror()
    tell(rig, mirror, "1", node_pool("first"))
    before = rig.administer("POST", POOLS, foreign("burst"))
    tell(rig, mirror, "2", node_pool("first"), node_pool("burst"), node_claim("burst", "1"))
    assert items(rig, POOLS)["burst"]["metadata"]["resourceVersion"] == before["metadata"]["resourceVersion"]
    assert items(rig, CLAIMS) == {}
    assert [line for line in rig.logs if "NodePool burst is not mirrored: 409 AlreadyExists" in line]


def test_nobody_but_the_agent_writes_the_mirror_and_it_nothing_else(real_rig: RealRig) -> None:
    rig = real_rig
    tell(rig, rig.mirror(), "1", node_pool("burst"), node_claim("burst", "1"))

    def refused(method: str, path: str, body: Any = None, content_type: str = "application/json") -> str:
        with pytest.raises(Refused) as caught:
            rig.administer(method, path, body, content_type)
        return str(caught.value)

    text = "change them in Stockyard"
    assert text in refused("PATCH", f"{POOLS}/burst", {"spec": {"weight": 3}}, MERGE)
    assert text in refused("PATCH", f"{CLAIMS}/burst-1/status", {"status": {"nodeName": "x"}}, MERGE)
    assert text in refused("PATCH", f"{POOLS}/burst", {"metadata": {"labels": {"stockyard.dev/mirrored": None}}}, MERGE)
    assert text in refused("DELETE", f"{CLAIMS}/burst-1")
    assert text in refused("POST", POOLS, foreign("mine", **{"stockyard.dev/mirrored": "true"}))
    assert text in refused("DELETE", POOLS)
    # Others have their own, and the agent keeps its hands off.
    rig.administer("POST", POOLS, foreign("theirs"))
    stranger = rig.administer("PATCH", f"{POOLS}/theirs", {"spec": {"weight": 3}}, MERGE)
    for method, path, body in (
        ("DELETE", f"{POOLS}/theirs", None),
        ("PUT", f"{POOLS}/theirs", {**stranger, "spec": {"weight": 4}}),
        ("POST", POOLS, foreign("other")),
    ):
        answer = rig.call(method, path, body)
        assert (answer.status, b"writes the mirror of Stockyard's pools only" in answer.body) == (422, True), (
            answer.body
        )
    stray = definitions()[0]
    stray["metadata"]["name"], stray["spec"]["group"] = "nodepools.example.test", "example.test"
    answer = rig.call("POST", DEFINITIONS, stray)
    assert (answer.status, b"NodePools and NodeClaims only" in answer.body) == (422, True), answer.body
    # What a pool has made goes with it. The collector looks for new kinds twice a minute.
    assert rig.call("DELETE", f"{POOLS}/burst").status == 200
    until(lambda: not rig.exists(f"{CLAIMS}/burst-1"), 90)


def test_a_person_who_writes_a_pool_here_is_warned_and_not_refused(real_rig: RealRig) -> None:
    tell(real_rig, real_rig.mirror(), "v1", node_pool("burst"))
    assert not any("Warning" in line for line in real_rig.logs)
    path = real_rig.plane.folder / "mine.json"
    for kind, spec in (("NodePool", {"weight": 1}), ("NodeClaim", {"requirements": []})):
        path.write_text(json.dumps({**foreign("mine"), "kind": kind, "spec": spec}))

        def warning() -> str:
            return str(real_rig.plane.kubectl("apply", "-f", str(path), check=False).stderr)

        # A policy takes a moment until it is heeded.
        until(lambda warning=warning: "Stockyard makes no nodes for a NodePool or NodeClaim" in warning())
    assert "mine" in items(real_rig, POOLS)
    assert "mine" in items(real_rig, CLAIMS)


def test_agent_may_write_the_mirror_and_read_no_other_definition(real_rig: RealRig) -> None:
    def may(verb: str, resource: str) -> bool:
        about = ["auth", "can-i", verb, *resource.split(" "), "--as", f"system:serviceaccount:{NAMESPACE}:{NAME}"]
        return real_rig.plane.kubectl(*about, check=False).stdout.strip() == "yes"

    tell(real_rig, real_rig.mirror(), "1", node_pool("burst"))
    for resource in ("nodepools.karpenter.sh", "nodeclaims.karpenter.sh"):
        assert all(may(verb, resource) for verb in ("list", "create", "update", "delete"))
        assert may("update", f"{resource} --subresource=status")
        assert not any(may(verb, resource) for verb in ("get", "watch", "patch", "deletecollection"))
    assert [may(verb, "customresourcedefinitions") for verb in ("create", "get", "update", "delete")] == [
        True, False, False, False,
    ]  # fmt: skip


def test_kubectl_shows_pools_and_claims_in_columns(real_rig: RealRig) -> None:
    real_rig.add_node("burst-1", claim="ncl_1", providerID="aws:///us-east-1a/i-1")
    pool, claim = real_documents()
    claim["labels"]["stockyard.dev/claim"] = "ncl_1"
    tell(real_rig, real_rig.mirror(), "1", pool, claim)
    shown_pools, shown_claims = (
        [line.split() for line in real_rig.plane.kubectl("get", kind, "-o", "wide").stdout.splitlines()]
        for kind in ("nodepools", "nodeclaims")
    )
    assert shown_pools[0] == ["NAME", "NODECLASS", "NODES", "READY", "AGE", "WEIGHT", "CPU", "MEMORY"]
    assert shown_pools[1][:4] == ["burst", "aws", "1", "True"]
    assert shown_claims[0] == ["NAME", "TYPE", "CAPACITY", "ZONE", "NODE", "READY", "AGE", "ID", "NODEPOOL"]
    assert shown_claims[1][:6] == ["burst-1", "m7i.large", "spot", "us-east-1a", "burst-1", "True"]
    assert shown_claims[1][7:] == ["aws:///us-east-1a/i-1", "burst"]


def _text(**more: Any) -> dict[str, Any]:
    return {"type": "string", **more}


def _object(required: list[str], **properties: Any) -> dict[str, Any]:
    return {"type": "object", "required": required, "properties": properties}


def strict_definitions() -> list[dict[str, Any]]:
    """Definitions of somebody else that hold objects to what Karpenter's documentation demands and leave the rest out;
    claims cannot change."""
    reference = _object(["group", "kind", "name"], group=_text(minLength=1), kind=_text(), name=_text(minLength=1))
    requirement = _object(
        ["key", "operator"], key=_text(maxLength=316), values={"type": "array", "items": _text(maxLength=63)},
        operator=_text(enum=["In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt"]),
    )  # fmt: skip
    requirements = {"type": "array", "maxItems": 100, "items": requirement}
    node = {"requirements": requirements, "nodeClassRef": reference, "expireAfter": _text(default="720h")}
    condition = _object(
        ["lastTransitionTime", "message", "reason", "status", "type"],
        lastTransitionTime=_text(format="date-time"),
        message=_text(),
        reason=_text(minLength=1, pattern="^[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?$"),
        status=_text(enum=["True", "False", "Unknown"]),
        type=_text(),
    )
    status = _object([], conditions={"type": "array", "items": condition}, nodeName=_text())
    template = _object(["spec"], spec=_object(["nodeClassRef", "requirements"], **node))
    pool = _object(["template"], template=template, weight={"type": "integer", "minimum": 1, "maximum": 100})
    claim = _object(["nodeClassRef", "requirements"], **node)
    claim["x-kubernetes-validations"] = [{"rule": "self == oldSelf", "message": "spec is immutable"}]
    strict = definitions()
    for definition, spec in zip(strict, (pool, claim), strict=True):
        schema = definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
        schema["properties"] = {"spec": spec, "status": status}
        schema["required"] = ["spec"]
    return strict


def test_definitions_of_others_take_what_stockyard_shows(real_rig: RealRig) -> None:
    for definition in strict_definitions():
        real_rig.administer("POST", DEFINITIONS, definition)
    mirror = real_rig.mirror()
    pool, claim = real_documents()
    tell(real_rig, mirror, "1", pool, claim)
    assert list(items(real_rig, CLAIMS)) == ["burst-1"]
    assert "limits" not in items(real_rig, POOLS)["burst"]["spec"], "their definition is the one that is used"
    # Of a pool that says what theirs does not know, the others know nothing.
    odd = json.loads(json.dumps(pool)) | {"name": "odd"}
    odd["spec"]["template"]["spec"]["requirements"][0]["operator"] = "Gte"
    tell(real_rig, mirror, "2", odd, pool, claim)
    assert list(items(real_rig, POOLS)) == ["burst"]
    (line,) = [line for line in real_rig.logs if "not mirrored" in line]
    assert line.startswith("NodePool odd is not mirrored: 422 Invalid")
