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
SECONDS = 240.0
"""How long a page is waited for: other tests may keep this machine busy meanwhile."""
PAUSE = 0.03
KEY_CODES = {"Enter": 13, "Escape": 27, "Tab": 9, "ArrowDown": 40, "ArrowUp": 38, "Backspace": 8}


def program() -> str | None:
    """The path of a browser, or None where there is none."""
    return next((path for name in PROGRAMS if (path := shutil.which(name))), None)


class Connection:
    """The pipes to one browser. Its tabs share them, and each is told what is its own."""

    def __init__(self, read: int, write: int) -> None:
        self._read, self._write = read, write
        self._number = 0
        self._rest = b""
        self._tabs: dict[str, Tab] = {}

    def add(self, tab: Tab, context: str | None) -> str:
        """Make a page for a tab, in a context with cookies of its own if one is named, and name its session."""
        within = {} if context is None else {"browserContextId": context}
        target = self.call(None, "Target.createTarget", url="about:blank", **within)["targetId"]
        session = str(self.call(None, "Target.attachToTarget", targetId=target, flatten=True)["sessionId"])
        self._tabs[session] = tab
        return session

    def call(self, session: str | None, method: str, **parameters: Any) -> dict[str, Any]:
        """One call of the protocol, and what comes back. ``AssertionError`` for an error."""
        self._number += 1
        message: dict[str, Any] = {"id": self._number, "method": method, "params": parameters}
        if session is not None:
            message["sessionId"] = session
        os.write(self._write, json.dumps(message).encode() + b"\0")
        while True:
            answer = self._message()
            if answer.get("id") == self._number:
                if "error" in answer:
                    raise AssertionError(f"{method}: {answer['error']}")
                result: dict[str, Any] = answer["result"]
                return result
            if answer.get("sessionId") in self._tabs:
                self._tabs[answer["sessionId"]].note(answer)

    def _message(self) -> dict[str, Any]:
        while b"\0" not in self._rest:
            part = os.read(self._read, 1 << 16)
            if not part:
                raise AssertionError("the browser has ended")
            self._rest += part
        text, _, self._rest = self._rest.partition(b"\0")
        message: dict[str, Any] = json.loads(text)
        return message


class Tab:
    """One page. ``requested`` are the addresses that it has asked for, ``answers`` their statuses, ``complaints`` what
    its console shows."""

    def __init__(self, connection: Connection, context: str | None = None) -> None:
        self._connection, self._context = connection, context
        self.answers: list[tuple[str, int]] = []
        self.requested: list[str] = []
        self.complaints: list[str] = []
        self._session = connection.add(self, context)
        for domain in ("Page", "Network", "Runtime", "Log"):
            self.call(f"{domain}.enable")

    def sibling(self) -> Tab:
        """One more tab of the same person."""
        return Tab(self._connection, self._context)

    def stranger(self) -> Tab:
        """A tab of somebody else, with cookies and storage of its own."""
        context = self._connection.call(None, "Target.createBrowserContext")["browserContextId"]
        return Tab(self._connection, str(context))

    def close(self) -> None:
        """Close the page."""
        self.call("Page.close")

    def open(self, url: str) -> None:
        """Go to the address."""
        self.call("Page.navigate", url=url)

    def evaluate(self, expression: str) -> Any:
        """The value of an expression of JavaScript, as JSON has it."""
        result = self.call("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in result:
            raise AssertionError(result["exceptionDetails"])
        return result["result"].get("value")

    def wait_for(self, expression: str, seconds: float = SECONDS) -> None:
        """Until the expression is true. ``AssertionError`` when that takes too long."""
        ends = time.monotonic() + seconds
        while not self._holds(expression):
            if time.monotonic() > ends:
                raise AssertionError(f"not true after {seconds:g} s: {expression}; {self.complaints}")
            time.sleep(PAUSE)

    def _holds(self, expression: str) -> bool:
        """Whether the expression is true. Nothing is while the page is left for another one."""
        try:
            return bool(self.evaluate(f"Boolean({expression})"))
        except AssertionError as error:
            if "navigated or closed" not in str(error):
                raise
            return False

    def screenshot(self, path: Path) -> None:
        """Keep what is to be seen as a picture."""
        path.write_bytes(base64.b64decode(self.call("Page.captureScreenshot")["data"]))

    def emulate(self, *, width: int = 1440, height: int = 900, dark: bool = False) -> None:
        """Width and height in pixels, and the theme that the system prefers."""
        self.call(
            "Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=width < 700
        )
        theme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.call("Emulation.setEmulatedMedia", features=[theme])

    def press(self, *keys: str, control: bool = False) -> None:
        """Press keys, one after the other, as a person does: single letters, or names such as ``Enter``."""
        for key in keys:
            code = KEY_CODES.get(key, ord(key.upper()) if len(key) == 1 else 0)
            text = {"Enter": "\r"}.get(key, key if len(key) == 1 else "")
            common = {"key": key, "modifiers": 2 if control else 0, "windowsVirtualKeyCode": code}
            down = common if control or not text else {**common, "text": text}
            self.call("Input.dispatchKeyEvent", type="keyDown", **down)
            self.call("Input.dispatchKeyEvent", type="keyUp", **common)

    def type(self, text: str) -> None:
        """Put a text into the field that has the focus."""
        self.call("Input.insertText", text=text)

    def call(self, method: str, **parameters: Any) -> dict[str, Any]:
        """One call of the protocol for this tab."""
        return self._connection.call(self._session, method, **parameters)

    def note(self, event: dict[str, Any]) -> None:
        """Keep what an event tells of requests and complaints."""
        method, parameters = event.get("method"), event.get("params", {})
        if method == "Network.requestWillBeSent":
            self.requested.append(parameters["request"]["url"])
        elif method == "Network.responseReceived":
            self.answers.append((parameters["response"]["url"], int(parameters["response"]["status"])))
        elif method == "Log.entryAdded" and parameters["entry"]["level"] == "error":
            self.complaints.append(parameters["entry"]["text"])
        elif method == "Runtime.exceptionThrown":
            self.complaints.append(json.dumps(parameters["exceptionDetails"]))
        elif method == "Runtime.consoleAPICalled" and parameters["type"] == "error":
            self.complaints.append(json.dumps(parameters["args"])[:2000])


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
        yield Tab(Connection(from_browser[0], to_browser[1]))
    finally:
        process.terminate()
        try:
            process.wait(30)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait(120)
        os.close(to_browser[1])
        os.close(from_browser[0])
