"""One real control plane of a cluster, from the configuration that a control plane's machine has written.

kubeadm makes certificates, kubeconfigs and the flags, as it does on the machine; etcd and the API server run as
processes on free ports of the loopback address instead of as pods.
"""

from __future__ import annotations

import json
import os
import socket
import ssl
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import yaml

from local.children import start
from local.kubernetes.real.build import BINARIES, release

READY_SECONDS = 90.0
ADVERTISED = "192.0.2.1"
"""An address for documentation: kubeadm takes none of the loopback, and nothing ever connects to it."""
ON_MACHINE = "/etc/stockyard/api"
"""Where the machine's configuration says that the API server's own files are."""


def free_port() -> int:
    """A port of the loopback address that nobody has just now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
    return port


class ControlPlane:
    """``documents`` are kubeadm's, as ``stockyard_machine.kubeadm`` makes them; ``files`` is the folder of what the
    machine wrote for the API server. ``environment`` is added to that of the API server."""

    def __init__(
        self,
        folder: Path,
        documents: list[dict[str, Any]],
        files: Path,
        environment: Mapping[str, str] | None = None,
    ) -> None:
        self.folder, self.files = folder, files
        self.port, self._etcd_port, self._peer_port = free_port(), free_port(), free_port()
        self._environment = {"PATH": os.environ.get("PATH", os.defpath), "HOME": str(folder), **(environment or {})}
        self._processes: list[subprocess.Popen[bytes]] = []
        self.configuration = folder / "kubeadm.yaml"
        self.configuration.write_text("\n---\n".join(json.dumps(document) for document in self._here(documents)))

    @property
    def kubeconfig(self) -> Path:
        """The one of the group ``system:masters``, which no binding has to admit."""
        return self.folder / "super-admin.conf"

    def kubeadm(self, *arguments: str, check: bool = True) -> subprocess.CompletedProcess[str]:
        """Run kubeadm; what it writes for pods goes into the folder too."""
        environment = {**self._environment, "KUBEADM_INIT_DRYRUN_DIR": str(self.folder / "manifests")}
        command = [str(program("kubeadm")), *arguments]
        return _run(command, environment, check)

    def kubectl(self, *arguments: str, token: str = "", check: bool = True) -> subprocess.CompletedProcess[str]:
        """Run kubectl as the administrator, or by the cluster's authority alone with a token."""
        caller = ["--kubeconfig", str(self.kubeconfig)]
        if token:
            caller = [
                "--server",
                self.url,
                "--certificate-authority",
                str(self.folder / "pki/ca.crt"),
                "--token",
                token,
            ]
        command = [str(program("kubectl")), "--cache-dir", str(self.folder / "cache"), *caller, *arguments]
        environment = {"PATH": os.defpath, "HOME": str(self.folder)}
        return _run(command, environment, check)

    @property
    def url(self) -> str:
        """Where the API server listens."""
        return f"https://127.0.0.1:{self.port}"

    @contextmanager
    def running(self) -> Iterator[ControlPlane]:
        """Certificates, kubeconfigs, etcd, the API server and the controllers; they end with the context."""
        (self.folder / "manifests").mkdir(exist_ok=True)
        config = ["--config", str(self.configuration)]
        self.kubeadm("init", "phase", "certs", "all", *config)
        for name in ("super-admin", "controller-manager"):
            self.kubeadm("init", "phase", "kubeconfig", name, *config, "--kubeconfig-dir", str(self.folder))
            path = self.folder / f"{name}.conf"
            path.write_text(path.read_text().replace(ADVERTISED, "127.0.0.1"))
        for name in ("apiserver", "controller-manager"):
            self.kubeadm("init", "phase", "control-plane", name, *config, "--dry-run")
        try:
            self._start("etcd", [str(program("etcd")), *self._etcd_flags()])
            self._start("kube-apiserver", [str(program("kube-apiserver")), *self._api_flags()])
            self._until_ready()
            self._start("kube-controller-manager", [str(program("kube-controller-manager")), *self._controller_flags()])
            # The rights of machines that join, and of their first certificates.
            self.kubeadm("init", "phase", "bootstrap-token", *config, "--kubeconfig", str(self.kubeconfig))
            yield self
        finally:
            for process in reversed(self._processes):
                # The API server would wait a minute for its callers; there are none, and nothing is kept.
                process.kill()
                process.wait()
            self._processes.clear()

    def _flags(self, name: str) -> list[str]:
        """A program's flags as kubeadm writes them, with the files of this folder."""
        (manifest,) = (self.folder / "manifests").rglob(f"{name}.yaml")
        command: list[str] = yaml.safe_load(manifest.read_text())["spec"]["containers"][0]["command"][1:]
        places = {ON_MACHINE: str(self.files), "/etc/kubernetes": str(self.folder)}
        for there, here in places.items():
            command = [flag.replace(there, here) for flag in command]
        return command

    def _controller_flags(self) -> list[str]:
        own = (
            "--leader-elect=false",
            f"--secure-port={free_port()}",
            "--controllers=*,bootstrapsigner,tokencleaner,-node-lifecycle-controller",
        )
        own_names = {flag.partition("=")[0] for flag in own}
        flags = self._flags("kube-controller-manager")
        return [*(flag for flag in flags if flag.partition("=")[0] not in own_names), *own]

    def _api_flags(self) -> list[str]:
        """But for where etcd is, and the log."""
        own = {
            "--etcd-servers": f"http://127.0.0.1:{self._etcd_port}",
            "--bind-address": "127.0.0.1",
            "--audit-log-path": str(self.folder / "audit.log"),
        }
        usual = (flag for flag in self._flags("kube-apiserver") if flag.partition("=")[0] not in {*own, *_OF_ETCD})
        return [*usual, *(f"{name}={value}" for name, value in own.items())]

    def _here(self, documents: list[dict[str, Any]]) -> Iterator[dict[str, Any]]:
        """kubeadm's documents with this machine's address, ports and folder."""
        for document in documents:
            if document["kind"] == "InitConfiguration":
                point = {"advertiseAddress": ADVERTISED, "bindPort": self.port}
                yield {**document, "localAPIEndpoint": point}
            elif document["kind"] == "ClusterConfiguration":
                names = [*document["apiServer"]["certSANs"], "127.0.0.1"]
                yield {
                    **document,
                    "certificatesDir": str(self.folder / "pki"),
                    "controlPlaneEndpoint": f"127.0.0.1:{self.port}",
                    "apiServer": {**document["apiServer"], "certSANs": names},
                }
            else:
                yield document

    def _etcd_flags(self) -> list[str]:
        client, peer = (f"http://127.0.0.1:{port}" for port in (self._etcd_port, self._peer_port))
        return [
            f"--data-dir={self.folder / 'etcd'}",
            f"--listen-client-urls={client}",
            f"--advertise-client-urls={client}",
            f"--listen-peer-urls={peer}",
            f"--initial-advertise-peer-urls={peer}",
            f"--initial-cluster=default={peer}",
            "--unsafe-no-fsync",
        ]

    def _start(self, name: str, command: list[str]) -> None:
        with (self.folder / f"{name}.log").open("ab") as log:
            self._processes.append(start(command, env=self._environment, stdout=log, stderr=log))

    def _until_ready(self) -> None:
        context = ssl.create_default_context(cafile=str(self.folder / "pki/ca.crt"))
        ends_at = time.monotonic() + READY_SECONDS
        while time.monotonic() < ends_at:
            if (code := self._processes[-1].poll()) is not None:
                raise RuntimeError(f"kube-apiserver ended with {code}; see {self.folder}/kube-apiserver.log")
            try:
                with urllib.request.urlopen(f"{self.url}/readyz", timeout=5, context=context):  # noqa: S310
                    return
            except OSError:
                time.sleep(0.3)
        raise TimeoutError(f"the API server was not ready within {READY_SECONDS} s")


def _run(command: list[str], environment: Mapping[str, str], check: bool) -> subprocess.CompletedProcess[str]:
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    if check and done.returncode:
        raise RuntimeError(f"{' '.join(command[:4])} ended with {done.returncode}: {done.stderr[-2000:]}")
    return done


_OF_ETCD = ("--etcd-cafile", "--etcd-certfile", "--etcd-keyfile")


def program(name: str) -> Path:
    """One of the programs that ``make kubernetes`` has built."""
    return BINARIES / release() / name
