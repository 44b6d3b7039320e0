"""Paths in an overlay as its machines tell them: what they say is read with care, since anybody who may annotate a Node
may say it, and shown to people alone."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from ipaddress import IPv4Address
from typing import Any

from stockyard.domain.values import times
from stockyard.domain.values.frozen import dataclass

HANDSHAKE = "handshake"
"""What moves while nothing changes."""
MOST_NAMED = 30
"""Machines that one machine names at most."""
UP, DOWN, UNKNOWN = "up", "down", "unknown"


@dataclass(frozen=True, slots=True)
class MachinePaths:
    """State of a machine: ``up``; ``down``, when no hub hears it, and ``since`` when; ``unknown`` before a hub has said
    anything. ``home`` is the hub that it sends through since ``since``. ``direct`` and ``relayed`` are the numbers of
    other machines that it reaches so, None while it has told nothing; ``through_hub`` has addresses of the latter."""

    state: str
    since: str | None = None
    home: str | None = None
    handshake_at: str | None = None
    direct: int | None = None
    relayed: int | None = None
    through_hub: tuple[str, ...] = ()


def read(text: str | None) -> dict[str, Any] | None:
    """Report of a machine with the fields that are known; None for what is none."""
    if text is None:
        return None
    try:
        document = json.loads(text)
        report: dict[str, Any] = {"direct": _count(document["direct"])}
        report |= {name: _moment(document[name]) for name in ("since", HANDSHAKE) if name in document}
        if "home" in document:
            report["home"] = _address(document["home"])
        if "down" in document:
            pairs = list(document["down"].items())[:MOST_NAMED]
            report["down"] = {_address(address): _moment(at) for address, at in pairs}
        else:
            report["relayed"] = [_address(address) for address in document["relayed"][:MOST_NAMED]]
            report["count"] = max(_count(document["count"]), len(report["relayed"]))
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        return None
    return report


def _count(value: object) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value < 1_000_000:
        raise ValueError("no count")
    return value


def _address(value: object) -> str:
    if not isinstance(value, str):
        raise ValueError("no address")
    return str(IPv4Address(value))


def _moment(value: object) -> str:
    if not isinstance(value, str):
        raise ValueError("no moment")
    return times.to_text(times.from_text(value))


def still(reports: Mapping[str, Mapping[str, Any]]) -> dict[str, dict[str, Any]]:
    """Reports without what moves while nothing changes."""
    return {name: {key: report[key] for key in report if key != HANDSHAKE} for name, report in reports.items()}


def paths_of(
    hubs: Sequence[str], reports: Mapping[str, Mapping[str, Any] | None], addresses: Sequence[str]
) -> dict[str, MachinePaths]:
    """State of each address, by the reports of machines at their addresses. Only hubs say that others are down: a
    machine is when none of the hubs that are up hears it."""
    downs: dict[str, Mapping[str, str]] = {}
    for hub in hubs:
        report = reports.get(hub)
        if report is not None and "down" in report:
            downs[hub] = report["down"]
    # What a dead hub said last is old.
    living = {hub: down for hub, down in downs.items() if not any(hub in other for other in downs.values())}
    judges = living or downs
    return {address: _paths(address, judges, reports) for address in addresses}


def _paths(
    address: str, judges: Mapping[str, Mapping[str, str]], reports: Mapping[str, Mapping[str, Any] | None]
) -> MachinePaths:
    report = reports.get(address) or {}
    silences = [down[address] for hub, down in judges.items() if hub != address and address in down]
    other_hubs = [hub for hub in judges if hub != address]
    is_down = bool(other_hubs) and len(silences) == len(other_hubs)
    state = DOWN if is_down else UP if other_hubs or address in judges else UNKNOWN
    missing = {silent for down in judges.values() for silent in down}
    relayed = [other for other in report.get("relayed", ()) if other not in missing]
    count = report.get("count")
    if count is not None:
        count = max(len(relayed), count - len(report.get("relayed", ())) + len(relayed))
    elif report:
        count = 0
    return MachinePaths(
        state,
        max(silences) if is_down else report.get("since"),
        report.get("home"),
        report.get(HANDSHAKE),
        report.get("direct"),
        count,
        tuple(relayed),
    )
