"""Documents of kind ClusterProfile that are applied, and clusters in Spectro Cloud's form that have profiles."""

from __future__ import annotations

from copy import deepcopy
from dataclasses import replace
from typing import Any

import pytest

from stockyard.domain.profiles.records import ClusterPacks, ClusterProfile
from stockyard.domain.records import Cluster, Operation
from stockyard.errors import InvalidInput
from stockyard.operations.engine.find import find_cluster
from stockyard.operations.listing import every
from stockyard.operations.manifests.apply import apply_manifests, plan_manifests
from stockyard.operations.manifests.clusters import cluster_manifest
from stockyard.operations.manifests.desired import read_desired
from stockyard.operations.profiles import profiles
from stockyard.ports import ClusterPlan, PriceList, Replace
from tests.harness.worlds.ports import with_ports
from tests.unit.operations.clusters.managed_world import USER
from tests.unit.operations.profiles.packs_world import DOCUMENT, PacksProvider, PacksWorld, packs_world

SPEC = {name: DOCUMENT[name] for name in ("version", "variables", "packs")}
LAB: dict[str, Any] = {
    "apiVersion": "spectrocloud.com/v1",
    "kind": "SpectroAwsCluster",
    "metadata": {"name": "lab"},
    "spec": {
        "cloudAccountUid": "1",
        "cloudConfig": {"region": "us-east-1", "sshKeyName": "ops"},
        "machinepoolconfig": [
            {
                "cloudConfig": {"instanceType": "m5.large"},
                "poolConfig": {"name": "cp", "size": 1, "isControlPlane": True},
            },
            {"cloudConfig": {"instanceType": "m5.large"}, "poolConfig": {"name": "work", "size": 1}},
        ],
    },
}


class Ec2Provider(PacksProvider):
    def plan(self, cluster: Cluster, prices: PriceList) -> ClusterPlan:
        return ClusterPlan((("cluster", cluster.name),), ())


def profile(name: str = "base", **spec: Any) -> dict[str, Any]:
    return {
        "apiVersion": "stockyard/v1",
        "kind": "ClusterProfile",
        "metadata": {"name": name},
        "spec": {**SPEC, **spec},
    }


def lab(*profiles: dict[str, Any], **spec: Any) -> dict[str, Any]:
    return {**LAB, "spec": {**LAB["spec"], "profiles": list(profiles), **spec}}


def second() -> dict[str, Any]:
    packs = deepcopy(DOCUMENT["packs"])[:2]
    return profile(version="2.0.0", packs=[packs[0], {**packs[1], "tag": "2.1"}])


BASE = {"uid": "base", "variables": [{"name": "env", "value": "prod"}]}


@pytest.fixture
def world() -> PacksWorld:
    result, provider = packs_world(), Ec2Provider()
    result.world.services = with_ports(
        result.services, cluster_drivers={"ec2": provider}, driver_names={("aws", "k8s"): ("ec2",)}
    )
    return result


def apply(world: PacksWorld, *documents: dict[str, Any]) -> list[dict[str, Any]]:
    desired = read_desired(world.services, documents, USER, admin=True)
    return apply_manifests(world.services, desired, USER, "req-1", "org-1")


def plan(world: PacksWorld, *documents: dict[str, Any]) -> dict[str, Any]:
    return plan_manifests(world.services, read_desired(world.services, documents, USER, admin=True))


def faults(world: PacksWorld, *documents: dict[str, Any]) -> dict[str, str]:
    with pytest.raises(InvalidInput) as refused:
        read_desired(world.services, documents, USER, admin=True)
    return {fault.pointer: fault.detail for fault in refused.value.errors}


def ready(world: PacksWorld) -> Cluster:
    """The cluster, as if its creation had ended."""
    store, cluster = world.services.store, find_cluster(world.services, "lab")
    operation = store.get(Operation, str(cluster.operation_id))
    assert operation is not None
    settled = replace(cluster, status="ready", phase=None, version=cluster.version + 1)
    over = replace(operation, status="succeeded", version=operation.version + 1)
    store.commit(Replace(settled), Replace(over))
    return settled


def test_a_profile_is_made_found_unchanged_and_gets_a_version(world: PacksWorld) -> None:
    (first,) = apply(world, profile())
    assert (first["kind"], first["name"], first["action"]) == ("ClusterProfile", "base", "created")
    (again,) = apply(world, profile())
    assert (again["action"], again["id"]) == ("unchanged", first["id"])
    (later,) = apply(world, second())
    assert (later["action"], later["id"]) == ("changed", first["id"])
    stored = profiles.find_profile(world.services, "base")
    assert [version.number for version in stored.versions] == ["1.0.0", "2.0.0"]
    (earlier,) = apply(world, profile())
    assert earlier["action"] == "unchanged", "a version that is there is there"


def test_a_dry_run_names_what_is_different_and_writes_nothing(world: PacksWorld) -> None:
    assert plan(world, profile())["creates"] == [{"kind": "cluster-profile", "name": "base 1.0.0"}]
    assert not list(every(world.services.store, ClusterProfile))
    apply(world, profile())
    planned = plan(world, second())
    assert planned["changes"] == [
        {"pointer": "/0/spec/version", "before": "1.0.0", "after": "2.0.0"},
        {"pointer": "/0/spec/packs/1/tag", "before": "2.0", "after": "2.1"},
    ]
    assert planned["deletes"] == [{"kind": "pack", "name": "server 3.1"}]


@pytest.mark.parametrize(
    ("document", "pointer"),
    [
        (profile(description="another"), "/0/spec/description"),
        (profile(packs=DOCUMENT["packs"][:2]), "/0/spec/version"),
        (profile(cloud="eks"), "/0/spec/cloud"),
        (profile(version="1"), "/0/spec/version"),
        (profile(version="2.0.0", packs=[{"layer": "addon", "name": "a", "tag": "1"}]), "/0/spec/packs/0/manifests"),
        (profile(version="2.0.0", labels={"a": "b"}), "/0/spec/labels"),
        ({**profile(), "metadata": {"name": "base", "labels": {"a": "b"}}}, "/0/metadata/labels"),
    ],
)
def test_a_profile_that_does_not_fit_is_refused_at_its_field(
    world: PacksWorld, document: dict[str, Any], pointer: str
) -> None:
    apply(world, profile())
    assert list(faults(world, document)) == [pointer]


def test_a_manifest_that_does_not_parse_is_named_with_its_line(world: PacksWorld) -> None:
    packs = [{"layer": "addon", "name": "a", "tag": "1", "manifests": [{"name": "m", "content": "a: 1\nb: [\n"}]}]
    assert faults(world, profile(packs=packs)) == {"/0/spec/packs/0/manifests/0/content": "is no YAML, line 3"}


def test_a_cluster_comes_with_a_profile_of_the_same_documents(world: PacksWorld) -> None:
    planned = plan(world, lab(BASE), profile())
    assert {"kind": "Deployment", "name": "tools/server"} in planned["creates"]
    assert not list(every(world.services.store, ClusterProfile))
    cluster, base = apply(world, lab(BASE), profile())
    assert (cluster["action"], base["action"]) == ("created", "created")
    record = world.services.store.get(ClusterPacks, cluster["id"])
    assert record is not None
    (choice,) = record.profiles
    assert (choice["id"], choice["version"], choice["variables"]) == (base["id"], "1.0.0", {"env": "prod"})
    assert find_cluster(world.services, "lab").kubernetes_version == "1.34", "its layer k8s says it"


def test_a_cluster_is_shown_with_its_profiles_and_applied_as_it_is_shown(world: PacksWorld) -> None:
    values = {"name": "server", "tag": "3.1", "values": "replicas: 3\n"}
    apply(world, profile(), lab({**BASE, "packValues": [values]}))
    cluster = ready(world)
    record = world.services.store.get(ClusterPacks, cluster.id)
    assert record is not None
    document = cluster_manifest(world.services, cluster, record.profiles)
    assert document["spec"]["profiles"] == [
        {
            "uid": "base@1.0.0",
            "variables": [{"name": "env", "value": "prod"}],
            "packValues": [{"name": "server", "values": "replicas: 3\n"}],
        }
    ]
    (again,) = apply(world, document)
    assert again["action"] == "unchanged"
    without = {name: value for name, value in document["spec"].items() if name != "profiles"}
    (again,) = apply(world, {**document, "spec": without})
    assert again["action"] == "unchanged", "what is not said stays"


def test_a_new_version_is_a_change_by_an_operation_with_its_difference(world: PacksWorld) -> None:
    apply(world, profile(), lab(BASE))
    cluster = ready(world)
    apply(world, second())
    planned = plan(world, lab(BASE))
    pointers = [change["pointer"] for change in planned["changes"]]
    assert pointers[0] == "/0/spec/profiles"
    assert "/0/spec/profiles/packs/base~1net/tag" in pointers
    assert {thing["name"] for thing in planned["deletes"]} == {"tools", "tools/server"}
    (result,) = apply(world, lab(BASE))
    assert result["action"] == "changed"
    operation = world.services.store.get(Operation, result["operation_id"])
    assert operation is not None
    assert (operation.kind, operation.id != cluster.operation_id) == ("change_cluster", True)
    assert operation.changes[0]["after"] == [{"name": "base", "version": "2.0.0"}]


def test_a_new_minor_in_the_layer_k8s_upgrades_the_cluster(world: PacksWorld) -> None:
    apply(world, profile(), lab(BASE))
    ready(world)
    minor, *packs = DOCUMENT["packs"]
    apply(world, profile(version="2.0.0", packs=[{**minor, "tag": "1.35"}, *packs]))
    (result,) = apply(world, lab(BASE))
    operation = world.services.store.get(Operation, result["operation_id"])
    assert operation is not None
    assert operation.kind == "upgrade_cluster"
    assert [change["pointer"] for change in operation.changes] == ["/kubernetes_version", "/profiles"]
    assert find_cluster(world.services, "lab").kubernetes_version == "1.35"


@pytest.mark.parametrize(
    ("reference", "pointer"),
    [
        ({"uid": "nothing"}, "/0/spec/profiles/0/uid"),
        ({"uid": "base@9.0.0"}, "/0/spec/profiles/0/uid"),
        ({"uid": "base"}, "/0/spec/profiles/0/variables/env"),
        ({**BASE, "packValues": [{"name": "other", "values": "a: 1"}]}, "/0/spec/profiles/0/packValues/other"),
        ({**BASE, "packValues": [{"name": "server", "tag": "9"}]}, "/0/spec/profiles/0/packValues/server"),
        ({**BASE, "packValues": [{"name": "server", "values": "a: ["}]}, "/0/spec/profiles/0/packValues/0/values"),
        ({**BASE, "replaceWithProfile": "x"}, "/0/spec/profiles/0/replaceWithProfile"),
        (
            {**BASE, "packValues": [{"name": "server", "manifests": [{"name": "a"}]}]},
            "/0/spec/profiles/0/packValues/0/manifests",
        ),
    ],
)
def test_what_does_not_fit_is_told_at_the_fields_of_the_document(
    world: PacksWorld, reference: dict[str, Any], pointer: str
) -> None:
    apply(world, profile())
    assert list(faults(world, lab(reference))) == [pointer]
