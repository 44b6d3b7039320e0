"""The crash matrix of cluster profiles: a creation with one, a change of version or of profile, an upgrade with a new
version, no profile any more, and the deletion. At any write to the table, any call of the driver and any request to the
cluster a worker dies, or an answer is lost.

A person sends a request again whose answer was lost, and resumes what has failed. At the end the packs stand as they
are asked for and nothing else of ours does, the account is there only with a profile, and no record is left over.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any

import pytest

from stockyard.domain.profiles.records import ClusterPacks, ProfilePart, ProfileUse
from stockyard.domain.records import Cluster, Operation
from stockyard.errors import IllegalTransition, NotFound, StockyardError
from stockyard.operations.clusters.changes.resume import resume_cluster
from stockyard.operations.clusters.creation.create import create_cluster
from stockyard.operations.clusters.removal.delete import delete_cluster
from stockyard.operations.listing import every
from stockyard.operations.profiles.profiles import delete_profile
from stockyard.operations.sweep.records import sweep_cluster
from stockyard.ports import CloudWork
from tests.harness.worlds.memory_packs import MemoryPacks
from tests.unit.operations.clusters.managed_world import USER
from tests.unit.operations.profiles.packs_world import DOCUMENT, PacksWorld, packs_world
from tests.workflows.table_faults import Faults, FaultyStore, every_fault, sample

SAMPLE = 4
"""Cells of a story that are run normally; in the soak all are."""
PATIENCE = 6
FIRST = {"name": "base", "version": "1.0.0", "variables": {"env": "prod"}}
SECOND = {**FIRST, "version": "2.0.0"}
THIRD = {**FIRST, "version": "3.0.0"}
OTHER = {"name": "other"}
AGENT, SPACE, SERVER = ("DaemonSet", "", "agent"), ("Namespace", "", "tools"), ("Deployment", "tools", "server")
NOTES = ("ConfigMap", "", "notes")
STANDS: Mapping[str, set[tuple[str, str, str]]] = {
    "1.0.0": {AGENT, SPACE, SERVER},
    "2.0.0": {AGENT, NOTES},
    "3.0.0": {AGENT, NOTES},
}


def _pack(name: str, kind: str, thing: str) -> dict[str, Any]:
    content = f"{{apiVersion: v1, kind: {kind}, metadata: {{name: {thing}}}}}"
    return {"layer": "addon", "name": name, "tag": "1.0", "manifests": [{"name": name, "content": content}]}


@dataclass(frozen=True)
class Story:
    """The request, the workflow for it, and the resources at the end."""

    document: str
    stands: set[tuple[str, str, str]]
    patch: Mapping[str, Any] | None = None
    """None for the creation and the deletion."""
    minor: str = "1.34"


STORIES: Mapping[str, Story] = {
    "created": Story("provision_managed", STANDS["1.0.0"]),
    "version": Story("change_managed", STANDS["2.0.0"], {"profiles": [SECOND]}),
    "exchanged": Story("change_managed", {NOTES}, {"profiles": [OTHER]}),
    "together": Story("change_managed", {*STANDS["2.0.0"], SPACE}, {"profiles": [SECOND, {"name": "spaces"}]}),
    "upgraded": Story(
        "upgrade_managed", STANDS["3.0.0"], {"profiles": [THIRD], "kubernetes_version": "1.35"}, minor="1.35"
    ),
    "removed": Story("change_managed", set(), {"profiles": []}),
    "deleted": Story("delete_managed", set()),
}


class FaultyPacks:
    """A cluster's API whose answers may be lost."""

    def __init__(self, packs: MemoryPacks, faults: Faults) -> None:
        self._packs, self._faults = packs, faults

    def acting_as(self, rights: str) -> FaultyPacks:
        self._packs.acting_as(rights)
        return self

    def apply(self, document: Mapping[str, Any], **more: Any) -> Any:
        return self._faults.around("apply", lambda: self._packs.apply(document, **more))

    def get(self, *point: str) -> Any:
        return self._faults.around("get", lambda: self._packs.get(*point))

    def delete(self, *point: str) -> Any:
        return self._faults.around("delete", lambda: self._packs.delete(*point))

    def close(self) -> None:
        """Nothing is open."""


@dataclass
class ProfileLife:
    """One request, from its first sending to its end."""

    name: str
    faults: Faults = field(default_factory=Faults)
    world: PacksWorld = field(default_factory=packs_world)

    @property
    def story(self) -> Story:
        return STORIES[self.name]

    def run(self) -> list[str]:
        """Faults at the end."""
        world = self.world
        self._make_profiles()
        if self.name != "created":
            world.create(FIRST)
            assert world.drive("provision_managed") == "ready"
        plain = world.services
        self._break(plain)
        self._ask()
        for _ in range(PATIENCE):
            if self._is_over():
                break
            self._go_on()
        self.faults.site = -1
        world.world.services = plain
        return list(self._wrong())

    def _make_profiles(self) -> None:
        world, notes = self.world, _pack("notes", "ConfigMap", "notes")
        base = world.make()
        minor, net, _ = DOCUMENT["packs"]
        world.add(base, version="2.0.0", packs=[minor, {**net, "tag": "2.1"}, notes])
        world.add(base, version="3.0.0", packs=[{**minor, "tag": "1.35"}, net, notes])
        world.make(name="other", variables=[], packs=[notes])
        world.make(name="spaces", variables=[], packs=[_pack("spaces", "Namespace", "tools")])

    def _break(self, plain: Any) -> None:
        """From now on one write, call or request goes wrong."""
        world, faults = self.world, self.faults
        provider: Any = world.provider
        ensure, remove, forget = provider.ensure, provider.remove, provider.forget_packs
        world.world.services = replace(plain, store=FaultyStore(plain.store, faults))

        def faulty(call: Callable[..., Any]) -> Callable[..., Any]:
            return lambda *arguments: faults.around(call.__name__, lambda: call(*arguments))

        def packs_api(_: CloudWork) -> FaultyPacks:
            world.packs.account = True
            return FaultyPacks(world.packs, faults)

        provider.ensure, provider.remove, provider.forget_packs = faulty(ensure), faulty(remove), faulty(forget)
        provider.packs_api = packs_api

    def _ask(self) -> None:
        """Send the request until it is answered; one that is at work is the first."""
        world = self.world
        for _ in range(PATIENCE):
            try:
                if self.name == "created":
                    world.id = create_cluster(world.services, world.new_cluster(FIRST), USER, "clu_1")[0].id
                elif self.name == "deleted":
                    delete_cluster(world.services, world.id, USER)
                else:
                    world.patch(self.story.patch or {})
            except (IllegalTransition, NotFound):
                return
            except StockyardError:
                continue
            return

    def _stored(self) -> Cluster | None:
        return self.world.services.store.get(Cluster, self.world.id)

    def _is_over(self) -> bool:
        if self.name == "deleted":
            return self._stored() is None
        return self.world.operation.status == "succeeded"

    def _go_on(self) -> None:
        """The workflow runs; who finds it failed resumes it; the sweep passes by."""
        world = self.world
        with suppress(StockyardError):
            if world.operation.status == "running":
                world.drive(self.story.document)
        for then in (resume_cluster, delete_cluster) if self.name == "deleted" else (resume_cluster,):
            with suppress(StockyardError, AssertionError):
                if world.operation.status == "failed":
                    then(world.services, world.id, USER)
        with suppress(StockyardError):
            cluster = self._stored()
            if cluster is not None:
                sweep_cluster(world.services, cluster)

    def _wrong(self) -> Iterator[str]:
        store, packs = self.world.services.store, self.world.packs
        running = [operation for operation in every(store, Operation) if operation.status != "succeeded"]
        if running:
            yield f"operations: {[(each.kind, each.status, each.error) for each in running]}"
        uses = {use.id.partition("/")[0] for use in every(store, ProfileUse)}
        if self.name == "deleted":
            if self._stored() is not None or store.get(ClusterPacks, self.world.id) is not None or uses:
                yield "records of the cluster are left"
            yield from self._left_of_profiles()
            return
        cluster, record = self.world.cluster, store.get(ClusterPacks, self.world.id)
        if (cluster.status, cluster.phase, cluster.kubernetes_version) != ("ready", None, self.story.minor):
            yield f"the cluster is {cluster.status} at {cluster.phase} with {cluster.kubernetes_version}"
        if packs.objects.keys() != self.story.stands:
            yield f"{sorted(packs.objects)} stand"
        if packs.account != bool(self.story.stands):
            yield f"the account is {'there' if packs.account else 'gone'}"
        if (record is not None) != bool(self.story.stands):
            yield f"the record is {record}"
        if record is not None:
            yield from self._wrong_of(record, uses)

    def _wrong_of(self, record: ClusterPacks, uses: set[str]) -> Iterator[str]:
        if len(record.objects) != len(self.story.stands):
            yield f"{record.objects} are listed"
        if {status.condition for status in record.packs} != {"Ready"}:
            yield f"packs are {self.world.conditions()}"
        if uses != {profile["id"] for profile in record.profiles}:
            yield f"{uses} are noted as used"

    def _left_of_profiles(self) -> Iterator[str]:
        """A profile that no cluster has any more can be removed, with all its parts."""
        services = self.world.services
        for name in ("base", "other", "spaces"):
            delete_profile(services, name, USER)
        parts = [part.id for part in every(services.store, ProfilePart)]
        if parts:
            yield f"parts of profiles are left: {parts}"


@pytest.mark.parametrize("story", STORIES)
def test_lives_without_a_fault_end_well(story: str) -> None:
    assert ProfileLife(story).run() == []


@pytest.mark.parametrize("story", STORIES)
@pytest.mark.timeout(3600)
def test_profile_crash_matrix(
    story: str, seed: int, soaking: bool, record_property: Callable[[str, object], None]
) -> None:
    recorded = ProfileLife(story)
    assert recorded.run() == []
    points = list(recorded.faults.points)
    cells = every_fault(points)
    selection = cells if soaking else sample(cells, points, SAMPLE, f"{seed} {story}")
    lives = {str(cell): ProfileLife(story, cell).run() for cell in selection}
    bad = {cell: wrong for cell, wrong in lives.items() if wrong}
    record_property(f"profiles_{story}", {"cells": len(cells), "run": len(selection), "bad": len(bad)})
    assert bad == {}
