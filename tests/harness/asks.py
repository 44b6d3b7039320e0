"""The permission checks of a run, by the local cloud's table: of one in this process, or of a served local cloud."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from inspect import stack
from pathlib import Path
from typing import Any
from unittest.mock import patch

from botocore.client import BaseClient

from local.aws.permissions import table
from local.aws.permissions.account import Account, Settings
from local.aws.permissions.calls import Call
from local.aws.permissions.policies import Ask


@contextmanager
def recorded_asks(account: str, way_in: str = "role/stockyard") -> Iterator[dict[str, Ask]]:
    """Each check of the product's calls in the account, by its text. The account has a key of its own for volumes, and
    no service has its role yet. ``way_in`` ends the ARN of the role that is assumed from outside the account."""
    asks: dict[str, Ask] = {}
    original: Any = BaseClient._make_api_call  # type: ignore[attr-defined]

    def call(client: Any, operation: str, parameters: Mapping[str, Any]) -> Any:
        from_outside = operation == "AssumeRole" and parameters["RoleArn"].endswith(way_in)
        if _is_of_the_product() and not from_outside:
            region = client.meta.region_name
            checked = Call(table.prefix(client.meta.service_model.service_name), operation, parameters, account, region)
            asks.update({str(ask): ask for ask in table.asks(checked, Account(account, region, Settings("own")))})
        return original(client, operation, parameters)

    with patch.object(BaseClient, "_make_api_call", call):
        yield asks


def _is_of_the_product() -> bool:
    """Whether the call comes from a provider: a test itself looks at the account too."""
    return any("/providers/clouds/aws/" in frame.filename and "tests" not in frame.filename for frame in stack(0))


def served_asks(home: Path, role: str) -> list[tuple[Ask, bool]]:
    """Each check of the sessions of a role in a served local cloud, and whether it was refused."""
    lines = (json.loads(line) for line in (home / "asked.jsonl").read_text(encoding="utf-8").splitlines())
    return [
        (Ask(line["action"], line["resource"], _context(line["context"])), line["refused"])
        for line in lines
        if line["role"].endswith(f":role/{role}")
    ]


def _context(context: Mapping[str, Any]) -> dict[str, str | tuple[str, ...]]:
    return {key: tuple(value) if isinstance(value, list) else value for key, value in context.items()}
