"""``ports.runs.Runner``: machines in memory, and builds of CodeBuild as moto plays them with our corrections."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from stockyard.errors import PermissionDenied, VendorThrottled, VendorTimeout
from tests.harness.runs.accounts import account, runner_account
from tests.harness.runs.worlds import CodeBuildWorld, MemoryWorld, World, start

HERE = runner_account("acme")
ELSEWHERE = runner_account("globex", account("2", "222222222222"))


@pytest.fixture(params=["memory", "codebuild"])
def world(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[World]:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "testing")
    monkeypatch.delenv("AWS_ENDPOINT_URL", raising=False)
    built: World
    if request.param == "memory":
        built = MemoryWorld(tmp_path)
    else:
        built = CodeBuildWorld(tmp_path)
        for own in (HERE, ELSEWHERE):
            built.with_machines(own)
    yield built
    built.close()


def test_program_ends_and_its_lines_are_kept(world: World):
    machine = world.runner.start(HERE, start())
    assert world.until(HERE, machine, "ended").reason is None
    assert "begun" in world.runner.log(HERE, machine)


def test_program_that_fails_has_a_reason(world: World):
    machine = world.runner.start(HERE, start(act="fail"))
    assert world.until(HERE, machine, "ended").reason
    assert "begun" in world.runner.log(HERE, machine)


def test_start_whose_answer_was_lost_is_the_same_machine(world: World):
    world.lose_answer()
    with pytest.raises(VendorTimeout):
        world.runner.start(HERE, start(act="wait"))
    machine = world.runner.start(HERE, start(act="wait"))
    assert world.runner.start(HERE, start(act="wait")) == machine
    assert world.runner.start(HERE, start("run_2", "wait")) != machine
    with pytest.raises(VendorThrottled):
        world.runner.start(HERE, start("run_3", "wait"))
    assert world.runner.start(ELSEWHERE, start("run_3", "wait"))


def test_start_long_after_another_is_a_new_machine(world: World):
    machine = world.runner.start(HERE, start())
    world.until(HERE, machine, "ended")
    world.forget_tokens()
    assert world.runner.start(HERE, start()) != machine


def test_machine_is_ended_at_its_limit_and_by_a_stop(world: World):
    machines = [world.runner.start(HERE, start(name, "wait")) for name in ("run_1", "run_2")]
    assert [world.until(HERE, machine, "running").phase for machine in machines] == ["running", "running"]
    for _ in range(2):
        world.runner.stop(HERE, machines[0])
        assert world.until(HERE, machines[0], "ended").reason
    world.pass_limit()
    assert world.until(HERE, machines[1], "ended").reason


def test_machine_that_is_not_known_has_ended(world: World):
    machine = world.runner.start(HERE, start(act="wait"))
    world.until(HERE, machine, "running")
    for own, name in ((HERE, "no-machine"), (HERE, "no:machine"), (ELSEWHERE, machine)):
        world.runner.stop(own, name)
        assert world.runner.state(own, name).phase == "ended"
        assert world.runner.state(own, name).reason
        assert list(world.runner.log(own, name)) == []
    assert world.runner.state(HERE, machine).phase == "running"
    world.forget(machine)
    assert world.runner.state(HERE, machine).phase == "ended"
    world.runner.stop(HERE, machine)


def test_account_without_machines_is_named(world: World):
    world.without_machines(HERE)
    with pytest.raises(PermissionDenied):
        world.runner.start(HERE, start())
    assert world.runner.start(ELSEWHERE, start())
