"""The harness that serves the local cloud: changes beside others, and the end of what does not end."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from local.testing.serving import Answer, NotStopped, Served

TAG = {"etag": '"1"'}
ENDLESS = """
import faulthandler, signal, sys, time
faulthandler.register(signal.SIGUSR1)
signal.signal(signal.SIGINT, signal.SIG_IGN)
signal.signal(signal.SIGTERM, signal.SIG_IGN)
print("on", flush=True)
def hang():
    while True:
        time.sleep(0.1)
hang()
"""
LOST = """
import ctypes, os, signal, sys, threading, time
import local.__main__ as main
requested = threading.Event()
main._on_signals(requested)
def other():
    time.sleep(0.3)
    ctypes.CDLL(None).tgkill(os.getpid(), threading.get_native_id(), signal.SIGINT)
    time.sleep(20)
    os._exit(3)
threading.Thread(target=other, daemon=True).start()
try:
    main.wait(requested)
except main.Stopped:
    os._exit(0)
"""


class Scripted(Served):
    """A local cloud with prepared answers."""

    def __init__(self, *answers: Answer) -> None:
        self.answers, self.sent = list(answers), []

    def call(self, method: str, path: str, body: Any = None, **options: Any) -> Answer:
        self.sent.append((method, path, (options.get("headers") or {}).get("If-Match")))
        return self.answers.pop(0)


def test_a_change_is_sent_again_with_the_new_tag_when_something_else_came_between() -> None:
    read, faster = Answer(200, TAG, ""), Answer(412, {}, "")
    served = Scripted(read, faster, Answer(200, {"etag": '"2"'}, ""), Answer(202, {}, "{}"))
    assert served.change("PATCH", "/v1/a?dry_run=true", {}).status == 202
    assert served.sent == [
        ("GET", "/v1/a", None),
        ("PATCH", "/v1/a?dry_run=true", '"1"'),
        ("GET", "/v1/a", None),
        ("PATCH", "/v1/a?dry_run=true", '"2"'),
    ]
    assert Scripted(Answer(404, {}, "")).change("PUT", "/v1/a", {}).status == 404


def test_what_does_not_stop_is_killed_and_its_stacks_are_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("local.testing.serving.DUMP_SECONDS", 0.5)
    output = tmp_path / "serve.out"
    with output.open("wb") as file:
        process = subprocess.Popen([sys.executable, "-c", ENDLESS], stdout=file, stderr=file)
    served = Served(tmp_path, process)
    served.wait("start", lambda: b"on" in output.read_bytes(), 30)
    with pytest.raises(NotStopped, match=r"(?s)SigIgn.*in hang"):
        served.stop(0.2)
    assert process.returncode is not None


@pytest.mark.skipif(sys.platform != "linux", reason="tgkill gives a signal to one thread, and is Linux's")
def test_a_signal_that_another_thread_was_given_ends_the_local_cloud() -> None:
    assert subprocess.run([sys.executable, "-c", LOST], check=False, timeout=60).returncode == 0
