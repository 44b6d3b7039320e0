"""A request that waits for news: the answer is made again and again until it says something new, or the time is over.

A waiting request holds a process of its function, and that is what it costs. So only so many wait at once; one more is
answered at once, and ``Retry-After`` says when to ask again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from datetime import datetime, timedelta

from stockyard.edge.contract import Answer

PACE = 1.0
"""Seconds between two looks: news is told so much later at most."""
ASK_AGAIN = 5
"""Seconds after which somebody may ask again who was not let wait."""

Turns = Callable[[str, int], AbstractContextManager[bool]]
"""A turn to wait, for a tenant and so many seconds: whether it may."""


@contextmanager
def no_turns(_tenant: str, _seconds: int) -> Iterator[bool]:
    """Nobody may wait."""
    yield False


def until_news(
    ask: Callable[[], Answer],
    is_news: Callable[[Answer], bool],
    seconds: int,
    turn: Callable[[], AbstractContextManager[bool]],
    clock: Callable[[], datetime],
    sleep: Callable[[float], None],
) -> tuple[Answer, bool]:
    """The first answer that is news, else the last one of ``seconds``; and whether it was let wait for it.

    The wait may end with an error of ``ask``, such as that of a resource that is gone: that is news too.
    """
    answer = ask()
    if not seconds or is_news(answer):
        return answer, True
    end = clock() + timedelta(seconds=seconds)
    with turn() as allowed:
        if not allowed:
            return answer, False
        before: object = None
        while (remaining := (end - clock()).total_seconds()) > 0:
            sleep(min(PACE, remaining))
            if answer.probe is not None:
                state = answer.probe()
                if state == before:
                    continue
                # taken before the answer is made, so that nothing passes between the two
                before = state
            answer = ask()
            if is_news(answer):
                break
    return answer, True
