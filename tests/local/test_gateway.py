"""The HTTP API in front of functions: routing, authorizer, payload format 2.0, the gateway's own answers."""

from __future__ import annotations

import base64
import http.client
import json
from collections.abc import Iterator
from typing import Any

import pytest

from local.functions.authorizer import JwtAuthorizer, flattened
from local.functions.gateway import BODY_LIMIT, Bucket, Gateway, Route
from local.functions.invocation import Invocation, failure
from local.identity.server import IdentityServer


class Echo:
    """Answers with the event, or with the ``answer`` that a test has set."""

    def __init__(self) -> None:
        self.answer: Invocation | None = None

    def invoke(self, function: str, payload: bytes) -> Invocation:
        if self.answer:
            return self.answer
        body = json.dumps({"function": function, "event": json.loads(payload)})
        headers = {"Content-Type": "application/json"}
        return Invocation(json.dumps({"statusCode": 200, "headers": headers, "body": body}).encode())


@pytest.fixture
def identity() -> Iterator[IdentityServer]:
    server = IdentityServer()
    server.start()
    yield server
    server.stop()


@pytest.fixture
def echo() -> Echo:
    return Echo()


@pytest.fixture
def gateway(identity: IdentityServer, echo: Echo) -> Iterator[Gateway]:
    started = Gateway(echo)
    authorizer = JwtAuthorizer(identity.issuer, ("stockyard",))
    started.serve(
        [
            Route("$default", "other"),
            Route("GET /v1/things/{id}", "things", authorizer),
            Route("GET /v1/things/special", "special"),
            Route("POST /v1/things", "things"),
            Route("ANY /files/{path+}", "files"),
        ]
    )
    yield started
    started.close()


def call(
    gateway: Gateway, method: str, target: str, body: bytes = b"", headers: dict[str, str] | None = None
) -> tuple[int, dict[str, str], bytes]:
    connection = http.client.HTTPConnection(gateway.url.removeprefix("http://"), timeout=10)
    connection.request(method, target, body or None, headers or {})
    answer = connection.getresponse()
    response = answer.status, {name.lower(): text for name, text in answer.getheaders()}, answer.read()
    connection.close()
    return response


def event(gateway: Gateway, method: str, target: str, body: bytes = b"", **headers: str) -> tuple[str, dict[str, Any]]:
    status, _, text = call(gateway, method, target, body, {k.replace("_", "-"): v for k, v in headers.items()})
    assert status == 200
    document = json.loads(text)
    return document["function"], document["event"]


def test_the_most_specific_route_answers(gateway: Gateway, identity: IdentityServer) -> None:
    bearer = f"Bearer {identity.token('acme', ['stockyard-viewer'])}"
    assert event(gateway, "GET", "/v1/things/special")[0] == "special"
    assert event(gateway, "GET", "/v1/things/a%20b", Authorization=bearer)[1]["pathParameters"] == {"id": "a b"}
    assert event(gateway, "PUT", "/files/a/b")[1]["pathParameters"] == {"path": "a/b"}
    for method, target in (("GET", "/v1/things/a/b"), ("DELETE", "/v1/things/a"), ("GET", "/v1/thingsX")):
        function, event_sent = event(gateway, method, target)
        assert (function, event_sent["routeKey"]) == ("other", "$default")
        assert "pathParameters" not in event_sent


def test_the_event_has_payload_format_2(gateway: Gateway) -> None:
    _, event_sent = event(
        gateway, "POST", "/v1/things?a=1&a=2&b=", b'{"x": 1}', Content_Type="application/json", Cookie="a=1; b=2"
    )
    assert event_sent["version"] == "2.0"
    assert event_sent["rawPath"] == "/v1/things"
    assert event_sent["rawQueryString"] == "a=1&a=2&b="
    assert event_sent["queryStringParameters"] == {"a": "1,2", "b": ""}
    assert (event_sent["body"], event_sent["isBase64Encoded"]) == ('{"x": 1}', False)
    assert event_sent["cookies"] == ["a=1", "b=2"]
    assert event_sent["headers"]["content-type"] == "application/json"
    assert event_sent["requestContext"]["http"]["method"] == "POST"
    assert "authorizer" not in event_sent["requestContext"]


def test_binary_bodies_are_passed_in_base_64(gateway: Gateway) -> None:
    for kind, body in (("application/octet-stream", b"abc"), ("application/json", b"\xff\xfe")):
        _, event_sent = event(gateway, "POST", "/v1/things", body, Content_Type=kind)
        assert event_sent["isBase64Encoded"] is True
        assert base64.b64decode(event_sent["body"]) == body


def test_only_valid_tokens_pass(gateway: Gateway, identity: IdentityServer) -> None:
    good = identity.token("acme", ["stockyard-viewer"])
    head, body, signature = good.split(".")
    other_server = IdentityServer()
    other_server.start()
    stranger = other_server.token("acme", ["stockyard-viewer"])
    other_server.stop()
    none = base64.urlsafe_b64encode(b'{"alg":"none"}').decode().rstrip("=")
    invalid = 'Bearer scope="" error="invalid_token" error_description="the token is not valid"'
    bad = {
        "": ("missing", "Bearer"),
        f"Basic {good}": ("scheme", "Bearer"),
        f"Bearer {head}.{body}.{signature[:-8]}AAAAAAAA": ("signature", invalid),
        f"Bearer {stranger}": ("issuer", invalid),
        f"Bearer {identity.token('acme', [], ttl=-10)}": ("expired", invalid.replace("is not valid", "has expired")),
        f"Bearer {none}.{body}.": ("algorithm", invalid),
        "Bearer nonsense": ("form", invalid),
    }
    for header, (reason, challenge) in bad.items():
        status, headers, text = call(
            gateway, "GET", "/v1/things/a", headers={"Authorization": header} if header else {}
        )
        assert (status, json.loads(text)) == (401, {"message": "Unauthorized"}), reason
        assert headers["content-type"] == "application/json"
        assert headers["www-authenticate"] == challenge, reason
    assert call(gateway, "GET", "/v1/things/a", headers={"Authorization": f"Bearer {good}"})[0] == 200


def test_another_audience_is_refused(gateway: Gateway, identity: IdentityServer, echo: Echo) -> None:
    gateway.serve([Route("GET /v1/things/{id}", "things", JwtAuthorizer(identity.issuer, ("other",)))])
    bearer = {"Authorization": f"Bearer {identity.token('acme', [])}"}
    status, headers, _ = call(gateway, "GET", "/v1/things/a", headers=bearer)
    assert (status, "does not have a valid audience" in headers["www-authenticate"]) == (401, True)


def test_nested_claims_become_text() -> None:
    claims = {"organization": {"acme": {"id": "1"}}, "roles": ["a", "b"], "exp": 1700000000, "ok": True}
    assert flattened(claims) == {
        "organization": "map[acme:map[id:1]]",
        "roles": "[a b]",
        "exp": "1700000000",
        "ok": "true",
    }


def test_a_body_over_the_limit_is_answered_413(gateway: Gateway) -> None:
    connection = http.client.HTTPConnection(gateway.url.removeprefix("http://"), timeout=10)
    connection.putrequest("POST", "/v1/things")
    connection.putheader("Content-Length", str(BODY_LIMIT + 1))
    connection.endheaders()
    answer = connection.getresponse()
    assert (answer.status, json.loads(answer.read())) == (413, {"message": "Request Entity Too Large"})
    connection.close()


@pytest.mark.parametrize(
    ("answer", "status", "body"),
    [
        (failure("ValueError", "secret detail"), 500, b'{"message": "Internal Server Error"}'),
        (failure("Sandbox.Timedout", "late"), 503, b'{"message": "Service Unavailable"}'),
        (Invocation(b'{"hello": 1}'), 200, b'{"hello": 1}'),
        (Invocation(b'{"statusCode": 204}'), 204, b""),
        (Invocation(b'{"statusCode": 200, "body": "aGk=", "isBase64Encoded": true}'), 200, b"hi"),
        (Invocation(b'{"statusCode": "x"}'), 500, b'{"message": "Internal Server Error"}'),
    ],
)
def test_answers_of_functions_are_mapped(
    gateway: Gateway, echo: Echo, answer: Invocation, status: int, body: bytes
) -> None:
    echo.answer = answer
    response = call(gateway, "GET", "/anything")
    assert (response[0], response[2]) == (status, body)


def test_requests_over_the_stages_limit_are_answered_429(gateway: Gateway) -> None:
    moment = [0.0]
    gateway.serve([Route("GET /v1/things/special", "special")], Bucket(2, 3, lambda: moment[0]))

    def statuses(count: int) -> list[int]:
        return [gateway.answer("GET", "/v1/things/special", {}, b"", "127.0.0.1").status for _ in range(count)]

    assert statuses(5) == [200, 200, 200, 429, 429]
    moment[0] = 0.5
    assert statuses(2) == [200, 429]
    moment[0] = 60.0
    assert statuses(4) == [200, 200, 200, 429]


def test_requests_before_the_routes_are_set_are_answered_503(echo: Echo) -> None:
    gateway = Gateway(echo)
    assert call(gateway, "GET", "/v1/health")[0] == 503
    gateway.close()


@pytest.mark.parametrize(("simulated", "header"), [("kubernetes", "kubernetes"), (None, None)])
def test_answers_say_what_is_simulated(echo, simulated, header):
    gateway = Gateway(echo, simulated=simulated)
    try:
        connection = http.client.HTTPConnection(gateway.url.removeprefix("http://"), timeout=10)
        connection.request("GET", "/v1/health")
        assert connection.getresponse().getheader("x-stockyard-simulated") == header
        connection.close()
    finally:
        gateway.close()
