"""Cluster profiles as Python calls."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from stockyard_client.models import Operation, Plan
from stockyard_client.resources import Body, Collection, path


class Profiles(Collection):
    """Cluster profiles."""

    name = "cluster-profiles"

    def create(self, body: Body, *, idempotency_key: str | None = None) -> dict[str, Any]:
        """Makes a profile with its first version."""
        return self._transport.send("POST", path(self.name), body=body, idempotency_key=idempotency_key).object()

    def plan_create(self, body: Body) -> Plan:
        """What :meth:`create` would do."""
        return self._plan("POST", path(self.name), body)

    def list(self) -> Iterator[dict[str, Any]]:
        """All profiles of the tenant, page by page, without what their versions say."""
        token: str | None = None
        while True:
            page = self._transport.send("GET", path(self.name), query={"page_token": token}).object()
            yield from page["items"]
            token = page.get("next_page_token")
            if not token:
                return

    def get(self, profile: str) -> dict[str, Any]:
        """One profile, with what its newest version says."""
        return self._transport.send("GET", path(self.name, profile)).object()

    def add_version(self, profile: str, body: Body) -> dict[str, Any]:
        """Adds a version, guarded by the record's ETag."""
        headers = {"If-Match": self._transport.send("GET", path(self.name, profile)).headers["ETag"]}
        return self._transport.send("PUT", path(self.name, profile), body=body, headers=headers).object()

    def plan_version(self, profile: str, body: Body) -> Plan:
        """What :meth:`add_version` would do."""
        headers = {"If-Match": self._transport.send("GET", path(self.name, profile)).headers["ETag"]}
        return self._plan("PUT", path(self.name, profile), body, headers)

    def delete(self, profile: str) -> Operation:
        """Removes a profile; 409 while a cluster uses it."""
        return self._started(self._transport.send("DELETE", path(self.name, profile)))

    def of_cluster(self, cluster: str, *, refresh: bool = False) -> dict[str, Any]:
        """The profiles of a cluster; with ``refresh`` compared with what stands in it."""
        query = {"refresh": "true"} if refresh else {}
        return self._transport.send("GET", path("clusters", cluster, "profiles"), query=query).object()

    def plan_of_cluster(self, cluster: str, profiles: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
        """What it would mean for a cluster to have these profiles."""
        answer = self._put(cluster, profiles, {"dry_run": "true"})
        plan: dict[str, Any] = answer.object()["plan"]
        return plan

    def set_of_cluster(self, cluster: str, profiles: Sequence[Mapping[str, Any]]) -> Operation:
        """Gives a ready cluster these profiles, by an operation."""
        return self._started(self._put(cluster, profiles, {}))

    def _put(self, cluster: str, profiles: Sequence[Mapping[str, Any]], query: dict[str, str]) -> Any:
        current = self._transport.send("GET", path("clusters", cluster))
        headers = {"If-Match": current.headers["ETag"]}
        url = path("clusters", cluster, "profiles")
        return self._transport.send("PUT", url, body={"profiles": [*profiles]}, query=query, headers=headers)
