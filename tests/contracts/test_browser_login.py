"""Login of people by a browser, with a code and PKCE: the stand-in, and a real Keycloak 26."""

from __future__ import annotations

import base64
import hashlib
import re
import secrets
from collections.abc import Iterator
from html import unescape
from typing import Any
from urllib.parse import parse_qs, urlsplit

import httpx
import pytest

CLIENT, URL = "stockyard-console", "http://127.0.0.1:9"


@pytest.fixture
def back(door: Any) -> str:
    """The address below which the console is answered. The stand-in of these tests serves no API that makes it one."""
    if not door.admin("GET", f"?clientId={CLIENT}").json():
        door.server.console_at(URL)
    (client,) = door.admin("GET", f"?clientId={CLIENT}").json()
    assert client["publicClient"]
    assert client["standardFlowEnabled"]
    assert not client["directAccessGrantsEnabled"]
    assert client["attributes"]["pkce.code.challenge.method"] == "S256"
    return str(client["redirectUris"][0]).removesuffix("*") + "sign-in"


class Browser:
    """Cookies of one person's browser, and the login by its pages."""

    def __init__(self, door: Any, back: str) -> None:
        self.door, self.back, self.verifier = door, back, secrets.token_urlsafe(48)
        self.http = httpx.Client(timeout=30)

    def ask(self, **changes: str | None) -> httpx.Response:
        digest = hashlib.sha256(self.verifier.encode()).digest()
        challenge = base64.urlsafe_b64encode(digest).decode().rstrip("=")
        query = {"response_type": "code", "client_id": CLIENT, "redirect_uri": self.back, "state": "s 1&2"}
        query |= {"scope": "openid organization", "code_challenge": challenge, "code_challenge_method": "S256"}
        sent = {name: value for name, value in (query | changes).items() if value is not None}
        answer = self.http.get(f"{self.door.server.issuer}/protocol/openid-connect/auth", params=sent)
        self._trust()
        return answer

    def _trust(self) -> None:
        """Browsers send cookies that are for TLS alone to this machine too."""
        for cookie in self.http.cookies.jar:
            cookie.secure = False

    def log_in(self, name: str = "local-user") -> dict[str, str]:
        page = self.ask()
        fields = {"username": name, "password": getattr(self.door.server, "password", "anything")}
        while page.status_code == 200:
            # The stand-in asks for both at once, a realm with organizations first for the name.
            action = re.search(r'<form[^>]*id="kc-form-login"[^>]*action="([^"]+)"', page.text)
            named = [field for field in fields if f'name="{field}"' in page.text]
            assert action is not None
            assert named, page.text[:2000]
            url = httpx.URL(str(page.url)).join(unescape(action[1]))
            page = self.http.post(url, data={field: fields.pop(field) for field in named})
            self._trust()
        return self.returned(page)

    def returned(self, answer: httpx.Response) -> dict[str, str]:
        assert answer.status_code == 302, answer.text[:500]
        redirect = answer.headers["location"]
        assert redirect.startswith(f"{self.back}?")
        return {name: values[0] for name, values in parse_qs(urlsplit(redirect).query).items()}

    def exchange(self, first: str, **changes: str) -> httpx.Response:
        form = {"grant_type": "authorization_code", "client_id": CLIENT, "code": first, "redirect_uri": self.back}
        return self.door.post("token", {**form, "code_verifier": self.verifier, **changes})


@pytest.fixture
def person(door: Any, back: str) -> Iterator[Browser]:
    browser = Browser(door, back)
    with browser.http:
        yield browser


def test_a_person_gets_tokens_of_the_tenant_by_a_code(door: Any, person: Browser) -> None:
    returned = person.log_in()
    assert returned["state"] == "s 1&2"
    assert returned["iss"] == door.server.issuer
    tokens = person.exchange(returned["code"]).json()
    read = door.claims(tokens["access_token"])
    audiences = read["aud"] if isinstance(read["aud"], list) else [read["aud"]]
    assert "stockyard" in audiences
    assert (read["azp"], read["preferred_username"]) == (CLIENT, "local-user")
    assert list(read["organization"]) == ["acme"]
    assert "stockyard-admin" in read["realm_access"]["roles"]
    assert tokens["expires_in"] <= 300
    assert door.claims(tokens["id_token"])["aud"] == CLIENT
    form = {"grant_type": "refresh_token", "client_id": CLIENT, "refresh_token": tokens["refresh_token"]}
    again = door.post("token", form).json()
    assert again["refresh_token"] != tokens["refresh_token"]
    assert door.claims(again["access_token"])["sub"] == read["sub"]


def test_a_code_is_good_for_one_exchange_by_who_began_it(person: Browser) -> None:
    code = person.log_in()["code"]
    assert person.exchange(code).status_code == 200
    assert person.exchange(code).json()["error"] == "invalid_grant"
    for changes in ({"code_verifier": "x" * 43}, {"redirect_uri": f"{person.back}/other"}, {"code": "none"}):
        fresh = person.returned(person.ask(prompt="none"))["code"]
        answer = person.exchange(fresh, **changes)
        assert (answer.status_code, answer.json()["error"]) == (400, "invalid_grant"), changes


def test_a_session_logs_in_silently_until_it_is_ended(door: Any, person: Browser) -> None:
    assert person.returned(person.ask(prompt="none"))["error"] == "login_required"
    tokens = person.exchange(person.log_in()["code"]).json()
    assert "code" in person.returned(person.ask(prompt="none"))
    query = {"client_id": CLIENT, "post_logout_redirect_uri": person.back, "id_token_hint": tokens["id_token"]}
    answer = person.http.get(f"{door.server.issuer}/protocol/openid-connect/logout", params=query)
    assert (answer.status_code, answer.headers["location"].split("?")[0]) == (302, person.back)
    assert person.returned(person.ask(prompt="none"))["error"] == "login_required"
    form = {"grant_type": "refresh_token", "client_id": CLIENT, "refresh_token": tokens["refresh_token"]}
    assert door.post("token", form).json()["error"] == "invalid_grant"


def test_a_request_without_a_challenge_or_for_another_url_is_refused(person: Browser) -> None:
    missing = person.returned(person.ask(code_challenge_method=None, code_challenge=None))
    assert (missing["error"], missing["state"]) == ("invalid_request", "s 1&2")
    plain = person.returned(person.ask(code_challenge_method="plain"))
    assert plain["error"] == "invalid_request"
    for changes in ({"redirect_uri": "https://elsewhere.example/console/sign-in"}, {"client_id": "unknown"}):
        answer = person.ask(**changes)
        assert answer.status_code == 400, changes
        assert "location" not in answer.headers


def test_pages_of_the_console_alone_read_the_answers(door: Any, person: Browser) -> None:
    origin = "/".join(person.back.split("/")[:3])
    url = f"{door.server.issuer}/protocol/openid-connect/token"
    code = person.log_in()["code"]
    form = {"grant_type": "authorization_code", "client_id": CLIENT, "code": code, "redirect_uri": person.back}
    form["code_verifier"] = person.verifier
    answer = httpx.post(url, data=form, headers={"Origin": origin}, timeout=30)
    assert answer.status_code == 200
    assert answer.headers["access-control-allow-origin"] == origin
    code = person.returned(person.ask(prompt="none"))["code"]
    stranger = httpx.post(url, data={**form, "code": code}, headers={"Origin": "https://elsewhere.example"}, timeout=30)
    assert stranger.headers.get("access-control-allow-origin") != "https://elsewhere.example"
