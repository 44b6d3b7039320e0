"""Requests of this machine to itself go through no proxy, whatever the environment says about others."""

from __future__ import annotations

from collections.abc import MutableMapping

LOOPBACK = ("127.0.0.1", "localhost", "::1")


def without_proxy(environment: MutableMapping[str, str]) -> None:
    """Name the machine's own addresses in ``NO_PROXY``, in capitals and in small letters: programs read either."""
    for name in ("NO_PROXY", "no_proxy"):
        listed = [part.strip() for part in environment.get(name, "").split(",") if part.strip()]
        environment[name] = ",".join([*listed, *(address for address in LOOPBACK if address not in listed)])
