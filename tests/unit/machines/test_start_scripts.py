"""The scripts of a first boot tell of each step that fails or hangs, and a second run goes on where the first one
stopped."""

from __future__ import annotations

import os
import re
import shutil
import time
import tomllib

import pytest

from tests.unit.machines.played_machine import STUB, Machine

CONTROL_PLANE = {
    "fetch https://packages.example.test/core:/stable:/v1.35/deb/Release.key": "packages",
    "unpack": "packages",
    "apt-get update": "packages",
    "apt-get install": "packages",
    "lsblk --noheadings": "volume",
    "wipefs --noheadings": "volume",
    "mkfs.ext4 -q": "volume",
    "blkid --probe": "volume",
    "systemctl daemon-reload": "volume",
    "mount": "volume",
    "python3 bootstrap": "bootstrap",
    "kubeadm init": "init",
    "ps --quiet": "snapshot",
    "snapshot save": "snapshot",
    "sha256sum --check": "network",
    "fetch https://example.test/flannel-io/flannel/1/Documentation/kube-flannel.yml": "network",
    "kubectl apply -f": "network",
    "kubectl apply -k": "cloud",
    "kubectl get nodes": "cloud",
    "kubectl wait": "cloud",
    "python3 agent": "agent",
    "python3 ready": "report",
}
NODE = {"apt-get update": "packages", "apt-get install": "packages", "kubeadm join": "join"}
IMAGE = {"apt-get update": "packages", "apt-get install": "packages", "kubeadm config images": "images"}
MEMBER = {
    "apt-get install": "packages",
    "python3 ask": "ask",
    "python3 make-room": "join",
    "kubeadm join --config": "join",
    "kubectl label": "mark",
    "python3 report": "report",
}
SCRIPTS = {"control_plane.sh": CONTROL_PLANE, "control_plane_join.sh": MEMBER, "node.sh": NODE, "bake.sh": IMAGE}
COVERED = {("control_plane_join.sh", "apt-get install"), ("control_plane_join.sh", "python3 make-room")}
"""Cells whose like is another script's, or a test's of its own."""
CELLS = [
    (part, command, step)
    for part, steps in SCRIPTS.items()
    for command, step in steps.items()
    if (part, command) not in COVERED
]


FIRST_CELLS = list({(part, step): (part, command, step) for part, command, step in reversed(CELLS)}.values())[::-1]
"""The first command of each step: whichever of them hangs, the same line of the log tells of it."""
SOAKING = os.environ.get("STOCKYARD_SOAK") == "1"


@pytest.mark.parametrize("played_machine", list(SCRIPTS), indirect=True)
def test_every_step_is_told_and_a_second_run_repeats_nothing_that_is_done(played_machine: Machine) -> None:
    assert played_machine.boot() == 0
    steps = list(dict.fromkeys(SCRIPTS[played_machine.part].values()))
    assert played_machine.lines("said") == [f"{step} begins" for step in steps]
    first = played_machine.lines("ran")
    assert played_machine.boot() == 0
    again = played_machine.lines("ran")[len(first) :]
    for done in ("kubeadm init", "kubeadm join", "kubeadm reset"):
        assert [line for line in again if line.startswith(done)] == []


def logged(machine: Machine, text: str) -> bool:
    """Whether the machine's log has the text. The script's own ``tee`` writes it, perhaps after the script's end."""
    log, end = machine.root / "var/log/stockyard-start.log", time.monotonic() + 10
    while text not in log.read_text():
        if time.monotonic() > end:
            return False
        time.sleep(0.02)
    return True


@pytest.mark.parametrize(("played_machine", "command", "step"), CELLS, indirect=["played_machine"])
def test_a_step_that_fails_is_told_with_its_code_and_repeated(played_machine: Machine, command: str, step: str) -> None:
    assert played_machine.boot(fails=command) not in (0, None)
    lines = played_machine.lines("said")
    assert lines[-2] == f"{step} begins"
    assert re.fullmatch(rf"{step} [1-9]\d*", lines[-1])
    assert logged(played_machine, "the reason")
    assert played_machine.boot() == 0


@pytest.mark.parametrize(
    ("played_machine", "command", "step"), CELLS if SOAKING else FIRST_CELLS, indirect=["played_machine"]
)
def test_of_a_step_that_hangs_it_is_known_that_it_began(played_machine: Machine, command: str, step: str) -> None:
    assert played_machine.boot(hangs=command) is None
    assert played_machine.lines("said")[-1] == f"{step} begins"
    assert played_machine.boot() == 0


@pytest.mark.parametrize("played_machine", ["control_plane.sh"], indirect=True)
def test_a_control_plane_that_does_not_answer_at_once_is_not_reset(played_machine: Machine) -> None:
    assert played_machine.boot() == 0
    before = played_machine.lines("ran")
    slow = """count=$(cat "$ROOT/count" 2>/dev/null || echo 0)
if [ "$*" = "get --raw /readyz" ] && [ "$count" -lt 3 ]; then echo $((count + 1)) >"$ROOT/count"; exit 1; fi
"""
    (played_machine.root / "bin" / "kubectl").write_text(STUB.replace("case ", slow + "case ", 1))
    assert played_machine.boot() == 0
    assert [line for line in played_machine.lines("ran")[len(before) :] if line.startswith("kubeadm reset")] == []


@pytest.mark.parametrize("played_machine", ["control_plane.sh"], indirect=True)
def test_etcds_volume_is_formatted_once_and_mounted_before_the_kubelet(played_machine: Machine) -> None:
    assert played_machine.boot() == 0
    first = played_machine.lines("ran")
    assert len([line for line in first if line.startswith("mkfs.ext4")]) == 1
    assert played_machine.lines("etc/fstab") == [
        f"UUID=0fc63daf-8483-4772-8e79-3d69d8477de4 {played_machine.root}/var/lib/control-plane"
        " ext4 nofail,x-systemd.device-timeout=300 0 2"
    ]
    indexes = [next(i for i, line in enumerate(first) if line.startswith(c)) for c in ("mount ", "kubeadm init")]
    assert indexes == sorted(indexes)
    assert played_machine.boot() == 0
    assert len(played_machine.lines("etc/fstab")) == 1
    assert [line for line in played_machine.lines("ran")[len(first) :] if line.startswith(("mkfs", "mount "))] == []


@pytest.mark.parametrize("played_machine", ["control_plane.sh"], indirect=True)
@pytest.mark.parametrize("fails", ["", "kubeadm init"])
def test_another_machine_goes_on_with_the_volume_and_resets_nothing(played_machine: Machine, fails: str) -> None:
    """The keys come from the volume, and what kubeadm has against data that are there is not heard."""
    assert played_machine.boot() == 0
    (played_machine.root / "ran").unlink()
    shutil.move(played_machine.root / "etc/stockyard/manifests", played_machine.root / "manifests")
    for folder in ("etc/kubernetes", "etc/stockyard"):
        shutil.rmtree(played_machine.root / folder)
        (played_machine.root / folder).mkdir()
    shutil.move(played_machine.root / "manifests", played_machine.root / "etc/stockyard/manifests")
    (played_machine.root / "mounted").unlink()
    assert (played_machine.boot(fails=fails) == 0) is (fails == "")
    if fails:
        # A try that was cut off leaves a kubeconfig, and the API server does not answer.
        (played_machine.root / "etc/kubernetes/admin.conf").write_text("admin")
        assert played_machine.boot(fails="kubectl get --raw") != 0
    ran = played_machine.lines("ran")
    assert [line for line in ran if line.startswith(("mkfs", "kubeadm reset"))] == []
    inits = [line for line in ran if line.startswith("kubeadm init")]
    assert inits
    assert all("--ignore-preflight-errors=all" in line for line in inits)
    for name in ("kubernetes/pki/ca.key", "kubernetes/pki/etcd/ca.key", "stockyard/api/encryption.yaml"):
        assert (played_machine.root / "etc" / name).exists()


@pytest.mark.parametrize("played_machine", ["control_plane.sh"], indirect=True)
def test_the_last_four_snapshots_stay(played_machine: Machine) -> None:
    assert played_machine.boot() == 0
    folder = played_machine.root / "var/lib/control-plane/snapshots"
    for hour in range(6):
        (folder / f"20250101T0{hour}0000Z.db").touch()
    assert played_machine.run("snapshot.sh") == 0
    names = sorted(path.name for path in folder.iterdir())
    assert len(names) == 4
    assert "20250101T010000Z.db" < names[0] <= "20250101T050000Z.db"
    assert played_machine.run("snapshot.sh", fails="snapshot save") not in (0, None)
    assert sorted(path.name for path in folder.iterdir()) == names


@pytest.mark.parametrize("played_machine", ["control_plane.sh"], indirect=True)
def test_a_node_that_the_clouds_controller_has_not_seen_is_waited_for_and_told(played_machine: Machine) -> None:
    tainted = '[ "$1 $2" = "get nodes" ] && echo "a node.cloudprovider.kubernetes.io/uninitialized"\nexit 0\n'
    (played_machine.root / "bin" / "kubectl").write_text(STUB.removesuffix("exit 0\n") + tainted)
    assert played_machine.boot() not in (0, None)
    assert played_machine.lines("said")[-1] == "cloud 1"
    (played_machine.root / "bin" / "kubectl").write_text(STUB)
    assert played_machine.boot() == 0


@pytest.mark.parametrize("played_machine", list(SCRIPTS), indirect=True)
def test_another_key_of_the_packages_is_refused_and_told(
    played_machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    python, key = played_machine.root / "bin" / "python3", "DE15B14486CD377B9E876E1A234654DA9A296436"
    python.write_text(STUB.replace(key, "0" * 40))
    assert played_machine.boot() not in (0, None)
    assert logged(played_machine, "is not the one that was pinned")
    assert [line for line in played_machine.lines("ran") if line.startswith("apt-get")] == []
    python.write_text(STUB.replace(key, f"{key} {'0' * 40}"))
    assert played_machine.boot() not in (0, None), "a second key beside it"
    python.write_text(STUB)
    assert played_machine.boot() == 0


@pytest.mark.parametrize("played_machine", ["node.sh", "control_plane.sh"], indirect=True)
def test_a_baked_image_of_the_release_installs_nothing(played_machine: Machine) -> None:
    (played_machine.root / "installed").touch()
    assert played_machine.boot() == 0
    assert [line for line in played_machine.lines("ran") if line.startswith(("apt", "unpack"))] == []
    config = (played_machine.root / "etc/containerd/config.toml").read_text()
    assert config == "SystemdCgroup = true\nconfig_path = '/etc/containerd/certs.d'\n"


@pytest.mark.parametrize("played_machine", ["node.sh"], indirect=True)
@pytest.mark.parametrize("has_driver", [True, False])
def test_containerd_runs_pods_by_the_runtime_of_an_image_with_a_gpus_driver(
    played_machine: Machine, has_driver: bool
) -> None:
    if has_driver:
        tool = played_machine.root / "bin" / "nvidia-ctk"
        tool.write_text(STUB)
        tool.chmod(0o755)
    assert played_machine.boot() == 0
    steps = [
        line for line in played_machine.lines("ran") if line.startswith(("nvidia-ctk", "systemctl restart containerd"))
    ]
    configured = ["nvidia-ctk runtime configure --runtime=containerd --set-as-default"] if has_driver else []
    assert steps == [*configured, "systemctl restart containerd"], "before containerd reads what it is told"


@pytest.mark.parametrize("played_machine", ["node.sh"], indirect=True)
def test_containerd_of_dockers_package_is_kept_where_an_image_has_it(played_machine: Machine) -> None:
    """Ubuntu's package would take it away, and with it what AWS's image with NVIDIA's driver has besides."""
    query = played_machine.root / "bin" / "dpkg-query"
    query.write_text(STUB.replace("echo 1.7.24", 'case "$*" in *Status*) echo installed ;; *) echo 2.3.6-1 ;; esac'))
    assert played_machine.boot() == 0
    installed = [line for line in played_machine.lines("ran") if line.startswith(("apt-get install", "apt-mark hold"))]
    assert all("containerd.io" in line.split() and "containerd" not in line.split() for line in installed), installed


@pytest.mark.parametrize("played_machine", ["node.sh"], indirect=True)
def test_mirrors_stand_before_the_public_sources(played_machine: Machine) -> None:
    assert played_machine.boot(archive="http://mirror.example.test/ubuntu", registry="mirror.example.test:5000") == 0
    sources = played_machine.root / "etc/apt/sources.list.d"
    assert "URIs: http://mirror.example.test/ubuntu\n" in (sources / "ubuntu.sources").read_text()
    kubernetes = (sources / "kubernetes.list").read_text()
    assert "https://packages.example.test/core:/stable:/v1.35/deb/ /" in kubernetes
    for name in ("docker.io", "ghcr.io", "nvcr.io", "public.ecr.aws", "registry.k8s.io"):
        hosts = tomllib.loads((played_machine.root / f"etc/containerd/certs.d/{name}/hosts.toml").read_text())
        assert hosts["server"] == f"https://{name}"
        (host,) = hosts["host"].items()
        assert host == (
            f"https://mirror.example.test:5000/v2/{name}",
            {"capabilities": ["pull", "resolve"], "override_path": True},
        )


ENCRYPTED = {"python3 unwrap": "unwrap", "cryptsetup-bin": "packages", "python3 open": "volume"}
"""Steps of a control plane with an encrypted disk besides those of every one."""


@pytest.fixture
def encrypted(played_machine: Machine) -> Machine:
    """The machine is told of a Vault, and its user data holds the same."""
    for name in ("etc/stockyard/vault.json", "var/lib/cloud/instance/user-data.txt"):
        (played_machine.root / name).write_text('{"wrapped_secret_id": "hvs.wrapped"}')
    return played_machine


@pytest.mark.parametrize("played_machine", ["control_plane.sh"], indirect=True)
def test_an_encrypted_disk_is_opened_before_anything_is_on_it(encrypted: Machine) -> None:
    assert encrypted.boot() == 0
    assert encrypted.lines("said")[:3] == ["unwrap begins", "packages begins", "volume begins"]
    ran = encrypted.lines("ran")
    assert ran[0] == "python3 unwrap", "its token lives half an hour"
    mapped = "/dev/mapper/stockyard-data"
    order = [
        "cryptsetup-bin",
        "python3 open /dev/",
        f"wipefs --noheadings {mapped}",
        f"mkfs.ext4 -q {mapped}",
        "mount ",
    ]
    indexes = [next(i for i, line in enumerate(ran) if command in line) for command in order]
    assert indexes == sorted(indexes)
    assert [line for line in ran if line.startswith("mkfs")] == [f"mkfs.ext4 -q {mapped}"]
    (entry,) = encrypted.lines("etc/fstab")
    options = entry.split()[3].split(",")
    assert {"nofail", "_netdev", "x-systemd.requires=stockyard-disk.service"} < set(options)
    assert "x-systemd.device-timeout=infinity" in options


@pytest.mark.parametrize("played_machine", ["control_plane.sh"], indirect=True)
def test_nothing_of_the_way_into_the_vault_is_kept_on_the_disk(encrypted: Machine) -> None:
    assert encrypted.boot() == 0
    keys = encrypted.root / "var/lib/control-plane/keys"
    assert (keys / "stockyard/client.json").exists()
    assert [path for path in keys.rglob("*") if path.is_file() and "hvs." in path.read_text()] == []
    assert not (keys / "user-data.txt").exists()


@pytest.mark.parametrize("played_machine", ["control_plane.sh"], indirect=True)
@pytest.mark.parametrize(("command", "step"), list(ENCRYPTED.items()))
def test_an_encrypted_disk_that_cannot_be_opened_is_told(encrypted: Machine, command: str, step: str) -> None:
    assert encrypted.boot(fails=command) not in (0, None)
    lines = encrypted.lines("said")
    assert lines[-2] == f"{step} begins"
    assert re.fullmatch(rf"{step} [1-9]\d*", lines[-1])
    assert [line for line in encrypted.lines("ran") if line.startswith(("mkfs", "mount ", "kubeadm init"))] == []
    assert encrypted.boot() == 0


@pytest.mark.parametrize("played_machine", ["control_plane.sh"], indirect=True)
def test_cryptsetup_that_is_there_is_not_installed(encrypted: Machine) -> None:
    shutil.copy(encrypted.root / "bin/lsblk", encrypted.root / "bin/cryptsetup")
    assert encrypted.boot() == 0
    assert [line for line in encrypted.lines("ran") if "cryptsetup-bin" in line] == []
