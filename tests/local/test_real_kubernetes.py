"""Reasons why no real control plane can be had are said; load balancers and servers get what real programs need."""

from __future__ import annotations

import json
import shutil
import socket
import urllib.request
from pathlib import Path
from types import SimpleNamespace

import pytest
import yaml
from moto.elbv2.models import ELBv2Backend

from local.authority import Authority, trusted
from local.aws.corrections.compute.balancers import addressed_balancers
from local.cloud import LocalCloud
from local.home import StartError
from local.identity.server import IdentityServer
from local.kubernetes.cluster import InitFailed
from local.kubernetes.real import build
from local.kubernetes.real.cloud import prepared
from local.kubernetes.real.cluster import RealCluster
from local.kubernetes.real.control_plane import PORT, ControlPlane, own_address
from stockyard.domain.clusters.kubernetes_minors import following
from stockyard.kubernetes_versions import NEW, TESTED
from stockyard.machines import manifests


@pytest.fixture
def nothing_built(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(build, "BINARIES", tmp_path / "kubernetes")


@pytest.mark.usefixtures("nothing_built")
def test_without_the_programs_the_local_cloud_says_what_to_do(tmp_path: Path) -> None:
    cloud = LocalCloud(home=tmp_path / "home", kubernetes=True)
    with pytest.raises(StartError, match=r"kube-apiserver.* not built: run make kubernetes"):
        cloud.start()
    assert not (tmp_path / "home").exists()


def test_what_is_built_are_two_minors_of_the_list_that_follow_each_other() -> None:
    """New clusters may have both, so that an upgrade between them can be tried."""
    older, newer = build.minors()
    assert {older, newer} <= set(NEW)
    assert following(older) == newer
    assert build.releases() == {minor: TESTED[minor].release for minor in (newer, older)}
    for kubernetes, cloud_controller in build.CLOUD_MODULES.items():
        required = build.required(cloud_controller, "k8s.io/cloud-provider-aws")
        assert required.startswith(f"{build.release(kubernetes).rpartition('.')[0]}."), cloud_controller


def test_a_machine_says_that_its_version_is_not_built(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("local.kubernetes.real.cluster.missing", lambda: "")
    (tmp_path / "kubeadm.yaml").write_text("kind: ClusterConfiguration\nkubernetesVersion: v1.30.0\n")
    with pytest.raises(InitFailed, match=rf"1\.30\.0 is not built, only {build.release()} and"):
        RealCluster.initialized(tmp_path, "ip-10-0-0-5", tmp_path / "log", {}, tmp_path / "planes")


def test_a_control_plane_is_kept_in_a_folder_of_its_cluster(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The cluster's first machine, which has only a link to it, may be replaced; nothing else would be left of the
    cluster."""
    monkeypatch.setattr("local.kubernetes.real.cluster.missing", lambda: "")
    monkeypatch.setattr(ControlPlane, "initialize", lambda plane: (plane.folder / "pki").mkdir())
    machine, planes = tmp_path / "machines" / "i-1", tmp_path / "planes"
    (machine / "api").mkdir(parents=True)
    (machine / "api" / "audit.yaml").write_text("kind: Policy\n")
    settings = {
        "kind": "ClusterConfiguration",
        "kubernetesVersion": f"v{build.release()}",
        "apiServer": {"certSANs": []},
    }
    documents = [{**settings, "controlPlaneEndpoint": "127.1.2.3:6443"}]
    (machine / "kubeadm.yaml").write_text(yaml.safe_dump_all(documents))
    for _ in range(2):
        # The second try begins with nothing of the first.
        cluster = RealCluster.initialized(machine, "ip-10-0-0-5", tmp_path / "log", {}, planes)
    assert (machine / "kubernetes" / "pki").is_dir()
    shutil.rmtree(machine)
    assert cluster.plane.folder.parent == planes
    assert (cluster.plane.folder / "pki").is_dir()
    assert (cluster.plane.files / "audit.yaml").read_text() == "kind: Policy\n"
    cluster.remove()
    assert not list(planes.iterdir())


def test_each_control_plane_gets_a_loopback_address_where_nobody_listens() -> None:
    address = own_address()
    assert address.startswith("127.")
    with socket.socket() as listener:
        listener.bind((address, PORT))
        listener.listen()
        with socket.create_connection((address, PORT), timeout=5):
            pass


def test_a_load_balancer_is_named_by_its_address(monkeypatch: pytest.MonkeyPatch) -> None:
    balancer = SimpleNamespace(dns_name="name.elb.amazonaws.com")
    monkeypatch.setattr(ELBv2Backend, "create_load_balancer", lambda _backend, **_named: balancer)
    with addressed_balancers(lambda: "127.1.2.3"):
        ELBv2Backend.create_load_balancer(None, name="api")
    assert balancer.dns_name == "127.1.2.3"


def test_the_identity_server_is_trusted_for_as_long_as_its_authority(tmp_path: Path) -> None:
    authority, server = Authority(tmp_path / "pki", "test"), IdentityServer()
    server.start(authority=authority)
    try:
        url = f"{server.issuer}/.well-known/openid-configuration"
        assert url.startswith("https://")
        with trusted(authority), urllib.request.urlopen(url, timeout=5) as answer:  # noqa: S310 (loopback)
            assert answer.status == 200
        with pytest.raises(OSError, match="certificate verify failed"):
            urllib.request.urlopen(url, timeout=5)  # noqa: S310 (loopback)
    finally:
        server.stop()
    assert not (tmp_path / "pki").exists()


def test_only_the_clouds_own_controllers_are_put_together(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Manifests for machines of other clouds are not for a cluster whose nodes have no such machines."""
    monkeypatch.setattr("local.kubernetes.real.cloud.missing_cloud", lambda: "")
    monkeypatch.setattr("local.kubernetes.real.cloud.MANIFESTS", tmp_path)
    (tmp_path / manifests.CLOUD_CONTROLLER.path).mkdir(parents=True)
    folder = tmp_path / "cloud"
    for files in (manifests.files(None), manifests.files(None, "nvidia.com/gpu")):
        assert not prepared(folder, files)
        assert not folder.exists()
    controllers = manifests.Controllers("1.35", "acme-demo", {"stockyard:tenant": "acme"})
    assert prepared(folder, manifests.files(controllers, "nvidia.com/gpu"))
    document = json.loads((folder / "kustomization.yaml").read_text())
    assert document["resources"] == [manifests.CLOUD_CONTROLLER.path, "storage-class.yaml"]
    monkeypatch.setattr("local.kubernetes.real.cloud.missing_cloud", lambda: "not built")
    assert not prepared(folder, manifests.files(manifests.Controllers("1.35", "acme-demo", {})))
