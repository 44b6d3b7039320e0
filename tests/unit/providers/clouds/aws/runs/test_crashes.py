"""Each call of a run's life is lost, refused, throttled, or the last of a worker that dies: the run is one build, which
is followed to its end."""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from unittest.mock import patch

import boto3
import pytest
from moto import mock_aws
from moto.core.base_backend import BackendDict

from local.aws.corrections.builds import Builds, played_builds
from stockyard.errors import VendorError
from stockyard.providers.clouds.aws.runs.runner import CodeBuildRunner
from stockyard.providers.clouds.aws.sessions import Sessions
from tests.harness.crash.faults import Call, Crash, Fault, Mode, Tap, tapped_clients
from tests.harness.runs.accounts import runner_account
from tests.harness.runs.worlds import PREFIX, make_project, start

HERE = runner_account("acme")
MODES = (Mode.BEFORE, Mode.AFTER, Mode.TIMEOUT, Mode.THROTTLED, Mode.REFUSED)
REFUSABLE = {"codebuild.StartBuild", "codebuild.BatchGetBuilds"}


class Short:
    """Builds that end when they have been looked at twice."""

    def __init__(self) -> None:
        self.names: list[str] = []
        self._looks = 0

    def start(self, name: str, buildspec: str, variables: Mapping[str, str], seconds: float) -> Short:
        """See ``Player``."""
        assert (bool(buildspec), variables["ACT"], seconds) == (True, "end", 300)
        self.names.append(name)
        self._looks = 0
        return self

    def poll(self) -> int | None:
        """See ``Carried``."""
        self._looks += 1
        return 0 if self._looks > 2 else None

    def printed(self) -> list[str]:
        """See ``Carried``."""
        return ["begun"]

    def stop(self) -> None:
        """See ``Carried``."""


@contextmanager
def accounts(tap: Tap) -> Iterator[Short]:
    """The tenant's account, whose calls pass the tap."""
    player = Short()
    with ExitStack() as stack:
        stack.enter_context(mock_aws())
        BackendDict.reset()
        stack.enter_context(played_builds(Builds(player)))
        clients = Sessions(boto3.Session).of(HERE.account, "owner")
        make_project(clients.get("codebuild", HERE.region), HERE)
        stack.enter_context(tapped_clients(tap, {}))
        yield player


def lived(tap: Tap) -> list[str]:
    """Carry a run out as an operation does, from its last record on, until it has ended: its lines."""
    record: dict[str, str] = {}
    for _ in range(40):
        runner = CodeBuildRunner(Sessions(boto3.Session), PREFIX)
        try:
            if "build" not in record:
                record["build"] = runner.start(HERE, start())
            while runner.state(HERE, record["build"]).phase != "ended":
                pass
            lines = list(runner.log(HERE, record["build"]))
            runner.stop(HERE, record["build"])
        except Crash:
            continue
        except VendorError as error:
            if not error.retryable:
                tap.lift()
        else:
            return lines
    raise AssertionError("the run does not end")


@pytest.fixture(autouse=True)
def keys(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "testing")
    monkeypatch.delenv("AWS_ENDPOINT_URL", raising=False)
    with patch("time.sleep"):
        yield


def test_run_is_one_build_whatever_happens_to_its_calls(soaking: bool, seed: int) -> None:
    recorder = Tap(lambda: "run")
    with accounts(recorder) as player:
        assert lived(recorder) == ["begun"]
        assert len(player.names) == 1
    calls: list[Call] = list(dict.fromkeys(recorder.calls))
    assert {call.name for call in calls} >= REFUSABLE | {"logs.GetLogEvents", "sts.AssumeRole"}
    cells = [(call, mode) for call in calls for mode in MODES]
    for call, mode in cells if soaking else random.Random(seed).sample(cells, 15):
        tap = Tap(lambda: "run", faults=[Fault(call, mode)])
        with accounts(tap) as player:
            lines = lived(tap)
        # a log that may not be read leaves what CodeBuild says of a build, and that is nothing
        is_without_log = (call.name, mode) == ("logs.GetLogEvents", Mode.REFUSED)
        assert lines == ([] if is_without_log else ["begun"]), (call, mode)
        assert len(player.names) == 1, (call, mode)
        assert tap.faults == [] or tap.faults[0].fired, (call, mode)
