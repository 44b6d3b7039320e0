"""Events and pages of lists, as the API answers them."""

from __future__ import annotations

OPERATIONS, EVENTS, CLUSTERS, CLAIMS = "/v1/operations", "/v1/events", "/v1/clusters", "/v1/node-claims"
WIDE = "\u65e5\u672c\u8a9e" * 6
"""Letters of two cells."""


def event(number, subject="clu_01", **more):
    named = {
        "id": f"evt_{number:026}",
        "subject": subject,
        "sequence": number,
        "time": f"2026-11-25T12:00:{number:02}.500Z",
    }
    return {**named, "reason": "PhaseDone", "message": f"m {number}", **more}


def page(*items, cursor="evt_0000000001~"):
    return {"items": list(items), "next_page_token": None, "cursor": cursor}


def listed(api, path, *items):
    api.answer("GET", path, {"items": list(items), "next_page_token": None})
