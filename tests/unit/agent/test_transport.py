"""Connections: TLS against our authority only, no redirects, bounds, and errors without secrets."""

from __future__ import annotations

import http.server
import ipaddress
import socket
import ssl
import threading
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from agent.stockyard_agent import transport
from agent.stockyard_agent.kubernetes import Kubernetes
from agent.stockyard_agent.settings import Settings
from agent.stockyard_agent.transport import Exchange, HttpRequest, Unreachable, checked, https
from tests.unit.agent.rig import Rig

Answering = Callable[[http.server.BaseHTTPRequestHandler], None]


@pytest.fixture
def exchange() -> Exchange:
    return https(ssl.create_default_context(), timeout=5, proxies={})


@pytest.fixture
def answering() -> Iterator[Callable[[Answering], str]]:
    """A server that answers as it is told; its URL."""
    servers: list[http.server.ThreadingHTTPServer] = []

    def start(answer: Answering) -> str:
        class Handler(http.server.BaseHTTPRequestHandler):
            def log_message(self, *_: Any) -> None:
                """Say nothing."""

            def do_GET(self) -> None:
                answer(self)

        server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        server.daemon_threads = True
        servers.append(server)
        threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
        return f"http://127.0.0.1:{server.server_address[1]}"

    yield start
    for server in servers:
        server.shutdown()
        server.server_close()


def identity(folder: Path, name: str) -> ssl.SSLContext:
    """A self-signed certificate for loopback: ``<name>.crt``, and a context that serves with it."""
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    now = datetime.now(UTC)
    address = x509.IPAddress(ipaddress.ip_address("127.0.0.1"))
    certificate = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=1))
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .add_extension(x509.SubjectAlternativeName([address]), critical=False)
        .sign(key, hashes.SHA256())
    )
    (folder / f"{name}.crt").write_bytes(certificate.public_bytes(serialization.Encoding.PEM))
    plain = serialization.NoEncryption()
    form = serialization.PrivateFormat.PKCS8
    (folder / f"{name}.key").write_bytes(key.private_bytes(serialization.Encoding.PEM, form, plain))
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(folder / f"{name}.crt", folder / f"{name}.key")
    return context


def test_https_trusts_cluster_authority_only(rig: Rig, tmp_path: Path) -> None:
    right, _ = identity(tmp_path, "right"), identity(tmp_path, "wrong")
    url = rig.kube.serve(right)
    try:
        for name, fits in (("right", True), ("wrong", False)):
            context = ssl.create_default_context(cafile=str(tmp_path / f"{name}.crt"))
            kube = Kubernetes(url, https(context, timeout=5, proxies={}), lambda: rig.account)
            if fits:
                assert kube.call("GET", "/version")["gitVersion"] == "v1.34.1"
            else:
                with pytest.raises(Unreachable, match="CERTIFICATE_VERIFY_FAILED"):
                    kube.call("GET", "/version")
    finally:
        rig.kube.close()


def test_https_does_not_follow_redirects(exchange: Exchange, answering: Callable[[Answering], str]) -> None:
    authorizations: list[str] = []

    def elsewhere(handler: http.server.BaseHTTPRequestHandler) -> None:
        authorizations.append(str(handler.headers["Authorization"]))
        handler.send_response(307)
        handler.send_header("Location", url + "/other")
        handler.send_header("Content-Length", "0")
        handler.end_headers()

    url = answering(elsewhere)
    response = exchange(HttpRequest("GET", url, {"Authorization": "Bearer x"}))
    assert response.status == 307
    assert authorizations == ["Bearer x"]


def test_https_returns_every_status(exchange: Exchange, answering: Callable[[Answering], str]) -> None:
    def refuse(handler: http.server.BaseHTTPRequestHandler) -> None:
        handler.send_response(429)
        handler.send_header("Retry-After", "7")
        handler.end_headers()
        handler.wfile.write(b"{}")

    response = exchange(HttpRequest("GET", answering(refuse)))
    assert (response.status, response.retry_after, response.body) == (429, 7.0, b"{}")


def test_https_refuses_incomplete_responses(exchange: Exchange, answering: Callable[[Answering], str]) -> None:
    def cut(handler: http.server.BaseHTTPRequestHandler) -> None:
        handler.send_response(200)
        handler.send_header("Content-Length", "100")
        handler.end_headers()
        handler.wfile.write(b"{")

    def silent(handler: http.server.BaseHTTPRequestHandler) -> None:
        handler.close_connection = True

    def noise(handler: http.server.BaseHTTPRequestHandler) -> None:
        handler.wfile.write(b"what?\r\n\r\n")

    for answer in (cut, silent, noise):
        with pytest.raises(Unreachable):
            exchange(HttpRequest("GET", answering(answer)))
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    with pytest.raises(Unreachable, match="refused"):
        exchange(HttpRequest("GET", f"http://127.0.0.1:{port}/x?secret=1"))


def test_https_limits_response_size_and_time(
    answering: Callable[[Answering], str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def large(handler: http.server.BaseHTTPRequestHandler) -> None:
        handler.send_response(200)
        handler.end_headers()
        handler.wfile.write(b"x" * 100_000)

    url = answering(large)
    ticks = iter(range(0, 10_000, 100))
    slow = https(ssl.create_default_context(), timeout=5, proxies={}, monotonic=lambda: next(ticks))
    with pytest.raises(Unreachable, match="too long"):
        slow(HttpRequest("GET", url))
    monkeypatch.setattr(transport, "LIMIT", 99_999)
    with pytest.raises(Unreachable, match="larger than"):
        https(ssl.create_default_context(), timeout=5, proxies={})(HttpRequest("GET", url))


def test_https_error_names_url_without_query(exchange: Exchange) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    with pytest.raises(Unreachable) as caught:
        exchange(HttpRequest("POST", f"http://127.0.0.1:{port}/token?a=hidden", {"X": "hidden"}, b"hidden"))
    assert "/token" in str(caught.value)
    assert "hidden" not in str(caught.value)


@pytest.mark.parametrize(
    "url", ["http://api.example.test", "ftp://api.example.test", "api.example.test", "https://", ""]
)
def test_settings_accept_https_urls_only(url: str) -> None:
    with pytest.raises(ValueError, match="https"):
        checked(url)


def test_settings_are_read_from_environment_and_files(tmp_path: Path) -> None:
    environment = {
        "STOCKYARD_API_URL": "https://api.example.test/",
        "STOCKYARD_CLUSTER_ID": "clu_1",
        "STOCKYARD_TOKEN_URL": "https://id.example.test/token",
        "STOCKYARD_CLIENT_DIR": str(tmp_path),
        "STOCKYARD_ACCOUNT_DIR": str(tmp_path),
        "KUBERNETES_SERVICE_HOST": "fd00::1",
        "KUBERNETES_SERVICE_PORT": "6443",
    }
    for name in ("client_id", "client_secret", "token", "ca.crt"):
        (tmp_path / name).write_text(f"{name}-1\n")
    settings = Settings.read(environment)
    assert (settings.api_url, settings.kubernetes_url) == ("https://api.example.test", "https://[fd00::1]:6443")
    assert settings.credentials() == ("client_id-1", "client_secret-1")
    assert (settings.account_token(), settings.authority()) == ("token-1", "ca.crt-1")
    (tmp_path / "token").write_text("token-2")
    assert settings.account_token() == "token-2", "the kubelet renews it"
    for name in ("STOCKYARD_API_URL", "STOCKYARD_CLUSTER_ID", "STOCKYARD_TOKEN_URL", "KUBERNETES_SERVICE_HOST"):
        with pytest.raises(ValueError, match=name):
            Settings.read({key: value for key, value in environment.items() if key != name})
