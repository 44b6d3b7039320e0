"""The example of a cluster in the form of Palette: it is taken, and shown as it came but for what it leaves out."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

from stockyard.domain.models.clusters.clusters import settings_for
from stockyard.domain.records import Cluster
from stockyard.edge.http.yaml_body import parse
from stockyard.providers.clusters.ec2.spectro import spectro

EXAMPLE = Path(__file__).resolve().parents[2] / "examples/spectro-cluster.yaml"


def example() -> dict[str, Any]:
    (document,) = parse(EXAMPLE.read_bytes(), 32)
    assert isinstance(document, dict)
    return document


def cluster_of(document: dict[str, Any]) -> Cluster:
    """The record that the document becomes."""
    read = spectro.read_cluster(document, (0,))
    return Cluster(
        id="clu_1",
        name=read.name,
        description=read.description,
        cluster_type=read.cluster_type,
        provider=read.cloud,
        cloud_account_id=1,
        client_id="palette-1",
        settings=settings_for(read.cloud, read.cluster_type, read.driver, read.name, read.settings),
        status="ready",
        created_at="2026-11-25T00:00:00Z",
        updated_at="2026-11-25T00:00:00Z",
        tags=dict(read.tags or {}),
        document=dict(read.document),
        driver=read.driver,
    )


def filled_up(document: dict[str, Any]) -> dict[str, Any]:
    """The document with what it leaves out, as docs/spectro.md has it."""
    full = copy.deepcopy(document)
    spec = full["spec"]
    spec["cloudConfig"] = {"vpcId": "", "controlPlaneLoadBalancer": "", "bastionDisabled": False, **spec["cloudConfig"]}
    spec["clusterType"] = "PureManage"
    for pool in spec["machinepoolconfig"]:
        pool["cloudConfig"] = {"capacityType": "on-demand", "subnets": [], **pool["cloudConfig"]}
        config = {"isControlPlane": False, "useControlPlaneAsWorker": False, "taints": [], **pool["poolConfig"]}
        config = {"additionalLabels": {}, "updateStrategy": {"type": "RollingUpdateScaleOut"}, **config}
        config["labels"] = ["control-plane" if config["isControlPlane"] else "worker"]
        pool["poolConfig"] = {**config, "minSize": config["size"], "maxSize": config["size"]}
    return full


def test_the_example_is_a_cluster_of_three_members_over_three_zones_and_is_shown_as_it_came() -> None:
    cluster = cluster_of(example())
    assert cluster.settings["control_plane_size"] == 3
    assert cluster.settings["zones"] == ["us-east-1a", "us-east-1b", "us-east-1c"]
    assert spectro.cluster_manifest(cluster) == filled_up(example())


def test_what_is_shown_is_the_same_cluster_when_it_is_applied() -> None:
    cluster = cluster_of(example())
    again = spectro.read_cluster(spectro.cluster_manifest(cluster), (0,))
    settings = spectro.wanted_settings(again, cluster.settings)
    assert settings_for("aws", "k8s", "ec2", again.name, settings) == cluster.settings
    assert (again.document, again.description, again.tags) == (cluster.document, cluster.description, cluster.tags)
