"""Functions run as processes with awslambdaric: environment, errors, crashes, time limit, concurrency."""

from __future__ import annotations

import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from local.functions import processes
from local.functions.processes import Definition, Functions
from stacks.workflows import documents

SAMPLE = """
import os, time, threading

def echo(event, context):
    left = context.get_remaining_time_in_millis()
    return {"event": event, "pid": os.getpid(), "env": os.environ.get("COLOUR"), "left": left,
            "secret": os.environ.get("OF_THE_PARENT"), "arn": context.invoked_function_arn}

class NotYet(Exception):
    pass

def raises(event, context):
    raise NotYet("later")

def crashes(event, context):
    os._exit(3)

def hangs(event, context):
    threading.Event().wait()

def meets(event, context):
    open(event["folder"] + "/" + str(os.getpid()), "w").close()
    while len(os.listdir(event["folder"])) < event["parties"]:
        time.sleep(0.01)
    return os.getpid()
"""


@pytest.fixture
def functions(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Functions]:
    monkeypatch.setenv("OF_THE_PARENT", "secret")
    (tmp_path / "sample.py").write_text(SAMPLE)
    (tmp_path / "broken.py").write_text("import no_such_module")
    lambda_processes = Functions(tmp_path, tmp_path / "logs", {"PYTHONPATH": str(tmp_path)})
    for name in ("echo", "raises", "crashes", "meets"):
        arn = f"arn:aws:lambda:us-east-1:111111111111:function:{name}"
        lambda_processes.define(Definition(name, f"sample.{name}", arn, {"COLOUR": "blue"}, timeout=20, concurrency=3))
    lambda_processes.define(Definition("hangs", "sample.hangs", "arn", timeout=0.3))
    lambda_processes.define(Definition("broken", "broken.handler", "arn"))
    yield lambda_processes
    lambda_processes.close()


def call(functions: Functions, name: str, event: Any = None) -> tuple[str | None, Any]:
    answer = functions.invoke(name, json.dumps(event).encode())
    return answer.error, answer.value()


def test_a_worker_is_kept_and_has_only_the_environment_of_the_template(functions: Functions) -> None:
    error, first = call(functions, "echo", {"a": ["ü", 1]})
    _, second = call(functions, "echo", {})
    assert error is None
    assert first["event"] == {"a": ["ü", 1]}
    assert (first["env"], first["secret"]) == ("blue", None)
    assert 15_000 < first["left"] <= 20_000
    assert first["arn"].endswith(":function:echo")
    assert second["pid"] == first["pid"]
    assert (len(functions.stats.cold), len(functions.stats.warm)) == (1, 1)


def test_an_exception_is_answered_and_the_worker_is_kept(functions: Functions) -> None:
    error, body = call(functions, "raises")
    assert error == "Unhandled"
    assert (body["errorType"], body["errorMessage"]) == ("NotYet", "later")
    assert call(functions, "raises")[1]["errorType"] == "NotYet"
    assert len(functions.stats.warm) == 1


def test_a_crash_is_detected_and_the_worker_replaced(functions: Functions) -> None:
    for _ in range(2):
        error, body = call(functions, "crashes")
        assert (error, body["errorType"]) == ("Unhandled", "Runtime.ExitError")
        assert "code 3" in body["errorMessage"]


def test_the_time_limit_is_enforced(functions: Functions) -> None:
    error, body = call(functions, "hangs")
    assert (error, body["errorType"]) == ("Unhandled", "Sandbox.Timedout")
    assert "0.30 seconds" in body["errorMessage"]


def test_a_handler_that_cannot_be_loaded_is_an_error(functions: Functions) -> None:
    error, body = call(functions, "broken")
    assert (error, body["errorType"]) == ("Unhandled", "Runtime.ImportModuleError")
    assert "no_such_module" in body["errorMessage"]


def test_as_many_workers_as_needed_run_at_once(functions: Functions, tmp_path: Path) -> None:
    folder = tmp_path / "met"
    folder.mkdir()
    with ThreadPoolExecutor(3) as pool:
        event = {"folder": str(folder), "parties": 3}
        answers = [pool.submit(call, functions, "meets", event) for _ in range(3)]
        assert len({answer.result()[1] for answer in answers}) == 3


def test_a_busy_function_refuses_like_lambda(
    functions: Functions, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(processes, "PATIENCE", 0.05)
    functions.define(Definition("alone", "sample.meets", "arn", timeout=20, concurrency=1))
    folder = tmp_path / "met"
    folder.mkdir()
    event = {"folder": str(folder), "parties": 2}
    with ThreadPoolExecutor(1) as pool:
        first = pool.submit(call, functions, "alone", event)
        while not list(folder.iterdir()):
            assert not first.done()
        assert call(functions, "alone", event)[1]["errorType"] == "Lambda.TooManyRequestsException"
        (folder / "the other").touch()
        assert first.result()[0] is None


def test_a_busy_function_refuses_before_any_task_times_out() -> None:
    states = [state for document in documents().values() for state in document["States"].values()]
    limits = [state["TimeoutSeconds"] for state in states if "Retry" in state]
    assert len(documents()) == 14
    assert min(limits) > processes.PATIENCE


def test_an_unknown_function_is_a_key_error(functions: Functions) -> None:
    with pytest.raises(KeyError):
        functions.invoke("none", b"{}")
