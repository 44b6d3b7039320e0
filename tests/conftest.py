"""Fixtures that every suite shares: one served local cloud a run, the counts, and the figures that a run ends with."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Generator, Iterator
from contextlib import AbstractContextManager, ExitStack, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import settings

from stockyard.providers.registry import introduce
from tests.distribution import Units, ordered
from tests.gate import Gate
from tests.silence import Silence
from tests.soak.records import FOLDER, figures_of

if TYPE_CHECKING:
    from local.testing.serving import Served

introduce()
ROOT = Path(__file__).resolve().parents[1]
SEED = int(os.environ.get("STOCKYARD_SEED", "1"))
SOAKING = os.environ.get("STOCKYARD_SOAK") == "1"
settings.register_profile("stockyard", deadline=None)
settings.load_profile("stockyard")
"""Correctness is tested here, not speed: a busy machine must not fail a test."""

STACK = pytest.StashKey[ExitStack]()
"""What is closed at the end of the run."""
SILENCE = pytest.StashKey[Silence]()
GATE = pytest.StashKey[Gate]()
SLOW = pytest.StashKey[list[str]]()
"""What took too long."""


def commit() -> str | None:
    """Commit of the files, with a word if they differ from it; None outside of a repository."""
    git = ["git", "describe", "--always", "--dirty", "--abbrev=12"]
    return subprocess.run(git, cwd=ROOT, capture_output=True, text=True, check=False).stdout.strip() or None


def pytest_configure(config: pytest.Config) -> None:
    """Let workers be silent for each other where figures count.

    Who only collects uses no snapshot, and is not told that none is used.
    """
    config.option.warn_unused_snapshots |= config.option.collectonly
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        # a run in the background ignores Ctrl-C, and so would the commands that tests start and interrupt
        signal.signal(signal.SIGINT, signal.default_int_handler)
    stack = config.stash[STACK] = ExitStack()
    run = os.environ.get("PYTEST_XDIST_TESTRUNUID")
    if (limit := float(os.environ.get("STOCKYARD_GATE") or 0)) and not run:
        config.stash[GATE] = gate = Gate(limit)
        config.pluginmanager.register(gate, "gate")
    if (records := os.environ.get(FOLDER)) and not run:
        from tests.soak.recording import recorder

        config.pluginmanager.register(recorder(ROOT, Path(records), commit(), SEED), "soak")
    if run and SOAKING:
        folder = Path(tempfile.gettempdir()) / f"stockyard-silence-{run}"
        config.stash[SILENCE] = Silence(folder)
        stack.callback(shutil.rmtree, folder, ignore_errors=True)
        stack.callback(config.stash[SILENCE].close)
    config.add_cleanup(stack.close)


def pytest_collection_finish(session: pytest.Session) -> None:
    """Make clients and accounts of moto quick, where a test of this run imports it: a run makes thousands of them."""
    if "moto" not in sys.modules:
        return
    from local.aws.corrections.quick.clients import quick_clients
    from local.aws.corrections.quick.images import quick_images

    for quick in (quick_clients, quick_images):
        session.config.stash[STACK].enter_context(quick())


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, object, object]:
    """Begin no test while another worker measures; the time to wait is not the test's."""
    silence = item.config.stash.get(SILENCE, None)
    with silence.test() if silence else nullcontext():
        return (yield)


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session: pytest.Session, exitstatus: int) -> None:
    """Fail a run that took too long."""
    gate = session.config.stash.get(GATE, None)
    if gate is not None:
        session.config.stash[SLOW] = gate.faults()
        if session.config.stash[SLOW] and exitstatus == 0:
            session.exitstatus = pytest.ExitCode.TESTS_FAILED


@pytest.fixture(scope="session")
def alone(pytestconfig: pytest.Config) -> Callable[[], AbstractContextManager[None]]:
    """``with alone():`` no other worker runs a test, if the full counts are asked for."""
    silence = pytestconfig.stash.get(SILENCE, None)
    return silence.alone if silence else nullcontext


@pytest.fixture(scope="session")
def soaking() -> bool:
    """Whether the full counts are asked for."""
    return SOAKING


@pytest.fixture(scope="session")
def seed() -> int:
    """Seed of all randomness of a suite."""
    return SEED


@pytest.fixture(scope="session")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """``python -m local serve`` in a process and a home of its own."""
    from local.testing.serving import serving
    from tests.harness.blocks import plan_file

    folder = tmp_path_factory.mktemp("cloud")
    yield from serving(folder / "home", "--no-limits", "--faults", str(plan_file(folder)))


@pytest.fixture(scope="session")
def real(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """The same with a real Keycloak in place of the stand-in. Skips where there can be none."""
    from local.testing.serving import NotServed, serve

    try:
        cloud = serve(tmp_path_factory.mktemp("keycloak") / "home", "--keycloak", "--no-limits")
    except NotServed as reason:
        last_line = str(reason).strip().splitlines()[-1]
        if not last_line.startswith("Keycloak: "):
            raise
        pytest.skip(last_line)
    yield cloud
    assert cloud.stop() == 0


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Long units come first."""
    ordered(items)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: object) -> Units:
    """Workers get whole units."""
    return Units(config, log)


@pytest.hookimpl(trylast=True)
def pytest_unconfigure(config: pytest.Config) -> None:
    """The last line of a run that took too long says so."""
    for text in config.stash.get(SLOW, None) or ():
        print(f"TOO SLOW: {text}", file=sys.stderr)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, exitstatus: int) -> None:
    """End with one JSON line: what was counted, from which seed, at which commit, and how it went."""
    gate, slow = (terminalreporter.config.stash.get(key, None) for key in (GATE, SLOW))
    if gate is not None:
        terminalreporter.section("slowest")
        for text in gate.lines():
            terminalreporter.write_line(text)
    stats = terminalreporter.stats
    figures = figures_of([report for outcome in ("passed", "failed") for report in stats.get(outcome, ())])
    if not figures:
        return
    counts = {outcome: len(stats.get(outcome, ())) for outcome in ("passed", "failed", "error", "skipped")}
    line = {
        "soak": SOAKING,
        "commit": commit(),
        "seed": SEED,
        "exit": int(exitstatus) or int(bool(slow)),
        "tests": counts,
        "figures": dict(sorted(figures.items())),
    }
    terminalreporter.write_line(json.dumps(line))
