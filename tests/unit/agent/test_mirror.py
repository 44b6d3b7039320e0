"""Pools and claims of Stockyard as NodePools and NodeClaims in the cluster: what is written, what is not touched, and
how it goes on after trouble."""

from __future__ import annotations

from typing import Any

import pytest

from agent.stockyard_agent.mirror import STEP_OBJECTS, Mirror
from agent.stockyard_agent.mirror_objects import definitions, digest, total
from local.kubernetes.api import Fault
from local.kubernetes.store import Key, Object
from tests.unit.agent.rig import Rig, node_claim, node_pool

KINDS = {"NodePool": "nodepools", "NodeClaim": "nodeclaims"}


def stored(rig: Rig, kind: str = "NodePool") -> dict[str, Object]:
    """The objects of a kind by name."""
    return {key.name: each for key, each in rig.kube.store.objects.items() if key.resource == KINDS[kind]}


def writes(rig: Rig) -> list[str]:
    """Writes to the mirror."""
    calls = [call.action for call in rig.kube.calls if call.action.group == "karpenter.sh"]
    return [f"{action.verb} {action.resource}" for action in calls if action.verb != "list"]


def tell(rig: Rig, mirror: Mirror, version: str | None, *documents: Object) -> None:
    """Stockyard has this to mirror; the agent posts, and mirrors it."""
    rig.platform.mirror, rig.platform.mirrored = version, list(documents)
    rig.rounds(rig.agent(mirror=mirror), 1)
    rig.mirrors(mirror)


def foreign(name: str) -> Object:
    """A NodePool of somebody else."""
    return {"apiVersion": "karpenter.sh/v1", "kind": "NodePool", "metadata": {"name": name}, "spec": {"theirs": True}}


def test_pools_and_claims_are_mirrored_with_what_the_cluster_knows_of_their_nodes(rig: Rig) -> None:
    labels = {"stockyard.dev/claim": "ncl_1", "stockyard.dev/pool": "burst"}
    rig.add_node("burst-1", claim="ncl_1", providerID="sim:///1")
    rig.kube.store.objects[Key("", "nodes", "", "burst-1")]["metadata"]["labels"].update(labels)
    tell(rig, rig.mirror(), "1", node_pool("burst"), node_claim("burst", "1"))
    (pool,), (claim,) = stored(rig).values(), stored(rig, "NodeClaim").values()
    assert pool["metadata"]["labels"] == {"stockyard.dev/mirrored": "true"}
    assert pool["spec"] == node_pool("burst")["spec"]
    assert pool["status"]["resources"] == {"nodes": "1", "cpu": "4", "memory": "16777216Ki", "pods": "110"}
    assert claim["metadata"]["ownerReferences"] == [
        {"apiVersion": "karpenter.sh/v1", "kind": "NodePool", "name": "burst", "uid": pool["metadata"]["uid"]}
    ]
    assert claim["metadata"]["labels"]["karpenter.sh/nodepool"] == "burst"
    assert (claim["status"]["nodeName"], claim["status"]["providerID"]) == ("burst-1", "sim:///1")
    assert claim["status"]["capacity"] == {"cpu": "4", "memory": "16Gi", "pods": "110"}


def test_only_what_is_new_is_written(rig: Rig) -> None:
    mirror = rig.mirror()
    claims = [node_claim("burst", str(number)) for number in range(3)]
    tell(rig, mirror, "1", node_pool("burst"), *claims)
    for version, again in (("1", mirror), ("2", mirror), ("2", rig.mirror())):
        rig.kube.calls.clear()
        tell(rig, again, version, node_pool("burst"), *claims)
        assert writes(rig) == []
    tell(rig, mirror, "3", node_pool("burst"), node_claim("burst", "0", ready="True"), claims[1])
    assert writes(rig) == ["update nodeclaims/status", "delete nodeclaims"]
    rig.kube.calls.clear()
    tell(rig, mirror, "4", node_pool("burst", "9"), node_claim("burst", "0", ready="True"), claims[1])
    assert writes(rig) == ["update nodepools"]


def test_nothing_is_asked_while_the_version_stays(rig: Rig) -> None:
    mirror, urls = rig.mirror(), []
    rig.around = lambda request, deliver: (urls.append(request.url), deliver(request))[1]
    for version in (None, "1", "1", "1"):
        tell(rig, mirror, version, node_pool("burst"))
    assert sum(url.endswith("/mirror") for url in urls) == 1


def test_mirror_that_is_turned_off_goes_and_leaves_the_definitions(rig: Rig) -> None:
    mirror = rig.mirror()
    tell(rig, mirror, "", node_pool("burst"))
    assert not any(key.group == "apiextensions.k8s.io" for key in rig.kube.store.objects), "nothing to make"
    tell(rig, mirror, "1", node_pool("burst"), node_claim("burst", "1"))
    rig.kube.install([foreign("theirs")])
    tell(rig, rig.mirror(), "")
    assert (list(stored(rig)), list(stored(rig, "NodeClaim"))) == (["theirs"], [])
    assert sum(key.group == "apiextensions.k8s.io" for key in rig.kube.store.objects) == 2


def test_objects_of_others_stay_and_claims_do_not_go_under_their_pools(rig: Rig) -> None:
    rig.kube.install([*definitions(), foreign("burst"), foreign("theirs")])
    mirror = rig.mirror()
    tell(rig, mirror, "1", node_pool("burst"), node_claim("burst", "1"), node_pool("ours"), node_claim("ours", "1"))
    assert {name: "theirs" in pool["spec"] for name, pool in stored(rig).items()} == {
        "burst": True, "theirs": True, "ours": False,
    }  # fmt: skip
    assert list(stored(rig, "NodeClaim")) == ["ours-1"]
    tell(rig, mirror, "2", node_pool("burst"), node_pool("ours"))
    assert [line for line in rig.logs if "not mirrored" in line] == [
        'NodePool burst is not mirrored: 409 AlreadyExists: nodepools.karpenter.sh "burst" already exists'
    ]


def test_definitions_of_others_are_used_as_they_are(rig: Rig) -> None:
    foreign_definitions = definitions()
    for definition in foreign_definitions:
        definition["spec"]["names"]["shortNames"] = ["theirs"]
    rig.kube.install(foreign_definitions)
    tell(rig, rig.mirror(), "1", node_pool("burst"))
    kept_keys = [key for key in rig.kube.store.objects if key.group == "apiextensions.k8s.io"]
    assert all(rig.kube.store.get(key)["spec"]["names"]["shortNames"] == ["theirs"] for key in kept_keys)
    assert list(stored(rig)) == ["burst"]


def test_definitions_without_the_version_are_named_once(rig: Rig) -> None:
    foreign_definitions = definitions()
    for definition in foreign_definitions:
        definition["spec"]["versions"][0]["name"] = "v1beta1"
    rig.kube.install(foreign_definitions)
    rig.platform.mirror = "1"
    mirror = rig.mirror()
    rig.rounds(rig.agent(mirror=mirror), 1)
    waits = [mirror.step() for _ in range(12)]
    assert waits == sorted(waits)
    assert waits[-1] > 100
    expected = "The mirror waits: NodePools and NodeClaims of karpenter.sh/v1 are not served by their definitions"
    assert rig.logs == [expected]


@pytest.mark.parametrize(
    "fault",
    [
        Fault("list", "nodepools", 404),
        Fault("list", "nodeclaims", 503, times=4),
        Fault("create", "nodepools", reset="after"),
        Fault("update", "nodeclaims/status", 409),
        Fault("create", "nodeclaims", 404),
        Fault("create", "customresourcedefinitions", 500),
    ],
)
def test_trouble_holds_up_nothing_else_and_passes(rig: Rig, fault: Fault) -> None:
    rig.kube.faults.append(fault)
    mirror = rig.mirror()
    rig.platform.mirror, rig.platform.mirrored = "1", [node_pool("burst"), node_claim("burst", "1")]
    agent = rig.agent(mirror=mirror)
    rig.rounds(agent, 1)
    while not mirror.settled:
        rig.clock.later(mirror.step())
        assert agent.round() == rig.platform.interval
    assert [list(stored(rig, kind)) for kind in KINDS] == [["burst"], ["burst-1"]]
    assert all(each["status"] for kind in KINDS for each in stored(rig, kind).values())
    troubles = [line for line in rig.logs if line.startswith("The mirror waits")]
    assert len(troubles) <= 1
    assert ("The mirror is well again" in rig.logs) is bool(troubles)


def test_what_the_cluster_refuses_is_named_once_and_left_out(rig: Rig) -> None:
    rig.kube.faults.append(Fault("create", "nodepools", 422, message="spec.weight: too large"))
    mirror = rig.mirror()
    for version in ("1", "2"):
        tell(rig, mirror, version, node_pool("odd"), node_pool("burst"))
    assert list(stored(rig)) == ["burst"]
    assert [line for line in rig.logs if "odd" in line] == [
        "NodePool odd is not mirrored: 422 Invalid: spec.weight: too large"
    ]
    tell(rig, mirror, "3", node_pool("odd", "7"), node_pool("burst"))
    assert sorted(stored(rig)) == ["burst", "odd"]


def test_what_somebody_has_removed_comes_back(rig: Rig) -> None:
    mirror = rig.mirror()
    tell(rig, mirror, "1", node_pool("burst"), node_claim("burst", "1"))
    rig.kube.store.remove(Key("karpenter.sh", "nodeclaims", "", "burst-1"), {})
    tell(rig, mirror, "2", node_pool("burst"), node_claim("burst", "1", ready="True"))
    assert list(stored(rig, "NodeClaim")) == ["burst-1"]


def test_thousand_claims_go_in_steps_and_later_by_differences(rig: Rig) -> None:
    mirror = rig.mirror()
    claims = [node_claim("burst", str(number)) for number in range(1000)]
    rig.platform.mirror, rig.platform.mirrored = "1", [node_pool("burst"), *claims]
    rig.rounds(rig.agent(mirror=mirror), 1)
    mirror.step()  # the definitions
    while not mirror.settled:
        rig.kube.calls.clear()
        mirror.step()
        assert len(writes(rig)) <= 2 * STEP_OBJECTS
    assert len(stored(rig, "NodeClaim")) == 1000
    rig.kube.calls.clear()
    claims[500] = node_claim("burst", "500", ready="True")
    tell(rig, mirror, "2", node_pool("burst"), *claims)
    assert [f"{call.action.verb} {call.action.resource}" for call in rig.kube.calls if "node" in call.action.resource][
        -1:
    ] == ["update nodeclaims/status"]
    assert writes(rig) == ["update nodeclaims/status"]


@pytest.mark.parametrize(
    ("texts", "expected"),
    [(("4", "3920m"), "7920m"), (("1500m", "500m"), "2"), (("16Gi", "1Ki"), "16777217Ki"), (("1k", "x"), "1000")],
)
def test_quantities_are_summed(texts: Any, expected: str) -> None:
    assert total({"cpu": text} for text in texts) == {"cpu": expected}
    assert digest({"a": 1, "b": 2}) == digest({"b": 2, "a": 1})
