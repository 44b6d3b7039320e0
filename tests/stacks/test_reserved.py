"""Shares of the account's concurrency that are kept: floors for what must go on, caps for what tenants can make
long."""

from __future__ import annotations

from typing import Any

import pytest

from stacks.config import load
from stacks.functions import FUNCTIONS, LEAST_QUOTA, SHARES, reserved
from stacks.node import use_bundled_node

UNRESERVED = 100
"""What AWS leaves to functions that keep nothing, at least."""


@pytest.mark.parametrize("quota", [LEAST_QUOTA, 1_000, 10_000])
def test_what_is_kept_leaves_enough_for_all_others(quota: int) -> None:
    amounts = {spec.name: reserved(spec.name, quota) for spec in FUNCTIONS}
    parts = {name: amount for name, amount in amounts.items() if amount is not None}
    assert parts.keys() == SHARES.keys()
    assert min(parts.values()) >= 10
    assert sum(parts.values()) <= quota * 0.7 <= quota - UNRESERVED


@pytest.mark.parametrize("quota", [0, 10, LEAST_QUOTA - 1])
def test_of_a_small_or_unknown_account_nothing_is_kept(quota: int) -> None:
    assert [reserved(spec.name, quota) for spec in FUNCTIONS] == [None] * len(FUNCTIONS)


def test_the_functions_of_a_stage_keep_their_parts() -> None:
    use_bundled_node()
    from aws_cdk import App, Stack, assertions

    from stacks.constructs.functions import Functions

    issuer = "https://id.example.com/realms/stockyard"
    config = load("dev", {"dev": {"issuer": issuer, "concurrency_quota": "1000"}})
    stack = Stack(App(analytics_reporting=False), "Probe")
    arn = "arn:aws:dynamodb:us-east-1:111111111111:table/t/stream/1"
    Functions(stack, "Functions", config=config, api_url="https://api.example.com", stream_arn=arn, bundled=False)
    resources: dict[str, Any] = assertions.Template.from_stack(stack).find_resources("AWS::Lambda::Function")
    amounts = {
        properties["FunctionName"].removeprefix("stockyard-dev-"): properties["ReservedConcurrentExecutions"]
        for properties in (resource["Properties"] for resource in resources.values())
        if "ReservedConcurrentExecutions" in properties
    }
    assert amounts == {name.replace("_", "-"): reserved(name, 1000) for name in SHARES}
