"""A control plane is lost: what its volume holds is enough for another one, as docs/restore.md says it."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest

from local.children import start
from local.kubernetes.real.control_plane import ControlPlane, own_address, program
from stockyard.machines import cloud_config
from tests.kubernetes.conftest import Cluster, machine_program, machine_values

CRICTL = """#!/bin/bash
# Runs what the script runs in etcd's container, on an etcd that listens without TLS.
while [ "$1" != ps ] && [ "$1" != exec ]; do shift; done
if [ "$1" = ps ]; then echo the-container; exit 0; fi
exec "$ETCDCTL" --endpoints "$ENDPOINT" snapshot save "${@: -1}"
"""


@pytest.fixture(scope="module")
def volume(cluster: Cluster, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The volume after the machine's own script has taken a snapshot. Something is written after that."""
    root, plane = tmp_path_factory.mktemp("machine"), cluster.plane
    for name in ("bin", "volume/etcd"):
        (root / name).mkdir(parents=True)
    plane.kubectl("create", "secret", "generic", "lost", "--from-literal=password=hunter2-of-the-tests")
    plane.kubectl("create", "serviceaccount", "before")
    (root / "bin/crictl").write_text(CRICTL)
    (root / "bin/crictl").chmod(0o755)
    state = plane.files.parent
    for path in (state / "client.json", state / "endpoint", root / "user-data.txt"):
        path.write_text("{}")
    script = cloud_config.program("snapshot.sh").text
    folders = {"/var/lib/control-plane": root / "volume", "/etc/kubernetes/pki": plane.folder / "pki"}
    for there, here in {**folders, "/etc/stockyard": state, "/var/lib/cloud/instance": root}.items():
        script = script.replace(there, str(here))
    environment = {
        "PATH": f"{root}/bin:{os.environ['PATH']}",
        "ETCDCTL": str(program("etcdctl")),
        "ENDPOINT": f"http://{plane.address}:2379",
    }
    done = subprocess.run(["bash", "-c", script], env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    plane.kubectl("create", "configmap", "later")
    return root / "volume"


def _restored(snapshot: Path, data: Path) -> None:
    options = ["--data-dir", data, "--bump-revision", "1000000000", "--mark-compacted"]
    command = [program("etcdutl"), "snapshot", "restore", snapshot, *options]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_another_control_plane_has_its_objects_back_from_a_snapshot(
    cluster: Cluster, volume: Path, tmp_path: Path
) -> None:
    """Another address and node, the same authority: a token from before is good, a sealed Secret is read."""
    token = cluster.plane.kubectl("create", "token", "before").stdout.strip()
    state, folder = tmp_path / "stockyard", tmp_path / "plane"
    folder.mkdir()
    shutil.copytree(volume / "keys/stockyard", state)
    shutil.copytree(volume / "keys/pki", folder / "pki")
    machine: Any = machine_program(state)
    values = machine_values(cluster.realm)
    machine.api_server(values)
    assert (state / "api/encryption.yaml").read_bytes() == (cluster.plane.files / "encryption.yaml").read_bytes()
    (snapshot,) = (volume / "snapshots").iterdir()
    _restored(snapshot, folder / "etcd")
    documents = machine.kubeadm(values, {"endpoint": "https://nlb.example.test:6443"}, "aws:///us-east-1b/i-0456")
    environment = {"SSL_CERT_FILE": str(cluster.realm.authority)}
    plane = ControlPlane(folder, documents, state / "api", environment, node="another")
    with plane.running():
        secret = json.loads(plane.kubectl("get", "secret", "lost", "-o", "json").stdout)
        assert secret["data"] == {"password": "aHVudGVyMi1vZi10aGUtdGVzdHM="}
        assert plane.kubectl("get", "configmap", "later", check=False).returncode != 0, (
            "it is younger than the snapshot"
        )
        done = plane.kubectl("auth", "whoami", "-o", "json", token=token)
        assert json.loads(done.stdout)["status"]["userInfo"]["username"] == "system:serviceaccount:default:before"
        plane.kubectl("create", "configmap", "new")


def test_etcd_goes_on_with_the_data_under_another_name_and_address(volume: Path, tmp_path: Path) -> None:
    """The kept volume relies on this: the machine that is attached next has another host name and address."""
    (snapshot,) = (volume / "snapshots").iterdir()
    _restored(snapshot, tmp_path / "data")
    for name in ("first", "second"):
        address = own_address()
        client, peer = (f"http://{address}:{port}" for port in (2379, 2380))
        flags = [f"--name={name}", f"--data-dir={tmp_path / 'data'}", f"--initial-cluster={name}={peer}"]
        flags += [f"--listen-client-urls={client}", f"--advertise-client-urls={client}"]
        flags += [f"--listen-peer-urls={peer}", f"--initial-advertise-peer-urls={peer}"]
        etcd = start([str(program("etcd")), *flags], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            keys = _keys(client)
        finally:
            etcd.kill()
            etcd.wait()
        assert "/registry/secrets/default/lost" in keys


def _keys(endpoint: str) -> list[str]:
    command = [program("etcdctl"), "--endpoints", endpoint, "get", "/registry/secrets", "--prefix", "--keys-only"]
    ends_at = time.monotonic() + 20
    while True:
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode == 0:
            return done.stdout.split()
        assert time.monotonic() < ends_at, done.stderr
        time.sleep(0.2)
