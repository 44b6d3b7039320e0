"""A throwaway kind of machines that their owner has: the simulated source, under a kind that is owned."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

from stockyard.domain.nodes import provider_kinds
from stockyard.domain.nodes.provider_kinds import ProviderKind
from stockyard.providers import registry

OWN_HOSTS = "ownHosts"
KIND = ProviderKind(OWN_HOSTS, "stockyard.providers.nodes.simulated.document:SimulatedBlock", built=True, owned=True)


@contextmanager
def with_kinds(*kinds: ProviderKind) -> Iterator[None]:
    """Besides the registry's kinds these are there, as built ones; a kind of the same name takes the other's place."""
    registered = dict(registry.NodeKinds())
    provider_kinds.use(registered | {kind.name: replace(kind, built=True) for kind in kinds})
    try:
        yield
    finally:
        registry.introduce()
