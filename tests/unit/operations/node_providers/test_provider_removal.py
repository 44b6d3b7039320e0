"""A provider is removed only when no claim can be launched by it any more."""

from __future__ import annotations

import pytest

from stockyard.domain.platform import PLATFORM
from stockyard.domain.records import NodeClaim, NodeProvider
from stockyard.errors import InUse
from stockyard.operations.node_providers import providers as node_providers
from stockyard.operations.node_providers.providers import delete_provider
from stockyard.operations.node_providers.visible import find_provider
from stockyard.operations.services import Services
from tests.unit.operations.installation import SMALL, Installation


def test_claim_bound_during_removal_is_placed_elsewhere(
    installation: Installation, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Bind the claim right after the removal has read the claims of every tenant."""
    cheap, _ = installation.share("cheap", SMALL), installation.share("dear", {**SMALL, "usdPerHour": 9.0})
    globex, platform = installation.of("globex"), installation.services(PLATFORM)
    claims: list[NodeClaim] = []
    set_up_for = node_providers._set_up_for

    def looked(services: Services, provider: NodeProvider) -> str:
        clusters = set_up_for(services, provider)
        if provider.removing_until and not claims:
            claims.append(globex.claim("racer"))
            monkeypatch.setattr(NodeProvider, "is_leaving", lambda *_: False)  # its pass began before
            installation.schedule()
            monkeypatch.undo()
        return clusters

    monkeypatch.setattr(node_providers, "_set_up_for", looked)
    assert delete_provider(platform, cheap.id, "user:root").status == "succeeded"
    (claim,) = claims
    assert globex.now(claim).type_ref == "cheap.small"
    globex.relay()
    assert (globex.now(claim).phase, globex.now(claim).reason) == ("Pending", "InsufficientCapacity")
    installation.nodes.clock.advance(60)
    installation.schedule()
    globex.relay()
    assert (globex.now(claim).phase, globex.now(claim).type_ref) == ("Available", "dear.small")
    globex.delete(claim)
    globex.relay()
    assert globex.nothing_left()


def test_claim_bound_before_removal_keeps_provider(installation: Installation, monkeypatch: pytest.MonkeyPatch) -> None:
    provider, globex, platform = (
        installation.share("lab", SMALL),
        installation.of("globex"),
        installation.services(PLATFORM),
    )
    claims: list[NodeClaim] = []
    leaving = node_providers._leaving

    def late(services: Services, provider: NodeProvider) -> NodeProvider:
        claims.append(globex.claim("early"))
        installation.schedule()
        return leaving(services, provider)

    monkeypatch.setattr(node_providers, "_leaving", late)
    with pytest.raises(InUse, match="globex/early"):
        delete_provider(platform, provider.id, "user:root")
    globex.relay()
    assert globex.now(claims[0]).phase == "Available"
    assert find_provider(platform, provider.id).removing_until == ""


def test_launches_are_refused_until_interrupted_removal_expires(
    installation: Installation, monkeypatch: pytest.MonkeyPatch
) -> None:
    provider, globex, platform = (
        installation.share("lab", SMALL),
        installation.of("globex"),
        installation.services(PLATFORM),
    )
    claim = globex.claim("one")
    installation.schedule()
    monkeypatch.setattr(node_providers, "check_unused", lambda *_: None)
    node_providers._leaving(platform, provider)
    globex.relay()
    assert globex.now(claim).reason == "InsufficientCapacity"
    assert "being removed" in globex.now(claim).message
    installation.nodes.clock.advance(node_providers.LEAVING_SECONDS)
    installation.schedule()
    globex.relay()
    assert globex.now(claim).phase == "Available"
