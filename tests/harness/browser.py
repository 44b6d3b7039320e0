"""A browser without a window, driven over pipes by its own protocol (Chrome DevTools Protocol).

Only with Debian's ``chromium`` or another of its kind on the machine; ``program`` says which there is.
"""

from __future__ import annotations

import base64
import fcntl
import json
import os
import shutil
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

PROGRAMS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
SECONDS = 60.0


def program() -> str | None:
    """The path of a browser, or None where there is none."""
    return next((path for name in PROGRAMS if (path := shutil.which(name))), None)


class Tab:
    """One page. ``requested`` are the addresses that it has asked for, ``complaints`` what its console shows."""

    def __init__(self, read: int, write: int) -> None:
        self._read, self._write = read, write
        self._session: str | None = None
        self._number = 0
        self._rest = b""
        self.requested: list[str] = []
        self.complaints: list[str] = []
        target = self._call("Target.createTarget", url="about:blank")["targetId"]
        self._session = self._call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Network", "Runtime", "Log"):
            self._call(f"{domain}.enable")

    def open(self, url: str) -> None:
        """Go to the address."""
        self._call("Page.navigate", url=url)

    def evaluate(self, expression: str) -> Any:
        """The value of an expression of JavaScript, as JSON has it."""
        result = self._call("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in result:
            raise AssertionError(result["exceptionDetails"])
        return result["result"].get("value")

    def wait_for(self, expression: str) -> None:
        """Until the expression is true. ``AssertionError`` when that takes too long."""
        ends = time.monotonic() + SECONDS
        while not self.evaluate(f"Boolean({expression})"):
            if time.monotonic() > ends:
                raise AssertionError(f"not true after {SECONDS:g} s: {expression}; {self.complaints}")

    def screenshot(self, path: Path) -> None:
        """Keep what is to be seen as a picture."""
        path.write_bytes(base64.b64decode(self._call("Page.captureScreenshot")["data"]))

    def _call(self, method: str, **parameters: Any) -> dict[str, Any]:
        self._number += 1
        message: dict[str, Any] = {"id": self._number, "method": method, "params": parameters}
        if self._session is not None:
            message["sessionId"] = self._session
        os.write(self._write, json.dumps(message).encode() + b"\0")
        while True:
            answer = self._message()
            if answer.get("id") == self._number:
                if "error" in answer:
                    raise AssertionError(f"{method}: {answer['error']}")
                result: dict[str, Any] = answer["result"]
                return result
            self._note(answer)

    def _note(self, event: dict[str, Any]) -> None:
        method, parameters = event.get("method"), event.get("params", {})
        if method == "Network.requestWillBeSent":
            self.requested.append(parameters["request"]["url"])
        elif method == "Log.entryAdded":
            self.complaints.append(parameters["entry"]["text"])
        elif method == "Runtime.exceptionThrown":
            self.complaints.append(json.dumps(parameters["exceptionDetails"]))

    def _message(self) -> dict[str, Any]:
        while b"\0" not in self._rest:
            part = os.read(self._read, 1 << 16)
            if not part:
                raise AssertionError("the browser has ended")
            self._rest += part
        text, _, self._rest = self._rest.partition(b"\0")
        message: dict[str, Any] = json.loads(text)
        return message


@contextmanager
def tab(browser: str, home: Path) -> Iterator[Tab]:
    """A page in a new browser, which keeps its files below ``home`` and is ended afterwards."""
    to_browser, from_browser = os.pipe(), os.pipe()
    switches = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--remote-debugging-pipe"]
    switches += ["--no-proxy-server", "--window-size=1300,1000", f"--user-data-dir={home}"]
    # The browser reads its orders from descriptor 3 and answers on 4; ours must be others, or one overwrites another.
    ends = [fcntl.fcntl(end, fcntl.F_DUPFD_CLOEXEC, 10) for end in (to_browser[0], from_browser[1])]
    process = subprocess.Popen(
        ["/bin/bash", "-c", f'exec "$0" "$@" 3<&{ends[0]} 4>&{ends[1]}', browser, *switches],
        pass_fds=ends,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    for end in (*ends, to_browser[0], from_browser[1]):
        os.close(end)
    try:
        yield Tab(from_browser[0], to_browser[1])
    finally:
        process.terminate()
        try:
            process.wait(10)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait(10)
        os.close(to_browser[1])
        os.close(from_browser[0])
