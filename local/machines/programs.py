"""Work of an instance once it is up: the programs that its user data carries, and around them what is only played.

The programs run as processes of their own. Installing packages is played; what kubeadm and kubelets do is the
cluster's part, which is simulated or real.
"""

from __future__ import annotations

import base64
import gzip
import io
import json
import os
import re
import subprocess
import sys
import tarfile
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Protocol

import yaml
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey

from local.authority import TRUST
from local.children import start
from local.kubernetes.cluster import Cluster, InitFailed, JoinFailed, Kubelet
from local.kubernetes.clusters import Clusters
from stockyard.domain.values import times
from stockyard.machines.manifests import FOLDER

MACHINE_CONFIG, NODE_CONFIG = "/etc/stockyard/machine.json", "/etc/stockyard/node.json"
_UNPACKED = re.compile(r'--directory "\$root"\n')
"""Unpacking below another root than that of the machine that runs the script: an installer does."""
WATCH_SECONDS = 0.5
"""How often a machine asks whether it is taken back. A real one does every five seconds."""
VAULT_CONFIG, DISK = "/etc/stockyard/vault.json", "stockyard_disk.py"
PLAYED = {
    "cryptsetup": f"""#!{sys.executable}
import hashlib, json, os, sys
disk = os.path.join(os.environ["STOCKYARD_STATE"], "disk")
command = sys.argv[1]
if command == "luksFormat":
    with open(disk, "w") as file:
        file.write(hashlib.sha256(sys.stdin.buffer.read()).hexdigest())
elif command == "luksDump":
    print(json.dumps({{"keyslots": {{"0": {{}}}}}}))
elif command == "luksUUID":
    print("3f1c7a52-0000-4000-8000-000000000000")
elif command == "open":
    with open(disk) as file:
        if file.read() != hashlib.sha256(sys.stdin.buffer.read()).hexdigest():
            sys.exit("No key available with this passphrase.")
    open(os.environ["STOCKYARD_MAPPED"], "w").close()
""",
    "wipefs": f"""#!{sys.executable}
import os
if os.path.exists(os.path.join(os.environ["STOCKYARD_STATE"], "disk")):
    print("crypto_LUKS")
""",
}
"""What stands for programs that a laptop may lack or must not run. A disk is a file with the digest of its key."""
OVERLAY = "/usr/local/lib/stockyard/overlay.sh"
OVERLAY_ANNOTATION = "stockyard.dev/overlay"
_SYSTEMCTL = f"""#!{sys.executable}
import json, os
with open(os.path.join(os.environ["STOCKYARD_STATE"], "overlay.json")) as file:
    place = json.load(file)
status = {{"address": place["address"], "peers": dict.fromkeys((peer["address"] for peer in place["peers"]), "hub")}}
with open(os.environ["STOCKYARD_OVERLAY_STATUS"], "w") as file:
    json.dump(status, file)
"""
"""Stands for the unit of an overlay, whose tunnels are only played here: each hub is reached at once."""
MACHINE, NODE, NEAR = "stockyard_machine.py", "stockyard_node.py", "stockyard_near.py"


class Powered(Protocol):
    """Whether a machine is on."""

    @property
    def on(self) -> bool: ...

    def wait(self, seconds: float) -> None:
        """Do nothing for so long, or until the machine is switched."""


class Program(Protocol):
    """Program that makes a machine what it is to be."""

    def begin(self) -> bool:
        """Do the work of the start script; False when that failed and is to be tried again."""

    def switched(self, *, on: bool) -> None:
        """The machine was switched on or off, whatever it has done before."""

    def end(self) -> None:
        """The machine is gone for good."""


@dataclass
class MachineSandbox:
    """A machine's files and processes. ``metadata`` is the URL of its own, empty for none; ``log`` takes what it
    prints. ``kubelet`` is what it tells of itself, asked for when it is on."""

    id: str
    power: Powered
    kubelet: Callable[[], Kubelet]
    folder: Path
    metadata: str
    log: Path
    files: Mapping[str, str] = field(repr=False)
    store: str = ""
    """The URL of S3."""

    def unpack(self, config: str, *programs: str) -> None:
        """Write the programs, into one folder, and their configuration."""
        self.folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        (self.folder / Path(config).name).write_text(self.files[config], encoding="utf-8")
        for name in programs:
            text = next(text for path, text in self.files.items() if path.endswith(f"/{name}"))
            (self.folder / name).write_text(text, encoding="utf-8")
        if OVERLAY in self.files:
            self._prepare_overlay()

    def _prepare_overlay(self) -> None:
        """Leave behind, once, what the script of a machine with an overlay does."""
        request = self.folder / "overlay.request"
        if request.exists():
            return
        self.play("systemctl", _SYSTEMCTL)
        private = X25519PrivateKey.generate()
        (self.folder / "overlay.key").write_text(base64.b64encode(private.private_bytes_raw()).decode() + "\n")
        key = base64.b64encode(private.public_key().public_bytes_raw()).decode()
        local = {"overlay_local": self.kubelet().address} if self.kubelet().address else {}
        request.write_text(json.dumps({"overlay_key": key, **local}), encoding="utf-8")

    def kubelet_in_overlay(self) -> Kubelet:
        """The kubelet with what the program of an overlay says on its Node: each hub is reached, and nobody is down."""
        path = self.folder / "overlay.json"
        if not path.exists():
            return self.kubelet()
        configuration = json.loads(path.read_text(encoding="utf-8"))
        hubs, moment = [peer["address"] for peer in configuration["peers"]], times.to_text(datetime.now(UTC))
        report: dict[str, Any] = {"direct": len(hubs), "handshake": moment}
        if configuration["hub"]:
            report |= {"down": {}}
        else:
            report |= {"relayed": [], "count": 0, "home": hubs[0], "since": moment}
        return replace(self.kubelet(), annotations={OVERLAY_ANNOTATION: json.dumps(report)})

    def play(self, name: str, text: str) -> None:
        """Let a program of the machine be played by this one."""
        path = self.folder / "bin" / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text, encoding="utf-8")
        path.chmod(0o755)

    def release(self, config: str) -> str:
        """The release of Kubernetes that a control plane's machine is to have."""
        return str(json.loads(self.files[config])["kubernetes_version"])

    def run(self, config: str, program: str, *arguments: str) -> bool:
        """Whether a program succeeded; it is ended early when the machine is, or the local cloud is."""
        environment = {
            "PATH": os.pathsep.join((str(self.folder / "bin"), os.environ.get("PATH", os.defpath))),
            **{name: os.environ[name] for name in TRUST if name in os.environ},
            "STOCKYARD_CONFIG": str(self.folder / Path(config).name),
            "STOCKYARD_STATE": str(self.folder),
            "STOCKYARD_METADATA": self.metadata,
            "STOCKYARD_KUBERNETES": str(self.folder / "kubernetes"),
            "STOCKYARD_HOSTS": str(self.folder / "hosts"),
            "STOCKYARD_VAULT": str(self.folder / Path(VAULT_CONFIG).name),
            "STOCKYARD_MAPPED": str(self.folder / "mapped"),
            "STOCKYARD_WATCH_SECONDS": str(WATCH_SECONDS),
            "STOCKYARD_S3": self.store,
            "STOCKYARD_DATA": str(self.folder / "etcd"),
            "STOCKYARD_ADDRESS": self.kubelet().address,
            "STOCKYARD_OVERLAY_STATUS": str(self.folder / "overlay-status.json"),
        }
        with self.log.open("ab", buffering=0) as log:
            command = [sys.executable, "-I", str(self.folder / program), *arguments]
            process = start(command, env=environment, stdout=log, stderr=log)
            while True:
                try:
                    return process.wait(0.05) == 0
                except subprocess.TimeoutExpired:
                    if not self.power.on:
                        process.kill()

    def say(self, text: str) -> None:
        """One line to the log."""
        with self.log.open("a", encoding="utf-8") as log:
            log.write(f"{self.id}: {text}\n")


class ControlPlane:
    """Proves itself, initializes the cluster, installs the agent, reports."""

    def __init__(self, sandbox: MachineSandbox, clusters: Clusters) -> None:
        self._sandbox, self._clusters = sandbox, clusters
        self._cluster: Cluster | None = None

    @property
    def cluster(self) -> Cluster | None:
        """The cluster that it has initialized; None before that."""
        return self._cluster

    def begin(self) -> bool:
        """See ``Program``."""
        sandbox = self._sandbox
        sandbox.unpack(MACHINE_CONFIG, MACHINE)
        if VAULT_CONFIG in sandbox.files and not self._open_disk():
            return False
        if not self._run("bootstrap"):
            return False
        try:
            cluster = self._started()
            if not self._run("agent"):
                return False
            manifest = sandbox.folder / "agent.json"
            cluster.apply(json.loads(manifest.read_text(encoding="utf-8"))["items"])
            manifest.unlink()
        except InitFailed as reason:
            sandbox.say(str(reason))
            self._tell("init")
            return False
        return self._run("ready")

    @property
    def _name(self) -> str:
        return "ip-" + self._sandbox.kubelet().address.replace(".", "-")

    def switched(self, *, on: bool) -> None:
        """See ``Program``."""
        if self._cluster is None:
            return
        try:
            self._clusters.switch(self._cluster, self._name, on=on)
        except InitFailed as reason:
            self._sandbox.say(str(reason))

    def end(self) -> None:
        """See ``Program``."""
        if self._cluster is not None:
            self._clusters.switch(self._cluster, self._name, on=False)
            self._clusters.remove_dead(self._cluster)

    def _run(self, step: str) -> bool:
        sandbox = self._sandbox
        done = sandbox.run(MACHINE_CONFIG, MACHINE, step)
        if not done:
            self._tell(step)
        return done

    def _open_disk(self) -> bool:
        """The data disk is encrypted: its key comes from the Vault, and cryptsetup is only played."""
        sandbox = self._sandbox
        sandbox.unpack(VAULT_CONFIG, DISK)
        for name, text in PLAYED.items():
            sandbox.play(name, text)
        for step, arguments in (("unwrap", ("unwrap",)), ("volume", ("open", str(sandbox.folder / "disk")))):
            if not sandbox.run(VAULT_CONFIG, DISK, *arguments):
                self._tell(step)
                return False
        return True

    def _tell(self, step: str) -> None:
        """Report that a step of the start script has failed."""
        if self._sandbox.power.on:
            self._sandbox.run(MACHINE_CONFIG, MACHINE, "say", step, "1", str(self._sandbox.log))

    def _started(self) -> Cluster:
        """The cluster, initialized once, that runs and has its first node and administrator. ``InitFailed``."""
        sandbox = self._sandbox
        if self._cluster is None:
            self._cluster = self._clusters.initialized(sandbox.folder, self._name)
        self._clusters.membership(self._cluster).begin(self._name, sandbox.release(MACHINE_CONFIG))
        self._cluster.start()
        takes_pods = "workloads" in json.loads(sandbox.files[MACHINE_CONFIG])
        self._cluster.register(self._name, sandbox.kubelet_in_overlay(), takes_pods=takes_pods)
        administrator = sandbox.folder / "administrator.json"
        if administrator.exists():
            self._cluster.apply([json.loads(administrator.read_text(encoding="utf-8"))])
        self._cluster.install({path: text for path, text in sandbox.files.items() if path.startswith(f"{FOLDER}/")})
        return self._cluster


class Worker:
    """Asks how to join its cluster, and joins it."""

    def __init__(self, sandbox: MachineSandbox, clusters: Clusters) -> None:
        self._sandbox, self._clusters = sandbox, clusters
        self._joined: tuple[Cluster, str] | None = None
        self._watcher = threading.Thread()

    def begin(self) -> bool:
        """See ``Program``."""
        sandbox = self._sandbox
        sandbox.unpack(NODE_CONFIG, MACHINE, NODE, NEAR)
        (sandbox.folder / "hosts").touch()
        if not self._watcher.is_alive():
            self._watcher = threading.Thread(target=sandbox.run, args=(NODE_CONFIG, NODE, "watch"), daemon=True)
            self._watcher.start()
        if not sandbox.run(NODE_CONFIG, NODE):
            if sandbox.power.on:
                sandbox.run(NODE_CONFIG, NODE, "say", "join", "1", str(sandbox.log))
            return False
        path = sandbox.folder / "join.yaml"
        configuration = yaml.safe_load(path.read_text(encoding="utf-8"))
        endpoint = configuration["discovery"]["bootstrapToken"]["apiServerEndpoint"]
        try:
            cluster = self._clusters.at(endpoint)
            self._joined = cluster, cluster.join(configuration, sandbox.kubelet_in_overlay(), lambda: sandbox.power.on)
        except JoinFailed as reason:
            sandbox.say(str(reason))
            return False
        path.unlink()
        return True

    def switched(self, *, on: bool) -> None:
        """See ``Program``."""
        if self._joined is not None:
            cluster, name = self._joined
            cluster.power(name, on=on)

    def end(self) -> None:
        """See ``Program``. The Node stays, without a kubelet: only the cluster's owner deletes it."""
        self.switched(on=False)


GZIP = b"\x1f\x8b"
"""How compressed data begins."""


def cloud_config(user_data: str | bytes) -> str:
    """The text of user data, as cloud-init reads it: in base 64 or not, compressed or not."""
    raw = user_data if isinstance(user_data, bytes) else str(user_data).encode()
    if not raw.startswith((GZIP, b"#")):
        raw = base64.b64decode(raw)
    return (gzip.decompress(raw) if raw.startswith(GZIP) else raw).decode(errors="replace")


def script_files(script: str) -> dict[str, str]:
    """Path -> text of the files that a script of a first boot unpacks; none of a script that is not ours."""
    packed = _UNPACKED.sub("--directory /\n", script).partition("--directory /\n")[2].partition("\nEND_OF_FILES\n")[0]
    if not packed:
        return {}
    with tarfile.open(fileobj=io.BytesIO(base64.b64decode(packed)), mode="r:gz") as archive:
        members = {member.name: archive.extractfile(member) for member in archive}
        return {f"/{name}": file.read().decode() for name, file in members.items() if file is not None}


def cloud_init_files(user_data: str | bytes) -> dict[str, str]:
    """Path -> text of the files that a cloud-config document writes; user data may be in base 64 and compressed."""
    document = yaml.safe_load(cloud_config(user_data))
    return {item["path"]: item.get("content", "") for item in document.get("write_files", ())}
