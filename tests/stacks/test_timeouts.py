"""Time-outs fit into each other: all attempts of a call to AWS, the function that makes it, the task that waits."""

from __future__ import annotations

import pytest
from botocore.config import Config

from stacks import workflows
from stacks.functions import FUNCTIONS
from stockyard.providers.clouds.aws.calls import SLOW_CALLS, UNTOKENED
from stockyard.providers.clouds.aws.sessions import ONCE, RETRYING, SLOW, SLOW_READ_SECONDS
from stockyard.settings import Settings

LONGEST_PAUSE = 20
"""Seconds that botocore waits at most between two attempts."""
TIMEOUTS = {spec.name: spec.timeout for spec in FUNCTIONS}


def longest(config: Config) -> int:
    """Seconds that all attempts of a call may take."""
    options = vars(config)["_user_provided_options"]
    attempts = options["retries"]["total_max_attempts"]
    each = options["connect_timeout"] + options["read_timeout"]
    return int(attempts * each + (attempts - 1) * LONGEST_PAUSE)


@pytest.mark.parametrize("function", ["cluster_phases", "node_phases"])
@pytest.mark.parametrize("config", [RETRYING, ONCE, SLOW])
def test_call_ends_before_its_function_and_that_before_its_task(config: Config, function: str) -> None:
    assert longest(config) < TIMEOUTS[function] < workflows.CALL_SECONDS


def test_calls_for_machines_have_a_minute_and_are_repeated_by_the_workflow_alone() -> None:
    assert {"create_fleet", "run_instances"} == SLOW_CALLS
    assert not SLOW_CALLS & UNTOKENED, "they have a client token"
    options = vars(SLOW)["_user_provided_options"]
    assert (options["read_timeout"], options["retries"]["total_max_attempts"]) == (SLOW_READ_SECONDS, 1) == (60, 1)


def test_call_that_may_be_under_way_outlasts_the_function_that_makes_it() -> None:
    assert Settings(table="t").in_flight_seconds >= TIMEOUTS["node_phases"]
