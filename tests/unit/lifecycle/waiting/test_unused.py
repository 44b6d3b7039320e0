"""Memory of room that pods have not used, and its duration."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta

from stockyard.domain.values import times
from stockyard.lifecycle.waiting.unused import (
    BELIEVED_SECONDS,
    LEFT_SECONDS,
    MOST_GROUPS,
    MOST_NODES,
    UNUSED_SECONDS,
    GroupMemory,
    MadeNode,
    after_plan,
    after_report,
)

START = datetime(2026, 1, 1, tzinfo=UTC)
NODES = {"a": "1", "b": "1"}


def at(seconds: int) -> str:
    return times.to_text(START + timedelta(seconds=seconds))


def report(
    memory: Mapping[str, GroupMemory],
    seconds: int,
    marks: Mapping[str, str] = NODES,
    mark: str = "m",
    **made_nodes: MadeNode,
) -> Mapping[str, GroupMemory]:
    return after_report(memory, {"g": made_nodes}, set(marks), marks.get, mark, at(seconds))


def made_at(seconds: int = 0, *, took: bool = False, is_full: bool = False) -> MadeNode:
    return MadeNode(at(seconds), took, is_full)


def test_two_nodes_that_took_none_are_enough() -> None:
    memory = report({}, 0)
    # Whether two that are ready help is awaited first.
    for seconds, is_held, braked in (
        (10, True, False),
        (UNUSED_SECONDS, True, False),
        (UNUSED_SECONDS + 10, True, True),
    ):
        memory = report(memory, seconds, a=made_at(), b=made_at())
        assert (memory["g"].is_held, memory["g"].is_braked) == (is_held, braked)
    assert memory["g"].distrusted(START) == ["a", "b"]
    for changes, expected in (
        ({"mark": "other"}, set()),
        ({"marks": {"a": "2", "b": "1"}}, {"b"}),
        ({"a": made_at(took=True)}, set()),
    ):
        nodes = {"a": made_at(), "b": made_at()}
        assert set(report(memory, 200, **{**nodes, **changes})["g"].unused) == expected
    # One that was made for earlier pods says nothing.
    assert not report({}, 300, a=made_at(), b=made_at())["g"].nodes
    # Nor one that other pods have filled.
    assert report(memory, 200, a=made_at(is_full=True))["g"].nodes == {}


def test_a_node_that_left_without_them_counts_too() -> None:
    for seconds, expected in ((LEFT_SECONDS - 1, {}), (LEFT_SECONDS, {"a": None})):
        memory = report(report({}, 0, a=made_at()), seconds, {"b": "1"})
        assert memory["g"].unused == expected
    assert memory["g"].distrusted(START) == []
    # One that is only not ready for a moment has not left.
    assert after_report(report({}, 0, a=made_at()), {"g": {}}, {"a"}, {}.get, "m", at(LEFT_SECONDS))["g"].is_empty


def test_room_is_believed_for_a_while() -> None:
    memory = after_plan(report({}, 0), {"g": {"a"}, "unknown": {"a"}}, set(), NODES.get, at(0))
    memory = after_plan(report(memory, 50), {"g": {"a", "b"}}, set(), NODES.get, at(50))
    late = START + timedelta(seconds=BELIEVED_SECONDS)
    assert memory["g"].distrusted(late) == ["a"]
    assert report(memory, 60, {"a": "2", "b": "1"})["g"].distrusted(late + timedelta(seconds=50)) == ["b"]
    assert after_report(memory, {}, set(), NODES.get, "m", at(60)) == {}


def test_little_is_kept_and_only_what_matters() -> None:
    assert after_plan(report({}, 0), {}, set(), NODES.get, at(0)) == {}
    assert after_plan(report({}, 0), {}, {"g"}, NODES.get, at(0)) == {"g": GroupMemory("m", at(0))}
    groups = {f"g{number:03}": dict[str, MadeNode]() for number in range(MOST_GROUPS + 5)}
    marks = {f"n{number:03}": "1" for number in range(MOST_NODES + 5)}
    memory = after_report({}, groups, set(marks), marks.get, "m", at(0))
    assert len(memory) == MOST_GROUPS
    group_memory = after_plan(memory, {"g000": set(marks)}, set(), marks.get, at(0))["g000"]
    assert len(group_memory.rooms) == MOST_NODES
    assert GroupMemory.read(group_memory.document()) == group_memory
