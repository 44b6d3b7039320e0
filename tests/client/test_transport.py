"""One call: what is sent, what is repeated, what a refusal becomes."""

from __future__ import annotations

import logging
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import httpx
import pytest

from stockyard_client import ApiError, Client, ConnectionFailed, FieldProblem
from stockyard_client.errors import LoginFailed, UnexpectedAnswer
from stockyard_client.transport import ATTEMPTS, backoff

BODY = {"name": "demo", "secret": "canary-secret-0123456789"}


def test_sends_token_and_agent(api, client):
    api.answer("GET", "/v1/health", {"status": "ok"})
    client.health()
    headers = api.requests[0].headers
    assert headers["Authorization"] == "Bearer tok-e3b0c44298fc1c14"
    assert headers["User-Agent"].startswith("stockyard-client/")


def test_names_the_tenant_only_when_it_is_given_one(api, client):
    api.answer("GET", "/v1/health", {})
    client.health()
    with Client("https://api.test/", "t", tenant="globex", transport=api.transport) as tenant_client:
        tenant_client.health()
    assert [request.headers.get("X-Stockyard-Tenant") for request in api.requests] == [None, "globex"]


def test_token_function_is_asked_for_every_call(api):
    tokens = iter(["one", "two"])
    api.answer("GET", "/v1/health", {})
    with Client("https://api.test/", lambda: next(tokens), transport=api.transport) as client:
        client.health()
        client.health()
    assert [request.headers["Authorization"] for request in api.requests] == ["Bearer one", "Bearer two"]


def test_space_around_a_token_is_not_sent(api):
    api.answer("GET", "/v1/health", {})
    with Client("https://api.test/", " one\n", transport=api.transport) as client:
        client.health()
    assert api.requests[0].headers["Authorization"] == "Bearer one"


@pytest.mark.parametrize("token", ["canary\r\nX-Other: 1", "canary one", "canäry"])
def test_a_token_that_can_be_none_is_not_shown(api, token):
    with (
        Client("https://api.test/", token, transport=api.transport) as client,
        pytest.raises(LoginFailed) as caught,
    ):
        client.health()
    assert "can" not in str(caught.value).replace("a character", "")
    assert api.requests == []


def test_problem_document_becomes_api_error(api, client):
    errors = [{"pointer": "/settings/key_pair", "detail": "is missing"}]
    api.problem("POST", "/v1/clusters", 422, "InvalidInput", errors=errors, retryable=False)
    with pytest.raises(ApiError) as caught:
        client.clusters.create(BODY)
    error = caught.value
    assert (error.status, error.error_type, error.request_id) == (422, "InvalidInput", "req-1")
    assert error.detail == "It is InvalidInput."
    assert error.errors == (FieldProblem("/settings/key_pair", "is missing"),)
    assert not error.retryable
    assert len(api.requests) == 1


def test_words_of_the_gateway_about_a_token_are_told(api, client):
    challenge = 'Bearer scope="" error="invalid_token" error_description="the token has expired"'
    api.answer("GET", "/v1/clusters/x", {"message": "Unauthorized"}, status=401, WWW_Authenticate=challenge)
    with pytest.raises(ApiError) as caught:
        client.clusters.get("x")
    assert (caught.value.error_type, caught.value.detail) == ("Unauthorized", "The token has expired.")


def test_gateway_answer_becomes_api_error(api, client):
    api.answer("GET", "/v1/clusters/x", {"message": "Unauthorized"}, status=401, apigw_requestid="gw-1")
    with pytest.raises(ApiError) as caught:
        client.clusters.get("x")
    assert (caught.value.error_type, caught.value.detail, caught.value.request_id) == (
        "Unauthorized",
        "Unauthorized",
        "gw-1",
    )


def test_unreadable_refusal_still_has_its_status(api, client):
    api.answer("GET", "/v1/clusters/x", "<html>", status=418)
    with pytest.raises(ApiError) as caught:
        client.clusters.get("x")
    assert (caught.value.status, caught.value.error_type) == (418, "Http418")


@pytest.mark.parametrize("status", [429, 502, 503, 504])
def test_get_is_retried_on_transient_errors(api, client, status, cluster_document):
    api.answer("GET", "/v1/clusters/demo", {"message": "later"}, status=status)
    api.answer("GET", "/v1/clusters/demo", cluster_document())
    assert client.clusters.get("demo").name == "demo"
    assert len(api.requests) == 2


def test_post_is_retried_with_same_idempotency_key(api, client, cluster_document):
    api.fault("POST", "/v1/clusters", httpx.ReadTimeout("slow"))
    api.problem("POST", "/v1/clusters", 409, "RequestInProgress", retryable=True, retry_after=1)
    api.answer("POST", "/v1/clusters", cluster_document(), status=202)
    client.clusters.create(BODY)
    keys = [request.headers["Idempotency-Key"] for request in api.requests]
    assert len(keys) == 3
    assert len(set(keys)) == 1
    assert len(keys[0]) >= 32


def test_posts_have_different_idempotency_keys_unless_one_is_given(api, client, cluster_document):
    api.answer("POST", "/v1/clusters", cluster_document(), status=202)
    client.clusters.create(BODY)
    client.clusters.create(BODY)
    client.clusters.create(BODY, idempotency_key="mine")
    first, second, third = [request.headers["Idempotency-Key"] for request in api.requests]
    assert first != second
    assert third == "mine"


def test_delete_is_repeated(api, client):
    api.fault("DELETE", "/v1/cloud-accounts/1", httpx.ConnectError("gone"))
    api.answer("DELETE", "/v1/cloud-accounts/1", status=204)
    client.accounts.delete(1)
    assert [request.method for request in api.requests] == ["DELETE", "DELETE"]


def test_patch_is_never_repeated(api, client, cluster_document):
    api.answer("GET", "/v1/clusters/demo", cluster_document(), ETag='"3"')
    api.answer("PATCH", "/v1/clusters/clu_01", {"message": "later"}, status=503)
    with pytest.raises(ApiError):
        client.clusters.update("demo", {"description": "new"})
    assert [request.method for request in api.requests] == ["GET", "PATCH"]


@pytest.mark.parametrize(("status", "error_type"), [(500, "Internal"), (409, "ClusterNameInUse"), (404, "NotFound")])
def test_error_that_is_not_retryable_is_sent_once(api, client, status, error_type):
    api.problem("GET", "/v1/clusters/demo", status, error_type, retryable=False)
    with pytest.raises(ApiError):
        client.clusters.get("demo")
    assert len(api.requests) == 1


def test_missing_answer_raises_connection_failed_after_all_attempts(api, client):
    api.fault("GET", "/v1/clusters/demo", httpx.ConnectError("refused"))
    with pytest.raises(ConnectionFailed, match=r"https://api\.test: refused"):
        client.clusters.get("demo")
    assert len(api.requests) == 3


@pytest.mark.parametrize(
    ("error", "text", "attempts"),
    [
        (httpx.ConnectError("[Errno 111] Connection refused"), "connection refused", 3),
        (httpx.ConnectError("[Errno -2] Name or service not known"), "there is no host of that name", 1),
        (httpx.ConnectError("[SSL: CERTIFICATE_VERIFY_FAILED] certificate verify failed (_ssl.c:1006)"),
         "certificate verify failed", 3),
        (httpx.ReadTimeout("timed out"), "it took too long", 3),
        (httpx.RemoteProtocolError(""), "the connection broke", 3),
    ],
)  # fmt: skip
def test_what_went_wrong_is_said_in_words(api, client, error, text, attempts):
    api.fault("GET", "/v1/clusters/demo", error)
    with pytest.raises(ConnectionFailed) as failed:
        client.clusters.get("demo")
    assert str(failed.value) == f"no answer from https://api.test: {text}"
    assert len(api.requests) == attempts


def test_where_nobody_listens_is_said_within_two_seconds():
    pauses = [backoff(ConnectionFailed("x", unreached=True)) for _ in range(ATTEMPTS - 1)]
    assert sum(pauses) < 2


def test_retries_log_neither_body_nor_token(api, client, caplog, cluster_document):
    api.answer("POST", "/v1/clusters", {"message": "later"}, status=503)
    api.answer("POST", "/v1/clusters", cluster_document(), status=202)
    with caplog.at_level(logging.DEBUG):
        client.clusters.create(BODY)
    logged = " ".join(str(record.__dict__) for record in caplog.records)
    assert "stamina.retry_scheduled" in logged
    assert BODY["secret"] not in logged
    assert "tok-e3b0c44298fc1c14" not in logged


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (ApiError(429, "Throttled", "", retryable=True, retry_after=7.0), 7.0),
        (ApiError(503, "StoreUnavailable", "", retryable=True, retry_after=3600.0), 30.0),
        (ApiError(503, "StoreUnavailable", "", retryable=True), True),
        (ApiError(409, "InUse", "", retryable=False, retry_after=7.0), False),
        (ConnectionFailed("lost"), True),
        (UnexpectedAnswer("a page"), False),
    ],
)
def test_pause_is_what_the_api_asks_for_within_bounds(error, expected):
    pause = backoff(error)
    assert (type(pause), pause) == (type(expected), expected)


def test_web_page_instead_of_api_raises_unexpected_answer(api, client):
    api.answer("GET", "/v1/clusters/demo", "<html>Welcome</html>")
    with pytest.raises(UnexpectedAnswer, match="is the URL"):
        client.clusters.get("demo")


def test_answer_of_another_form_names_fields_not_values(api, client):
    api.answer("GET", "/v1/clusters/demo", {"id": "clu_01", "name": "demo", "status": {"canary": 1}})
    with pytest.raises(UnexpectedAnswer, match="not a Cluster: status") as caught:
        client.clusters.get("demo")
    assert "canary" not in str(caught.value)


def test_an_api_on_this_machine_is_reached_through_no_proxy(monkeypatch, served_health):
    """``http_proxy`` names a port that nobody listens on: who used it would get no answer."""
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    for name in ("NO_PROXY", "no_proxy"):
        monkeypatch.delenv(name, raising=False)
    with Client(served_health, None) as client:
        assert client.health() == {"status": "ok"}


@pytest.fixture
def served_health():
    """The URL of a server on a loopback address that says it is well."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self):
            body = b'{"status": "ok"}'
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_):
            """Says nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    thread.join()
    server.server_close()
