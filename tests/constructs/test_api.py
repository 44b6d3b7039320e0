"""Calls of the handler: its login, its refusals, and secrets that stand in no event."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import pytest

from local.cloudformation import StackFailed
from stockyard.domain.records import CloudAccount
from stockyard.operations.listing import every
from stockyard_stack_resources.api import Api, Exchange, Login, Reply, exchange
from stockyard_stack_resources.errors import Busy, Refused, StackResourceError
from tests.constructs.documents import cluster
from tests.harness.stacks.product import ISSUER, URL
from tests.harness.stacks.rig import rig, template

DISCOVERY = Reply(200, {}, {"token_endpoint": f"{ISSUER}/token"})


def answering(*replies: Reply) -> tuple[Exchange, list[tuple[str, str, Mapping[str, str], bytes | None]]]:
    """An exchange that gives these answers to the API, in turn, and tokens with a number to the issuer."""
    calls: list[tuple[str, str, Mapping[str, str], bytes | None]] = []
    waiting = list(replies)

    def send(method: str, url: str, headers: Mapping[str, str], body: bytes | None) -> Reply:
        calls.append((method, url, headers, body))
        if url.endswith("openid-configuration"):
            return DISCOVERY
        if url.startswith(ISSUER):
            tokens = sum(call[1].endswith("/token") for call in calls)
            return Reply(200, {}, {"access_token": f"token-{tokens}", "expires_in": 60})
        return waiting.pop(0)

    return send, calls


def api(send: Exchange, clock: float = 0.0) -> Api:
    return Api(URL, Login(ISSUER, lambda: {"client_id": "me", "client_secret": "s3cret"}, send, lambda: clock), send)


def test_a_token_is_kept_and_a_refused_one_is_replaced_once() -> None:
    send, calls = answering(Reply(200, {}, 1), Reply(401, {}, None), Reply(200, {}, 2), *[Reply(401, {}, {})] * 2)
    client = api(send)
    assert client.call("GET", "a").body == 1
    assert client.call("GET", "a").body == 2
    with pytest.raises(Refused) as refusal:
        client.call("GET", "a")
    assert refusal.value.status == 401
    tokens = [headers["Authorization"] for _, url, headers, _ in calls if url.startswith(URL)]
    assert tokens == [f"Bearer token-{number}" for number in (1, 1, 2, 2, 3)]
    form = next(body for _, url, _, body in calls if url.endswith("/token"))
    assert form == b"grant_type=client_credentials&scope=openid+organization&client_id=me&client_secret=s3cret"


@pytest.mark.parametrize(
    ("reply", "kind"),
    [
        (Reply(409, {}, {"error_type": "IllegalTransition", "detail": "No."}), Refused),
        (Reply(409, {}, {"error_type": "RequestInProgress", "detail": "No.", "retryable": True}), Busy),
        (Reply(409, {}, {"error_type": "Conflict", "detail": "No."}), Busy),
        (Reply(412, {}, {"error_type": "PreconditionFailed", "detail": "No."}), Busy),
        (Reply(429, {}, {"detail": "No."}), Busy),
        (Reply(503, {}, None), Busy),
        (Reply(403, {}, {"detail": "No."}), Refused),
    ],
)
def test_refusals_that_pass_are_told_from_others(reply: Reply, kind: type[Exception]) -> None:
    send, _ = answering(reply)
    with pytest.raises(kind):
        api(send).call("POST", "a", {}, key="k")


def test_a_refusal_names_its_fields_and_its_request_and_is_short() -> None:
    faults = [{"pointer": "/a", "detail": "is wrong"}, {"pointer": "", "detail": "is more"}]
    send, _ = answering(
        Reply(422, {}, {"detail": "It is wrong.", "errors": faults, "request_id": "r-7"}),
        Reply(422, {}, {"detail": "x" * 5_000}),
    )
    with pytest.raises(Refused, match=r"^It is wrong\. /a: is wrong body: is more \(request r-7\)$"):
        api(send).call("GET", "a")
    with pytest.raises(Refused) as refusal:
        api(send).call("GET", "a")
    assert len(str(refusal.value)) < 1_000


def test_an_issuer_that_refuses_says_so_without_the_secret() -> None:
    def send(_method: str, url: str, _headers: Mapping[str, str], _body: bytes | None) -> Reply:
        return DISCOVERY if url.endswith("openid-configuration") else Reply(401, {}, {"error": "invalid_client"})

    with pytest.raises(StackResourceError, match="refuses the client me: invalid_client") as refusal:
        api(send).call("GET", "a")
    assert "s3cret" not in str(refusal.value)


def test_only_https_is_spoken_and_a_host_that_is_not_reached_may_be_later() -> None:
    with pytest.raises(StackResourceError, match="https"):
        exchange("GET", "http://example.com/", {}, None)
    with pytest.raises(Busy, match=r"127\.0\.0\.1:1 is not reached"):
        exchange("GET", "http://127.0.0.1:1/", {}, None)


def test_a_new_secret_is_read_when_the_old_one_is_refused() -> None:
    with rig() as region:
        region.product.secrets["client"] = json.dumps({"client_id": "pipeline", "client_secret": "old"})
        with pytest.raises(StackFailed, match="refuses the client pipeline"):
            region.runner.create("platform", cluster())
        region.product.secrets["client"] = json.dumps(
            {"client_id": "pipeline", "client_secret": "s3cret-of-the-pipeline"}
        )
        region.runner.create("platform", cluster())


def test_secrets_of_fields_are_read_when_they_are_sent_and_stand_in_no_event() -> None:
    attributes = {"project_id": "shop", "data_center_id": "us-dallas-1"}
    document: dict[str, Any] = {"provider": "cudo", "name": "cudo", "attributes": attributes}
    more = {"Secrets": json.dumps({"/attributes/api_key": "key"})}
    with rig() as region:
        region.product.secrets["key"] = "the-api-key-of-the-shop"
        stack = region.runner.create("platform", template(Account=("CloudAccount", document, more)))
        accounts = {record.provider: record for record in every(region.product.world.services.store, CloudAccount)}
        assert accounts["cudo"].secrets == ("api_key",)
        region.product.secrets["key"] = "another-api-key-of-the-shop"
        changed = {**document, "description": "Ours"}
        region.runner.update(stack, template(Account=("CloudAccount", changed, more)))
        whole = repr([(pending.request, pending.answer) for pending in region.runner.requests.sent])
        assert "api-key-of-the-shop" not in whole
        region.runner.delete(stack)


def test_all_pages_of_a_list_are_read_and_a_list_that_is_gone_is_empty() -> None:
    first = {"items": [{"name": "a"}, {"name": "b"}], "next_page_token": "p/2"}
    last = {"items": [{"name": "c"}], "next_page_token": None}
    send, calls = answering(Reply(200, {}, first), Reply(200, {}, last), Reply(404, {}, {"detail": "gone"}))
    client = api(send)
    assert [record["name"] for record in client.every("clusters")] == ["a", "b", "c"]
    assert list(client.every("clusters/shop/pools")) == []
    paths = [url.removeprefix(f"{URL}/v1/") for _, url, _, _ in calls if url.startswith(URL)]
    assert paths[:2] == ["clusters?page_size=200", "clusters?page_size=200&page_token=p%2F2"]
