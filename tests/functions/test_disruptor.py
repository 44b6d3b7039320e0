"""The handler that lets nodes go: its schedule begins passes, and each of them is one cluster's."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import pytest

from functions.disruptor import handler
from stockyard import wiring
from stockyard.wiring import passes
from tests.harness.worlds.inprocess import Context
from tests.harness.worlds.memory import FixedClock


class Disruptor:
    """Notes what is begun."""

    def __init__(self) -> None:
        self.calls: list[tuple[Any, ...]] = []

    def woken(self, *arguments: str) -> dict[str, int]:
        self.calls.append(arguments)
        return {"clusters": 1}

    def due(self, now: datetime) -> dict[str, int]:
        self.calls.append((now,))
        return {"clusters": 7}


def test_an_event_with_a_cluster_is_its_pass_and_anything_else_the_schedule(monkeypatch: pytest.MonkeyPatch) -> None:
    disruptor, clock = Disruptor(), FixedClock()
    monkeypatch.setattr(passes, "disruptor", lambda: disruptor)
    monkeypatch.setattr(wiring, "clock", lambda: clock)
    event = {"tenant": "acme", "cluster": "clu_1", "lease": "2026-01-01T00:00:25.000Z"}
    context = Context("disruptor", "request")
    assert handler.lambda_handler(event, context) == {"clusters": 1}
    assert handler.lambda_handler({"detail": {}}, context) == {"clusters": 7}
    assert disruptor.calls == [("acme", "clu_1", "2026-01-01T00:00:25.000Z"), (clock.now(),)]
