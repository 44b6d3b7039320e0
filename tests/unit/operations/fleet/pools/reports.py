"""Reports of pods as passes over pools read them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from stockyard.domain.records import NodeClaim
from stockyard.operations.fleet.state import PendingGroup, Workload
from stockyard.scheduling.packing.manifests import read_pod
from tests.unit.operations.fleet.pools.conftest import Yard

Counts = Mapping[str, Sequence[tuple[Any, int]]]


def pod(cpu: str = "1", memory: str = "1Gi", labels: Mapping[str, str] | None = None, **spec: Any) -> Any:
    requests = {"cpu": cpu, "memory": memory}
    metadata = {"namespace": "default", "labels": dict(labels or {})}
    return read_pod({"metadata": metadata, "spec": {"containers": [{"resources": {"requests": requests}}], **spec}})


def tell(
    workload: Workload, *waiting: tuple[Any, int], running: Counts | None = None, message: str = "", **more: Any
) -> None:
    groups = tuple(
        PendingGroup(each, count, f"g{number}", (f"default/web-{number}",), message)
        for number, (each, count) in enumerate(waiting)
    )
    for name, value in {"pending": groups, "running": running or {}, **more}.items():
        object.__setattr__(workload, name, value)


def living(yard: Yard, name: str = "burst") -> list[NodeClaim]:
    return [claim for claim in yard.claims(name) if not claim.deleting]
