"""Following: lists in order of time from cursor to cursor, and one resource from version to version.

The API holds a request until there is news (``wait``). While nothing happens a follower sends three requests a minute,
and after ten quiet minutes it asks each 15 seconds without holding one, because a request that waits costs something.
An API that cannot wait is asked again and again, with growing pauses. Lost connections and refusals that pass are tried
again; nothing is missed or repeated by that, because the cursor moves only with an answer.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar

from stockyard_client.errors import ApiError, ConnectionFailed
from stockyard_client.transport import LONGEST_WAIT, Transport
from stockyard_client.waiting import BREATH

QUIET_SECONDS = 600.0
"""After so long without news a follower no longer lets requests wait."""
QUIET_PAUSE = 15.0
"""Seconds between two requests of such a follower."""
POLL_SECONDS = 2.0
"""The first pause towards an API that cannot wait, or that lets too many wait already; it grows to ``QUIET_PAUSE``."""
_GROWTH = 1.5
PATIENCE_SECONDS = 300.0
"""How long an API may be out of reach without a break before a follower gives up."""
LONGEST_PAUSE = 30.0
_LETTERS = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"

R = TypeVar("R")
OnTrouble = Callable[[Exception, float], None]
"""Gets the error and the seconds after which it is tried again."""


@dataclass
class Pace:
    """Pace of questions to the API. ``sleep`` and ``clock`` are in seconds."""

    sleep: Callable[[float], None] = time.sleep
    clock: Callable[[], float] = time.monotonic
    patience: float = PATIENCE_SECONDS
    on_trouble: OnTrouble | None = None
    _pause: float = POLL_SECONDS
    _had_news: bool = False
    _failures: int = 0
    _failing_since: float = 0.0
    _news_at: float = field(init=False)

    def __post_init__(self) -> None:
        self._news_at = self.clock()

    @property
    def quiet(self) -> bool:
        """Whether nothing has happened for so long that requests should not wait any more."""
        return self.clock() - self._news_at > QUIET_SECONDS

    def breathe(self) -> None:
        """Before a request: what changes quickly is told together."""
        if self._had_news:
            self.sleep(BREATH)

    def answered(self, *, news: bool, seconds: float = 0.0, asked_to_wait: int = 0, retry_after: float = 0.0) -> None:
        """There was an answer, after so many seconds. Pauses when it brought nothing and did not wait either."""
        self._failures, self._had_news = 0, news
        if news:
            self._news_at, self._pause = self.clock(), POLL_SECONDS
        elif self.quiet:
            self.sleep(QUIET_PAUSE)
        elif seconds < max(1, asked_to_wait) * 0.5:
            self.sleep(max(self._pause, retry_after))
            self._pause = min(self._pause * _GROWTH, QUIET_PAUSE)

    def failed(self, error: Exception) -> None:
        """There was none. Pauses, or raises ``error`` when it will not pass, or has not passed for too long."""
        if isinstance(error, ApiError) and not error.passes:
            raise error
        if not self._failures:
            self._failing_since = self.clock()
        elif self.clock() - self._failing_since > self.patience:
            raise error
        self._failures += 1
        pause = min(2.0 ** (self._failures - 1), LONGEST_PAUSE)
        if isinstance(error, ApiError) and error.retry_after is not None:
            pause = min(max(error.retry_after, 0.5), 2 * LONGEST_PAUSE)
        if self.on_trouble:
            self.on_trouble(error, pause)
        self.sleep(pause)


@dataclass
class Feed:
    """One list in order of time, such as the events. ``prefix`` is that of its ids.

    It begins ``after`` a cursor or an id, or ``since`` a time (RFC 3339), or with the ``newest`` so many items, else
    with what comes from now on. ``query`` are filters. ``cursor`` is where it goes on, for another feed too.
    """

    transport: Transport
    url: str
    prefix: str
    query: Mapping[str, Any]
    pace: Pace
    after: str | None = None
    since: str | None = None
    newest: int = 0
    now: Callable[[], float] = time.time
    _old: bool = False
    """Whether the API knows ids only."""

    @property
    def cursor(self) -> str | None:
        """Value of ``after`` to go on from here; None before the first answer."""
        return self.after

    def poll(self) -> list[dict[str, Any]]:
        """The new items, in order; none when there were none for about 20 seconds, or the API could not be reached.

        Raises :class:`ApiError` for a refusal that does not pass, :class:`ConnectionFailed` after ``patience``.
        """
        self.pace.breathe()
        try:
            if self.after is None:
                return self._begin()
            return self._older_api() if self._old else self._next()
        except (ApiError, ConnectionFailed) as error:
            if is_older_api(error) and not self._old:
                self._old = True
                return []
            self.pace.failed(error)
            return []

    def _next(self) -> list[dict[str, Any]]:
        wait = LONGEST_WAIT if self.transport.can_wait and not self.pace.quiet else 0
        started = self.pace.clock()
        query = {**self.query, "after": self.after, "page_size": 200}
        answer = self.transport.send("GET", self.url, query=query, wait=wait, retry=False)
        page = answer.object()
        if page.get("cursor") is None:
            self._old = True
            return []
        items: list[dict[str, Any]] = page["items"]
        self.after = page["cursor"]
        seconds = self.pace.clock() - started
        self.pace.answered(news=bool(items), seconds=seconds, asked_to_wait=wait, retry_after=answer.retry_after)
        return items

    def _begin(self) -> list[dict[str, Any]]:
        """The items that the feed begins with, and the cursor behind them."""
        if self._old:
            return self._begin_at_older_api()
        if self.since is not None:
            query = {**self.query, "since": self.since, "page_size": 200}
        else:
            query = {**self.query, "order": "desc", "page_size": min(max(self.newest, 1), 200)}
        page = self.transport.send("GET", self.url, query=query, retry=False).object()
        if page.get("cursor") is None:
            self._old = True
            return []
        self.after = page["cursor"]
        self.pace.answered(news=True)
        items: list[dict[str, Any]] = page["items"]
        return items if self.since is not None else items[: self.newest][::-1]

    # --- an API that knows neither cursors nor waits -----------------------------------------------------------------

    def _begin_at_older_api(self) -> list[dict[str, Any]]:
        if self.newest and self.since is None:
            last: deque[dict[str, Any]] = deque(self._pages(None), maxlen=self.newest)
            self.after = last[-1]["id"] if last else self._first_id(0)
            return list(last)
        self.after = self._first_id(seconds_of(self.since) if self.since else self.now())
        return []

    def _older_api(self) -> list[dict[str, Any]]:
        if self.after is not None and "~" in self.after:
            self.after = self.after.partition("~")[0].ljust(len(self.prefix) + 27, "0")
        items: list[dict[str, Any]] = []
        try:
            for item in self._pages(self.after):
                items.append(item)
        except (ApiError, ConnectionFailed):
            if not items:
                raise
        if items:
            self.after = items[-1]["id"]
        self.pace.answered(news=bool(items))
        return items

    def _pages(self, after: str | None) -> Iterator[dict[str, Any]]:
        token: str | None = None
        while True:
            query = {**self.query, "after": after, "page_size": 200, "page_token": token}
            page = self.transport.send("GET", self.url, query=query, retry=False).object()
            yield from page.get("items", ())
            token = page.get("next_page_token")
            if not token:
                return

    def _first_id(self, seconds: float) -> str:
        """An id before all that are made from that moment on."""
        number, letters = int(seconds * 1000), ""
        for _ in range(10):
            number, digit = divmod(number, 32)
            letters = _LETTERS[digit] + letters
        return f"{self.prefix}_{letters}{'0' * 16}"


def seconds_of(text: str) -> float:
    """Seconds since 1970 of a time as the API writes it."""
    from datetime import datetime

    return datetime.fromisoformat(text).timestamp()


def watch(read: Callable[[R | None, int], R], pace: Pace, can_wait: Callable[[], bool] = lambda: True) -> Iterator[R]:
    """A record as it is, and again each time it has another version, until it is gone (``ApiError``, 404).

    ``read`` gets what it gave before, and for how many seconds the API may wait for another version; it gives the same
    again when there is none.
    """
    earlier: R | None = None
    while True:
        wait = LONGEST_WAIT if earlier is not None and can_wait() and not pace.quiet else 0
        pace.breathe()
        started = pace.clock()
        try:
            record = read(earlier, wait)
        except (ApiError, ConnectionFailed) as error:
            pace.failed(error)
            continue
        news = record != earlier
        if news:
            earlier = record
            yield record
        pace.answered(news=news, seconds=pace.clock() - started, asked_to_wait=wait)


def is_older_api(error: Exception) -> bool:
    """Whether an API of an earlier release refuses what it does not know."""
    if not isinstance(error, ApiError) or error.status != 422:
        return False
    names = ("'wait'", "'order'", "'since'")
    return any(f"no query parameter {name}" in error.detail for name in names) or "after must be the id" in error.detail
