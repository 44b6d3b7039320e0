"""Configuration of the source. Fields mean what they mean in ``stockyard.settings``."""

from __future__ import annotations

from dataclasses import dataclass

from stockyard.machines.sources import PUBLIC, Sources


@dataclass(frozen=True, slots=True)
class BcmNodesConfig:
    """Addresses of this stage."""

    api_url: str
    in_flight_seconds: int = 60
    sources: Sources = PUBLIC
