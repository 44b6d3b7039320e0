"""Clusters over three zones, which take minutes: only the soak tells of them. A zone is taken away, and control plane
and pool keep serving, and heal into the others. A member answers no more, and is replaced. All nodes of a pool are
replaced, read by somebody who only follows the events.

The samples are in memory: ``tests/unit/operations/clusters/test_zone_outage.py`` and ``test_member_health.py``, and
``tests/unit/operations/fleet/disruption/test_rolling_changes.py``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import pytest

from tests.harness.stories.zones import ZoneStory

if TYPE_CHECKING:
    from local.testing.serving import Served

pytestmark = pytest.mark.timeout(3600)
NODES = 6
Create = Callable[..., ZoneStory]


@pytest.fixture
def create(request: pytest.FixtureRequest, soaking: bool) -> Iterator[Create]:
    """Makes a cluster, which is deleted afterwards. Nothing is served for what is skipped."""
    if not soaking:
        pytest.skip("it takes minutes: the soak tells it")
    served: Served = request.getfixturevalue("served")
    remove: Callable[[str], dict[str, Any]] = request.getfixturevalue("remove")
    stories: list[ZoneStory] = []

    def make(name: str, nodes: int = NODES, **worker: Any) -> ZoneStory:
        stories.append(ZoneStory.create(served, served.home.parent / "plan.json", name, nodes, **worker))
        return stories[-1]

    yield make
    for story in stories:
        assert remove(story.cluster["id"])["status"] == "succeeded"


@pytest.mark.parametrize("name", ["first", "another"])
def test_a_cluster_serves_on_without_the_zone_of_a_member_and_heals(
    create: Create, name: str, record_property: Callable[[str, object], None]
) -> None:
    story = create(f"zone-of-{name}")
    record_property(f"figure:zone_of_{name}_member", story.loses(story.member_zone(first=name == "first"), NODES))


def test_a_member_that_answers_nobody_is_replaced(
    create: Create, record_property: Callable[[str, object], None]
) -> None:
    record_property("figure:silent_member", create("silent", 1).member_is_silent())


@pytest.mark.parametrize(
    ("name", "strategy", "unavailable"),
    [
        ("add-first", {"type": "add_first"}, 0),
        ("custom", {"type": "custom", "max_surge": 1, "max_unavailable": 3}, 3),
    ],
)
def test_ten_nodes_in_three_zones_are_replaced(
    create: Create,
    name: str,
    strategy: dict[str, Any],
    unavailable: int,
    record_property: Callable[[str, object], None],
) -> None:
    figures = create(f"rolled-{name}", 10, update_strategy=strategy).rolls(10, unavailable)
    record_property(f"figure:rolling_events_{name}", figures)
