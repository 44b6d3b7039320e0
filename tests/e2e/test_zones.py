"""A zone is taken away from a cluster over three of them: its control plane and its pool keep serving, and heal into
the others."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import pytest

from tests.harness.zone_story import ZoneStory

if TYPE_CHECKING:
    from tests.harness.serving import Served

pytestmark = pytest.mark.timeout(1800)
NODES = 6


@pytest.fixture
def story(served: Served, remove: Callable[[str], dict[str, Any]], soaking: bool, request: Any) -> Iterator[ZoneStory]:
    if not soaking:
        pytest.skip("it takes minutes: tests/unit/operations/clusters/test_zone_outage.py is its sample")
    name = request.node.name.partition("[")[2].rstrip("]").replace(" ", "-")
    story = ZoneStory.create(served, served.home.parent / "plan.json", name, NODES)
    yield story
    assert remove(story.cluster["id"])["status"] == "succeeded"


@pytest.mark.parametrize("first", [True, False], ids=["first member", "another member"])
def test_a_cluster_serves_on_without_a_zone_and_heals(
    story: ZoneStory, first: bool, record_property: Callable[[str, object], None]
) -> None:
    figures = story.loses(story.member_zone(first=first), NODES)
    record_property(f"figure:zone_of_{'first' if first else 'another'}_member", figures)
