"""People of the local cloud's realm."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

LOCAL_ROLES = ("stockyard-viewer", "stockyard-operator", "stockyard-admin")


@dataclass(slots=True)
class Person:
    """A person of the realm. The first is who approves logins with the device flow."""

    tenant: str = "acme"
    roles: Sequence[str] = LOCAL_ROLES
    subject: str = "local-user"


def local_people() -> list[Person]:
    """The people of a local cloud, each of whom may log in by the page of the stand-in."""
    return [
        Person(),
        Person("acme", LOCAL_ROLES[:2], "local-operator"),
        Person("acme", LOCAL_ROLES[:1], "local-viewer"),
        Person("globex", LOCAL_ROLES, "local-other"),
        Person("platform", ("stockyard-platform",), "local-platform"),
    ]
