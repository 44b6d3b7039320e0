"""Seconds of a whole core that a cold start of each function takes: to import it, and for the rest of its first
request.

CPU time as ``python -m benchmarks.cold_start --runs 5`` measured it on 2026-11-30, against a bare handler's 0.38 s.
Lambda gives a function a whole core while it is imported, and its own share then. What is not named is not measured.
"""

from __future__ import annotations

from collections.abc import Mapping

COLD_SECONDS: Mapping[str, tuple[float, float]] = {
    "autoscaler": (0.15, 0.38),
    "disruptor": (0.22, 0.55),
    "machines": (0.23, 0.31),
    "node_claims": (0.31, 0.31),
    "node_phases": (0.36, 0.30),
    "relay": (0.21, 0.33),
    "scheduler": (0.24, 0.48),
}
