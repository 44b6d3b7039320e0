"""The scripts of a first boot and of a renewal, run as they are but below another root and on commands that only play:
each step that fails or hangs is told, and a second run goes on where the first one stopped."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import time
import tomllib
from dataclasses import dataclass
from pathlib import Path

import pytest

from stockyard.machines import cloud_config

PLAYED = (
    "apt-get", "apt-mark", "blkid", "cloud-init", "containerd", "crictl", "curl", "dpkg", "dpkg-query", "findmnt",
    "gpg", "kubeadm", "kubectl", "lsblk", "mkfs.ext4", "modprobe", "mount", "mountpoint", "openssl", "python3",
    "sha256sum", "sleep", "swapoff", "sysctl", "systemctl", "timeout", "wipefs",
)  # fmt: skip
STUB = """#!/bin/bash
name="${0##*/}"
[ "$name" = timeout ] && shift && exec "$@"
if [ "$name" = python3 ]; then
    shift
    if [ "$1" = say ]; then shift; echo "$1 ${2:-begins}" >>"$ROOT/said"; exit 0; fi
fi
case " $name $* " in
    *" $FAILS "*) [ -n "$FAILS" ] && echo "the reason" >&2 && exit 7 ;;
    *" $HANGS "*) [ -n "$HANGS" ] && touch "$ROOT/hung" && exec /bin/sleep 60 ;;
esac
[ "$name" = sleep ] || echo "$name $*" >>"$ROOT/ran"
if [ "$name $1" = "python3 bootstrap" ]; then
    cd "$ROOT/etc/stockyard" && mkdir -p api && touch client.json api/encryption.yaml
    echo nlb.example.test >endpoint
fi
if [ "$name $1" = "kubeadm init" ]; then
    mkdir -p "$ROOT/etc/kubernetes/pki/etcd" && cd "$ROOT/etc/kubernetes" && echo admin >admin.conf
    mkdir -p manifests && touch manifests/etcd.yaml
    touch pki/{ca,front-proxy-ca,etcd/ca}.{crt,key} pki/sa.{key,pub}
fi
[ "$name" = mountpoint ] && [ ! -e "$ROOT/mounted" ] && exit 1
[ "$name" = mount ] && touch "$ROOT/mounted"
[ "$name" = lsblk ] && case "$*" in *PKNAME*) echo nvme0n1 ;; *TYPE*) echo disk ;; *) echo nvme1n1 ;; esac
[ "$name" = blkid ] && echo 0fc63daf-8483-4772-8e79-3d69d8477de4
[ "$name" = wipefs ] && [ -e "$ROOT/var/lib/control-plane/keys" ] && echo ext4
[ "$name" = crictl ] && case "$*" in *"snapshot save"*) mkdir -p "$(dirname "${!#}")" && echo db >"${!#}" ;; esac
[ "$name $1" = "kubeadm reset" ] && rm -rf "$ROOT/etc/kubernetes"/*
case "$name $*" in
    *"configmap kubeadm-config"*) echo "kubernetesVersion: v${CLUSTER:-1.35.4}" ;;
    "python3 ask") echo '{"node_name": "member-1", "workloads": false}' >"$ROOT/etc/stockyard/member.json" ;;
    *"control-plane-prepare kubeconfig"*) echo admin >"$ROOT/etc/kubernetes/admin.conf" ;;
    "kubeadm join --config"*)
        mkdir -p "$ROOT/etc/kubernetes/manifests" && cd "$ROOT/etc/kubernetes"
        echo etcd >manifests/etcd.yaml && echo kubelet >kubelet.conf
        ;;
esac
[ "$name" = openssl ] && [ -e "$ROOT/ending" ] && exit 1
[ "$name $1" = "kubeadm certs" ] && rm -f "$ROOT/ending"
[ "$name" = crictl ] && echo "the id of a container"
[ "$name" = containerd ] && printf 'SystemdCgroup = false\nconfig_path = ""\n'
[ "$name" = gpg ] && printf 'pub:-:\nfpr:::::::::%s:\n' "${KEY:-DE15B14486CD377B9E876E1A234654DA9A296436}"
[ "$name $1" = "apt-get install" ] && touch "$ROOT/installed"
[ "$name $1" = "kubeadm version" ] && [ -e "$ROOT/installed" ] && echo v1.35.4
[ "$name" = dpkg-query ] && echo 1.7.24
[ "$name $1" = "dpkg --compare-versions" ] && exit 1
exit 0
"""
CONTROL_PLANE = {
    "gpg --show-keys": "packages",
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
    "curl -fsSL --create-dirs": "network",
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


@dataclass
class Machine:
    """A root folder and what has been played in it."""

    root: Path
    part: str

    def boot(self, *, fails: str = "", hangs: str = "", archive: str = "-", registry: str = "-") -> int | None:
        """The exit code of the start script; None when it hung and was ended."""
        sources = ["https://packages.example.test", archive, registry, "https://example.test"]
        return self.run("start.sh", "1.35", "1.35.4", "1.7", *sources, fails=fails, hangs=hangs)

    def run(self, script: str, *arguments: str, fails: str = "", hangs: str = "") -> int | None:
        environment = {"PATH": f"{self.root}/bin:/usr/bin:/bin", "ROOT": str(self.root), "FAILS": fails, "HANGS": hangs}
        command = ["bash", self.root / script, *arguments]
        process = subprocess.Popen(
            command, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True
        )
        ends_at, hung = time.monotonic() + 60, self.root / "hung"
        while process.poll() is None and not hung.exists():
            assert time.monotonic() < ends_at, "it neither ended nor hung"
            time.sleep(0.01)
        if not hung.exists():
            return process.returncode
        hung.unlink()
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        return None

    def lines(self, name: str) -> list[str]:
        path = self.root / name
        return path.read_text().splitlines() if path.exists() else []


@pytest.fixture
def machine(tmp_path: Path, request: pytest.FixtureRequest) -> Machine:
    part = str(request.param)
    for folder in (
        "bin",
        "etc/stockyard",
        "etc/kubernetes",
        "etc/apt/sources.list.d",
        "etc/systemd/system",
        "var/log",
        "var/lib/cloud/instance",
    ):
        (tmp_path / folder).mkdir(parents=True)
    ubuntu = tmp_path / "etc/apt/sources.list.d/ubuntu.sources"
    ubuntu.write_text("Types: deb\nURIs: http://archive.ubuntu.com/ubuntu/\n")
    manifests = tmp_path / "etc/stockyard/manifests"
    (manifests / "flannel-io/flannel/1/Documentation").mkdir(parents=True)
    (manifests / "sums").write_text(f"{'0' * 64}  flannel-io/flannel/1/Documentation/kube-flannel.yml\n")
    (manifests / "kustomization.yaml").touch()
    (tmp_path / "etc/stockyard/kubeadm.yaml").write_text("{}")
    for name in ("etc/hosts", "var/lib/cloud/instance/user-data.txt", "etc/systemd/system/stockyard-renew.timer"):
        (tmp_path / name).touch()
    for name in PLAYED:
        (tmp_path / "bin" / name).write_text(STUB)
        (tmp_path / "bin" / name).chmod(0o755)
    scripts = {"start.sh": cloud_config.start_script(part)}
    scripts |= {name: cloud_config.program(name) for name in ("renew.sh", "snapshot.sh")}
    for name, script in scripts.items():
        text = script.text.replace(cloud_config.FOLDER, str(tmp_path))
        (tmp_path / name).write_text(re.sub(r"(?<=[\s=\"(>])/(?=etc/|var/)", f"{tmp_path}/", text))
        (tmp_path / name).chmod(0o755)
    return Machine(tmp_path, part)


@pytest.mark.parametrize("machine", list(SCRIPTS), indirect=True)
def test_every_step_is_told_and_a_second_run_repeats_nothing_that_is_done(machine: Machine) -> None:
    assert machine.boot() == 0
    steps = list(dict.fromkeys(SCRIPTS[machine.part].values()))
    assert machine.lines("said") == [f"{step} begins" for step in steps]
    first = machine.lines("ran")
    assert machine.boot() == 0
    again = machine.lines("ran")[len(first) :]
    for done in ("kubeadm init", "kubeadm join", "kubeadm reset"):
        assert [line for line in again if line.startswith(done)] == []


@pytest.mark.parametrize(("machine", "command", "step"), CELLS, indirect=["machine"])
def test_a_step_that_fails_is_told_with_its_code_and_repeated(machine: Machine, command: str, step: str) -> None:
    assert machine.boot(fails=command) not in (0, None)
    lines = machine.lines("said")
    assert lines[-2] == f"{step} begins"
    assert re.fullmatch(rf"{step} [1-9]\d*", lines[-1])
    assert "the reason" in (machine.root / "var/log/stockyard-start.log").read_text()
    assert machine.boot() == 0


@pytest.mark.parametrize(("machine", "command", "step"), CELLS if SOAKING else FIRST_CELLS, indirect=["machine"])
def test_of_a_step_that_hangs_it_is_known_that_it_began(machine: Machine, command: str, step: str) -> None:
    assert machine.boot(hangs=command) is None
    assert machine.lines("said")[-1] == f"{step} begins"
    assert machine.boot() == 0


@pytest.mark.parametrize("machine", ["control_plane.sh"], indirect=True)
def test_a_control_plane_that_does_not_answer_at_once_is_not_reset(machine: Machine) -> None:
    assert machine.boot() == 0
    before = machine.lines("ran")
    slow = """count=$(cat "$ROOT/count" 2>/dev/null || echo 0)
if [ "$*" = "get --raw /readyz" ] && [ "$count" -lt 3 ]; then echo $((count + 1)) >"$ROOT/count"; exit 1; fi
"""
    (machine.root / "bin" / "kubectl").write_text(STUB.replace("case ", slow + "case ", 1))
    assert machine.boot() == 0
    assert [line for line in machine.lines("ran")[len(before) :] if line.startswith("kubeadm reset")] == []


@pytest.mark.parametrize("machine", ["control_plane.sh"], indirect=True)
def test_etcds_volume_is_formatted_once_and_mounted_before_the_kubelet(machine: Machine) -> None:
    assert machine.boot() == 0
    first = machine.lines("ran")
    assert len([line for line in first if line.startswith("mkfs.ext4")]) == 1
    assert machine.lines("etc/fstab") == [
        f"UUID=0fc63daf-8483-4772-8e79-3d69d8477de4 {machine.root}/var/lib/control-plane"
        " ext4 nofail,x-systemd.device-timeout=300 0 2"
    ]
    places = [next(i for i, line in enumerate(first) if line.startswith(c)) for c in ("mount ", "kubeadm init")]
    assert places == sorted(places)
    assert machine.boot() == 0
    assert len(machine.lines("etc/fstab")) == 1
    assert [line for line in machine.lines("ran")[len(first) :] if line.startswith(("mkfs", "mount "))] == []


@pytest.mark.parametrize("machine", ["control_plane.sh"], indirect=True)
@pytest.mark.parametrize("fails", ["", "kubeadm init"])
def test_another_machine_goes_on_with_the_volume_and_resets_nothing(machine: Machine, fails: str) -> None:
    """The keys come from the volume, and what kubeadm has against data that are there is not heard."""
    assert machine.boot() == 0
    (machine.root / "ran").unlink()
    shutil.move(machine.root / "etc/stockyard/manifests", machine.root / "manifests")
    for folder in ("etc/kubernetes", "etc/stockyard"):
        shutil.rmtree(machine.root / folder)
        (machine.root / folder).mkdir()
    shutil.move(machine.root / "manifests", machine.root / "etc/stockyard/manifests")
    (machine.root / "mounted").unlink()
    assert (machine.boot(fails=fails) == 0) is (fails == "")
    if fails:
        # A try that was cut off leaves a kubeconfig, and the API server does not answer.
        (machine.root / "etc/kubernetes/admin.conf").write_text("admin")
        assert machine.boot(fails="kubectl get --raw") != 0
    ran = machine.lines("ran")
    assert [line for line in ran if line.startswith(("mkfs", "kubeadm reset"))] == []
    inits = [line for line in ran if line.startswith("kubeadm init")]
    assert inits
    assert all("--ignore-preflight-errors=all" in line for line in inits)
    for name in ("kubernetes/pki/ca.key", "kubernetes/pki/etcd/ca.key", "stockyard/api/encryption.yaml"):
        assert (machine.root / "etc" / name).exists()


@pytest.mark.parametrize("machine", ["control_plane.sh"], indirect=True)
def test_the_last_four_snapshots_stay(machine: Machine) -> None:
    assert machine.boot() == 0
    folder = machine.root / "var/lib/control-plane/snapshots"
    for hour in range(6):
        (folder / f"20250101T0{hour}0000Z.db").touch()
    assert machine.run("snapshot.sh") == 0
    names = sorted(path.name for path in folder.iterdir())
    assert len(names) == 4
    assert "20250101T010000Z.db" < names[0] <= "20250101T050000Z.db"
    assert machine.run("snapshot.sh", fails="snapshot save") not in (0, None)
    assert sorted(path.name for path in folder.iterdir()) == names


@pytest.mark.parametrize("machine", ["control_plane.sh"], indirect=True)
def test_a_node_that_the_clouds_controller_has_not_seen_is_waited_for_and_told(machine: Machine) -> None:
    tainted = '[ "$1 $2" = "get nodes" ] && echo "a node.cloudprovider.kubernetes.io/uninitialized"\nexit 0\n'
    (machine.root / "bin" / "kubectl").write_text(STUB.removesuffix("exit 0\n") + tainted)
    assert machine.boot() not in (0, None)
    assert machine.lines("said")[-1] == "cloud 1"
    (machine.root / "bin" / "kubectl").write_text(STUB)
    assert machine.boot() == 0


@pytest.mark.parametrize("machine", list(SCRIPTS), indirect=True)
def test_another_key_of_the_packages_is_refused_and_told(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    gpg = machine.root / "bin" / "gpg"
    gpg.write_text("#!/bin/bash\nprintf 'pub:-:\\nfpr:::::::::%s:\\n' 0000000000000000000000000000000000000000\n")
    assert machine.boot() not in (0, None)
    assert "is not the one that was pinned" in (machine.root / "var/log/stockyard-start.log").read_text()
    assert [line for line in machine.lines("ran") if line.startswith("apt-get")] == []
    loop = "for k in DE15B14486CD377B9E876E1A234654DA9A296436 0"
    gpg.write_text(f"#!/bin/bash\n{loop}; do printf 'pub:\\nfpr:::::::::%s:\\n' $k; done\n")
    assert machine.boot() not in (0, None), "a second key beside it"
    gpg.write_text(STUB)
    assert machine.boot() == 0


@pytest.mark.parametrize("machine", ["node.sh", "control_plane.sh"], indirect=True)
def test_a_baked_image_of_the_release_installs_nothing(machine: Machine) -> None:
    (machine.root / "installed").touch()
    assert machine.boot() == 0
    assert [line for line in machine.lines("ran") if line.startswith(("apt", "gpg"))] == []
    config = (machine.root / "etc/containerd/config.toml").read_text()
    assert config == "SystemdCgroup = true\nconfig_path = '/etc/containerd/certs.d'\n"


@pytest.mark.parametrize("machine", ["node.sh"], indirect=True)
@pytest.mark.parametrize("has_driver", [True, False])
def test_containerd_runs_pods_by_the_runtime_of_an_image_with_a_gpus_driver(machine: Machine, has_driver: bool) -> None:
    if has_driver:
        tool = machine.root / "bin" / "nvidia-ctk"
        tool.write_text(STUB)
        tool.chmod(0o755)
    assert machine.boot() == 0
    steps = [line for line in machine.lines("ran") if line.startswith(("nvidia-ctk", "systemctl restart containerd"))]
    configured = ["nvidia-ctk runtime configure --runtime=containerd --set-as-default"] if has_driver else []
    assert steps == [*configured, "systemctl restart containerd"], "before containerd reads what it is told"


@pytest.mark.parametrize("machine", ["node.sh"], indirect=True)
def test_mirrors_stand_before_the_public_sources(machine: Machine) -> None:
    assert machine.boot(archive="http://mirror.example.test/ubuntu", registry="mirror.example.test:5000") == 0
    sources = machine.root / "etc/apt/sources.list.d"
    assert "URIs: http://mirror.example.test/ubuntu\n" in (sources / "ubuntu.sources").read_text()
    kubernetes = (sources / "kubernetes.list").read_text()
    assert "https://packages.example.test/core:/stable:/v1.35/deb/ /" in kubernetes
    for name in ("docker.io", "ghcr.io", "nvcr.io", "public.ecr.aws", "registry.k8s.io"):
        hosts = tomllib.loads((machine.root / f"etc/containerd/certs.d/{name}/hosts.toml").read_text())
        assert hosts["server"] == f"https://{name}"
        (host,) = hosts["host"].items()
        assert host == (
            f"https://mirror.example.test:5000/v2/{name}",
            {"capabilities": ["pull", "resolve"], "override_path": True},
        )


ENCRYPTED = {"python3 unwrap": "unwrap", "cryptsetup-bin": "packages", "python3 open": "volume"}
"""Steps of a control plane with an encrypted disk besides those of every one."""


@pytest.fixture
def encrypted(machine: Machine) -> Machine:
    """The machine is told of a Vault, and its user data holds the same."""
    for name in ("etc/stockyard/vault.json", "var/lib/cloud/instance/user-data.txt"):
        (machine.root / name).write_text('{"wrapped_secret_id": "hvs.wrapped"}')
    return machine


@pytest.mark.parametrize("machine", ["control_plane.sh"], indirect=True)
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
    places = [next(i for i, line in enumerate(ran) if command in line) for command in order]
    assert places == sorted(places)
    assert [line for line in ran if line.startswith("mkfs")] == [f"mkfs.ext4 -q {mapped}"]
    (entry,) = encrypted.lines("etc/fstab")
    options = entry.split()[3].split(",")
    assert {"nofail", "_netdev", "x-systemd.requires=stockyard-disk.service"} < set(options)
    assert "x-systemd.device-timeout=infinity" in options


@pytest.mark.parametrize("machine", ["control_plane.sh"], indirect=True)
def test_nothing_of_the_way_into_the_vault_is_kept_on_the_disk(encrypted: Machine) -> None:
    assert encrypted.boot() == 0
    keys = encrypted.root / "var/lib/control-plane/keys"
    assert (keys / "stockyard/client.json").exists()
    assert [path for path in keys.rglob("*") if path.is_file() and "hvs." in path.read_text()] == []
    assert not (keys / "user-data.txt").exists()


@pytest.mark.parametrize("machine", ["control_plane.sh"], indirect=True)
@pytest.mark.parametrize(("command", "step"), list(ENCRYPTED.items()))
def test_an_encrypted_disk_that_cannot_be_opened_is_told(encrypted: Machine, command: str, step: str) -> None:
    assert encrypted.boot(fails=command) not in (0, None)
    lines = encrypted.lines("said")
    assert lines[-2] == f"{step} begins"
    assert re.fullmatch(rf"{step} [1-9]\d*", lines[-1])
    assert [line for line in encrypted.lines("ran") if line.startswith(("mkfs", "mount ", "kubeadm init"))] == []
    assert encrypted.boot() == 0


@pytest.mark.parametrize("machine", ["control_plane.sh"], indirect=True)
def test_cryptsetup_that_is_there_is_not_installed(encrypted: Machine) -> None:
    shutil.copy(encrypted.root / "bin/lsblk", encrypted.root / "bin/cryptsetup")
    assert encrypted.boot() == 0
    assert [line for line in encrypted.lines("ran") if "cryptsetup-bin" in line] == []


RENEWED = ["kubeadm certs", *("crictl ps", "crictl stop") * 4, "python3 ready"]
RENEWING = ["kubeadm certs renew", "ps --quiet", "stop --timeout", "python3 ready"]


def renewal(machine: Machine) -> list[str]:
    """What has been run, without options, and forget it."""
    lines = [
        line.replace("--runtime-endpoint unix:///run/containerd/containerd.sock ", "") for line in machine.lines("ran")
    ]
    (machine.root / "ran").write_text("")
    return [" ".join(line.split()[:2]) for line in lines if not line.startswith("openssl")]


@pytest.mark.parametrize("machine", ["control_plane.sh"], indirect=True)
def test_certificates_are_renewed_and_reported_once_when_they_end_soon(machine: Machine) -> None:
    (machine.root / "etc/stockyard/client.json").touch()
    assert machine.run("renew.sh") == 0
    assert renewal(machine) == []
    (machine.root / "ending").touch()
    assert machine.run("renew.sh") == 0
    assert renewal(machine) == RENEWED
    assert machine.run("renew.sh") == 0
    assert renewal(machine) == []


@pytest.mark.parametrize("machine", ["control_plane.sh"], indirect=True)
@pytest.mark.parametrize("command", RENEWING)
def test_a_renewal_that_was_cut_off_is_done_again_the_next_day(machine: Machine, command: str) -> None:
    (machine.root / "etc/stockyard/client.json").touch()
    (machine.root / "ending").touch()
    assert machine.run("renew.sh", fails=command) not in (0, None)
    assert "python3 ready" not in renewal(machine)
    assert machine.run("renew.sh") == 0
    assert renewal(machine) == RENEWED
    assert machine.run("renew.sh") == 0
    assert renewal(machine) == []


# --- a further member of a control plane ------------------------------------------------------------------------------


def order(machine: Machine, *commands: str) -> list[int]:
    """At which places the commands have been run."""
    ran = machine.lines("ran")
    return [next(i for i, line in enumerate(ran) if line.startswith(command)) for command in commands]


@pytest.mark.parametrize("machine", ["control_plane_join.sh"], indirect=True)
def test_a_member_makes_room_in_etcd_before_it_joins_and_reports_after_it(machine: Machine) -> None:
    assert machine.boot() == 0
    places = order(
        machine,
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
    assert places == sorted(places)
    assert not (machine.root / "etc/stockyard/join.yaml").exists(), "the key of the authorities stands in it"
    assert [line for line in machine.lines("ran") if "upload-config" in line] == [], "they are of one release"


@pytest.mark.parametrize("machine", ["control_plane_join.sh"], indirect=True)
@pytest.mark.parametrize(("cluster", "raised"), [("1.34.4", True), ("1.35.4", False), ("1.36.0", False)])
def test_the_first_member_of_a_newer_release_brings_the_clusters_documents_to_it(
    machine: Machine, monkeypatch: pytest.MonkeyPatch, cluster: str, raised: bool
) -> None:
    kubectl = machine.root / "bin" / "kubectl"
    kubectl.write_text(STUB.replace("${CLUSTER:-1.35.4}", cluster))
    assert machine.boot() == 0
    uploads = [line for line in machine.lines("ran") if line.startswith("kubeadm init phase upload-config all")]
    assert len(uploads) == raised
    if raised:
        places = order(machine, "python3 make-room", "kubeadm init phase upload-config", "kubeadm join --config")
        assert places == sorted(places)
        assert machine.lines("etc/stockyard/cluster.yaml")[0] == "kubernetesVersion: v1.35.4"


@pytest.mark.parametrize("machine", ["control_plane_join.sh"], indirect=True)
def test_a_try_that_was_cut_off_leaves_etcd_before_the_next_one(machine: Machine) -> None:
    assert machine.boot(fails="kubeadm join --config") not in (0, None)
    (machine.root / "ran").unlink()
    assert machine.boot() == 0
    places = order(machine, "python3 ask", "python3 leave", "kubeadm reset", "python3 make-room")
    assert places == sorted(places)


@pytest.mark.parametrize("machine", ["control_plane_join.sh"], indirect=True)
def test_a_voter_of_etcd_is_never_begun_anew(machine: Machine) -> None:
    """Only the node was missing when the machine was switched off: the kubelet gets another token."""
    (machine.root / "etc/kubernetes/manifests").mkdir()
    (machine.root / "etc/kubernetes/manifests/etcd.yaml").write_text("etcd")
    registered = '[ "$1" = join ] && echo kubelet >"$ROOT/etc/kubernetes/kubelet.conf"\nexit 0\n'
    (machine.root / "bin" / "kubeadm").write_text(STUB.removesuffix("exit 0\n") + registered)
    assert machine.boot() == 0
    joins = [line.split()[1:] for line in machine.lines("ran") if line.startswith("kubeadm")]
    phases = [arguments[:3] for arguments in joins if arguments[0] != "version"]
    assert phases == [["join", "phase", "kubelet-start"]]


@pytest.mark.parametrize("machine", ["control_plane_join.sh"], indirect=True)
def test_a_member_renews_its_certificates_and_reports_its_kubeconfig(machine: Machine) -> None:
    (machine.root / "ending").touch()
    assert machine.run("renew.sh") == 0
    assert renewal(machine) == [*RENEWED[:-1], "python3 renewal"]
