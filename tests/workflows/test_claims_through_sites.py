"""Claims whose host only a site reaches, and whose connector dies at each of the requests of a claim's life.

At the end there must be no object of ours in the host and no claim.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest

from stockyard.ports.sites import WAIT_SECONDS, SiteCall, SiteReply
from tests.harness.worlds.kubernetes_host import SITE, KubernetesHost
from tests.workflows.config_map_life import ConfigMapLife

WAYS = ("taken", "done", "late", "twice")
"""How the connector dies: with the request taken; when it was carried out and not answered; and as before, but the
request is given out again after the caller has gone, or while the caller still waits."""


class DyingConnector(KubernetesHost):
    """A host whose connector dies at the request of that number; None: at none."""

    def __init__(self, number: int | None, way: str) -> None:
        super().__init__()
        self._number, self._way = number, way
        self.calls, self._late = 0, list[SiteCall]()

    def ask(self, site: str, call: SiteCall, seconds: float = WAIT_SECONDS) -> SiteReply | None:
        """See ``ports.sites.SiteRequests.ask``."""
        late, self._late = self._late, []
        for earlier in late:
            super().ask(site, earlier, seconds)
        number, self.calls = self.calls, self.calls + 1
        if number != self._number:
            return super().ask(site, call, seconds)
        if self._way == "taken":
            return None
        if self._way == "late":
            self._late.append(call)
            return None
        reply = super().ask(site, call, seconds)
        return super().ask(site, call, seconds) if self._way == "twice" and reply is not None else None


def life(number: int | None, way: str = "done") -> tuple[str, list[str], int]:
    """The phase that the claim came to, what is wrong at the end, and how many requests there were."""
    host = DyingConnector(number, way)
    claim = ConfigMapLife(via=SITE, host=host)
    return claim.run(), claim.wrong(), host.calls


def test_every_claim_ends_and_nothing_is_left_wherever_the_connector_dies(
    record_property: Callable[[str, object], None],
) -> None:
    phase, wrong, calls = life(None)
    assert (phase, wrong) == ("Available", [])
    cells = [(number, way) for number in range(calls) for way in WAYS]
    ends = {cell: life(*cell)[:2] for cell in cells}
    record_property("figure:claims_through_sites", {"requests": calls, "cells": len(cells)})
    assert {cell: end for cell, end in ends.items() if end != ("Available", [])} == {}


@pytest.mark.parametrize("way", WAYS)
def test_the_way_to_die_is_played(way: str) -> None:
    host = DyingConnector(0, way)
    claim = ConfigMapLife(via=SITE, host=host)
    call = SiteCall("GET", "/api/v1/namespaces/machines/configmaps", {}, b"")
    reply = host.ask(SITE, call)
    assert claim.host is host
    assert (reply is not None) == (way == "twice")
