"""Histories of pods replayed against policies of disruption, as Python calls. Nothing is made."""

from __future__ import annotations

from typing import Any

from pydantic import Field

from stockyard_client.base_models import Model
from stockyard_client.resources.base import Body, Collection, parsed, path


class Waits(Model):
    """Waits of pods for a node, moved pods among them: their number and seconds."""

    count: int = 0
    longest_seconds: int = 0
    mean_seconds: float = 0.0


class WithoutPlace(Model):
    """Pods that have no place at the end, and why."""

    name: str
    count: int = 0
    why: str = ""


class Simulation(Model):
    """Outcome of a trace under one policy, counted up to ``ended_at``: the end of the trace if ``complete``."""

    complete: bool
    ended_at: str
    hours: float = 0.0
    usd: float
    node_hours: float = 0.0
    mean_nodes: float = 0.0
    peak_nodes: int = 0
    nodes: int = 0
    pods: int = 0
    evictions: int = 0
    waits: Waits = Waits()
    decision_count: int = 0
    abandoned: int = 0
    decisions: tuple[dict[str, Any], ...] = ()
    without_place: tuple[WithoutPlace, ...] = ()
    warnings: tuple[dict[str, Any], ...] = Field(default_factory=tuple)


class Simulations(Collection):
    """Asks what a trace would have cost, and whom it would have moved."""

    name = "simulations"

    def run(self, trace: Body, *, policy: Body | None = None) -> Simulation:
        """Replays the trace under ``policy``, or under what its pools say."""
        body = {**trace, "policy": policy} if policy is not None else dict(trace)
        return parsed(Simulation, self._transport.send("POST", path(self.name), body=body).object())
