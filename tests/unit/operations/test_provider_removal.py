"""A provider is removed only when nobody can begin with it any more."""

from __future__ import annotations

import pytest

from stockyard.domain.platform import PLATFORM
from stockyard.domain.records import NodeClaim, NodeProvider
from stockyard.errors import InUse
from stockyard.operations import node_providers
from stockyard.operations.node_providers import delete_provider
from stockyard.operations.services import Services
from stockyard.operations.visible_providers import find_provider
from tests.unit.operations.installation import SMALL, Installation


def test_a_claim_that_comes_while_it_is_removed_is_placed_elsewhere(
    them: Installation, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The removal looks at every tenant's claims; this one is bound just behind that look."""
    cheap, _ = them.share("cheap", SMALL), them.share("dear", {**SMALL, "usdPerHour": 9.0})
    globex, platform = them.of("globex"), them.services(PLATFORM)
    claims: list[NodeClaim] = []
    set_up_for = node_providers._set_up_for

    def looked(services: Services, provider: NodeProvider) -> str:
        found = set_up_for(services, provider)
        if provider.removing_until and not claims:
            claims.append(globex.claim("racer"))
            monkeypatch.setattr(NodeProvider, "is_leaving", lambda *_: False)  # its pass began before
            them.schedule()
            monkeypatch.undo()
        return found

    monkeypatch.setattr(node_providers, "_set_up_for", looked)
    assert delete_provider(platform, cheap.id, "user:root").status == "succeeded"
    (claim,) = claims
    assert globex.now(claim).type_ref == "cheap.small"
    globex.relay()
    assert (globex.now(claim).phase, globex.now(claim).reason) == ("Pending", "InsufficientCapacity")
    them.nodes.clock.advance(60)
    them.schedule()
    globex.relay()
    assert (globex.now(claim).phase, globex.now(claim).type_ref) == ("Available", "dear.small")
    globex.delete(claim)
    globex.relay()
    assert globex.nothing_left()


def test_a_claim_that_came_before_the_removal_keeps_it(them: Installation, monkeypatch: pytest.MonkeyPatch) -> None:
    made, globex, platform = them.share("lab", SMALL), them.of("globex"), them.services(PLATFORM)
    claims: list[NodeClaim] = []
    leaving = node_providers._leaving

    def late(services: Services, provider: NodeProvider) -> NodeProvider:
        claims.append(globex.claim("early"))
        them.schedule()
        return leaving(services, provider)

    monkeypatch.setattr(node_providers, "_leaving", late)
    with pytest.raises(InUse, match="globex/early"):
        delete_provider(platform, made.id, "user:root")
    globex.relay()
    assert globex.now(claims[0]).phase == "Available"
    assert find_provider(platform, made.id).removing_until == ""


def test_while_it_is_removed_no_claim_begins_and_a_removal_that_died_is_over_soon(
    them: Installation, monkeypatch: pytest.MonkeyPatch
) -> None:
    made, globex, platform = them.share("lab", SMALL), them.of("globex"), them.services(PLATFORM)
    claim = globex.claim("one")
    them.schedule()
    monkeypatch.setattr(node_providers, "check_unused", lambda *_: None)
    node_providers._leaving(platform, made)
    globex.relay()
    assert globex.now(claim).reason == "InsufficientCapacity"
    assert "being removed" in globex.now(claim).message
    them.nodes.clock.advance(node_providers.LEAVING_SECONDS)
    them.schedule()
    globex.relay()
    assert globex.now(claim).phase == "Available"
