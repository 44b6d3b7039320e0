"""The benchmark of cold starts knows an event for each function, and no first request loads more than it did."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator, Mapping

import pytest

from benchmarks.cold_start import EVENTS, environment, first_request, handlers, services

MODULES: Mapping[str, int] = {
    "apply": 104,
    "autoscaler": 83,
    "catalog": 116,
    "cloud_accounts": 113,
    "cluster_phases": 116,
    "cluster_profiles": 108,
    "clusters": 107,
    "disruptor": 84,
    "machines": 105,
    "node_claims": 118,
    "node_phases": 183,
    "node_providers": 112,
    "pools": 123,
    "reaper": 84,
    "records": 107,
    "relay": 82,
    "requests": 116,
    "runs": 103,
    "scheduler": 87,
    "sites": 112,
}
"""Modules of ours that the first request of each function loads. What it need not have belongs into the route or the
branch that does."""
ROOM = 4
"""Modules that may come before somebody looks here."""


def test_each_function_has_an_event():
    assert sorted(EVENTS) == sorted(MODULES) == list(handlers())


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    with services() as address:
        yield address


@pytest.mark.parametrize("name", MODULES)
def test_a_first_request_loads_what_it_does(name: str, url: str) -> None:
    code = f"import sys\nfrom functions.{name}.handler import lambda_handler\n{first_request(EVENTS[name])}"
    names = "[name for name in sys.modules if name.split('.')[0] in ('stockyard', 'functions', 'agent')]"
    done = subprocess.run(
        [sys.executable, "-c", f"{code}\nprint(*{names})"],
        env=environment(url),
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    loaded = done.stdout.splitlines()[-1].split()
    assert len(loaded) <= MODULES[name] + ROOM, sorted(loaded)
