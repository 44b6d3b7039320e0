"""The example of a profile is a valid one, and names what stands elsewhere by address and digest alone."""

from __future__ import annotations

from pathlib import Path

import yaml

from stockyard.domain.models.base import read
from stockyard.domain.models.clusters.profiles import ClusterProfileCreate
from stockyard.machines.manifests import EBS_DRIVER, FLANNEL

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
