"""A world whose clusters can have profiles, and profiles to have."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from stockyard.domain.models.base import read
from stockyard.domain.models.clusters.profiles import ClusterProfileCreate, ClusterProfilePut
from stockyard.domain.profiles.records import ClusterPacks, ClusterProfile
from stockyard.domain.records import Operation
from stockyard.errors import VendorError
from stockyard.operations.clusters.creation.create import NewCluster, create_cluster
from stockyard.operations.profiles import profiles
from stockyard.operations.services import Services
from stockyard.ports import CloudWork
from tests.harness.worlds.memory_packs import MemoryPacks
from tests.harness.worlds.ports import with_ports
from tests.unit.operations.clusters.managed_world import USER, ManagedProvider, ManagedWorld
from tests.unit.operations.conftest import make_world

DEPLOYMENT = """
apiVersion: apps/v1
kind: Deployment
metadata: {name: server, namespace: tools, labels: {env: "{{ .profile.var.env }}"}}
spec: {replicas: {{ .values.replicas }}}
"""
DOCUMENT: dict[str, Any] = {
    "name": "base",
    "version": "1.0.0",
    "cloud": "any",
    "variables": [{"name": "env", "regex": "[a-z]+", "required": True}],
    "packs": [
        {"layer": "k8s", "name": "kubernetes", "tag": "1.34"},
        {
            "layer": "cni",
            "name": "net",
            "tag": "2.0",
            "manifests": [
                {"name": "agent", "content": "{apiVersion: apps/v1, kind: DaemonSet, metadata: {name: agent}}"}
            ],
        },
        {
            "layer": "addon",
            "name": "server",
            "tag": "3.1",
            "values": "replicas: 1",
            "manifests": [
                {"name": "server", "content": DEPLOYMENT},
                {"name": "space", "content": "{apiVersion: v1, kind: Namespace, metadata: {name: tools}}"},
            ],
        },
    ],
}


@dataclass
class PacksProvider(ManagedProvider):
    packs: MemoryPacks = field(default_factory=MemoryPacks)
    forget_faults: list[VendorError] = field(default_factory=list)

    @property
    def packs_admin(self) -> Any:
        return self

    def packs_api(self, work: CloudWork) -> MemoryPacks:
        self.packs.account = True
        return self.packs

    def forget_packs(self, work: CloudWork) -> None:
        if self.forget_faults:
            raise self.forget_faults.pop(0)
        self.packs.account = False


@dataclass
class PacksWorld(ManagedWorld):
    @property
    def services(self) -> Services:
        return self.world.services

    @property
    def packs(self) -> MemoryPacks:
        provider: Any = self.provider
        api: MemoryPacks = provider.packs
        return api

    @property
    def record(self) -> ClusterPacks:
        record = self.services.store.get(ClusterPacks, self.id)
        assert record is not None
        return record

    def fail_forgetting(self, *faults: VendorError) -> None:
        """The account is not removed at once."""
        provider: Any = self.provider
        provider.forget_faults = [*faults]

    def conditions(self) -> dict[str, str]:
        return {status.name: status.condition for status in self.record.packs}

    def make(self, **fields: Any) -> ClusterProfile:
        body = read(ClusterProfileCreate, {**DOCUMENT, **fields})
        return profiles.create_profile(
            self.services,
            name=body.name,
            description=body.description,
            cloud=body.cloud,
            version=body.version,
            content=body.content(),
            actor=USER,
            rights=self.rights,
            id=self.services.new_id("cpr"),
        )

    def add(self, profile: ClusterProfile, **fields: Any) -> ClusterProfile:
        document = {name: DOCUMENT[name] for name in ("version", "variables", "packs")}
        body = read(ClusterProfilePut, {**document, **fields})
        profile = profiles.find_profile(self.services, profile.id)
        return profiles.add_version(
            self.services,
            profile.id,
            profile.version,
            version=body.version,
            description=body.description,
            content=body.content(),
            actor=USER,
            rights=self.rights,
            request_id="r",
        )

    def new_cluster(self, *choices: Mapping[str, Any], **fields: Any) -> NewCluster:
        settings = {"region_name": "us-east-1"}
        return NewCluster(
            "demo", "a cluster", 1, "k8s", settings, driver="eks", profiles=choices, **{"rights": self.rights, **fields}
        )

    def create(self, *choices: Mapping[str, Any]) -> None:
        self.id = create_cluster(self.services, self.new_cluster(*choices), USER)[0].id

    def put(self, *choices: Mapping[str, Any]) -> Operation:
        self.patch({"profiles": [*choices]})
        return self.operation


def packs_world() -> PacksWorld:
    """A world without a cluster."""
    world, provider = make_world(), PacksProvider()
    world.provider = provider
    world.services = with_ports(
        world.services, cluster_drivers={"eks": provider}, driver_names={("aws", "k8s"): ("eks",)}
    )
    return PacksWorld(world, provider)
