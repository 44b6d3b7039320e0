"""The vendor of hours with people: it has cheap types for which there is no image, and refuses launches for a while."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from random import Random
from typing import TYPE_CHECKING, Any

from local.testing.memory_store import MemoryStore
from stockyard.domain.models.base import read
from stockyard.domain.models.pools.pools import PoolCreate
from stockyard.domain.records import Cluster, NodeEnvironment, NodeProvider
from stockyard.domain.values.requirements import ARCH
from stockyard.errors import VendorRefused
from stockyard.operations.fleet.pools.plan import plan_pool
from stockyard.ports import Outcome, Replace
from stockyard.ports.node_work import EnvironmentWork, NodeWork
from stockyard.providers.nodes.simulated.provider import SimulatedNodes
from tests.harness.hours.traces import HOUR, SIZES, Size

if TYPE_CHECKING:
    from tests.harness.hours.world import Hours

LAUNCH_REFUSED = "launch refused"
"""The act: the vendor refuses launches of some types for good, until the act ends."""
EVERY_HOURS = 8
"""In each so many hours launches are refused once, beside all other acts."""
_CHEAPER = 0.8
IMAGELESS: Sequence[Size] = tuple(
    replace(size, name=f"arm-{size.name}", usd=round(size.usd * _CHEAPER, 4), spot=round(size.spot * _CHEAPER, 4))
    for size in SIZES
)
"""Types of another architecture: as large as the others, and cheaper."""


class ImagedNodes(SimulatedNodes):
    """Has images for amd64 alone, as the environment of the cluster finds out. ``denied`` are the types whose launches
    are refused."""

    has_topology = True
    needs_images = True

    denied: frozenset[str] = frozenset()

    def prepare(self, work: EnvironmentWork) -> Outcome:
        """Find the images."""
        return replace(super().prepare(work), facts={"images": "amd64"})

    def architectures(self, provider: NodeProvider, environment: NodeEnvironment | None) -> frozenset[str]:
        """See ``ports.nodes.NeedsImages``."""
        return frozenset(environment.outputs.values()) if environment is not None else frozenset()

    def location(self, provider: NodeProvider) -> tuple[str, str]:
        """See ``ports.nodes.HasTopology``."""
        return "here", "1"

    def zones(self, provider: NodeProvider, environment: NodeEnvironment | None) -> frozenset[str]:
        """The document has them."""
        return frozenset()

    def out_of_reach(self, provider: NodeProvider, cluster: Cluster | None) -> str | None:
        """All clusters are in reach."""
        return None if cluster is not None else "The claim names no cluster."

    def out_of_zone(self, *_: object) -> None:
        """The document has the zones."""
        return

    def _offering(self, work: NodeWork) -> tuple[str, str, str]:
        way = super()._offering(work)
        name = way[0].partition(".")[2]
        if name in self.denied or name in {size.name for size in IMAGELESS}:
            raise VendorRefused(f"Launches of {name} are refused.", code="SimulatedRefusal")
        return way


def entries(factor: Mapping[str, float], zones: Sequence[str]) -> list[dict[str, Any]]:
    """The types without an image, as a provider's document has them."""
    return [{**size.entry(factor, zones), "properties": {ARCH: "arm64"}} for size in IMAGELESS]


def refusals(number: int, hours: float) -> Iterator[tuple[float, str, float]]:
    """Times at which launches are refused in the hours of that number."""
    chance = Random(f"refusals {number}")
    for hour in range(0, int(hours), EVERY_HOURS):
        yield (hour + EVERY_HOURS * chance.random() * 0.9) * HOUR, LAUNCH_REFUSED, chance.random()


def refuse_launches(world: Hours, number: float) -> bool:
    """A third of the types, chosen by ``number``, are refused for ten minutes to an hour."""
    if not isinstance(world.source, ImagedNodes):
        return False
    names = frozenset(size.name for index, size in enumerate(SIZES) if (index + int(number * 1000)) % 3 == 0)
    deny(world, names)
    world.time.later((10 + 50 * number) * 60, lambda: deny(world, frozenset()))
    return True


def deny(world: Hours, names: frozenset[str]) -> None:
    """From now on launches of these types are refused, and of no others."""
    if isinstance(world.source, ImagedNodes):
        world.source.denied = names


def denied(world: Hours) -> frozenset[str]:
    """The types whose launches are refused now."""
    return world.source.denied if isinstance(world.source, ImagedNodes) else frozenset()


def plan_early(world: Hours) -> None:
    """Somebody asks for plans of the pools while their cluster is prepared: none of them is hopeless."""
    ready = world.store.get(Cluster, world.cluster.id)
    if ready is None:
        return
    preparing = replace(ready, status="preparing", version=ready.version + 1)
    MemoryStore.commit(world.store, Replace(preparing))
    for fields in world.trace.pools:
        plan = plan_pool(world.services, preparing, read(PoolCreate, fields).new_pool())
        world.judge.counts["plans while preparing"] += 1
        for text in (warning["detail"] for warning in plan["warnings"]):
            if not text.endswith(PATIENT):
                world.judge.fault("hopeless", f"{fields['name']}: {text}")
    MemoryStore.commit(world.store, Replace(replace(ready, version=ready.version + 2)))


PATIENT = "is preparing: its pools wait for it."
"""How the warning ends that every such plan has."""
