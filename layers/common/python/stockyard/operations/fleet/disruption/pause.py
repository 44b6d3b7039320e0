"""The switches that pause disruption: of a cluster, of a whole tenant. That of a pool is in its own record."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

from stockyard.domain.pools.disruption_records import ClusterDisruption
from stockyard.domain.records import Cluster, Fact
from stockyard.operations.engine.advance import until_written
from stockyard.operations.engine.watch import watch
from stockyard.operations.listing import every
from stockyard.operations.services import Services
from stockyard.ports import Create, Replace

ID = "tenant/disruption"
"""The fact that has the tenant's switch."""


def paused_by(services: Services, record: ClusterDisruption | None) -> str | None:
    """Words for who has paused the disruption of a cluster; None: nobody."""
    if record is not None and record.switched_off:
        return "the disruption of the cluster is paused"
    return "the disruption of all clusters is paused" if tenant_view(services)["paused"] else None


@until_written("disruption changes too often to be paused")
def pause_cluster(services: Services, cluster: Cluster, *, paused: bool) -> ClusterDisruption:
    """Set the cluster's switch. A decision whose nodes have not left yet is given up by the next look."""
    now = services.now()
    record = services.store.get(ClusterDisruption, cluster.id)
    if record is None:
        record = ClusterDisruption(cluster.id, now, now, now, switched_off=paused)
        services.store.commit(Create(record))
    elif record.switched_off != paused:
        record = replace(record, switched_off=paused, due_at=now, updated_at=now, version=record.version + 1)
        services.store.commit(Replace(record))
    return record


def tenant_view(services: Services) -> dict[str, Any]:
    """The tenant's switch as a ``DisruptionSwitchView`` document; ``version`` is 0 until it is set."""
    fact = services.store.get(Fact, ID)
    if fact is None:
        return {"paused": False, "updated_at": None, "version": 0}
    return {"paused": bool(json.loads(fact.value)), "updated_at": fact.time, "version": fact.version}


@until_written("the switch changes too often to be set")
def pause_tenant(services: Services, *, paused: bool) -> dict[str, Any]:
    """Set the tenant's switch. Without it every cluster is looked at soon."""
    view = tenant_view(services)
    if view["paused"] != paused:
        version = int(view["version"])
        fact = Fact(ID, json.dumps(paused), services.now(), version=version + 1)
        services.store.commit(Replace(fact) if version else Create(fact))
        for cluster in every(services.store, Cluster):
            watch(services, cluster.id)
    return tenant_view(services)
