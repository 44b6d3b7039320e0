"""Tokens of people: got by the OIDC device flow, kept in one private file, refreshed before they expire."""

from __future__ import annotations

import base64
import binascii
import json
import os
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import httpx

from stockyard_client.errors import LoginFailed
from stockyard_client.transport import PAST_PROXIES

DEFAULT_CLIENT = "stockyard-cli"
DEFAULT_SCOPE = "openid organization"
EARLY_SECONDS = 30.0
_DEVICE_GRANT = "urn:ietf:params:oauth:grant-type:device_code"


def cluster_session(issuer: str, client_id: str) -> str:
    """Key of the session of a login to a cluster: no API has such a URL."""
    return f"{issuer.rstrip('/')}#{client_id}"


@dataclass(frozen=True, slots=True)
class Session:
    """One person's tokens for one API, or for one cluster (``cluster_session``). ``expires_at`` is seconds since 1970,
    of the token that ends first.

    The API takes the access token of its login, a cluster the ID token of its own: who runs a cluster gets nothing that
    the API or another cluster would take.
    """

    url: str
    issuer: str
    client_id: str
    token_endpoint: str
    access_token: str
    refresh_token: str | None
    expires_at: float
    id_token: str | None = None
    program: str | None = None
    """How a program has logged in, ``SECRET`` or ``GITHUB``, so that it can do so again; None of a person."""

    def __repr__(self) -> str:
        return f"Session(url={self.url!r}, issuer={self.issuer!r})"


@dataclass(frozen=True, slots=True)
class DeviceAuthorization:
    """Page where a person confirms the login, and the code to compare."""

    uri: str
    user_code: str


class SessionStore:
    """The file with the sessions, one per API URL, so that no API is ever sent another one's token."""

    def __init__(self, environment: Mapping[str, str]) -> None:
        base = environment.get("XDG_CONFIG_HOME") or os.path.join(environment.get("HOME", "~"), ".config")
        self.path = Path(base).expanduser() / "stockyard" / "sessions.json"

    def current_url(self) -> str | None:
        """The API of the last login."""
        return self._read().get("current")

    def load(self, url: str) -> Session | None:
        """The session for the API at ``url``."""
        fields = self._read().get("sessions", {}).get(url.rstrip("/"))
        try:
            return Session(**fields) if fields else None
        except TypeError:
            return None

    def save(self, session: Session) -> None:
        """Keeps ``session`` of a new login and makes its API the current one."""
        self._keep(session, session.url)

    def renew(self, session: Session) -> None:
        """Keeps the refreshed ``session``; the current API stays what it is."""
        self._keep(session, self.current_url())

    def forget(self, url: str) -> None:
        """Drops the session for the API at ``url``, and that it is the current one."""
        content = self._read()
        sessions = {key: value for key, value in content.get("sessions", {}).items() if key != url.rstrip("/")}
        current = content.get("current")
        kept_current = None if current == url.rstrip("/") else current
        write_private(self.path, json.dumps({"current": kept_current, "sessions": sessions}, indent=2))

    def urls(self) -> list[str]:
        """Keys of the sessions: APIs, and clusters."""
        return list(self._read().get("sessions", {}))

    def _keep(self, session: Session, current: str | None) -> None:
        """The file is readable by its owner only."""
        sessions = {**self._read().get("sessions", {}), session.url: asdict(session)}
        write_private(self.path, json.dumps({"current": current, "sessions": sessions}, indent=2))

    def _read(self) -> dict[str, Any]:
        try:
            content = json.loads(self.path.read_text())
        except (OSError, ValueError):
            return {}
        return content if isinstance(content, dict) else {}


def write_private(path: Path, text: str) -> None:
    """Replaces ``path`` in one step by a file of mode 0600; makes its folder (0700) when it is missing."""
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")  # mkstemp's mode is 0600
    try:
        with os.fdopen(handle, "w") as file:
            file.write(text)
        os.replace(temporary, path)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise


class DeviceLogin:
    """The OAuth 2.0 device flow (RFC 8628) against an OIDC issuer."""

    def __init__(
        self,
        issuer: str,
        *,
        client_id: str = DEFAULT_CLIENT,
        scope: str = DEFAULT_SCOPE,
        transport: httpx.BaseTransport | None = None,
        sleep: Callable[[float], None],
        now: Callable[[], float],
    ) -> None:
        self._issuer = issuer.rstrip("/")
        self._client_id = client_id
        self._scope = scope
        self._sleep = sleep
        self._now = now
        self._http = httpx.Client(timeout=30.0, transport=transport, mounts=PAST_PROXIES)

    def run(self, url: str, prompt: Callable[[DeviceAuthorization], None]) -> Session:
        """A session for the API at ``url``; ``prompt`` tells the person where to confirm."""
        with self._http:
            metadata = self._get(f"{self._issuer}/.well-known/openid-configuration")
            if str(metadata.get("issuer", "")).rstrip("/") != self._issuer:
                raise LoginFailed("the issuer's document names another issuer")
            if "device_authorization_endpoint" not in metadata:
                raise LoginFailed("the issuer does not offer the device flow")
            form = {"client_id": self._client_id, "scope": self._scope}
            started = answer_of(self._http, metadata["device_authorization_endpoint"], form)
            if "device_code" not in started:
                raise LoginFailed(reason_of(started))
            uri = started.get("verification_uri_complete") or started.get("verification_uri", "")
            prompt(DeviceAuthorization(uri, started.get("user_code", "")))
            tokens = self._poll(metadata["token_endpoint"], started)
        return session_of(
            url.rstrip("/"), self._issuer, self._client_id, metadata["token_endpoint"], tokens, self._now()
        )

    def _get(self, url: str) -> dict[str, Any]:
        try:
            document: dict[str, Any] = self._http.get(url).raise_for_status().json()
        except (httpx.HTTPError, ValueError):
            raise LoginFailed(f"no OIDC issuer answers at {self._issuer}") from None
        return document

    def _poll(self, endpoint: str, started: dict[str, Any]) -> dict[str, Any]:
        pause = float(started.get("interval", 5))
        deadline = self._now() + float(started.get("expires_in", 600))
        form = {"grant_type": _DEVICE_GRANT, "device_code": started["device_code"], "client_id": self._client_id}
        while self._now() < deadline:
            self._sleep(pause)
            answer = answer_of(self._http, endpoint, form)
            if "access_token" in answer:
                return answer
            error = answer.get("error")
            if error == "slow_down":
                pause += 5
            elif error != "authorization_pending":
                raise LoginFailed(reason_of(answer))
        raise LoginFailed("the code expired before it was confirmed")


def refreshed(session: Session, now: float, transport: httpx.BaseTransport | None = None) -> Session:
    """``session`` as it is while it lives for another 30 s, else a new one from its refresh token."""
    if session.expires_at - now > EARLY_SECONDS:
        return session
    if not session.refresh_token:
        raise LoginFailed("the session has expired: log in again")
    form = {"grant_type": "refresh_token", "refresh_token": session.refresh_token, "client_id": session.client_id}
    with httpx.Client(timeout=30.0, transport=transport, mounts=PAST_PROXIES) as http:
        answer = answer_of(http, session.token_endpoint, form)
    if "access_token" not in answer:
        raise LoginFailed(f"{reason_of(answer)}: log in again")
    fresh = session_of(session.url, session.issuer, session.client_id, session.token_endpoint, answer, now)
    # an issuer that does not rotate refresh tokens sends none
    return fresh if fresh.refresh_token else replace(fresh, refresh_token=session.refresh_token)


def revoked(session: Session, transport: httpx.BaseTransport | None = None) -> bool:
    """Whether the issuer has ended ``session``: its refresh token is revoked (RFC 7009). False where the issuer cannot
    do that, did not answer, or there is no such token."""
    if not session.refresh_token:
        return False
    form = {"token": session.refresh_token, "token_type_hint": "refresh_token", "client_id": session.client_id}
    try:
        with httpx.Client(timeout=10.0, transport=transport, mounts=PAST_PROXIES) as http:
            document = http.get(f"{session.issuer.rstrip('/')}/.well-known/openid-configuration").json()
            endpoint = document.get("revocation_endpoint") if isinstance(document, dict) else None
            return isinstance(endpoint, str) and http.post(endpoint, data=form).is_success
    except (httpx.HTTPError, ValueError):
        return False


def claims_of(token: str) -> dict[str, Any]:
    """Claims of ``token`` about its holder; nothing is verified. Empty where it cannot be read."""
    try:
        payload = token.split(".")[1]
        claims = json.loads(base64.urlsafe_b64decode(payload + "=" * (-len(payload) % 4)))
    except (IndexError, ValueError, binascii.Error):
        return {}
    return claims if isinstance(claims, dict) else {}


def ends_at(token: str) -> int | None:
    """End of ``token`` by its own claim; nothing is verified, that is its reader's part."""
    try:
        return int(claims_of(token)["exp"])
    except (KeyError, TypeError, ValueError):
        return None


def session_of(
    url: str, issuer: str, client_id: str, token_endpoint: str, tokens: dict[str, Any], now: float
) -> Session:
    """The session that a token endpoint's answer begins."""
    id_token = tokens.get("id_token")
    expires_at = now + float(tokens.get("expires_in", 300))
    return Session(
        url=url,
        issuer=issuer,
        client_id=client_id,
        token_endpoint=token_endpoint,
        access_token=tokens["access_token"],
        refresh_token=tokens.get("refresh_token"),
        expires_at=min(expires_at, (ends_at(id_token) if id_token else None) or expires_at),
        id_token=id_token,
    )


def answer_of(http: httpx.Client, url: str, form: dict[str, str]) -> dict[str, Any]:
    """Answer of a token endpoint to a form, a refusal too. Raises ``LoginFailed`` where none comes."""
    try:
        answer = http.post(url, data=form).json()
    except (httpx.HTTPError, ValueError):
        raise LoginFailed("the issuer did not answer") from None
    return answer if isinstance(answer, dict) else {}


def reason_of(answer: dict[str, Any]) -> str:
    """Words of an issuer that refuses."""
    return str(answer.get("error_description") or answer.get("error") or "the issuer refused")
