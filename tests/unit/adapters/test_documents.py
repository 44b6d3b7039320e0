"""Public documents: few hosts, few hops, little text."""

from __future__ import annotations

import httpx
import pytest

from stockyard.adapters.documents import MAX_BYTES, HttpsDocuments
from stockyard.errors import VendorRefused, VendorUnavailable

URL = "https://raw.githubusercontent.com/a/b/c.yaml"


def documents(*answers: httpx.Response) -> HttpsDocuments:
    queue = list(answers)
    return HttpsDocuments(httpx.MockTransport(lambda _: queue.pop(0)))


def test_what_stands_there_is_given() -> None:
    assert documents(httpx.Response(200, content=b"x")).fetch(URL) == b"x"


@pytest.mark.parametrize("url", ["https://169.254.169.254/", "http://github.com/a", "https://github.com:8443/a"])
def test_other_addresses_are_not_asked(url: str) -> None:
    with pytest.raises(VendorRefused):
        documents().fetch(url)


def test_a_redirect_to_another_host_is_refused() -> None:
    with pytest.raises(VendorRefused):
        documents(httpx.Response(302, headers={"Location": "https://10.0.0.1/"})).fetch(URL)


@pytest.mark.parametrize(
    ("answer", "error"),
    [
        (httpx.Response(404), VendorRefused),
        (httpx.Response(503), VendorUnavailable),
        (httpx.Response(200, content=b"x" * (MAX_BYTES + 1)), VendorRefused),
    ],
)
def test_any_other_answer_is_an_error(answer: httpx.Response, error: type[Exception]) -> None:
    with pytest.raises(error):
        documents(answer).fetch(URL)
