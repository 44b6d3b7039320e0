"""Commits of repositories over smart HTTP: of a real git, of answers that are none, and of addresses that nobody may
call."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import httpx
import pytest

from stockyard.errors import VendorError, VendorNotFound, VendorRefused, VendorTimeout, VendorUnavailable
from stockyard.providers.addresses import Guard
from stockyard.providers.nodes.terraform.repositories import MAX_BYTES, Repositories
from tests.harness.runs.git_server import GitServer, serving

URL = "https://git.example/nodes.git"
OPEN = Guard(resolve=lambda _host, _port: ("93.184.216.34",))
KIND = {"content-type": "application/x-git-upload-pack-advertisement"}
COMMIT = "a" * 40


def line(text: str) -> bytes:
    return f"{len(text) + 5:04x}{text}\n".encode()


def listed(*references: str) -> bytes:
    first, *more = references
    return b"".join(
        (line("# service=git-upload-pack"), b"0000", line(f"{first}\0side-band-64k"), *map(line, more), b"0000")
    )


def answering(answer: Callable[[httpx.Request], httpx.Response]) -> Repositories:
    return Repositories(OPEN, httpx.MockTransport(answer))


def at(answer: httpx.Response, reference: str = "refs/heads/main") -> str:
    return answering(lambda _: answer).commit_at(URL, reference)


def test_references_of_a_real_git(tmp_path: Path) -> None:
    with serving(GitServer(tmp_path)) as server:
        first = server.commit("nodes", {"main.tf": "# one"}, tag="v1")
        second = server.commit("nodes", {"main.tf": "# two"})
        other = server.commit("nodes", {"main.tf": "# three"}, branch="next")
        repositories = Repositories(Guard(stand_ins=frozenset({server.url.removeprefix("http://")})))
        url = f"{server.url}/nodes.git"
        for reference, commit in (
            ("refs/tags/v1", first),
            ("refs/heads/main", second),
            ("HEAD", second),
            ("refs/heads/next", other),
        ):
            assert repositories.commit_at(url, reference) == commit, reference
        with pytest.raises(VendorNotFound, match="refs/heads/gone"):
            repositories.commit_at(url, "refs/heads/gone")
        moved = server.commit("nodes", {"main.tf": "# four"})
        assert repositories.commit_at(url, "refs/heads/main") == moved
        assert all("info/refs" in path for path in server.requests), "nothing but the list is fetched"
        server.credentials = "user:password"
        with pytest.raises(VendorRefused, match="not for everybody"):
            repositories.commit_at(url, "HEAD")
        with pytest.raises(VendorRefused, match="https"):
            Repositories(Guard()).commit_at(url, "HEAD")


def test_a_tag_with_a_text_is_the_commit_that_it_stands_for() -> None:
    body = listed(
        f"{COMMIT} HEAD", f"{'b' * 40} refs/tags/v1", f"{'c' * 40} refs/tags/v1^{{}}", f"{'d' * 40} refs/tags/v2"
    )
    answer = httpx.Response(200, headers=KIND, content=body)
    assert at(answer, "refs/tags/v1") == "c" * 40
    assert at(httpx.Response(200, headers=KIND, content=body), "refs/tags/v2") == "d" * 40


def test_a_list_is_read_to_the_wanted_reference() -> None:
    pieces = 0

    def content():
        nonlocal pieces
        yield listed(f"{COMMIT} HEAD", f"{COMMIT} refs/heads/main", f"{COMMIT} refs/heads/next")[:-4]
        while True:
            pieces += 1
            yield b"".join(line(f"{COMMIT} refs/pull/{pieces}/{number}") for number in range(1000))

    assert at(httpx.Response(200, headers=KIND, content=content())) == COMMIT
    assert pieces <= 1
    with pytest.raises(VendorRefused, match=str(MAX_BYTES)):
        at(httpx.Response(200, headers=KIND, content=content()), "refs/tags/v1")


@pytest.mark.parametrize(
    ("answer", "error"),
    [
        (httpx.Response(401), VendorRefused),
        (httpx.Response(404), VendorRefused),
        (httpx.Response(503), VendorUnavailable),
        (httpx.Response(200, content=listed(f"{COMMIT} refs/heads/main")), VendorRefused),
        (httpx.Response(200, headers=KIND, content=b"<html>"), VendorRefused),
        (httpx.Response(200, headers=KIND, content=line("ERR access denied by the host canary")), VendorRefused),
        (httpx.Response(200, headers=KIND, content=b""), VendorNotFound),
        (httpx.Response(302, headers={"location": "https://other.example/x"}), VendorRefused),
        (httpx.Response(302, headers={"location": "http://git.example/x"}), VendorRefused),
        (httpx.Response(302, headers={"location": "/again"}), VendorRefused),
    ],
)
def test_what_is_no_list_is_an_error_that_repeats_nothing_of_it(
    answer: httpx.Response, error: type[VendorError]
) -> None:
    with pytest.raises(error) as raised:
        at(answer)
    assert "canary" not in raised.value.detail


def test_a_redirect_on_the_same_host_is_followed() -> None:
    def answer(request: httpx.Request) -> httpx.Response:
        if request.url.path == "/nodes.git/info/refs":
            return httpx.Response(301, headers={"location": "/org/nodes.git/info/refs?service=git-upload-pack"})
        return httpx.Response(200, headers=KIND, content=listed(f"{COMMIT} refs/heads/main"))

    assert answering(answer).commit_at(URL, "refs/heads/main") == COMMIT


def test_silence_and_slowness_are_errors(monkeypatch: pytest.MonkeyPatch) -> None:
    def silent(request: httpx.Request) -> httpx.Response:
        raise httpx.ConnectTimeout("", request=request)

    with pytest.raises(VendorTimeout):
        answering(silent).commit_at(URL, "HEAD")
    monkeypatch.setattr("stockyard.providers.nodes.terraform.repositories.ALL_SECONDS", -1)
    with pytest.raises(VendorTimeout, match="too slowly"):
        at(httpx.Response(200, headers=KIND, content=listed(f"{COMMIT} HEAD")))


@pytest.mark.parametrize("address", ["127.0.0.1", "169.254.169.254", "10.0.0.1", "::1"])
def test_a_name_that_leads_inside_is_not_called(address: str) -> None:
    calls: list[httpx.Request] = []
    transport = httpx.MockTransport(lambda request: calls.append(request) or httpx.Response(200))
    with pytest.raises(VendorRefused):
        Repositories(Guard(resolve=lambda _host, _port: (address,)), transport).commit_at(URL, "HEAD")
    assert not calls
