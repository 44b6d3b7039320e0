"""The example of a profile names what stands elsewhere by address and digest alone, and a cluster gets its packs."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import yaml

from stockyard.domain.models.base import read
from stockyard.domain.models.clusters.profiles import ClusterProfileCreate
from stockyard.edge.http.yaml_body import parse
from stockyard.machines.manifests import EBS_DRIVER, FLANNEL
from stockyard.operations.manifests.apply import apply_manifests
from stockyard.operations.manifests.desired import read_desired
from tests.harness.worlds.ports import with_ports
from tests.unit.operations.profiles import packs_world as worlds

EXAMPLE = Path(__file__).parents[2] / "examples" / "profile.yaml"


def test_the_profile_of_real_packs_is_valid() -> None:
    document = yaml.safe_load(EXAMPLE.read_text(encoding="utf-8"))
    body = read(ClusterProfileCreate, {**document["spec"], "name": document["metadata"]["name"]})
    assert [pack.layer for pack in body.packs] == ["cni", "csi", "addon", "addon"]
    fetched = [manifest for pack in body.packs for manifest in pack.manifests if manifest.url]
    assert all(manifest.content is None and manifest.digest for manifest in fetched)


def test_network_and_volumes_are_those_that_our_own_machines_apply() -> None:
    document = yaml.safe_load(EXAMPLE.read_text(encoding="utf-8"))
    digests = {m.get("digest", "").removeprefix("sha256:") for p in document["spec"]["packs"] for m in p["manifests"]}
    for source in (FLANNEL, EBS_DRIVER):
        own = {line.split()[0] for line in source.files.splitlines() if line and "kustomization" not in line}
        assert own <= digests


class StandIns:
    """Documents at the addresses of the example: an object for each, which is not what really stands there."""

    def fetch(self, url: str) -> bytes:
        """A ConfigMap that says where it is from."""
        name = f"x-{hashlib.sha256(url.encode()).hexdigest()[:12]}"
        document = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "namespace": "default"}}
        return json.dumps({**document, "data": {"from": url}}).encode()


def test_the_profile_is_applied_and_a_cluster_gets_its_packs() -> None:
    packs_world = worlds.packs_world()
    documents: Any = StandIns()
    packs_world.world.services = with_ports(packs_world.services, documents=documents)
    (manifest,) = parse(EXAMPLE.read_bytes(), 32)
    fetched = [item for pack in manifest["spec"]["packs"] for item in pack["manifests"] if "url" in item]
    for item in fetched:
        item["digest"] = f"sha256:{hashlib.sha256(documents.fetch(item['url'])).hexdigest()}"
    desired = read_desired(packs_world.services, [manifest], "user:ann", admin=True)
    (result,) = apply_manifests(packs_world.services, desired, "user:ann", "r", "")
    assert result["action"] == "created"
    packs_world.create({"name": "aws-base"})
    assert packs_world.drive("provision_managed") == "ready"
    objects = packs_world.packs.objects
    assert sum(kind == "ConfigMap" for kind, _, _ in objects) == len(fetched) == 23
    assert objects["StorageClass", "", "standard"]["parameters"]["type"] == "gp3"
    server = objects["Deployment", "kube-system", "metrics-server"]["spec"]
    (container,) = server["template"]["spec"]["containers"]
    assert (server["replicas"], container["args"][-1]) == (2, "--metric-resolution=30s")
    ready = {name for name, condition in packs_world.conditions().items() if condition == "Ready"}
    assert packs_world.conditions().keys() - ready == {"metrics-server"}, "its second pod is never there"
