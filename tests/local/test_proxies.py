"""Proxy settings for programs."""

from __future__ import annotations

from local.proxies import without_proxy


def test_own_addresses_are_named_besides_those_of_a_person() -> None:
    environment = {"NO_PROXY": "example.com, localhost"}
    without_proxy(environment)
    assert environment == {
        "NO_PROXY": "example.com,localhost,127.0.0.1,::1",
        "no_proxy": "127.0.0.1,localhost,::1",
    }
    again = dict(environment)
    without_proxy(again)
    assert again == environment
