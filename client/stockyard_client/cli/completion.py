"""What the shell proposes for an argument; silent about every failure, because a prompt is no place for one."""

from __future__ import annotations

from stockyard_client.cli.context import Context
from stockyard_client.errors import StockyardClientError

_SECONDS = 2.0
_MOST = 100


def cluster_names(incomplete: str) -> list[str]:
    """Names of clusters that start with ``incomplete``."""
    try:
        with Context(call_timeout=_SECONDS).client() as client:
            names = [
                cluster.name for cluster, _ in zip(client.clusters.list(page_size=_MOST), range(_MOST), strict=False)
            ]
    except StockyardClientError:
        return []
    return [name for name in names if name.startswith(incomplete)]
