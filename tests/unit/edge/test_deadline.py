"""A question ends in time whatever it does, and a tenant has so many of them answered at a time."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

import pytest

from stockyard.edge import deadline
from stockyard.edge.contract import Answer
from stockyard.edge.identity import Roles
from stockyard.edge.route import HttpFunction
from stockyard.errors import InvalidInput
from tests.unit.edge.conftest import World


def endless() -> None:
    """Work that nobody counts, and that goes on whatever fails."""
    while True:
        with suppress(Exception):
            sum(range(1000))


def test_work_that_nobody_counts_ends_with_a_refusal() -> None:
    handler = signal.getsignal(signal.SIGALRM)
    with pytest.raises(InvalidInput, match="more work than one answer has time for"), deadline.within(0.05):
        endless()
    assert signal.getsignal(signal.SIGALRM) is handler


def test_what_catches_the_end_is_ended_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(deadline, "AGAIN_SECONDS", 0.05)

    def careless() -> None:
        try:
            endless()
        except BaseException:
            endless()

    with pytest.raises(InvalidInput), deadline.within(0.05):
        careless()


def test_work_in_time_is_left_alone_and_another_timer_goes_on() -> None:
    rings: list[int] = []
    before = signal.signal(signal.SIGALRM, lambda number, _: rings.append(number))
    timer_before = signal.setitimer(signal.ITIMER_REAL, 1000)
    try:
        with deadline.within(500):
            pass
        assert signal.getitimer(signal.ITIMER_REAL)[0] > 900
    finally:
        signal.setitimer(signal.ITIMER_REAL, *timer_before)
        signal.signal(signal.SIGALRM, before)


def test_a_thread_has_no_deadline() -> None:
    results: list[str] = []

    def work() -> None:
        with deadline.within(0.001):
            threading.Event().wait(0.02)
            results.append("whole")

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert results == ["whole"]


def asking(world: World, work: Callable[[], None], *, allowed: bool = True) -> list[str]:
    """A route of a question; who took a turn for it, and gave it back."""
    calls: list[str] = []

    @contextmanager
    def turn(tenant: str, _: int) -> Iterator[bool]:
        calls.append(tenant)
        try:
            yield allowed
        finally:
            calls.append("back")

    world.__dict__["http"] = HttpFunction("asks", clock=lambda: world.now, questions=turn)

    @world.http.route("POST /v1/placements", roles=Roles.READERS, answers={200: None}, audited=False, question=True)
    def ask(request: object) -> Answer:
        """Ask."""
        work()
        return Answer(200, {})

    return calls


def test_a_question_takes_a_turn_and_gives_it_back_also_when_it_is_ended(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(deadline, "QUESTION_SECONDS", 0.05)
    calls = asking(world, lambda: None)
    assert world.call("POST", "/v1/placements").status == 200
    assert calls == ["acme", "back"]
    calls = asking(world, endless)
    refusal = world.call("POST", "/v1/placements")
    assert (refusal.status, refusal.json["type"]) == (422, "urn:stockyard:problem:InvalidInput")
    assert calls == ["acme", "back"]


def test_a_tenant_with_too_many_questions_is_told_when_to_ask_again(world: World) -> None:
    asking(world, endless, allowed=False)
    refusal = world.call("POST", "/v1/placements")
    assert (refusal.status, refusal.headers["Retry-After"]) == (429, "5")
