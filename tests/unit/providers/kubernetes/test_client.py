"""The client of the Kubernetes API against answers that are set: what it sends, repeats, refuses and keeps secret."""

from __future__ import annotations

import base64
import json
import logging
import ssl
import traceback
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import httpx
import pytest
from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import NameOID

from local.authority import Authority
from local.kubernetes.api import KubeApi
from stockyard.errors import (
    CredentialsRevoked,
    PermissionDenied,
    StockyardError,
    VendorNotFound,
    VendorRefused,
    VendorThrottled,
    VendorTimeout,
    VendorUnavailable,
)
from stockyard.providers.kubernetes import client as client_module
from stockyard.providers.kubernetes.client import ClientCertificate, KubernetesApi
from tests.unit.providers.kubernetes.conftest import CONFIG, SECRET, VALUE

pytestmark = pytest.mark.usefixtures("no_pauses")

TOKEN = "k8s-aws-v1.token-of-a-test"
PAGES = {
    "/api/v1": [("configmaps", "ConfigMap", True), ("secrets", "Secret", True), ("nodes", "Node", False)],
    "/apis/storage.k8s.io/v1": [("storageclasses", "StorageClass", False)],
}


class Answers:
    """An API server that answers with what is set, after discovery, and keeps the requests."""

    def __init__(self, *answers: httpx.Response | Exception) -> None:
        self.answers = list(answers)
        self.requests: list[httpx.Request] = []

    def __call__(self, request: httpx.Request) -> httpx.Response:
        if request.url.path in PAGES:
            entries = [{"name": n, "kind": k, "namespaced": s} for n, k, s in PAGES[request.url.path]]
            return httpx.Response(200, json={"kind": "APIResourceList", "resources": entries})
        self.requests.append(request)
        answer = self.answers.pop(0) if self.answers else httpx.Response(404, json={"reason": "NotFound"})
        if isinstance(answer, Exception):
            raise answer
        return answer


def client_of(authority: Authority, handler: Callable[[httpx.Request], httpx.Response]) -> KubernetesApi:
    pem = base64.b64encode(authority.pem.encode()).decode()
    return KubernetesApi("https://cluster.example.test", pem, lambda: TOKEN, httpx.MockTransport(handler))


def certificate() -> ClientCertificate:
    """A user's certificate, signed by itself, with its key."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "kubernetes-admin")])
    start = datetime.now(UTC) - timedelta(days=1)
    builder = x509.CertificateBuilder(name, name, key.public_key(), 1, start, start + timedelta(days=9))
    signed = builder.sign(key, SHA256()).public_bytes(Encoding.PEM)
    private = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    return ClientCertificate(base64.b64encode(signed).decode(), base64.b64encode(private).decode())


def done(document: Any = None) -> httpx.Response:
    return httpx.Response(200, json=document if document is not None else {"kind": "Status"})


def test_apply_is_server_side_with_our_name_and_force(authority: Authority):
    server = Answers(done(CONFIG))
    assert client_of(authority, server).apply(CONFIG) == CONFIG
    (request,) = server.requests
    assert (request.method, request.url.path) == ("PATCH", "/api/v1/namespaces/web/configmaps/a")
    assert dict(request.url.params) == {"fieldManager": "stockyard", "force": "true"}
    assert request.headers["Content-Type"] == "application/apply-patch+yaml"
    assert request.headers["Authorization"] == f"Bearer {TOKEN}"
    assert json.loads(request.content) == CONFIG


def test_apply_by_another_name_and_as_a_question(authority: Authority):
    server = Answers(done(CONFIG))
    assert client_of(authority, server).apply(CONFIG, manager="packs", dry_run=True) == CONFIG
    (request,) = server.requests
    assert dict(request.url.params) == {"fieldManager": "packs", "force": "true", "dryRun": "All"}


def test_a_token_of_an_account_is_asked_for_with_its_end(authority: Authority):
    server = Answers(done({"status": {"token": "short"}}))
    assert client_of(authority, server).account_token("pa/cks", "me", 600) == "short"
    (request,) = server.requests
    assert request.method == "POST"
    assert request.url.raw_path == b"/api/v1/namespaces/pa%2Fcks/serviceaccounts/me/token"
    body = json.loads(request.content)
    assert (body["kind"], body["spec"]) == ("TokenRequest", {"expirationSeconds": 600})


def test_a_token_of_an_account_that_is_not_there(authority: Authority):
    with pytest.raises(VendorNotFound):
        client_of(authority, Answers()).account_token("packs", "me", 600)


def test_who_is_known_by_a_certificate_sends_no_token(authority: Authority):
    server = Answers(done({}))
    pem = base64.b64encode(authority.pem.encode()).decode()
    user = certificate()
    transport = httpx.MockTransport(server)
    client = KubernetesApi("https://c.test", pem, lambda: "", transport, certificate=user)
    client.get("v1", "Node", "a")
    assert "Authorization" not in server.requests[0].headers
    assert user.key_b64 not in repr(user)


def test_a_certificate_is_shown_to_the_server(authority: Authority):
    user, stranger = certificate(), certificate()
    context = authority.serving("mutual")
    context.verify_mode = ssl.CERT_REQUIRED
    context.load_verify_locations(cadata=base64.b64decode(user.certificate_b64).decode())
    api, pem = KubeApi(), base64.b64encode(authority.pem.encode()).decode()
    url = api.serve(context)
    # The simulated API knows tokens alone: its 401 says that the connection was let in.
    try:
        for certificate_of_user, leaf in ((user, CredentialsRevoked), (stranger, VendorUnavailable)):
            client = KubernetesApi(url, pem, lambda: "", certificate=certificate_of_user)
            with pytest.raises(leaf):
                client.get("v1", "Node", "a")
            client.close()
    finally:
        api.close()


def test_a_certificate_that_does_not_fit_is_refused_without_repeating_it(authority: Authority):
    pem = base64.b64encode(authority.pem.encode()).decode()
    user, other = certificate(), certificate()
    for wrong in (replace(user, key_b64=other.key_b64), replace(user, key_b64="%%%"), replace(user, key_b64="")):
        client = KubernetesApi("https://c.test", pem, lambda: "", certificate=wrong)
        with pytest.raises(VendorRefused, match="does not fit its key") as caught:
            client.get("v1", "Node", "a")
        printed = "".join(traceback.format_exception(caught.value))
        assert user.certificate_b64 not in printed
        assert other.key_b64 not in printed


def test_paths_come_from_discovery(authority: Authority):
    server = Answers(*(done({}) for _ in range(5)))
    client = client_of(authority, server)
    client.get("storage.k8s.io/v1", "StorageClass", "fast")
    client.get("v1", "Node", "a/b", "ignored")
    client.get("v1", "ConfigMap", "a")
    client.list("v1", "ConfigMap", "web", "a=b,c")
    client.list("v1", "ConfigMap")
    assert [request.url.raw_path.decode() for request in server.requests] == [
        "/apis/storage.k8s.io/v1/storageclasses/fast",
        "/api/v1/nodes/a%2Fb",
        "/api/v1/namespaces/default/configmaps/a",
        "/api/v1/namespaces/web/configmaps?limit=500&labelSelector=a%3Db%2Cc",
        "/api/v1/configmaps?limit=500",
    ]


def test_a_kind_is_looked_up_once_and_one_that_is_not_served_each_time(authority: Authority):
    looked: list[str] = []
    server = Answers(*(done({}) for _ in range(3)))

    def handler(request: httpx.Request) -> httpx.Response:
        looked.append(request.url.path)
        return server(request)

    client = client_of(authority, handler)
    for _ in range(3):
        client.get("v1", "ConfigMap", "a", "web")
        assert client.get("v1", "Widget", "a") is None
        assert client.list("example.test/v1", "Widget") == []
        client.delete("example.test/v1", "Widget", "a")
    with pytest.raises(VendorNotFound, match=r"serves no Widget of v1"):
        client.apply({"apiVersion": "v1", "kind": "Widget", "metadata": {"name": "a"}})
    assert looked.count("/api/v1") == 5
    with pytest.raises(VendorNotFound, match=r"serves no Widget of example.test/v1"):
        client.apply({"apiVersion": "example.test/v1", "kind": "Widget", "metadata": {"name": "a"}})


def test_a_token_is_asked_for_at_each_call(authority: Authority):
    tokens = iter(f"token-{number}" for number in range(9))
    server = Answers(httpx.Response(503), done({}), done({}))
    pem = base64.b64encode(authority.pem.encode()).decode()
    client = KubernetesApi("https://c.test", pem, lambda: next(tokens), httpx.MockTransport(server))
    client.get("v1", "Node", "a")
    client.get("v1", "Node", "b")
    assert [request.headers["Authorization"] for request in server.requests] == [
        "Bearer token-1", "Bearer token-2", "Bearer token-3",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("answer", "leaf", "tries"),
    [
        (httpx.Response(503), VendorUnavailable, 3),
        (httpx.Response(429, headers={"Retry-After": "1"}), VendorThrottled, 3),
        (httpx.Response(504), VendorTimeout, 3),
        (httpx.ReadTimeout("x"), VendorTimeout, 3),
        (httpx.ConnectError("x"), VendorUnavailable, 3),
        (httpx.Response(200, content=b"<html>"), VendorUnavailable, 3),
        (httpx.Response(200, json=[]), VendorUnavailable, 3),
        (httpx.Response(401), CredentialsRevoked, 1),
        (httpx.Response(403), PermissionDenied, 1),
        (httpx.Response(422), VendorRefused, 1),
        (httpx.Response(302, headers={"Location": "https://elsewhere.test"}), VendorRefused, 1),
    ],
)
@pytest.mark.parametrize("call", ["apply", "get", "delete", "list"])
def test_what_may_pass_is_tried_again_and_nothing_else(
    authority: Authority, call: str, answer: httpx.Response | Exception, leaf: type[StockyardError], tries: int
):
    server = Answers(*(answer for _ in range(5)))
    client = client_of(authority, server)
    calls: dict[str, Callable[[], Any]] = {
        "apply": lambda: client.apply(SECRET),
        "get": lambda: client.get("v1", "Secret", "s", "web"),
        "delete": lambda: client.delete("v1", "Secret", "s", "web"),
        "list": lambda: client.list("v1", "Secret"),
    }
    with pytest.raises(leaf) as caught:
        calls[call]()
    assert type(caught.value) is leaf
    assert len(server.requests) == tries


def test_a_server_says_how_long_to_wait():
    assert client_module._pause(PermissionDenied("x")) is False
    assert client_module._pause(VendorTimeout("x")) is True
    throttled = VendorThrottled("x")
    throttled.retry_after = 7
    assert client_module._pause(throttled) == 7.0


def test_what_is_gone_is_no_error(authority: Authority):
    client = client_of(authority, Answers())
    assert client.get("v1", "ConfigMap", "a", "web") is None
    client.delete("v1", "ConfigMap", "a", "web")


def test_deletion_takes_what_the_object_owns(authority: Authority):
    server = Answers(done())
    client_of(authority, server).delete("v1", "Secret", "s", "web")
    (request,) = server.requests
    assert (request.method, request.url.path) == ("DELETE", "/api/v1/namespaces/web/secrets/s")
    assert json.loads(request.content)["propagationPolicy"] == "Background"


def test_a_list_goes_on_and_begins_anew_when_it_has_expired(authority: Authority):
    first = {"items": [{"metadata": {"name": "a"}}], "metadata": {"continue": "t"}}
    last = {"items": [{"metadata": {"name": "b"}}], "metadata": {}}
    expired = httpx.Response(410, json={"reason": "Expired"})
    server = Answers(done(first), expired, done(first), done(last))
    items = client_of(authority, server).list("v1", "Node")
    assert [(item["apiVersion"], item["kind"], item["metadata"]["name"]) for item in items] == [
        ("v1", "Node", "a"), ("v1", "Node", "b"),
    ]  # fmt: skip
    assert [request.url.params.get("continue") for request in server.requests] == [None, "t", None, "t"]
    with pytest.raises(VendorRefused):
        client_of(authority, Answers(*(done(first) if n % 2 == 0 else expired for n in range(6)))).list("v1", "Node")


def test_neither_data_nor_token_is_in_an_error_or_a_log(authority: Authority, caplog: pytest.LogCaptureFixture):
    caplog.set_level(logging.DEBUG)
    answer = httpx.Response(422, json={"reason": "Invalid", "message": f"Secret: data.k: {VALUE}: Bearer {TOKEN}"})
    for answers in ([answer], [httpx.Response(503)] * 3, [httpx.ReadTimeout("x")] * 3):
        with pytest.raises(StockyardError) as caught:
            client_of(authority, Answers(*answers)).apply(SECRET)
        printed = "".join(traceback.format_exception(caught.value)) + caplog.text + repr(vars(caught.value))
        assert VALUE not in printed
        assert TOKEN not in printed
        assert caught.value.__cause__ is None


@pytest.mark.parametrize("server", ["http://c.test", "c.test", ""])
def test_a_token_goes_to_https_alone(server: str):
    with pytest.raises(VendorRefused, match="https"):
        KubernetesApi(server, "", lambda: TOKEN)


@pytest.mark.parametrize("authority_b64", ["", "%%%", base64.b64encode(b"no certificate").decode(), "w6k=", "/w=="])
def test_an_authority_that_is_no_certificate_is_refused(authority_b64: str):
    with pytest.raises(VendorRefused, match="no certificate"):
        KubernetesApi("https://c.test", authority_b64, lambda: TOKEN).get("v1", "Node", "a")
