"""Machines: an instance that boots does what its user data says, with the programs that its user data carries.

The program from the user data runs as a process of its own against a metadata service of ours; installing packages and
``kubeadm init`` are played. So bootstrap, token and report are what a real machine would send.
"""

from __future__ import annotations

import base64
import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import yaml
from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import Encoding
from cryptography.x509.oid import NameOID
from moto.ec2.models import ec2_backends
from moto.iam.models import iam_backends

from local.corrections.roles import AccessDenied, service_session
from local.fault_plan import MachinePlan

CLUSTER_TAG = "stockyard:resource"
CONFIG = "/etc/stockyard/machine.json"
PROGRAM = "stockyard_machine.py"


class Machines:
    """Watches the instances of some accounts and boots each new one that carries our tags.

    ``plan`` says how long an instance takes to come up and how many never report. What they print goes to ``log``.
    """

    def __init__(self, accounts: tuple[str, ...], region: str, log: Path, plan: MachinePlan | None = None) -> None:
        self._accounts = accounts
        self._region = region
        self._log = log
        self._plan = plan or MachinePlan()
        self._silent = self._plan.silent
        self._stop = threading.Event()
        self._seen: set[str] = set()
        self._threads: list[threading.Thread] = []
        self._folder = Path(tempfile.mkdtemp(prefix="stockyard-machines-"))
        self._metadata = Metadata()
        self._watcher = threading.Thread(target=self._watch, daemon=True, name="machines")

    def start(self) -> None:
        """Begin to watch."""
        self._watcher.start()

    def close(self) -> None:
        """Switch every machine off."""
        self._stop.set()
        self._watcher.join(5)
        for thread in self._threads:
            thread.join(5)
        self._metadata.close()
        shutil.rmtree(self._folder, ignore_errors=True)

    def _watch(self) -> None:
        while not self._stop.wait(0.1):
            for account in self._accounts:
                for reservation in list(ec2_backends[account][self._region].reservations.values()):
                    for instance in reservation.instances:
                        if instance.id not in self._seen and instance.state == "running":
                            self._seen.add(instance.id)
                            self._boot(account, instance)

    def _boot(self, account: str, instance: Any) -> None:
        tags = {tag["key"]: tag["value"] for tag in instance.get_tags()}
        if CLUSTER_TAG not in tags or not instance.user_data:
            return
        if self._silent:
            self._silent -= 1
        else:
            thread = threading.Thread(target=self._live, args=(account, instance), daemon=True, name=instance.id)
            self._threads.append(thread)
            thread.start()

    def _live(self, account: str, instance: Any) -> None:
        if self._stop.wait(random.uniform(*self._plan.boot_seconds)):
            return
        folder = self._folder / instance.id
        files = cloud_init_files(instance.user_data)
        program = next((text for path, text in files.items() if path.endswith(PROGRAM)), None)
        if program is None or CONFIG not in files:
            return
        (folder / "kubernetes" / "pki").mkdir(parents=True)
        (folder / PROGRAM).write_text(program, encoding="utf-8")
        (folder / "machine.json").write_text(files[CONFIG], encoding="utf-8")
        self._metadata.add(instance.id, self._region, lambda: _profile_keys(account, instance, self._region))
        environment = {
            "PATH": os.environ.get("PATH", os.defpath),
            "STOCKYARD_CONFIG": str(folder / "machine.json"),
            "STOCKYARD_STATE": str(folder),
            "STOCKYARD_METADATA": f"{self._metadata.url}/{instance.id}",
            "STOCKYARD_KUBERNETES": str(folder / "kubernetes"),
        }
        if self._run(instance, folder, environment, "bootstrap"):
            _play_kubeadm(folder)
            self._run(instance, folder, environment, "ready")

    def _run(self, instance: Any, folder: Path, environment: Mapping[str, str], step: str) -> bool:
        """One step of the machine's program; ended early when the instance is, or the local cloud is."""
        with self._log.open("ab", buffering=0) as log:
            command = [sys.executable, "-I", str(folder / PROGRAM), step]
            process = subprocess.Popen(
                command, env=dict(environment), stdin=subprocess.DEVNULL, stdout=log, stderr=log, process_group=0
            )
            while process.poll() is None:
                if self._stop.wait(0.05) or instance.state not in {"running", "pending"}:
                    process.kill()
            return process.wait() == 0


def cloud_init_files(user_data: str | bytes) -> dict[str, str]:
    """Path -> text of the files that a cloud-config document writes; user data may be in base 64."""
    text = user_data.decode() if isinstance(user_data, bytes) else str(user_data)
    if not text.startswith("#cloud-config"):
        text = base64.b64decode(text).decode()
    document = yaml.safe_load(text)
    return {item["path"]: item.get("content", "") for item in document.get("write_files", ())}


def _profile_keys(account: str, instance: Any, region: str) -> tuple[str, dict[str, str]]:
    """Name of the instance's role and keys of a session of it, named after the instance."""
    profile = instance.iam_instance_profile or {}
    wanted = {profile.get("Arn"), profile.get("Name")} - {None}
    for known in iam_backends[account]["aws"].instance_profiles.values():
        if wanted & {known.arn, known.name} and known.roles:
            role = known.roles[0]
            return role.name, service_session(role.arn, "ec2.amazonaws.com", instance.id, region)
    raise AccessDenied(instance.id, "(the instance has no profile)")


def _play_kubeadm(folder: Path) -> None:
    """What ``kubeadm init`` leaves behind: a certificate authority and an admin's kubeconfig."""
    configuration = (folder / "kubeadm.yaml").read_text(encoding="utf-8")
    documents = list(yaml.safe_load_all(configuration))
    endpoint = next(doc["controlPlaneEndpoint"] for doc in documents if "controlPlaneEndpoint" in doc)
    authority = _certificate_authority()
    (folder / "kubernetes" / "pki" / "ca.crt").write_bytes(authority)
    kubeconfig = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "kubernetes-admin@kubernetes",
        "clusters": [
            {
                "name": "kubernetes",
                "cluster": {
                    "server": f"https://{endpoint}",
                    "certificate-authority-data": base64.b64encode(authority).decode(),
                },
            }
        ],
        "contexts": [
            {
                "name": "kubernetes-admin@kubernetes",
                "context": {"cluster": "kubernetes", "user": "kubernetes-admin"},
            }
        ],
        "users": [{"name": "kubernetes-admin", "user": {"token": base64.b64encode(os.urandom(24)).decode()}}],
    }
    (folder / "kubernetes" / "admin.conf").write_text(yaml.safe_dump(kubeconfig), encoding="utf-8")


def _certificate_authority() -> bytes:
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "kubernetes")])
    now = datetime.now(UTC)
    builder = x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number())
    builder = builder.not_valid_before(now).not_valid_after(now + timedelta(days=3650))
    builder = builder.add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
    return builder.sign(key, SHA256()).public_bytes(Encoding.PEM)


class Metadata:
    """Instance metadata (IMDSv2) of all machines: ``url``, a slash, and the instance id."""

    def __init__(self) -> None:
        self._server = _MetadataServer(("127.0.0.1", 0), _MetadataHandler)
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}"
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True, name="metadata")
        self._thread.start()

    def add(self, instance: str, region: str, keys: Callable[[], tuple[str, dict[str, str]]]) -> None:
        """Serve an instance."""
        self._server.instances[instance] = (region, keys)

    def close(self) -> None:
        """Stop serving."""
        self._server.shutdown()
        self._server.server_close()
        self._thread.join(5)


class _MetadataServer(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self.instances: dict[str, tuple[str, Callable[[], tuple[str, dict[str, str]]]]] = {}
        self.token = base64.urlsafe_b64encode(os.urandom(24)).decode()


class _MetadataHandler(BaseHTTPRequestHandler):
    server: _MetadataServer

    def log_message(self, *_: Any) -> None:
        """Say nothing."""

    def do_PUT(self) -> None:
        """``/latest/api/token``."""
        self._reply(200 if self.path.endswith("/latest/api/token") else 404, self.server.token)

    def do_GET(self) -> None:
        """Placement and the role's keys, with the token only."""
        instance, _, path = self.path.lstrip("/").partition("/")
        if self.headers.get("X-aws-ec2-metadata-token") != self.server.token:
            return self._reply(401, "")
        if instance not in self.server.instances:
            return self._reply(404, "")
        region, keys = self.server.instances[instance]
        if path == "latest/meta-data/placement/region":
            return self._reply(200, region)
        try:
            role, session = keys()
        except AccessDenied:
            return self._reply(404, "")
        root = "latest/meta-data/iam/security-credentials/"
        if path == root:
            return self._reply(200, role)
        return (
            self._reply(200, json.dumps({"Code": "Success", **session}))
            if path == root + role
            else self._reply(404, "")
        )

    def _reply(self, status: int, text: str) -> None:
        body = text.encode()
        self.send_response_only(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)
