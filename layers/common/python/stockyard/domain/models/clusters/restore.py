"""Bodies of requests to restore a cluster."""

from __future__ import annotations

from typing import Annotated

from pydantic import StringConstraints

from stockyard.domain.models.base import Input
from stockyard.domain.models.patterns import worded

_SNAPSHOT = worded(r"^(latest|[0-9]{8}T[0-9]{6}Z)$", "the id of a snapshot such as 20260131T120000Z, or latest")


class RestoreRequest(Input):
    """The snapshot of etcd that the cluster begins anew from."""

    snapshot: Annotated[str, StringConstraints(pattern=_SNAPSHOT)] = "latest"
    """The id of the snapshot, or ``latest``."""
