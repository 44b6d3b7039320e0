"""The run at the API of Stockyard: what it is to do, its log, and its end."""

from __future__ import annotations

import json
import threading
import time
import urllib.error
import urllib.request
from typing import Any

SEND_SECONDS = 1.0
"""Between two deliveries of lines."""
ALIVE_SECONDS = 10.0
"""After that long without a line an empty delivery asks whether the run is still needed."""
MOST_LINES = 500
"""Lines of one delivery."""
CALL_SECONDS = 20
CALLS = 6
SHORTEST_SECRET = 6
"""Shorter values are in every text."""
HIDDEN = "(hidden)"


class RunError(Exception):
    """The run cannot go on; the text is for people. ``end`` is how it ended: ``failed``, ``interrupted`` at its
    time-out, or ``killed`` since it did not end then. ``is_empty``: nothing is left of what it made."""

    def __init__(self, text: str, end: str = "failed", *, is_empty: bool = False) -> None:
        super().__init__(text)
        self.end, self.is_empty = end, is_empty


class Refused(Exception):
    """The API refuses a call for good, with this HTTP status."""

    def __init__(self, status: int) -> None:
        super().__init__(f"HTTP {status}")
        self.status = status


class Api:
    """The run at the API of Stockyard: what it is to do, its log, its end."""

    def __init__(self, url: str, token: str) -> None:
        self.url, self.token = url.rstrip("/"), token

    def call(self, part: str, document: dict[str, Any]) -> dict[str, Any]:
        """Answer to a document. A call that may pass is tried again, ``CALLS`` times in all."""
        body = json.dumps(document).encode()
        headers = {"Authorization": f"Bearer {self.token}", "Content-Type": "application/json"}
        request = urllib.request.Request(f"{self.url}/{part}", data=body, headers=headers, method="POST")  # noqa: S310
        for number in range(CALLS):
            try:
                with _OPENER.open(request, timeout=CALL_SECONDS) as answer:
                    text = answer.read()
                return dict(json.loads(text)) if text else {}
            except urllib.error.HTTPError as error:
                if error.code < 500 and error.code != 429:
                    raise Refused(error.code) from None
            except (OSError, ValueError):
                pass
            if number + 1 < CALLS:
                time.sleep(2**number * 0.5)
        raise RunError(f"Stockyard did not answer {CALLS} times.")


class _NoRedirects(urllib.request.HTTPRedirectHandler):
    """A redirect would take the token elsewhere."""

    def redirect_request(self, *_: Any) -> None:
        return None


_OPENER = urllib.request.build_opener(_NoRedirects)


class Log:
    """Lines of the run, sent in order by a thread of its own, without the values of secrets."""

    def __init__(self, api: Api, secrets: list[str]) -> None:
        self._api, self._lines, self._sent = api, list[str](), 0
        self._secrets = sorted((text for text in secrets if len(text) >= SHORTEST_SECRET), key=len, reverse=True)
        self._changed, self._over = threading.Condition(), False
        self.stop = threading.Event()
        """Set when Stockyard says that nobody needs the run any more."""
        self._thread = threading.Thread(target=self._send, daemon=True)
        self._thread.start()

    def hide(self, values: list[str]) -> None:
        """Hide these values too, from now on."""
        with self._changed:
            secrets = {*self._secrets, *(text for text in values if len(text) >= SHORTEST_SECRET)}
            self._secrets = sorted(secrets, key=len, reverse=True)

    def line(self, text: str) -> None:
        """Add one line."""
        with self._changed:
            for secret in self._secrets:
                text = text.replace(secret, HIDDEN)
            self._lines.append(text)
            self._changed.notify()

    def close(self) -> None:
        """Send what is left. Lines that cannot be delivered are lost; how the run ended is told all the same."""
        with self._changed:
            self._over = True
            self._changed.notify()
        self._thread.join(timeout=60)

    def _send(self) -> None:
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._over or len(self._lines) > self._sent, ALIVE_SECONDS)
                batch, over = self._lines[self._sent : self._sent + MOST_LINES], self._over
            if over and not batch:
                return
            try:
                answer = self._api.call("log", {"first": self._sent + 1, "lines": batch})
            except (Refused, RunError):
                return
            self._sent += len(batch)
            if answer.get("stop"):
                self.stop.set()
            if not over:
                time.sleep(SEND_SECONDS)
