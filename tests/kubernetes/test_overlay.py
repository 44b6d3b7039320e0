"""An overlay on a real control plane: what a machine may read and write with its kubelet's certificate, which interface
flannel takes, and at which address a control plane is advertised."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from agent.roles import NAMESPACE
from agent.stockyard_agent.authority import pin
from agent.stockyard_agent.overlay import NAME, OverlayList
from local.kubernetes.real.client import MERGE, Refused
from stockyard.machines import manifests, on_machine
from stockyard.machines.on_machine import stockyard_overlay
from tests.kubernetes.conftest import Cluster, machine_program, machine_values
from tests.kubernetes.rigs import RealRig, until
from tests.kubernetes.test_join import Machines, machines  # noqa: F401 - a fixture
from tests.kubernetes.test_kubeadm import BALANCED, node_program  # noqa: F401 - a fixture
from tests.kubernetes.test_manifests import fetched
from tests.unit.agent.rig import TOKEN

overlay_program: Any = stockyard_overlay
peers, stockyard_overlay_report = overlay_program.peers, overlay_program.stockyard_overlay_report
ON_MACHINE = Path(on_machine.__file__).parent
CONFIG_MAPS = f"/api/v1/namespaces/{NAMESPACE}/configmaps"
PEERS = [{"address": "100.64.0.1", "key": "k" * 43 + "=", "hub": True, "endpoints": ["api.test:51820"]}]


@pytest.fixture
def rig(real_rig: RealRig) -> Iterator[RealRig]:
    yield real_rig
    for name in (NAME, "another"):
        real_rig.ask("DELETE", f"{CONFIG_MAPS}/{name}")


def _as_machine(rig: RealRig, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the machine's own program be the machine of that node."""
    folder, url = rig.plane.folder, urlsplit(rig.plane.url)
    (folder / "endpoint.json").write_text(json.dumps({"host": url.hostname, "port": url.port}))
    monkeypatch.setattr(peers, "STATE", str(folder))
    monkeypatch.setattr(peers, "AUTHORITY", str(folder / "pki/ca.crt"))
    monkeypatch.setattr(peers, "KUBELET", str(folder / f"{name}.pem"))


def test_a_machine_reads_the_list_that_the_agent_writes_and_annotates_its_own_node_alone(
    rig: RealRig,
    machines: Machines,  # noqa: F811
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    agent, written = rig.agent(), OverlayList(rig.agent()._kube, rig.logs.append)
    request = machines.ask(TOKEN, "worker-1")
    agent.look()
    machines.take(request, "worker-1")
    machines.register("worker-1", "worker-1")
    rig.add_node("worker-2")
    rig.administer("POST", CONFIG_MAPS, {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "another"}})
    machine = machines.client("worker-1")
    _as_machine(rig, "worker-1", monkeypatch)
    with pytest.raises(OSError, match="404"):
        peers.fetch_list()
    for version in ("1", "2"):
        written.hear({"version": version, "peers": PEERS})
        assert peers.fetch_list() == {"version": version, "peers": PEERS}
    assert not [line for line in rig.logs if "overlay" in line]
    own = f"{CONFIG_MAPS}/{NAME}"
    # No other one, no list of them, and none to write: neither this one nor a node's.
    refused = (
        ("GET", f"{CONFIG_MAPS}/another", None), ("GET", CONFIG_MAPS, None), ("DELETE", own, None),
        ("PATCH", own, {"data": {"peers": "[]"}}),
        ("PATCH", "/api/v1/nodes/worker-2", {"metadata": {"annotations": {"stockyard.dev/overlay": "{}"}}}),
        ("PATCH", "/api/v1/nodes/worker-1", {"metadata": {"labels": {"node-role.kubernetes.io/control-plane": ""}}}),
    )  # fmt: skip
    for method, path, body in refused:
        with pytest.raises(Refused, match="403"):
            machine.call(method, path, body, *([MERGE] if body else []))
    stockyard_overlay_report.write('{"direct":1,"down":{}}')
    rig.rounds(agent, 1, kubelets=False)
    annotations = {node["name"]: node.get("overlay") for node in rig.platform.posts[-1]["nodes"]}
    assert annotations == {"worker-1": '{"direct":1,"down":{}}', "worker-2": None}


def test_flannel_takes_the_overlays_interface_and_keeps_it(cluster: Cluster, tmp_path: Path) -> None:
    folder = fetched(tmp_path, manifests.files(None))
    script = (ON_MACHINE / "control_plane.sh").read_text()
    (command,) = re.findall(r"again kubectl (--namespace kube-flannel set env .*)$", script, re.MULTILINE)
    kubectl, manifest = cluster.plane.kubectl, str(folder / manifests.FLANNEL.path / "kube-flannel.yml")

    def environment() -> dict[str, Any]:
        answer = kubectl("get", "daemonset", "kube-flannel-ds", "-n", "kube-flannel", "-o", "json").stdout
        (container,) = json.loads(answer)["spec"]["template"]["spec"]["containers"]
        return {each["name"]: each.get("value") for each in container["env"]}

    kubectl("apply", "-f", manifest)
    assert "FLANNELD_IFACE" not in environment()
    before = environment()
    for _ in range(2):  # A control plane that starts anew does all of it again.
        kubectl("apply", "-f", manifest)
        kubectl(*command.split())
        assert environment() == {**before, "FLANNELD_IFACE": "stockyard0"}
    kubectl("delete", "-f", manifest, "--wait=false")


def test_a_control_plane_is_advertised_at_its_address_of_the_overlay(cluster: Cluster, tmp_path: Path) -> None:
    program = machine_program(tmp_path)
    documents = program.kubeadm(machine_values(cluster.realm), *BALANCED, "100.64.0.1")
    documents[0]["nodeRegistration"]["name"] = "ip-10-0-0-5"
    path = tmp_path / "kubeadm.yaml"
    path.write_text("\n---\n".join(map(json.dumps, documents)))
    assert cluster.plane.kubeadm("config", "validate", "--config", str(path)).stdout.strip() == "ok"
    folder = tmp_path / "dry-run"
    folder.mkdir()
    options = ("--dry-run", "--ignore-preflight-errors=all", "--skip-token-print", "--config", str(path))
    output = cluster.plane.kubeadm("init", *options, dry_run_folder=folder).stdout
    written = output + "".join(file.read_text(errors="replace") for file in folder.rglob("*") if file.is_file())
    assert "--advertise-address=100.64.0.1" in written
    # etcd's members speak over it, and the kubelet's node has it.
    assert "--listen-peer-urls=https://100.64.0.1:2380" in written
    assert "--initial-advertise-peer-urls=https://100.64.0.1:2380" in written
    assert "--node-ip=100.64.0.1" in written


def test_a_node_joins_with_its_address_of_the_overlay(
    rig: RealRig,
    machines: Machines,  # noqa: F811 - makes the token
    node_program: Any,  # noqa: F811
    tmp_path: Path,
) -> None:
    plane = rig.plane
    info = "/api/v1/namespaces/kube-public/configmaps/cluster-info"
    until(lambda: "jws-kubeconfig-abcdef" in rig.administer("GET", info)["data"])
    answer = {
        "endpoint": plane.url, "token": TOKEN, "ca_hash": pin((plane.folder / "pki/ca.crt").read_text()),
        "node_name": "worker-1", "kubelet_args": {"node-ip": "100.64.0.7"},
    }  # fmt: skip
    path = tmp_path / "join.yaml"
    path.write_text(json.dumps(node_program.kubeadm(answer, "")))
    assert plane.kubeadm("config", "validate", "--config", str(path)).stdout.strip() == "ok"
    done = plane.kubeadm("join", "--dry-run", "--ignore-preflight-errors=all", "--config", str(path))
    assert "This node has joined the cluster" in done.stdout
    assert "node-ip=100.64.0.7" in done.stdout + done.stderr
