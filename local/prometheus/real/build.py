"""Builds a real Prometheus into ``.cache/prometheus``, without its pages and its ways to find targets in clouds.

    python -m local.prometheus.real.build

Go must be there. The first time takes some three minutes on two cores, and 2 GB.
"""

from __future__ import annotations

import sys
from pathlib import Path

from local.go_program import GoProgram

_MODULE = "github.com/prometheus/prometheus"
PROMETHEUS = GoProgram(
    "prometheus",
    Path(__file__).resolve().parent,
    _MODULE,
    f"{_MODULE}/cmd/prometheus",
    "prometheus",
    tags=("remove_all_sd",),
)

if __name__ == "__main__":
    sys.exit(PROMETHEUS.build())
