"""Money of a stretch of time in our account: list prices times what was counted."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from benchmarks import rates
from stacks.functions import FUNCTIONS

LOG_KB = 0.6
"""Of one invocation, with the lines of Lambda itself (``benchmarks.cost`` has the same)."""
ITEM_GB_HOUR = (rates.DYNAMODB_STORAGE_GB + rates.DYNAMODB_BACKUP_GB) / rates.HOURS


def money(figures: Mapping[str, Any], hours: float, stored_gb: float) -> dict[str, float]:
    """USD by item, of figures as ``Tally.hour`` gives them. What a stage costs that does nothing (alarms, a key, a
    dashboard) is not in it: ``benchmarks.cost`` has that."""
    memory = {spec.name: spec.memory / 1024 for spec in FUNCTIONS}
    runs, calls = sum(figures["invocations"].values()), figures["calls"]
    gb_seconds = sum(seconds * memory[name] for name, seconds in figures["function_seconds"].items())
    items = {
        "functions": runs * rates.LAMBDA_REQUEST + gb_seconds * rates.LAMBDA_ARM_GB_SECOND,
        "reads": figures["units"]["read"] * rates.DYNAMODB_READ,
        "writes": figures["units"]["write"] * rates.DYNAMODB_WRITE,
        "stored": stored_gb * ITEM_GB_HOUR * hours,
        "transitions": calls.get("transitions", 0) * rates.STEP_FUNCTIONS_TRANSITION,
        "events": figures["other"].get("events", 0) * rates.EVENT,
        "gateway": figures["other"].get("requests", 0) * rates.HTTP_API_REQUEST,
        "logs": runs * LOG_KB / 1e6 * (rates.LOGS_GB + rates.LOGS_STORED_GB),
        "secrets": calls.get("secretsmanager GetSecretValue", 0) * rates.SECRET_CALL,
    }
    return {name: round(usd, 6) for name, usd in items.items()}
