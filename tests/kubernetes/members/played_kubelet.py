"""Plays a kubelet: gets its certificate, registers its node, and runs static pods as processes.

It stands where systemd and a container runtime would. What it runs are the commands of the manifests that kubeadm has
written, by the programs of the release that the manifest's image names.
"""

from __future__ import annotations

import base64
import hashlib
import os
import re
import ssl
import subprocess
import sys
import threading
import time
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import yaml
from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import NameOID

from local.kubernetes.real.client import Client, Refused

KUBERNETES, KUBELET = Path("/etc/kubernetes"), Path("/var/lib/kubelet")
STATE = Path("/var/lib/stockyard-kubelet")
"""What ``systemctl`` has told: it runs or it does not."""
REQUESTS = "/apis/certificates.k8s.io/v1/certificatesigningrequests"
PODS = "/api/v1/namespaces/kube-system/pods"
MERGE = "application/strategic-merge-patch+json"
HEARTBEAT_SECONDS = 8.0


class Kubelet:
    """``binaries`` has a folder of programs by release; ``logs`` takes what they print."""

    def __init__(self, binaries: Path, release: str, logs: Path) -> None:
        self._binaries, self._release, self._logs = binaries, release, logs
        self._processes: dict[str, tuple[str, subprocess.Popen[bytes]]] = {}
        self._started: dict[str, float] = {}
        self._mirrored: dict[str, str] = {}
        self._beat = 0.0
        self._failure = ""
        threading.Thread(target=self._answer_probes, daemon=True).start()

    @property
    def runs(self) -> bool:
        """Whether systemd would have started it, and it has its configuration."""
        return STATE.exists() and STATE.read_text().strip() == "running" and (KUBELET / "config.yaml").exists()

    def step(self) -> None:
        """Do what is due. What fails is tried again with the next step."""
        if not self.runs:
            return
        pods = self._static_pods()
        try:
            if not (KUBERNETES / "kubelet.conf").exists() and (KUBERNETES / "bootstrap-kubelet.conf").exists():
                self._bootstrap()
            if (KUBERNETES / "kubelet.conf").exists() and time.monotonic() - self._beat > HEARTBEAT_SECONDS:
                self._register(pods)
                self._beat = time.monotonic()
        except (OSError, Refused, ValueError) as error:
            if str(error) != self._failure:
                self._failure = str(error)
                sys.stderr.write(f"kubelet: {error}\n")

    def _static_pods(self) -> dict[str, dict[str, Any]]:
        """Bring processes to the manifests."""
        pods = {}
        for path in sorted((KUBERNETES / "manifests").glob("*.yaml")):
            with suppress(yaml.YAMLError, FileNotFoundError):
                text = path.read_text()
                if isinstance(pod := yaml.safe_load(text), dict):
                    pods[path.stem] = {**pod, "hash": hashlib.sha256(text.encode()).hexdigest()}
        for name in list(self._processes):
            if name not in pods or self._processes[name][0] != pods[name]["hash"]:
                self._end(name)
        for name, pod in pods.items():
            current = self._processes.get(name)
            if current is not None and current[1].poll() is None:
                continue
            if time.monotonic() - self._started.get(name, -60.0) > 3:
                self._start(name, pod)
        return pods

    def _start(self, name: str, pod: dict[str, Any]) -> None:
        container = pod["spec"]["containers"][0]
        program, *flags = container["command"]
        version = container["image"].rpartition(":")[2].removeprefix("v")
        path = self._binaries / version / program
        if not path.exists():
            # etcd has versions of its own: it is beside the kubeadm that names it.
            path = self._binaries / self._release / program
        with (self._logs / f"{name}.log").open("ab") as log:
            process = subprocess.Popen([str(path), *flags], stdout=log, stderr=log, cwd="/")
        self._processes[name], self._started[name] = (pod["hash"], process), time.monotonic()

    def _end(self, name: str) -> None:
        _, process = self._processes.pop(name)
        process.kill()
        process.wait()

    def _node_name(self) -> str:
        flags = (KUBELET / "kubeadm-flags.env").read_text()
        match = re.search(r"--hostname-override=(\S+?)[\"\s]", flags)
        return match[1] if match else os.uname().nodename

    def _bootstrap(self) -> None:
        """The first certificate, by the token of the machine."""
        config = yaml.safe_load((KUBERNETES / "bootstrap-kubelet.conf").read_text())
        cluster = config["clusters"][0]["cluster"]
        authority = base64.b64decode(cluster["certificate-authority-data"]).decode()
        context = ssl.create_default_context(cadata=authority)
        client = Client(cluster["server"], context, config["users"][0]["user"]["token"])
        key, name = ec.generate_private_key(ec.SECP256R1()), self._node_name()
        pairs = [(NameOID.ORGANIZATION_NAME, "system:nodes"), (NameOID.COMMON_NAME, f"system:node:{name}")]
        subject = x509.Name([x509.NameAttribute(kind, value) for kind, value in pairs])
        request = x509.CertificateSigningRequestBuilder().subject_name(subject).sign(key, SHA256())
        document = {
            "apiVersion": "certificates.k8s.io/v1",
            "kind": "CertificateSigningRequest",
            "metadata": {"generateName": "node-csr-"},
            "spec": {
                "request": base64.b64encode(request.public_bytes(Encoding.PEM)).decode(),
                "signerName": "kubernetes.io/kube-apiserver-client-kubelet",
                "usages": ["digital signature", "client auth"],
            },
        }
        path = f"{REQUESTS}/{client.call('POST', REQUESTS, document)['metadata']['name']}"
        ends_at = time.monotonic() + 60
        while not (issued := (client.call("GET", path).get("status") or {}).get("certificate")):
            if time.monotonic() > ends_at:
                raise ValueError("nobody approves the request")
            time.sleep(0.5)
        private = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
        user = {"client-certificate-data": issued, "client-key-data": base64.b64encode(private).decode()}
        config["users"][0]["user"] = user
        (KUBELET / "pki").mkdir(parents=True, exist_ok=True)
        (KUBELET / "pki/kubelet-client-current.pem").write_bytes(base64.b64decode(issued) + private)
        (KUBERNETES / "kubelet.part").write_text(yaml.safe_dump(config))
        (KUBERNETES / "kubelet.part").rename(KUBERNETES / "kubelet.conf")

    def _register(self, pods: dict[str, dict[str, Any]]) -> None:
        """The node with its heartbeat, and the mirrors of its static pods, as kubeadm and people see them."""
        copy = KUBELET / "kubeconfig.yaml"
        copy.write_text(yaml.safe_dump(_with_data(yaml.safe_load((KUBERNETES / "kubelet.conf").read_text()))))
        client, name = Client.of_kubeconfig(copy), self._node_name()
        metadata = {"name": name, "labels": {"kubernetes.io/hostname": name}}
        _ensure(client, "/api/v1/nodes", {"apiVersion": "v1", "kind": "Node", "metadata": metadata})
        conditions = [{"type": "Ready", "status": "True", "reason": "Played", "lastHeartbeatTime": _now()}]
        info = client.call("GET", f"/api/v1/nodes/{name}")["status"].get("nodeInfo", {})
        status = {"conditions": conditions, "nodeInfo": {**info, "kubeletVersion": f"v{self._release}"}}
        node = client.call("PATCH", f"/api/v1/nodes/{name}/status", {"status": status}, MERGE)
        owner = {"apiVersion": "v1", "kind": "Node", "name": name, "uid": node["metadata"]["uid"], "controller": True}
        for pod in pods.values():
            self._mirror(client, name, owner, pod)

    def _mirror(self, client: Client, node: str, owner: dict[str, Any], pod: dict[str, Any]) -> None:
        name, digest = f"{pod['metadata']['name']}-{node}", pod["hash"]
        if self._mirrored.get(name) != digest:
            with suppress(Refused):
                client.call("DELETE", f"{PODS}/{name}", {"gracePeriodSeconds": 0})
            marks = {"kubernetes.io/config.mirror": digest, "kubernetes.io/config.hash": digest}
            annotations = {**pod["metadata"].get("annotations", {}), **marks}
            metadata = {**pod["metadata"], "name": name, "annotations": annotations, "ownerReferences": [owner]}
            metadata.pop("creationTimestamp", None)
            spec = {**pod["spec"], "nodeName": node}
            _ensure(client, PODS, {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec})
            self._mirrored[name] = digest
        ready = {"type": "Ready", "status": "True"}
        client.call("PATCH", f"{PODS}/{name}/status", {"status": {"phase": "Running", "conditions": [ready]}}, MERGE)

    def _answer_probes(self) -> None:
        """kubeadm asks whether the kubelet is healthy."""
        kubelet = self

        class Handler(BaseHTTPRequestHandler):
            def log_message(self, *_: Any) -> None:
                pass

            def do_GET(self) -> None:
                self.send_response(200 if kubelet.runs else 503)
                self.end_headers()
                self.wfile.write(b"ok")

        ThreadingHTTPServer(("127.0.0.1", 10248), Handler).serve_forever()


def _ensure(client: Client, path: str, document: dict[str, Any]) -> None:
    try:
        client.call("POST", path, document)
    except Refused as refused:
        if refused.status != 409:
            raise


def _with_data(config: dict[str, Any]) -> dict[str, Any]:
    """A kubeconfig with its certificates as data, whichever way it names them."""
    user = config["users"][0]["user"]
    for name in ("client-certificate", "client-key"):
        if name in user:
            user[f"{name}-data"] = base64.b64encode(Path(user.pop(name)).read_bytes()).decode()
    return config


def _now() -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
