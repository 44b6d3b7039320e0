"""``GET /v1/operations/{id}/log``: pages and cursors, and other tenants' operations."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from functions.records import handler
from local.testing.memory_store import MemoryRegistry
from stockyard.domain.operation_records import Operation, OperationRun
from stockyard.edge.contract import Answer, Page, Request
from stockyard.edge.identity import Caller, Roles
from stockyard.edge.log_cursor import read_position, to_cursor
from stockyard.errors import InvalidInput, NotFound
from stockyard.operations.engine.run_logs import append, begin_run
from stockyard.operations.services import Services
from stockyard.ports import Create
from tests.harness.worlds.ports import memory_services


@pytest.fixture
def services() -> Services:
    services = memory_services(MemoryRegistry())
    now = services.now()
    services.store.commit(Create(Operation("op_1", "create_node", "ncl_1", "running", (), now, now, "user:ann")))
    for name in ("plan", "apply"):
        begin_run(services, "op_1", OperationRun(name, 1, "launch", now))
        append(services, "op_1", name, 1, [f"{name} {number}" for number in range(1, 6)])
    return services


def _ask(services: Services, id: str = "op_1", size: int = 3, token: str | None = None, **query: Any) -> Answer:
    caller = Caller("user:ann", "acme", Roles.VIEWER)
    return handler.get_operation_log(Request({"id": id}, query, None, caller, "r", page=Page(size, token)), services)


def _texts(answer: Answer) -> list[str]:
    assert isinstance(answer.body, dict)
    return [item["text"] for item in answer.body["items"]]


def test_pages_and_then_the_cursor_give_every_line_once(services: Services) -> None:
    answer = _ask(services)
    texts = _texts(answer)
    while answer.next_id:
        answer = _ask(services, token=answer.next_id)
        texts += _texts(answer)
    assert texts == [f"{name} {number}" for name in ("plan", "apply") for number in range(1, 6)]
    assert _texts(_ask(services, after=answer.cursor)) == []
    append(services, "op_1", "plan", 1, ["plan 6"], first=6)
    later = _ask(services, after=answer.cursor)
    assert (_texts(later), later.next_id) == (["plan 6"], None)


def test_lines_of_one_run_by_its_name(services: Services) -> None:
    assert _texts(_ask(services, size=50, run="apply")) == [f"apply {number}" for number in range(1, 6)]
    assert _texts(_ask(services, size=50, run="destroy")) == []


def test_an_operation_without_runs_has_an_empty_log_with_a_cursor(services: Services) -> None:
    now = services.now()
    services.store.commit(Create(Operation("op_2", "create_node", "ncl_1", "running", (), now, now, "user:ann")))
    answer = _ask(services, "op_2")
    assert (_texts(answer), answer.next_id) == ([], None)
    assert read_position(str(answer.cursor)) == {}


def test_an_operation_that_is_not_there_is_told(services: Services) -> None:
    with pytest.raises(NotFound, match="no operation op_9"):
        _ask(services, "op_9")


NAMES = st.from_regex(r"[a-z][a-z0-9-]{0,31}", fullmatch=True)


@given(st.dictionaries(st.tuples(NAMES, st.integers(0, 9999)), st.integers(0, 9_999_999), max_size=50))
def test_a_cursor_is_read_as_it_was_written(position: dict[tuple[str, int], int]) -> None:
    assert read_position(to_cursor(position)) == position


@pytest.mark.parametrize("cursor", ["x", "apply.1", "apply.1.2~", "APPLY.1.2", "apply.1.2~apply.1.3", "evt_0~", "."])
def test_a_text_that_is_no_cursor_is_refused_by_the_name_of_the_parameter(cursor: str) -> None:
    with pytest.raises(InvalidInput) as refusal:
        read_position(cursor)
    assert [problem.pointer for problem in refusal.value.errors] == ["/after"]
