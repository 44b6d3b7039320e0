"""Reports of paths: what is none is nothing, and only hubs that are up say who is down."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stockyard.domain.clusters.overlay_paths import DOWN, UNKNOWN, UP, paths_of, read, still

THEN, LATER = "2026-01-01T00:00:00.000Z", "2026-01-01T00:05:00.000Z"
P, Q, A, B = (f"100.64.0.{n}" for n in (1, 2, 3, 4))
ANYTHING = st.recursive(
    st.none() | st.integers() | st.text(max_size=5), lambda more: st.lists(more, max_size=3), max_leaves=5
)
NODE = {"direct": 2, "relayed": [B], "count": 1, "home": P, "since": THEN, "handshake": LATER}


def hub(**down: str) -> dict[str, Any]:
    return {"direct": 3, "down": {{"p": P, "q": Q, "a": A, "b": B}[name]: at for name, at in down.items()}}


@pytest.mark.parametrize(
    "text",
    [
        "", "{", "[]", "null", '"x"', "{}", '{"direct": true, "down": {}}', '{"direct": -1, "down": {}}',
        '{"direct": 1, "down": []}', '{"direct": 1, "down": {"a": "b"}}', '{"direct": 1, "relayed": [5], "count": 1}',
        '{"direct": 1, "relayed": [], "count": 1, "home": "nobody"}', '{"direct": 1, "relayed": [], "count": "1"}',
        '{"direct": 1, "down": {}, "since": "yesterday"}', "[" * 4000, '{"direct": 1, "relayed": 7, "count": 1}',
    ],
)  # fmt: skip
def test_what_is_no_report_is_none(text: str) -> None:
    assert read(text) is None


@given(
    st.recursive(st.none() | st.integers() | st.text(max_size=5), lambda more: st.lists(more, max_size=3), max_leaves=5)
)
def test_nothing_that_a_node_may_write_ends_a_post(value: object) -> None:
    for name in ("direct", "home", "since", "handshake", "relayed", "count", "down"):
        report = read(json.dumps({**NODE, name: value}))
        assert report is None or len(report) <= 7
    assert read(None) is None


def test_reports_have_known_fields_alone_and_a_bound() -> None:
    assert read(json.dumps({**NODE, "claim": "ncl_1", "key": "x"})) == NODE
    many = {f"100.64.1.{n}": THEN for n in range(200)}
    report = read(json.dumps({"direct": 1, "down": many}))
    assert report is not None
    assert len(report["down"]) == 30
    assert still({"a": NODE}) == {"a": {name: NODE[name] for name in NODE if name != "handshake"}}


def test_a_machine_is_down_when_no_living_hub_hears_it() -> None:
    states = paths_of([P, Q], {P: hub(a=THEN), Q: hub(a=LATER), A: NODE, B: NODE}, [P, Q, A, B])
    assert {address: state.state for address, state in states.items()} == {P: UP, Q: UP, A: DOWN, B: UP}
    assert (states[A].since, states[B].since, states[B].home, states[B].handshake_at) == (LATER, THEN, P, LATER)
    assert (states[B].direct, states[B].relayed, states[B].through_hub, states[P].relayed) == (2, 1, (B,), 0)
    states = paths_of([P, Q], {P: hub(a=THEN), Q: hub(), A: NODE}, [A, B])
    assert [states[A].state, states[B].state] == [UP, UP], "one hub hears it"
    assert states[B].direct is None


def test_what_a_dead_hub_said_last_counts_no_more() -> None:
    states = paths_of([P, Q], {P: hub(p=THEN), Q: hub(p=LATER), A: NODE}, [P, Q, A])
    assert states[P].state == DOWN
    states = paths_of([P, Q], {P: hub(a=THEN), Q: hub(p=LATER), A: NODE}, [P, Q, A])
    assert [states[P].state, states[A].state, states[P].since] == [DOWN, UP, LATER]


def test_before_a_hub_has_said_anything_nobody_knows() -> None:
    states = paths_of([P], {P: None, A: NODE}, [P, A])
    assert {state.state for state in states.values()} == {UNKNOWN}
    forged = paths_of([P], {P: hub(), A: hub(b=THEN), B: NODE}, [P, A, B])
    assert forged[B].state == UP, "a machine that is no hub says nothing of others"


def test_who_is_down_is_not_called_relayed() -> None:
    states = paths_of([P], {P: hub(b=THEN), A: {**NODE, "count": 4}}, [A])
    assert (states[A].through_hub, states[A].relayed) == ((), 3)
