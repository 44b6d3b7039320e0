"""Calls of a head node that Stockyard makes: the one table of them.

Some are public, and every head node has them. The names of the others are not: each has names that it may go by, and a
head node is asked only for one that its own page of the API has.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

PAGE, JSON = "/api", "/json"
"""Paths of the page that documents the API, and of all calls."""
SERVICE = "cmdevice"
DEVICES, NODE, UPDATE, POWER = "getDevices", "getNode", "updateDevice", "powerOperation"
GROUPS, STATUS, SYSTEM = "groups", "status", "system"
PUBLIC = (DEVICES, NODE, UPDATE, POWER)
OPTIONAL: Mapping[str, Sequence[str]] = {
    GROUPS: ("getNodeGroups",),
    STATUS: ("getStatus",),
    SYSTEM: ("getSysInfo",),
}
"""Purposes of calls whose names are not public, with the names that are looked for on the page."""
_WORD = r"(?<![A-Za-z0-9_]){}(?![A-Za-z0-9_])"


@dataclass(frozen=True, slots=True)
class Release:
    """Facts of one head node's page: the field of arguments, and the calls of optional purposes."""

    arguments: str
    optional: Mapping[str, str]

    @classmethod
    def of_page(cls, page: str) -> Release:
        """The release whose page that is. A page that says nothing is one of public calls alone."""
        names = {purpose: next((n for n in names if _has(page, n)), None) for purpose, names in OPTIONAL.items()}
        is_short = _has(page, '"arg"') and not _has(page, '"args"')
        return cls("arg" if is_short else "args", {key: name for key, name in names.items() if name is not None})


def missing(page: str) -> list[str]:
    """The public calls that a page does not have."""
    return [name for name in PUBLIC if not _has(page, name)]


def allow_list() -> list[str]:
    """Lines of the allow-list of a site's connector: the page, and each call by its name alone."""
    names = [*PUBLIC, *(name for names in OPTIONAL.values() for name in names)]
    return [f"GET {PAGE}", *(f"POST {JSON} service={SERVICE} call={name}" for name in names)]


def _has(page: str, name: str) -> bool:
    return re.search(_WORD.format(re.escape(name)), page) is not None
