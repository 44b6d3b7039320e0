"""Published documents of clusters, and those of the examples folder: each is made, shown as a manifest, compared and
applied, and nothing differs.

The published ones are other projects' files and stand beside the repository, not in it. Placeholders in them are filled
in; what their clouds would say of them is not asked.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from stockyard.domain.models.base import read
from stockyard.domain.models.clusters.clusters import LenientClusterCreate
from stockyard.domain.records import CloudAccount, Cluster
from stockyard.edge.http.yaml_body import parse
from stockyard.operations.clusters.creation.create import NewCluster, create_cluster
from stockyard.operations.engine.find import find_cluster
from stockyard.operations.manifests.apply import apply_manifests, plan_manifests
from stockyard.operations.manifests.clusters import cluster_manifest
from stockyard.operations.manifests.desired import read_desired
from stockyard.ports import ClusterPlan, Create, PriceList
from tests.harness.worlds.ports import with_ports
from tests.unit.operations.conftest import MemoryProvider, World, make_world

USER = "user:ann"
OWN_EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
PUBLISHED = OWN_EXAMPLES.parents[1] / "shared" / "examples"
MANIFESTS = ("Cluster", "EKSCluster", "SpectroAwsCluster")
SPECTRO = {"apiVersion": "spectrocloud.com/v1", "kind": "SpectroAwsCluster"}
WORDS = {
    "<cloud-account-uid>": "1",
    "<region>": "us-east-1",
    "<key>": "my-key",
    "<az>": "us-east-1a",
    "ssh-ed25519 AAAA...": "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIB0=",
}


def with_words(text: str) -> str:
    for placeholder, word in WORDS.items():
        text = text.replace(placeholder, word)
    return text


def own_documents() -> Iterator[dict[str, Any]]:
    for path in sorted(OWN_EXAMPLES.glob("*cluster.json")):
        yield json.loads(path.read_text())
    for path in sorted(OWN_EXAMPLES.glob("*.yaml")):
        if any(f"\nkind: {kind}\n" in path.read_text() for kind in MANIFESTS):
            yield from (document for document in parse(path.read_bytes(), 32) if document["kind"] in MANIFESTS)


def published_documents() -> Iterator[dict[str, Any]]:
    for path in sorted((PUBLISHED / "modelplane").glob("*.yaml")):
        yield from parse(path.read_bytes(), 32)
    for path in sorted((PUBLISHED / "vantage").glob("*k8s-create-cluster*.json")):
        yield json.loads(with_words(path.read_text()))
    for path in sorted((PUBLISHED / "spectrocloud").glob("e2e-*.json")):
        document = json.loads(with_words(path.read_text()))
        document["spec"].pop("profiles", None)  # They name profiles of an installation of theirs.
        yield {**SPECTRO, **document}


class Driver(MemoryProvider):
    """Driver of any clusters, which checks nothing and knows no price."""

    def plan(self, cluster: Cluster, prices: PriceList) -> ClusterPlan:
        return ClusterPlan((), ())


def world_of_all_clouds() -> World:
    """A tenant with an account on AWS and one on Cudo; the drivers check nothing in a cloud."""
    world = make_world()
    drivers = {driver: Driver() for driver in ("ec2", "eks", "cudo")}
    names = {("aws", "k8s"): ("ec2", "eks"), ("cudo", "k8s"): ("cudo",)}
    world.services = with_ports(world.services, cluster_drivers=drivers, driver_names=names)
    first = world.services.store.get(CloudAccount, "1")
    assert first is not None
    world.services.store.commit(Create(replace(first, id="2", name="of cudo", provider="cudo", version=1)))
    return world


def make(world: World, document: dict[str, Any]) -> Cluster:
    """The cluster of a manifest, or of the body of a request."""
    if "kind" in document:
        desired = read_desired(world.services, [document], USER, admin=False)
        apply_manifests(world.services, desired, USER, "r", "")
        return find_cluster(world.services, document["metadata"]["name"])
    on_cudo = "vcpus" in json.dumps(document)
    body = read(LenientClusterCreate, {**document, "cloud_account_id": 2 if on_cudo else 1})
    secret = body.secret.get_secret_value() if body.secret else None
    fields = {**dict(body), "secret": secret, "profiles": (), "kubeconfig_secret": None}
    return create_cluster(world.services, NewCluster(**fields, lenient=True), USER)[0]


def check(world: World, document: dict[str, Any]) -> None:
    cluster = make(world, document)
    manifest = cluster_manifest(world.services, cluster)
    for shown_document in (manifest, document):
        if "kind" not in shown_document:
            continue
        desired = read_desired(world.services, [shown_document], USER, admin=False)
        plan = plan_manifests(world.services, desired)
        assert [plan[name] for name in ("creates", "changes", "deletes")] == [[], [], []], shown_document
        results = apply_manifests(world.services, desired, USER, "r", "")
        assert {result["action"] for result in results} == {"unchanged"}
    current = world.services.store.get(Cluster, cluster.id)
    assert current == cluster


def test_the_examples_of_the_repository() -> None:
    world, documents = world_of_all_clouds(), list(own_documents())
    assert len(documents) == 5
    for document in documents:
        check(world, document)


@pytest.mark.skipif(not PUBLISHED.is_dir(), reason="the published examples are not beside this repository")
def test_the_published_examples() -> None:
    world, documents = world_of_all_clouds(), list(published_documents())
    assert len(documents) == 6
    for document in documents:
        check(world, document)
