"""Router that the routes of node providers and of what they refer to share."""

from __future__ import annotations

from stockyard import wiring

http = wiring.http("node_providers")
