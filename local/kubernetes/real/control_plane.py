"""One real control plane of a cluster, from the configuration that a control plane's machine has written.

kubeadm makes certificates, kubeconfigs and the flags, as it does on the machine; etcd, the API server, the controllers,
the scheduler and kwok, which plays the kubelets, run as processes instead of as pods. Each control plane has a loopback
address of its own, so that all of them can use the usual ports.
"""

from __future__ import annotations

import json
import os
import random
import shutil
import socket
import ssl
import subprocess
import threading
import time
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import yaml

from local.children import start
from local.kubernetes.real.build import BINARIES, STAGES, release
from stockyard.machines import on_machine

READY_SECONDS = 120.0
PORT = 6443
ADVERTISED = "192.0.2.1"
"""An address for documentation: kubeadm takes none of the loopback, and nothing ever connects to it."""
ON_MACHINE = "/etc/stockyard/api"
"""Where the machine's configuration says that the API server's own files are."""
KWOK = "local.stockyard.dev/kubelet"
"""Label of the nodes whose kubelet runs: kwok plays it."""
SETTLED = "settled"
"""The file that says that a control plane has its own records."""
LEASE_SECONDS = 40
"""How long a node's lease holds, as a kubelet asks for it."""

_RBAC = "rbac.authorization.k8s.io"
_ADMINISTRATORS = {
    "apiVersion": f"{_RBAC}/v1",
    "kind": "ClusterRoleBinding",
    "metadata": {"name": "kubeadm:cluster-admins"},
    "roleRef": {"apiGroup": _RBAC, "kind": "ClusterRole", "name": "cluster-admin"},
    "subjects": [{"apiGroup": _RBAC, "kind": "Group", "name": "kubeadm:cluster-admins"}],
}
"""The rights of the kubeconfig that a machine reports, as ``kubeadm init`` gives them."""


class StartFailed(Exception):
    """A control plane cannot be made or started; the text says why."""


def own_address() -> str:
    """A loopback address on whose port for Kubernetes nobody listens."""
    while True:
        address = "127." + ".".join(str(random.randint(1, 254)) for _ in range(3))
        with socket.socket() as probe:
            if probe.connect_ex((address, PORT)):
                return address


class ControlPlane:
    """``documents`` are kubeadm's, as ``stockyard_machine.kubeadm`` makes them; ``files`` is the folder of what the
    machine wrote for the API server. ``environment`` is added to that of its programs, ``api_flags`` to the flags of
    its API server. What ``kubeadm init`` leaves in
    ``/etc/kubernetes`` is in ``folder``."""

    def __init__(
        self,
        folder: Path,
        documents: list[dict[str, Any]],
        files: Path,
        environment: Mapping[str, str] | None = None,
        *,
        address: str = "",
        node: str = "control-plane",
        api_flags: Mapping[str, str] | None = None,
    ) -> None:
        self.folder, self.files, self.node = folder, files, node
        self.address = address or own_address()
        self._more_api_flags = dict(api_flags or {})
        self._environment = {"PATH": os.environ.get("PATH", os.defpath), "HOME": str(folder), **(environment or {})}
        self._processes: dict[str, subprocess.Popen[bytes]] = {}
        self._lock = threading.Lock()
        self._stopped = threading.Event()
        flags = [flag for each in documents for flag in each.get("nodeRegistration", {}).get("kubeletExtraArgs", ())]
        self.external = {"name": "cloud-provider", "value": "external"} in flags
        self.configuration = folder / "kubeadm.yaml"
        self._documents = documents
        self.release = self._configure()

    @property
    def kubeconfig(self) -> Path:
        """The one of the group ``system:masters``, which no binding has to admit."""
        return self.folder / "super-admin.conf"

    @property
    def url(self) -> str:
        """URL on which the API server listens."""
        return f"https://{self.address}:{PORT}"

    @property
    def processes(self) -> list[int]:
        """The process ids of its programs."""
        return [process.pid for process in list(self._processes.values()) if process.poll() is None]

    def kubeadm(
        self, *arguments: str, check: bool = True, dry_run_folder: Path | None = None, release: str = ""
    ) -> subprocess.CompletedProcess[str]:
        """Run kubeadm, of another ``release`` where one is named; what it writes for pods, or in a dry run, goes into
        the folder too, if no other is named. Raises ``StartFailed``."""
        environment = {**self._environment, "KUBEADM_INIT_DRYRUN_DIR": str(dry_run_folder or self.folder / "manifests")}
        return _run([str(self._program("kubeadm", release)), *arguments], environment, check)

    def kubectl(self, *arguments: str, token: str = "", check: bool = True) -> subprocess.CompletedProcess[str]:
        """Run kubectl as the administrator, or by the cluster's authority alone with a token. Raises
        ``StartFailed``."""
        caller = ["--kubeconfig", str(self.kubeconfig)]
        if token:
            authority = ["--certificate-authority", str(self.folder / "pki/ca.crt")]
            caller = ["--server", self.url, *authority, "--token", token]
        command = [str(program("kubectl")), "--cache-dir", str(self.folder / "cache"), *caller, *arguments]
        environment = {"PATH": os.defpath, "HOME": str(self.folder)}
        return _run(command, environment, check)

    def initialize(self) -> None:
        """Certificates, kubeconfigs and flags, as ``kubeadm init`` makes them. Raises ``StartFailed``."""
        (self.folder / "manifests").mkdir(exist_ok=True)
        config = ["--config", str(self.configuration)]
        self.kubeadm("init", "phase", "certs", "all", *config)
        self.kubeadm("init", "phase", "kubeconfig", "all", *config, "--kubeconfig-dir", str(self.folder))
        for path in self.folder.glob("*.conf"):
            path.write_text(path.read_text().replace(ADVERTISED, self.address))
        self._write_flags()

    def upgrade(self, release: str) -> None:
        """Go on with the programs of another release. Raises ``StartFailed``."""
        self.stop()
        self.release = self._configure(release)
        self._write_flags()
        (self.folder / SETTLED).unlink(missing_ok=True)
        self.start()

    def save(self, snapshot: Path) -> int:
        """Have etcd write a snapshot there; its revision. Raises ``StartFailed``."""
        etcd = f"http://{self.address}:2379"
        client, reader = (str(self._program(name)) for name in ("etcdctl", "etcdutl"))
        _run([client, "--endpoints", etcd, "snapshot", "save", str(snapshot)], self._environment, True)
        status = [reader, "snapshot", "status", "--write-out", "json", str(snapshot)]
        return int(json.loads(_run(status, self._environment, True).stdout)["revision"])

    def restore(self, snapshot: Path) -> None:
        """Begin with the data of a snapshot, as a machine does it. Raises ``StartFailed``."""
        data = self.folder / "etcd"
        shutil.rmtree(data, ignore_errors=True)
        peer = f"http://{self.address}:2380"
        member = ["--name", "default", "--initial-cluster", f"default={peer}", "--initial-advertise-peer-urls", peer]
        command = [str(self._program("etcdutl")), "snapshot", "restore", str(snapshot), "--data-dir", str(data)]
        _run([*command, *member, "--bump-revision", "1000000000", "--mark-compacted"], self._environment, True)

    def start(self) -> None:
        """Start the programs, with what they have stored before. Raises ``StartFailed``."""
        with self._lock:
            self._stopped.clear()
            try:
                self._start("etcd", self._etcd_flags())
                self._start("kube-apiserver", self._api_flags())
                self._until_ready()
                self._start("kube-controller-manager", self._leader_flags("kube-controller-manager"))
                self._start("kube-scheduler", self._leader_flags("kube-scheduler"))
                self._start("kwok", self._kwok_flags())
                self._settle()
            except BaseException:
                self._end()
                raise

    def stop(self) -> None:
        """End the programs, as a machine that is switched off does. A second call does nothing."""
        self._stopped.set()
        with self._lock:
            self._end()

    @contextmanager
    def running(self) -> Iterator[ControlPlane]:
        """All of it; the programs end with the context."""
        self.initialize()
        self.start()
        try:
            yield self
        finally:
            self.stop()

    def _program(self, name: str, release: str = "") -> Path:
        """A program of this control plane's release, or of another one; kwok is there once."""
        own = BINARIES / (release or self.release) / name
        return own if own.exists() or release else program(name)

    def _configure(self, release: str = "") -> str:
        """Write kubeadm's configuration, of another release where one is named; the release that it is of."""
        documents = list(self._here(self._documents))
        (cluster,) = (document for document in documents if document["kind"] == "ClusterConfiguration")
        if release:
            cluster["kubernetesVersion"] = f"v{release}"
        self.configuration.write_text("\n---\n".join(json.dumps(document) for document in documents))
        return str(cluster["kubernetesVersion"]).removeprefix("v")

    def _write_flags(self) -> None:
        self.kubeadm("init", "phase", "control-plane", "all", "--config", str(self.configuration), "--dry-run")

    def _end(self) -> None:
        for process in reversed(self._processes.values()):
            # The API server would wait a minute for its callers.
            process.kill()
            process.wait()
        self._processes.clear()

    def _settle(self) -> None:
        """Do with the first API server as kubeadm does: the rights of machines that join, and its own records."""
        record = self.folder / SETTLED
        if not record.exists():
            config = ["--config", str(self.configuration), "--kubeconfig", str(self.kubeconfig)]
            self.kubeadm("init", "phase", "upload-config", "kubeadm", *config)
            self.kubeadm("init", "phase", "bootstrap-token", *config, "--skip-token-print")
            self.kubectl(*_without_approval())
            administrators = self.folder / "administrators.json"
            administrators.write_text(json.dumps(_ADMINISTRATORS))
            self.kubectl("apply", "--server-side", "--force-conflicts", "-f", str(administrators))
            record.touch()

    def _flags(self, name: str) -> list[str]:
        """A program's flags as kubeadm writes them, with the files of this folder."""
        (manifest,) = (self.folder / "manifests").rglob(f"{name}.yaml")
        command: list[str] = yaml.safe_load(manifest.read_text())["spec"]["containers"][0]["command"][1:]
        folders = {ON_MACHINE: str(self.files), "/etc/kubernetes": str(self.folder)}
        for there, here in folders.items():
            command = [flag.replace(there, here) for flag in command]
        return command

    def _leader_flags(self, name: str) -> list[str]:
        own = {"--leader-elect": "false", "--bind-address": self.address}
        return _with(self._flags(name), own)

    def _api_flags(self) -> list[str]:
        """But for where etcd is, and the log."""
        own = {
            "--etcd-servers": f"http://{self.address}:2379",
            "--bind-address": self.address,
            "--audit-log-path": str(self.folder / "audit.log"),
            **self._more_api_flags,
        }
        return _with([flag for flag in self._flags("kube-apiserver") if flag.partition("=")[0] not in _OF_ETCD], own)

    def _kwok_flags(self) -> list[str]:
        return [
            f"--kubeconfig={self.kubeconfig}",
            f"--config={program(STAGES)}",
            f"--manage-nodes-with-label-selector={KWOK}=on",
            f"--node-lease-duration-seconds={LEASE_SECONDS}",
        ]

    def _here(self, documents: list[dict[str, Any]]) -> Iterator[dict[str, Any]]:
        """kubeadm's documents with this machine's address, name and folder."""
        for document in documents:
            if document["kind"] == "InitConfiguration":
                point = {"advertiseAddress": ADVERTISED, "bindPort": PORT}
                registration = {**document.get("nodeRegistration", {}), "name": self.node}
                yield {**document, "localAPIEndpoint": point, "nodeRegistration": registration}
            elif document["kind"] == "ClusterConfiguration":
                names = dict.fromkeys([*document["apiServer"]["certSANs"], self.address])
                yield {
                    **document,
                    "certificatesDir": str(self.folder / "pki"),
                    "controlPlaneEndpoint": f"{self.address}:{PORT}",
                    "apiServer": {**document["apiServer"], "certSANs": list(names)},
                }
            else:
                yield document

    def _etcd_flags(self) -> list[str]:
        client, peer = (f"http://{self.address}:{port}" for port in (2379, 2380))
        return [
            f"--data-dir={self.folder / 'etcd'}",
            f"--listen-client-urls={client}",
            f"--advertise-client-urls={client}",
            f"--listen-peer-urls={peer}",
            f"--initial-advertise-peer-urls={peer}",
            f"--initial-cluster=default={peer}",
            "--unsafe-no-fsync",
        ]

    def _start(self, name: str, flags: list[str]) -> None:
        with (self.folder / f"{name}.log").open("ab") as log:
            command = [str(self._program(name)), *flags]
            self._processes[name] = start(command, env=self._environment, cwd=self.folder, stdout=log, stderr=log)

    def _until_ready(self) -> None:
        context = ssl.create_default_context(cafile=str(self.folder / "pki/ca.crt"))
        ends_at = time.monotonic() + READY_SECONDS
        while time.monotonic() < ends_at:
            for name, process in self._processes.items():
                if (code := process.poll()) is not None:
                    raise StartFailed(f"{name} ended with {code}: {self._last_words(name)}")
            try:
                with urllib.request.urlopen(f"{self.url}/readyz", timeout=5, context=context):  # noqa: S310
                    return
            except OSError:
                if self._stopped.wait(0.2):
                    raise StartFailed("it was stopped while it started") from None
        raise StartFailed(f"the API server was not ready within {READY_SECONDS:.0f} s")

    def _last_words(self, name: str) -> str:
        return (self.folder / f"{name}.log").read_text(errors="replace")[-1000:]


def _with(flags: list[str], own: Mapping[str, str]) -> list[str]:
    """Flags with some in place of those of the same name."""
    usual = (flag for flag in flags if flag.partition("=")[0] not in own)
    return [*usual, *(f"{name}={value}" for name, value in own.items())]


def _run(command: list[str], environment: Mapping[str, str], check: bool) -> subprocess.CompletedProcess[str]:
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    if check and done.returncode:
        raise StartFailed(f"{' '.join(command[:4])} ended with {done.returncode}: {done.stderr[-2000:]}")
    return done


_OF_ETCD = ("--etcd-cafile", "--etcd-certfile", "--etcd-keyfile")


def _without_approval() -> list[str]:
    """The arguments with which a machine's own script takes kubeadm's approval of first certificates away."""
    script = (Path(on_machine.__file__).parent / "control_plane.sh").read_text()
    (line,) = (line for line in script.splitlines() if "node-autoapprove-bootstrap" in line)
    return line.partition("kubectl ")[2].split()


def program(name: str) -> Path:
    """One of the programs and files that ``make kubernetes`` has built."""
    return BINARIES / release() / name
