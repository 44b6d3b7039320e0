"""A deploy begins only with a realm that API Gateway can read."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest

from stacks import issuer
from stacks.errors import ConfigError

REALM = "https://id.acme.dev/realms/stockyard"


def document(named: str) -> Callable[[str], bytes]:
    return lambda url: json.dumps({"issuer": named, "read_at": url}).encode()


def failing(url: str) -> bytes:
    raise TimeoutError(url)


def test_a_realm_that_calls_itself_so_is_taken() -> None:
    urls: list[str] = []

    def read(url: str) -> bytes:
        urls.append(url)
        return document(REALM)(url)

    issuer.check(REALM, read)
    assert urls == [f"{REALM}/.well-known/openid-configuration"]


@pytest.mark.parametrize(
    ("realm", "read", "complaint"),
    [
        ("https://keycloak.example.com/realms/stockyard", document(REALM), "placeholder"),
        ("https://localhost/realms/stockyard", document(REALM), "placeholder"),
        (REALM, failing, r"cannot be read \(TimeoutError\)"),
        (REALM, lambda _: b"<html>", "cannot be read"),
        (REALM, lambda _: b"[]", "cannot be read"),
        (REALM, document("http://id.acme.dev/realms/stockyard"), "calls itself"),
    ],
)
def test_any_other_is_refused(realm: str, read: Callable[[str], bytes], complaint: str) -> None:
    with pytest.raises(ConfigError, match=complaint):
        issuer.check(realm, read)
