"""kubeadm takes and dry-runs every configuration that machines write: of control planes, of nodes, and for renewals."""

from __future__ import annotations

import importlib.util
import json
import re
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from cryptography import x509

from agent.stockyard_agent.authority import pin
from local.kubernetes.real.build import ETCD, ETCD_MODULES, missing_previous, release, releases, required
from local.kubernetes.real.control_plane import ADVERTISED
from local.kubernetes.store import stamp
from stockyard.domain.clusters.kubernetes_minors import following, number
from stockyard.domain.nodes.offers import InstanceOffer
from stockyard.kubernetes_versions import TESTED
from stockyard.machines import on_machine
from stockyard.providers.clouds.aws.catalog.reserved import kubelet_args
from tests.kubernetes.conftest import Cluster, machine_program, machine_values
from tests.kubernetes.rigs import RealRig, until
from tests.unit.agent.rig import TOKEN

ON_MACHINE = Path(on_machine.__file__).parent
OFFER = InstanceOffer("m6i.large", 2, 8192, "x86_64", interfaces=3, addresses=10)


def minors() -> list[Any]:
    """The closed list: each release with that of a kubeadm which takes it. One takes its own minor and the one
    before."""
    takes = {number(minor): built for minor, built in releases().items()}
    reason = "no kubeadm that is built takes it: its own minor and the next one have none"
    parameters = []
    for minor, tested in TESTED.items():
        kubeadm = takes.get(number(minor)) or takes.get(number(following(minor)), "")
        parameters.append(pytest.param(tested.release, kubeadm, marks=pytest.mark.skipif(not kubeadm, reason=reason)))
    return parameters


BALANCED = ({"endpoint": "https://nlb.example.test:6443"}, "aws:///us-east-1a/i-0123")
ALONE = (
    {
        "endpoint": "https://203.0.113.7:6443",
        "machine_endpoint": "https://demo-0123456789ab.stockyard.internal:6443",
        "certificate_names": [ADVERTISED],
    },
    "",
)
"""What a machine is told behind a load balancer, and in a cloud that has none; and its id in its cloud."""


@pytest.mark.parametrize(("version", "kubeadm"), minors())
@pytest.mark.parametrize("answer", [BALANCED, ALONE], ids=["behind a balancer", "alone"])
def test_a_control_plane_is_initialized_in_a_dry_run(
    cluster: Cluster, tmp_path: Path, version: str, kubeadm: str, answer: tuple[dict[str, Any], str]
) -> None:
    if kubeadm != release() and (reason := missing_previous()):
        pytest.skip(reason)
    program = machine_program(tmp_path)
    machine = {**machine_values(cluster.realm), "kubernetes_version": version}
    documents = program.kubeadm(machine, *answer)
    path = tmp_path / "kubeadm.yaml"
    path.write_text("\n---\n".join(map(json.dumps, documents)))
    done = cluster.plane.kubeadm("config", "validate", "--config", str(path), release=kubeadm)
    assert (done.stdout.strip(), done.stderr) == ("ok", "")
    # What kubeadm finds out of a machine is here what the configuration says: this one may have no usable address.
    documents[0]["localAPIEndpoint"] = {"advertiseAddress": ADVERTISED, "bindPort": 6443}
    documents[0]["nodeRegistration"]["name"] = "ip-10-0-0-5"
    path.write_text("\n---\n".join(map(json.dumps, documents)))
    options = ("--dry-run", "--ignore-preflight-errors=all", "--skip-token-print", "--config", str(path))
    folder = tmp_path / "dry-run"
    folder.mkdir()
    done = cluster.plane.kubeadm("init", *options, dry_run_folder=folder, release=kubeadm)
    assert "Your Kubernetes control-plane has initialized successfully!" in done.stdout
    assert "warn" not in re.sub(r"\[WARNING [^\n]*|\[preflight\][^\n]*", "", done.stderr).lower(), done.stderr


def test_the_etcd_of_each_minor_that_is_built_is_the_one_that_its_kubeadm_runs(cluster: Cluster) -> None:
    if reason := missing_previous():
        pytest.skip(reason)
    for module, etcd in ETCD_MODULES.items():
        version = release(module)
        words = ("config", "images", "list", "--kubernetes-version", version)
        (image,) = re.findall(r"/etcd:(\S+)", cluster.plane.kubeadm(*words, release=version).stdout)
        assert image.partition("-")[0] == required(etcd, ETCD["etcd"])


def test_the_kubeconfig_that_a_control_plane_reports_is_an_administrators(cluster: Cluster) -> None:
    own = ("--kubeconfig", str(cluster.plane.folder / "admin.conf"))
    assert cluster.plane.kubectl("auth", "can-i", "*", "*", "--all-namespaces", *own).stdout.strip() == "yes"
    assert "kubeadm:cluster-admins" in cluster.plane.kubectl("auth", "whoami", *own).stdout


@pytest.fixture
def node_program(monkeypatch: pytest.MonkeyPatch) -> Any:
    """The program of a node's machine."""
    monkeypatch.syspath_prepend(str(ON_MACHINE))
    specification = importlib.util.spec_from_file_location("stockyard_node_of_tests", ON_MACHINE / "stockyard_node.py")
    assert specification is not None
    assert specification.loader is not None
    module: Any = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(module)
    return module


@pytest.mark.parametrize(
    "more",
    [
        {},
        {"labels": {"team": "blue", "kubernetes.io/arch": "amd64"}, "kubelet_args": kubelet_args(OFFER)},
        {"taints": [{"key": "gpu", "value": "yes", "effect": "NoSchedule"}, {"key": "x", "effect": "NoExecute"}]},
    ],
    ids=["plain", "labels", "taints"],
)
def test_a_node_joins_in_a_dry_run(real_rig: RealRig, tmp_path: Path, node_program: Any, more: dict[str, Any]) -> None:
    plane = real_rig.plane
    expires = stamp(datetime.now(UTC) + timedelta(minutes=15))
    real_rig.platform.order("t", "bootstrap_token", token=TOKEN, expires_at=expires, claim="ncl_1", node="worker-1")
    real_rig.until_ended(real_rig.agent())
    info = "/api/v1/namespaces/kube-public/configmaps/cluster-info"
    until(lambda: "jws-kubeconfig-abcdef" in real_rig.administer("GET", info)["data"])
    answer = {
        "endpoint": plane.url,
        "token": TOKEN,
        "ca_hash": pin((plane.folder / "pki/ca.crt").read_text()),
        "node_name": "worker-1",
        **more,
    }
    path = tmp_path / "join.yaml"
    path.write_text(json.dumps(node_program.kubeadm(answer, "aws:///us-east-1a/i-0123")))
    assert plane.kubeadm("config", "validate", "--config", str(path)).stdout.strip() == "ok"
    done = plane.kubeadm("join", "--dry-run", "--ignore-preflight-errors=all", "--config", str(path))
    assert "This node has joined the cluster" in done.stdout, done.stdout


def test_all_certificates_are_renewed_as_the_machine_renews_them(cluster: Cluster) -> None:
    plane = cluster.plane
    (command,) = re.findall(r"^kubeadm (certs renew .*)$", (ON_MACHINE / "renew.sh").read_text(), re.MULTILINE)
    authorities = {path: path.read_bytes() for path in plane.folder.glob("pki/**/*ca.crt")}
    leaves = sorted(set(plane.folder.glob("pki/**/*.crt")) - set(authorities))
    assert (len(authorities), len(leaves)) == (3, 7)
    before = [begins(path) for path in leaves]
    where = ("--cert-dir", str(plane.folder / "pki"), "--config", str(plane.configuration))
    time.sleep(1.1)
    plane.kubeadm(*command.split(), *where)
    assert all(begins(path) > then for path, then in zip(leaves, before, strict=True))
    left_days = [(ends(path) - datetime.now(UTC)) / timedelta(days=1) for path in leaves]
    assert min(left_days) > 364
    assert max(left_days) < 366
    assert {path: path.read_bytes() for path in authorities} == authorities


def begins(path: Path) -> datetime:
    return x509.load_pem_x509_certificate(path.read_bytes()).not_valid_before_utc


def ends(path: Path) -> datetime:
    return x509.load_pem_x509_certificate(path.read_bytes()).not_valid_after_utc
