"""A request that goes through a site, from the client to the record and back."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta

import httpx
import pytest

from local.testing.memory_store import MemoryRegistry
from stockyard.adapters.site_requests import StoredSiteRequests
from stockyard.domain.records import Name, SiteAnswer, SiteRequest
from stockyard.domain.site_content import SiteReply, packed_reply, unpacked_call
from stockyard.domain.site_records import READ_SECONDS, WRITE_SECONDS
from stockyard.domain.values import times
from stockyard.errors import PermissionDenied, VendorRefused
from stockyard.ports import Create
from stockyard.providers.sites import SiteTransport
from tests.harness.worlds.memory import FixedClock, MemorySecrets


class Yard:
    """A tenant with the site ``room``, whose connector does ``act`` while somebody waits."""

    def __init__(self) -> None:
        self.store, self.secrets, self.clock = MemoryRegistry().store("acme"), MemorySecrets(), FixedClock()
        self.begin = self.clock.now()
        self.store.commit(Create(Name("site/room", "sit_1")))
        self.act: Callable[[], None] = lambda: None
        requests = StoredSiteRequests(self.store, self.secrets, self.clock, self.sleep)
        self.client = httpx.Client(transport=SiteTransport(requests, "room"))

    def sleep(self, seconds: float) -> None:
        self.clock.advance(seconds)
        self.act()

    def requests(self) -> list[SiteRequest]:
        return self.store.list(SiteRequest, prefix="sit_1/").items

    def answer(self, reply: SiteReply) -> None:
        request = self.requests()[-1]
        sealed = self.secrets.seal(f"acme/{request.id}/answer", packed_reply(reply))
        self.store.commit(Create(SiteAnswer(request.id, sealed, request.created_at)))


@pytest.fixture
def yard() -> Yard:
    return Yard()


def test_a_request_is_sealed_without_credentials_and_its_answer_is_the_response(yard: Yard):
    yard.act = lambda: yard.answer(SiteReply(201, {"Content-Type": "text/plain", "Set-Cookie": "x"}, b"made"))
    headers = {"Authorization": "Bearer canary", "Impersonate-User": "root", "Cookie": "a=b", "Accept": "text/plain"}
    response = yard.client.post("https://anywhere/api/v1/things?dryRun=All", headers=headers, content=b"{}")
    assert (response.status_code, response.text, "set-cookie" in response.headers) == (201, "made", False)
    (request,) = yard.requests()
    assert (request.method, request.path) == ("POST", "/api/v1/things?dryRun=All")
    call = unpacked_call("POST", "/", yard.secrets.unseal(f"acme/{request.id}/request", request.sealed))
    assert (call.headers, call.body) == ({"accept": "text/plain"}, b"{}")


def test_the_wait_ends_and_what_writes_is_given_out_for_a_shorter_time(yard: Yard):
    for method, seconds in (("GET", READ_SECONDS), ("PATCH", WRITE_SECONDS)):
        begin = yard.clock.now()
        with pytest.raises(httpx.ConnectTimeout):
            yard.client.request(method, "https://anywhere/x")
        assert yard.clock.now() - begin == timedelta(seconds=20)
        assert times.from_text(yard.requests()[-1].ends_at) - begin == timedelta(seconds=seconds)


def test_a_host_that_is_away_and_a_missing_site_are_errors_of_the_connection(yard: Yard):
    yard.act = lambda: yard.answer(SiteReply(0, {}, b"", "the host is away"))
    with pytest.raises(httpx.ConnectError, match="the host is away"):
        yard.client.get("https://anywhere/x")
    requests = StoredSiteRequests(yard.store, yard.secrets, yard.clock, yard.sleep)
    with pytest.raises(httpx.ConnectError, match="no site other"):
        httpx.Client(transport=SiteTransport(requests, "other")).get("https://anywhere/x")


def test_what_is_too_large_is_refused_before_it_is_written(yard: Yard):
    with pytest.raises(VendorRefused, match="at most"):
        yard.client.put("https://anywhere/x", content=yard.clock.randomness(300_000))
    assert yard.requests() == []


def test_an_answer_opens_for_its_own_request_alone(yard: Yard):
    def answer() -> None:
        sealed = yard.secrets.seal("acme/sit_2/other/answer", packed_reply(SiteReply(200, {}, b"")))
        yard.store.commit(Create(SiteAnswer(yard.requests()[-1].id, sealed, times.to_text(yard.clock.now()))))

    yard.act = answer
    with pytest.raises(VendorRefused):
        yard.client.get("https://anywhere/x")


def test_a_refusal_of_the_connector_comes_with_its_own_text(yard: Yard):
    body = b'{"message": "the site\'s connector refused: the allow-list has no GET /x"}'
    for text, message in ((body, "the allow-list has no GET /x"), (b"?", "its connector refused the request")):
        yard.act = lambda text=text: yard.answer(SiteReply(403, {"stockyard-site": "refused"}, text))
        with pytest.raises(PermissionDenied, match=message):
            yard.client.get("https://anywhere/x")
