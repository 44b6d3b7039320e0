"""A real control plane, made from what a control plane's machine writes; tests skip where it is not built."""

from __future__ import annotations

import importlib.util
import json
import ssl
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from ipaddress import ip_address
from pathlib import Path
from typing import Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from local.identity.keys import SigningKey
from local.kubernetes.real.build import missing, release
from local.kubernetes.real.control_plane import ControlPlane
from stockyard.domain.clusters.control_plane import POD_CIDR
from stockyard.domain.values.ids import login_client
from stockyard.machines import cloud_config
from tests.kubernetes.placing import Judge
from tests.kubernetes.rigs import ContractRig, RealRig, SimulatedRig, until

CLIENT, TENANT = "acme-demo-0123456789ab", "acme"
AUDIENCE = login_client(CLIENT)


@dataclass(frozen=True)
class Realm:
    """A realm behind TLS. ``authority`` is the path of its certificate."""

    issuer: str
    authority: Path
    key: SigningKey

    def id_token(self, **claims: Any) -> str:
        """An ID token of Ann of the tenant, with other claims in their place."""
        now = int(datetime.now(UTC).timestamp())
        usual = {"iss": self.issuer, "aud": AUDIENCE, "sub": "1", "iat": now, "exp": now + 300, "typ": "ID"}
        return self.key.sign({**usual, "preferred_username": "ann", "organization": {TENANT: {}}, **claims})


def _certificate(folder: Path) -> tuple[Path, Path]:
    key, now = ec.generate_private_key(ec.SECP256R1()), datetime.now(UTC)
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "127.0.0.1")])
    names = x509.SubjectAlternativeName([x509.IPAddress(ip_address("127.0.0.1"))])
    signed = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(now - timedelta(hours=1))
        .not_valid_after(now + timedelta(days=1))
        .add_extension(names, critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    certificate, private = folder / "realm.crt", folder / "realm.key"
    certificate.write_bytes(signed.public_bytes(serialization.Encoding.PEM))
    private.write_bytes(
        key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    )
    return certificate, private


@pytest.fixture(scope="session")
def realm(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Realm]:
    key = SigningKey()
    certificate, private = _certificate(tmp_path_factory.mktemp("realm"))

    class Handler(BaseHTTPRequestHandler):
        def log_message(self, *_: Any) -> None:
            pass

        def do_GET(self) -> None:
            document = key.certificates()
            if self.path.endswith("openid-configuration"):
                document = {
                    "issuer": issuer,
                    "jwks_uri": f"{issuer}/certs",
                    "id_token_signing_alg_values_supported": ["RS256"],
                    "response_types_supported": ["code"],
                    "subject_types_supported": ["public"],
                }
            body = json.dumps(document).encode()
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    issuer = f"https://127.0.0.1:{server.server_address[1]}/realms/stockyard"
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, private)
    server.socket = context.wrap_socket(server.socket, server_side=True)
    thread = threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True)
    thread.start()
    yield Realm(issuer, certificate, key)
    server.shutdown()
    server.server_close()


def machine_program(state: Path) -> Any:
    """The program of a control plane's machine, whose files go into ``state``."""
    path = state / "stockyard_machine.py"
    path.write_text(cloud_config.machine_program(cloud_config.FIRST).text)
    specification = importlib.util.spec_from_file_location("stockyard_machine_of_tests", path)
    assert specification is not None
    assert specification.loader is not None
    module: Any = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(module)
    module.STATE = str(state)
    return module


def machine_values(realm: Realm) -> dict[str, str]:
    """Values of ``machine.json`` on a control plane."""
    return {
        "client_id": CLIENT,
        "issuer": realm.issuer,
        "kubernetes_version": release(),
        "pod_cidr": POD_CIDR,
        "tenant": TENANT,
    }


@dataclass(frozen=True)
class Cluster:
    """A control plane that runs, and the realm that its people log in at."""

    plane: ControlPlane
    realm: Realm


@pytest.fixture(scope="session")
def cluster(tmp_path_factory: pytest.TempPathFactory, realm: Realm) -> Iterator[Cluster]:
    if reason := missing():
        pytest.skip(reason)
    state = tmp_path_factory.mktemp("state")
    program = machine_program(state)
    machine = machine_values(realm)
    program.api_server(machine)
    documents = program.kubeadm(machine, {"endpoint": "https://nlb.example.test:6443"}, "aws:///us-east-1a/i-0123")
    environment = {"SSL_CERT_FILE": str(realm.authority)}
    plane = ControlPlane(tmp_path_factory.mktemp("plane"), documents, state / program.API_FOLDER, environment)
    with plane.running():
        yield Cluster(plane, realm)


@pytest.fixture(scope="session")
def judge(cluster: Cluster) -> Judge:
    """One for all files: what it makes once for the control plane can be made once."""
    return Judge(cluster.plane)


@pytest.fixture(scope="session")
def web(cluster: Cluster) -> Cluster:
    """The cluster with the namespace of the tests' pods."""
    cluster.plane.kubectl("create", "namespace", "web")
    for name in ("web", "kube-system"):
        account = ("get", "serviceaccount", "default", "-n", name)
        until(lambda account=account: cluster.plane.kubectl(*account, check=False).returncode == 0)
    return cluster


@pytest.fixture
def real_rig(web: Cluster) -> Iterator[RealRig]:
    rig = RealRig(web.plane)
    yield rig
    rig.close()


@pytest.fixture(params=["simulated", "real"])
def rig(request: pytest.FixtureRequest) -> Iterator[ContractRig]:
    """The agent on each kind of cluster."""
    if request.param == "real":
        yield request.getfixturevalue("real_rig")
        return
    rig = SimulatedRig()
    yield rig
    rig.close()
