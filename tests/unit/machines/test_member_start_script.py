"""The start script of a further member of a control plane makes room in etcd, joins and reports."""

from __future__ import annotations

import pytest

from tests.unit.machines.played_machine import STUB, Machine


def order(machine: Machine, *commands: str) -> list[int]:
    """At which places the commands have been run."""
    ran = machine.lines("ran")
    return [next(i for i, line in enumerate(ran) if line.startswith(command)) for command in commands]


@pytest.mark.parametrize("played_machine", ["control_plane_join.sh"], indirect=True)
def test_a_member_makes_room_in_etcd_before_it_joins_and_reports_after_it(played_machine: Machine) -> None:
    assert played_machine.boot() == 0
    indexes = order(
        played_machine,
        "python3 ask",
        "kubeadm reset",
        "kubeadm join phase control-plane-prepare download-certs",
        "kubeadm join phase control-plane-prepare kubeconfig",
        "python3 peers",
        "python3 make-room",
        "kubeadm join --config",
        "kubectl label",
        "kubectl taint --overwrite node member-1 node-role.kubernetes.io/control-plane:NoSchedule",
        "python3 settle",
        "python3 report",
        "systemctl enable --now stockyard-renew.timer",
    )
    assert indexes == sorted(indexes)
    assert not (played_machine.root / "etc/stockyard/join.yaml").exists(), "the key of the authorities stands in it"
    assert [line for line in played_machine.lines("ran") if "upload-config" in line] == [], "they are of one release"


@pytest.mark.parametrize("played_machine", ["control_plane_join.sh"], indirect=True)
@pytest.mark.parametrize(("cluster", "raised"), [("1.34.4", True), ("1.35.4", False), ("1.36.0", False)])
def test_the_first_member_of_a_newer_release_brings_the_clusters_documents_to_it(
    played_machine: Machine, monkeypatch: pytest.MonkeyPatch, cluster: str, raised: bool
) -> None:
    kubectl = played_machine.root / "bin" / "kubectl"
    kubectl.write_text(STUB.replace("${CLUSTER:-1.35.4}", cluster))
    assert played_machine.boot() == 0
    uploads = [line for line in played_machine.lines("ran") if line.startswith("kubeadm init phase upload-config all")]
    assert len(uploads) == raised
    if raised:
        indexes = order(
            played_machine, "python3 make-room", "kubeadm init phase upload-config", "kubeadm join --config"
        )
        assert indexes == sorted(indexes)
        assert played_machine.lines("etc/stockyard/cluster.yaml")[0] == "kubernetesVersion: v1.35.4"
        (upload,) = uploads
        assert not upload.endswith("/etc/kubernetes/admin.conf"), "kubeadm would ask this machine's own API server"
        assert upload.partition(" --kubeconfig ")[2].endswith("/etc/stockyard/admin.conf")


@pytest.mark.parametrize("played_machine", ["control_plane_join.sh"], indirect=True)
def test_a_try_that_was_cut_off_leaves_etcd_before_the_next_one(played_machine: Machine) -> None:
    assert played_machine.boot(fails="kubeadm join --config") not in (0, None)
    (played_machine.root / "ran").unlink()
    assert played_machine.boot() == 0
    indexes = order(played_machine, "python3 ask", "python3 leave", "kubeadm reset", "python3 make-room")
    assert indexes == sorted(indexes)


@pytest.mark.parametrize("played_machine", ["control_plane_join.sh"], indirect=True)
def test_a_voter_of_etcd_is_never_begun_anew(played_machine: Machine) -> None:
    """Only the node was missing when the machine was switched off: the kubelet gets another token."""
    (played_machine.root / "etc/kubernetes/manifests").mkdir()
    (played_machine.root / "etc/kubernetes/manifests/etcd.yaml").write_text("etcd")
    registered = '[ "$1" = join ] && echo kubelet >"$ROOT/etc/kubernetes/kubelet.conf"\nexit 0\n'
    (played_machine.root / "bin" / "kubeadm").write_text(STUB.removesuffix("exit 0\n") + registered)
    assert played_machine.boot() == 0
    joins = [line.split()[1:] for line in played_machine.lines("ran") if line.startswith("kubeadm")]
    phases = [arguments[:3] for arguments in joins if arguments[0] != "version"]
    assert phases == [["join", "phase", "kubelet-start"]]
