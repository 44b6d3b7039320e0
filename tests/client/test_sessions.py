"""Logins: the device flow, the private file, the refresh."""

from __future__ import annotations

import json
import stat
from typing import Any
from urllib.parse import parse_qs

import pytest

from stockyard_client.errors import LoginFailed
from stockyard_client.sessions import DeviceAuthorization, DeviceLogin, Session, SessionStore, refreshed

ISSUER = "https://id.test/realms/stockyard"
DISCOVERY = {
    "issuer": ISSUER,
    "device_authorization_endpoint": f"{ISSUER}/device",
    "token_endpoint": f"{ISSUER}/token",
}
STARTED = {
    "device_code": "dev-secret",
    "user_code": "ABCD-EFGH",
    "verification_uri": f"{ISSUER}/confirm",
    "interval": 5,
    "expires_in": 60,
}
WELL_KNOWN, DEVICE, TOKENS = (
    f"/realms/stockyard/{end}" for end in (".well-known/openid-configuration", "device", "token")
)


@pytest.fixture
def issuer(api):
    api.answer("GET", WELL_KNOWN, DISCOVERY)
    api.answer("POST", DEVICE, STARTED)
    return api


def run(issuer: Any, clock: Any) -> tuple[Session, list[DeviceAuthorization]]:
    prompts: list[DeviceAuthorization] = []
    flow = DeviceLogin(ISSUER, transport=issuer.transport, sleep=clock.sleep, now=clock)
    return flow.run("https://api.test/", prompts.append), prompts


def session(**changes: Any) -> Session:
    fields: dict[str, Any] = {
        "url": "https://api.test",
        "issuer": ISSUER,
        "client_id": "stockyard-cli",
        "token_endpoint": f"{ISSUER}/token",
        "access_token": "access-1",
        "refresh_token": "refresh-1",
        "expires_at": 1000.0,
    }
    return Session(**{**fields, **changes})


def test_device_flow_waits_slows_down_and_ends_with_a_session(issuer, clock):
    issuer.answer("POST", TOKENS, {"error": "authorization_pending"}, status=400)
    issuer.answer("POST", TOKENS, {"error": "slow_down"}, status=400)
    issuer.answer("POST", TOKENS, {"access_token": "a", "refresh_token": "r", "expires_in": 300})
    session, prompts = run(issuer, clock)
    assert (prompts[0].uri, prompts[0].user_code) == (f"{ISSUER}/confirm", "ABCD-EFGH")
    assert clock.slept == [5, 5, 10]
    assert (session.url, session.access_token, session.expires_at) == ("https://api.test", "a", 320.0)
    form = parse_qs(issuer.requests[-1].content.decode())
    assert form["device_code"] == ["dev-secret"]
    assert form["grant_type"] == ["urn:ietf:params:oauth:grant-type:device_code"]


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        ({"error": "access_denied", "error_description": "The person said no"}, "The person said no"),
        ({"error": "authorization_pending"}, "expired before it was confirmed"),
    ],
)
def test_device_flow_that_fails_says_why(issuer, clock, answer, reason):
    issuer.answer("POST", TOKENS, answer, status=400)
    with pytest.raises(LoginFailed, match=reason):
        run(issuer, clock)


def test_document_of_another_issuer_is_refused(api, clock):
    api.answer("GET", WELL_KNOWN, {**DISCOVERY, "issuer": "https://evil.test"})
    with pytest.raises(LoginFailed, match="another issuer"):
        run(api, clock)
    assert len(api.requests) == 1


def test_session_store_is_private_and_keeps_one_session_per_api(tmp_path):
    store = SessionStore({"XDG_CONFIG_HOME": str(tmp_path)})
    store.save(session())
    store.save(session(url="https://other.test", access_token="access-2"))
    assert stat.S_IMODE(store.path.stat().st_mode) == 0o600
    assert stat.S_IMODE(store.path.parent.stat().st_mode) == 0o700
    assert store.load("https://api.test/") == session()
    assert store.load("https://third.test") is None
    assert store.current_url() == "https://other.test"
    assert [path.name for path in store.path.parent.iterdir()] == ["sessions.json"]


def test_renewed_session_leaves_the_current_api_as_it_is(tmp_path):
    store = SessionStore({"XDG_CONFIG_HOME": str(tmp_path)})
    store.renew(session())
    assert store.current_url() is None
    store.save(session(url="https://other.test"))
    store.renew(session(access_token="access-2"))
    assert store.current_url() == "https://other.test"
    assert store.load("https://api.test") == session(access_token="access-2")


def test_session_store_ignores_broken_file(tmp_path):
    store = SessionStore({"XDG_CONFIG_HOME": str(tmp_path)})
    store.path.parent.mkdir()
    for text in ("{", "[]", json.dumps({"sessions": {"https://api.test": {"url": 1}}})):
        store.path.write_text(text)
        assert store.load("https://api.test") is None


def test_unexpired_session_is_not_refreshed(api):
    assert refreshed(session(), 969.0, api.transport) == session()
    assert api.requests == []


def test_refresh_keeps_the_refresh_token_when_none_is_sent(api):
    api.answer("POST", TOKENS, {"access_token": "access-2", "expires_in": 300})
    fresh = refreshed(session(), 970.0, api.transport)
    assert (fresh.access_token, fresh.refresh_token, fresh.expires_at) == ("access-2", "refresh-1", 1270.0)


def test_refused_refresh_asks_to_log_in_again(api):
    api.answer("POST", TOKENS, {"error": "invalid_grant"}, status=400)
    with pytest.raises(LoginFailed, match="log in again"):
        refreshed(session(), 2000.0, api.transport)
    with pytest.raises(LoginFailed, match="log in again"):
        refreshed(session(refresh_token=None), 2000.0, api.transport)


def test_representation_shows_no_token():
    assert "access-1" not in repr(session())
    assert "refresh-1" not in repr(session())
