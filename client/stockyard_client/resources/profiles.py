"""Cluster profiles as Python calls."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from stockyard_client.following import OnTrouble
from stockyard_client.models import Operation, Plan
from stockyard_client.profile_models import ClusterProfile, ClusterProfiles
from stockyard_client.resources.base import Body, Collection, parsed, path
from stockyard_client.transport import Answer

Choice = Mapping[str, Any]
"""``name``, and if they are given ``version``, ``variables`` and ``pack_values``."""


class Profiles(Collection):
    """Cluster profiles."""

    name = "cluster-profiles"

    def create(self, body: Body, *, idempotency_key: str | None = None) -> ClusterProfile:
        """Makes a profile with its first version."""
        answer = self._transport.send("POST", path(self.name), body=body, idempotency_key=idempotency_key)
        return self._profile(answer)

    def plan_create(self, body: Body) -> Plan:
        """Plans what :meth:`create` would do."""
        return self._plan("POST", path(self.name), body)

    def list(self, *, page_size: int | None = None) -> Iterator[ClusterProfile]:
        """All profiles of the tenant, page by page, without what their versions say."""
        return self._pages(ClusterProfile, {}, page_size)

    def get(self, profile: str, *, version: str | None = None) -> ClusterProfile:
        """One profile by id or name, with what that version of it says, else the newest."""
        return self._profile(self._transport.send("GET", path(self.name, profile), query={"version": version}))

    def watch(
        self, profile: str, *, version: str | None = None, on_trouble: OnTrouble | None = None
    ) -> Iterator[ClusterProfile]:
        """Gives the profile as :meth:`get` does, and again after each change, which is seen within 15 seconds, until it
        is gone."""
        return self._watch_by_reading(lambda: self.get(profile, version=version), on_trouble)

    def manifest(self, profile: str, *, version: str | None = None) -> dict[str, Any]:
        """One version of a profile as a document that can be applied."""
        query = {"version": version, "form": "manifest"}
        return self._transport.send("GET", path(self.name, profile), query=query).object()

    def add_version(self, profile: ClusterProfile | str, body: Body) -> ClusterProfile:
        """Adds a version, guarded by the record's ETag (412 when it has changed)."""
        current = profile if isinstance(profile, ClusterProfile) else self.get(profile)
        headers, url = {"If-Match": current.etag}, path(self.name, current.id)
        return self._profile(self._transport.send("PUT", url, body=body, headers=headers))

    def plan_version(self, profile: str, body: Body) -> Plan:
        """Plans what :meth:`add_version` would do."""
        return self._plan("PUT", path(self.name, profile), body, {"If-Match": self.get(profile).etag})

    def delete(self, profile: str) -> Operation:
        """Removes a profile; 409 while a cluster uses it."""
        return self._started(self._transport.send("DELETE", path(self.name, profile)))

    def plan_delete(self, profile: str) -> Plan:
        """Plans what :meth:`delete` would remove."""
        return self._plan("DELETE", path(self.name, profile))

    def of_cluster(self, cluster: str, *, refresh: bool = False) -> ClusterProfiles:
        """The profiles of a cluster; with ``refresh`` compared with what stands in it."""
        query = {"refresh": "true"} if refresh else {}
        answer = self._transport.send("GET", path("clusters", cluster, "profiles"), query=query)
        return parsed(ClusterProfiles, answer.object())

    def plan_of_cluster(self, cluster: str, profiles: Sequence[Choice]) -> Plan:
        """Plans what it would mean for a cluster to have these profiles."""
        url, headers = self._of(cluster)
        return self._plan("PUT", url, {"profiles": [*profiles]}, headers)

    def set_of_cluster(self, cluster: str, profiles: Sequence[Choice]) -> Operation:
        """Gives a ready cluster these profiles, by an operation."""
        url, headers = self._of(cluster)
        return self._started(self._transport.send("PUT", url, body={"profiles": [*profiles]}, headers=headers))

    def _of(self, cluster: str) -> tuple[str, dict[str, str]]:
        current = self._transport.send("GET", path("clusters", cluster))
        return path("clusters", cluster, "profiles"), {"If-Match": current.headers["ETag"]}

    def _profile(self, answer: Answer) -> ClusterProfile:
        return self._record(ClusterProfile, answer)
