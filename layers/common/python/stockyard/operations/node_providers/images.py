"""Images: the architectures for which a place has one, as far as that is known before its first node."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from stockyard.domain.records import NodeEnvironment, NodeProvider
from stockyard.operations.services import Services

Architectures = Mapping[str, frozenset[str]]
"""Architectures, by Kubernetes' names, by the provider's."""
MOST_LIKELY = frozenset({"amd64"})
"""What is taken for granted of a place whose images nobody has looked for: what is made for others may never start."""


def images_of(
    services: Services,
    providers: Iterable[NodeProvider],
    environment_of: Callable[[NodeProvider], NodeEnvironment | None],
) -> tuple[Architectures, Architectures]:
    """The architectures for which there are images in a cluster, of providers that need them: where they are known, and
    what is taken for granted of the others. ``environment_of`` is the provider's environment in the cluster."""
    images: dict[str, frozenset[str]] = {}
    likely: dict[str, frozenset[str]] = {}
    for provider in providers:
        source = services.node_sources.get(provider.kind)
        if source is None or not source.needs_images:
            continue
        architectures = source.architectures(provider, environment_of(provider))
        (images if architectures else likely)[provider.name] = architectures or MOST_LIKELY
    return images, likely
