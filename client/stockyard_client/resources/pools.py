"""Pools of a cluster as Python calls."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from stockyard_client.errors import ApiError
from stockyard_client.following import OnTrouble
from stockyard_client.models import Plan
from stockyard_client.pool_models import Placements, Pool
from stockyard_client.resources.base import Body, Collection, parsed, path

ATTEMPTS = 5
"""How often a change is tried while passes over the pool change its record as well."""


class Pools(Collection):
    """Pools, which give a cluster its nodes. Clusters are named by id or name, pools by name."""

    name = "pools"

    def create(self, cluster: str, body: Body, *, idempotency_key: str | None = None) -> Pool:
        """Makes a pool; its nodes are made in the background."""
        answer = self._transport.send("POST", _path(cluster), body=body, idempotency_key=idempotency_key)
        return self._record(Pool, answer)

    def plan_create(self, cluster: str, body: Body) -> Plan:
        """Plans what :meth:`create` would make at first, and cost."""
        return self._plan("POST", _path(cluster), body)

    def list(self, cluster: str, *, page_size: int | None = None, **query: Any) -> Iterator[Pool]:
        """All pools of the cluster in order of name, or those of a ``kind`` or ``label``, page by page."""
        return self._pages(Pool, query, page_size, _path(cluster))

    def get(self, cluster: str, pool: str) -> Pool:
        """One pool."""
        return self._record(Pool, self._transport.send("GET", _path(cluster, pool)))

    def newer(self, cluster: str, pool: str, earlier: Pool | None, wait: int) -> Pool:
        """The pool once it differs from ``earlier``; ``earlier`` when it does not within ``wait`` seconds."""
        return self._newer(Pool, _path(cluster, pool), earlier, wait)

    def manifest(self, cluster: str, pool: str) -> dict[str, Any]:
        """A pool as its manifest."""
        return self._transport.send("GET", _path(cluster, pool), query={"form": "manifest"}).object()

    def watch(self, cluster: str, pool: str, *, on_trouble: OnTrouble | None = None) -> Iterator[Pool]:
        """The pool now, and again after each change of the pool or of its nodes, until it is gone (:class:`ApiError`,
        404)."""
        return self._watch(Pool, _path(cluster, pool), on_trouble)

    def update(self, cluster: str, pool: Pool | str, changes: Body, *, latest: Pool | None = None) -> Pool:
        """A JSON merge patch, guarded by the record's ETag (412 when it has changed).

        Of a name alone the record is read first, and again when a pass over the pool changed it in between. ``latest``
        is the record of that name as it was read just now.
        """
        if isinstance(pool, Pool):
            return self._changed(cluster, pool, changes)
        for _ in range(ATTEMPTS - 1):
            record, latest = latest or self.get(cluster, pool), None
            try:
                return self._changed(cluster, record, changes)
            except ApiError as error:
                if error.status != 412:
                    raise
        return self._changed(cluster, self.get(cluster, pool), changes)

    def plan_update(self, cluster: str, pool: str, changes: Body) -> Plan:
        """Plans what :meth:`update` would change."""
        headers = {"If-Match": self.get(cluster, pool).etag}
        return self._plan("PATCH", _path(cluster, pool), changes, headers)

    def delete(self, cluster: str, pool: str, *, queue: bool = False) -> Pool:
        """Gives every node of the pool back; then it is gone. That of a node group leaves the cluster's settings by the
        operation ``started_operation``, with ``queue`` behind another one that is at work."""
        query = {"confirm": pool, "queue": "true" if queue else None}
        return self._record(Pool, self._transport.send("DELETE", _path(cluster, pool), query=query))

    def plan_delete(self, cluster: str, pool: str) -> Plan:
        """Plans what :meth:`delete` would remove and save."""
        return self._plan("DELETE", _path(cluster, pool))

    def _changed(self, cluster: str, pool: Pool, changes: Body) -> Pool:
        headers = {"If-Match": pool.etag}
        return self._record(
            Pool, self._transport.send("PATCH", _path(cluster, pool.name), body=changes, headers=headers)
        )


class PlacementPlans(Collection):
    """Asks which nodes pods would need; nothing is made."""

    name = "placements"

    def plan(self, manifests: Sequence[Body], *, cluster: str | None = None, preferences: bool = True) -> Placements:
        """Plans where the pods of these manifests would go: on a cluster's pools, without one on all providers."""
        body = {"cluster": cluster, "manifests": [*manifests], "preferences": preferences}
        return parsed(Placements, self._transport.send("POST", path(self.name), body=body).object())


def _path(cluster: str, *pool: str) -> str:
    return path("clusters", cluster, "pools", *pool)
